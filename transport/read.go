package transport

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
)

// read classifies the response. Of its body it takes what the dialect asks for,
// and puts it back.
func (a *attempt) read(to *target) provider.Feedback {
	d := &to.dialect
	var head []byte
	whole := false
	// NeedsBody is not asked where it can only say no: it looks at every header.
	if (len(d.Signals) > 0 || a.res.StatusCode >= 400) && dialect.NeedsBody(*d, a.res) {
		head, whole = peek(a.res)
	}
	if !whole && (len(d.Used) > 0 || len(d.Budgets) > 0) && dialect.NeedsWholeBody(*d, a.res) {
		a.tee = &tee{dialect: d}
	}
	f := dialect.Read(*d, a.res, head, time.Now())
	if to.dated {
		f.Date = dialect.Date(a.res.Header)
	}
	return f
}

// news tells whether an answer says more than that it is one.
func news(f *provider.Feedback) bool {
	return len(f.Budgets) > 0 || len(f.Used) > 0 || f.Detail != "" || !f.Date.IsZero()
}

// peek reads the beginning of a body and puts it back, with the error that ended
// it; whole: that is all of it.
func peek(res *http.Response) (head []byte, whole bool) {
	head, err := io.ReadAll(io.LimitReader(res.Body, dialect.MaxSignalBody))
	var rest io.Reader = res.Body
	if err != nil {
		rest = failing{err}
	}
	res.Body = &putBack{io.MultiReader(bytes.NewReader(head), rest), res.Body}
	return head, err == nil && len(head) < dialect.MaxSignalBody
}

// putBack is a body whose beginning was read.
type putBack struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// tee keeps the beginning of a body that passes to the caller, for what it tells
// of used amounts.
type tee struct {
	dialect *provider.Dialect

	mu   sync.Mutex // a body may be closed while it is read
	kept []byte
}

func (t *tee) add(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[:min(len(p), dialect.MaxUsedBody-len(t.kept))]...)
}

// used reports the real cost that the body told.
func (a *attempt) used() {
	a.tee.mu.Lock()
	defer a.tee.mu.Unlock()
	if f := dialect.Read(*a.tee.dialect, a.res, a.tee.kept, time.Now()); len(f.Used) > 0 {
		a.lease.Report(provider.Feedback{Used: f.Used})
	}
	a.tee.kept = nil
}
