package transport

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// trip is one RoundTrip: as many attempts as the Coordinator lets it make.
type trip struct {
	base    http.RoundTripper
	r       *http.Request // the caller's: it is never changed
	to      *target
	rewinds bool // its body can be had again
	key     func(slug, alias string) string
	last    *attempt // nil: nothing was sent
	first   attempt  // most trips need no other
}

// rewinds tells whether a request's body can be had again.
func rewinds(r *http.Request) bool {
	return r.Body == nil || r.Body == http.NoBody || r.GetBody != nil
}

// idempotent tells whether a request does no more when it arrives twice.
func idempotent(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	_, has := r.Header["Idempotency-Key"]
	_, hasX := r.Header["X-Idempotency-Key"]
	return has || hasX
}

// try is the function that the Coordinator calls: one attempt. It returns nil
// where nothing may be sent again, whatever the answer was.
func (x *trip) try(ctx context.Context) error {
	ls, _ := coordinator.LeaseFrom(ctx)
	a, body, err := x.next()
	if err != nil {
		ls.Forget()
		return provider.Feedback{Outcome: provider.Canceled, Detail: "the request's body cannot be had again"}.Err(err)
	}
	x.last, a.lease = a, ls
	sendCtx := ctx
	if ctx.Done() != x.r.Context().Done() { // the Coordinator has put a timeout on it
		sendCtx = a.bounded(ctx, x.r.Context())
	}
	f := x.send(sendCtx, a, body)
	if a.err != nil {
		a.expired(ctx)
		return x.failed(a)
	}
	refused := f.Err(nil)
	if refused != nil || news(&f) {
		ls.Report(f)
	} // else the function's end, which is now, says the same
	a.hold(refused != nil)
	if x.rewinds {
		return refused
	}
	return nil
}

// failed is what the Coordinator gets to know of an attempt without an answer.
func (x *trip) failed(a *attempt) error {
	a.finish()
	if f, ok := provider.FeedbackOf(a.err); ok && !x.rewinds {
		// It may say rate_limited, for which the Coordinator would try again.
		a.lease.Report(f)
		return nil
	}
	return a.cause()
}

// under makes the one attempt of a request that goes under its caller's lease: who
// has it decides on the slot and on what is tried again.
func (x *trip) under(ls *coordinator.Lease) (*http.Response, error) {
	a := &x.first
	a.lease = ls
	f := x.send(x.r.Context(), a, x.r.Body)
	if a.err != nil {
		return nil, a.err
	}
	ls.Report(f)
	if a.tee != nil {
		a.lent = true
		a.wrap()
	}
	return a.res, nil
}

// next prepares an attempt. The first one's body is the request's own.
func (x *trip) next() (a *attempt, body io.ReadCloser, err error) {
	if x.last == nil {
		return &x.first, x.r.Body, nil
	}
	if x.r.Body == nil || x.r.Body == http.NoBody {
		return new(attempt), x.r.Body, nil
	}
	if x.r.GetBody == nil {
		return nil, nil, errors.New("transport: the request has no GetBody")
	}
	if body, err = x.r.GetBody(); err != nil {
		return nil, nil, err
	}
	return new(attempt), body, nil
}

var errNeither = errors.New("transport: Base returned neither a response nor an error")

// send sends the request once. What came of it is in a; the feedback is that of a
// response.
func (x *trip) send(ctx context.Context, a *attempt, body io.ReadCloser) (f provider.Feedback) {
	ctx = a.traced(ctx)
	var req *http.Request
	if a == &x.first {
		// Shallow: Base must not change the request either.
		req = x.r.WithContext(ctx)
	} else {
		req = x.r.Clone(ctx)
	}
	req.Body = body
	if a.err = x.to.sign(req, a.lease.Key(), x.key); a.err != nil {
		if body != nil {
			_ = body.Close() // nobody reads it: its error tells nothing
		}
		return f
	}
	res, err := x.base.RoundTrip(req)
	switch {
	case err != nil && res != nil && res.Body != nil:
		_ = res.Body.Close() // no caller looks at a response beside an error
	case err == nil && res == nil:
		err = errNeither
	}
	if err != nil {
		a.err = err
		if a.unsent() {
			a.lease.Forget()
		}
		return f
	}
	if res.Request == req {
		res.Request = x.r // whose context has no lease of ours
	}
	if res.Body == nil {
		res.Body = emptyBody(req, res)
	}
	a.res = res
	return a.read(x.to)
}

// result is what the caller gets. err is the Coordinator's.
func (x *trip) result(err error) (*http.Response, error) {
	a := x.last
	if a == nil {
		closeBody(x.r)
		return nil, err
	}
	if a.res != nil && !a.dropped && (err == nil || a.res.Body != http.NoBody) {
		return a.res, nil
	}
	if over := x.r.Context().Err(); over != nil && err != nil && !isCause(x.r.Context(), a.err) {
		return nil, ended(err, over, a.err)
	}
	if a.res != nil {
		return a.res, nil
	}
	if a.err != nil {
		return nil, a.err
	}
	return nil, err
}

// isCause tells whether an error says that the context is over.
func isCause(ctx context.Context, err error) bool {
	return errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))
}

// ended is the error of a request whose context ended while it waited to be sent
// again: the Coordinator's, which also matches the context's and Base's last.
func ended(err, over, last error) error {
	var e *coordinator.Error
	if !errors.As(err, &e) {
		return over
	}
	c := *e
	c.Err = errors.Join(over, e.Err, last)
	return &c
}
