package rdap

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
)

// maxAnswer bounds what is read of an answer: a record has some 10 KiB.
const maxAnswer = 1 << 20

// read makes a Result or an error of an answer.
func (a *Adapter) read(ctx context.Context, s step, res *http.Response) (provider.Result, error) {
	r := provider.Result{Provider: a.p.Slug, Endpoint: s.e.Name, Data: json.RawMessage("[]"), Empty: true, At: time.Now()}
	var (
		body    []byte
		readErr error
	)
	if res.StatusCode >= 200 && !redirects(res.StatusCode) {
		body, readErr = io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	}
	r.Feedback = dialect.Read(a.p.Dialect, res, body, r.At)
	r.Feedback.Date = dialect.Date(res.Header)
	a.whose(&r.Feedback, s, res.StatusCode)
	if r.Feedback.Outcome != provider.OK {
		return provider.Result{}, s.failed(r.Feedback, adapters.StatusError(res.StatusCode))
	}
	if readErr != nil {
		return provider.Result{}, s.broken(ctx, readErr, provider.Feedback{})
	}
	no := a.content(&r, s, res, body)
	if no.Outcome != "" {
		no.Detail = fmt.Sprintf("status %d: %s", res.StatusCode, no.Detail)
		return provider.Result{}, s.failed(no, adapters.StatusError(res.StatusCode))
	}
	return r, nil
}

// whose puts right what the dialect cannot know: which server it was that answered.
func (a *Adapter) whose(f *provider.Feedback, s step, status int) {
	switch {
	case !s.root:
		// One registry's clock, budgets and refusals are not those of all.
		f.Date, f.Budgets = time.Time{}, nil
		if f.Outcome != provider.OK {
			f.Scope = provider.ScopeEndpoint
		}
	case f.Empty:
		f.Outcome, f.Empty, f.Detail = provider.Rejected, false, fmt.Sprintf("status %d: no RDAP server is known for this", status)
	case status == http.StatusForbidden && f.Outcome == provider.Unauthorized:
		f.Outcome, f.Detail = provider.Banned, "status 403: blocked, as rdap.org documents it"
	}
}

// redirects tells the statuses that RFC 7480 (5.2) names, and their successors.
func redirects(status int) bool { return slices.Contains([]int{301, 302, 303, 307, 308}, status) }

// content reads what an ok says into r. A feedback with an outcome says why it is no
// answer to the question.
func (a *Adapter) content(r *provider.Result, s step, res *http.Response, body []byte) provider.Feedback {
	rejected := func(why string) provider.Feedback { return provider.Feedback{Outcome: provider.Rejected, Detail: why} }
	text := bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	encoding := res.Header.Get("Content-Encoding")
	switch {
	case redirects(res.StatusCode):
		return a.redirect(r, s, res.Header.Get("Location"))
	case len(body) > maxAnswer:
		return rejected("the answer is longer than 1 MiB")
	case encoding != "" && !strings.EqualFold(encoding, "identity") && len(body) > 0:
		return rejected("the answer has an encoding that was not asked for")
	case r.Feedback.Empty && (len(text) == 0 || json.Valid(text)):
		return provider.Feedback{}
	case r.Feedback.Empty:
		return rejected("a page that is no RDAP answer") // of a web server that knows no such path
	case res.StatusCode >= 300:
		return rejected("a redirect that is not followed") // 300 and 304, which lead nowhere by themselves
	case len(text) == 0:
		return provider.Feedback{Outcome: provider.Unknown, Detail: "the answer is empty"}
	case !isObject(text):
		return rejected("no RDAP object")
	}
	text = bytes.ToValidUTF8(text, []byte("\ufffd"))
	r.Data, r.Empty = slices.Concat([]byte("["), text, []byte("]")), false
	return provider.Feedback{}
}

// redirect tells where to go on.
func (a *Adapter) redirect(r *provider.Result, s step, location string) provider.Feedback {
	no := provider.Feedback{Outcome: provider.Rejected}
	u, err := target(s.url, location)
	most := a.most(s.e)
	switch {
	case err != nil:
		no.Detail = "a redirect that is not followed: " + err.Error()
	case u.String() == s.url.String():
		no.Detail = "a redirect to itself"
	case s.hops == most:
		no.Detail = fmt.Sprintf("more than %d redirects", most)
	default:
		r.Next = formatPage(s.hops+1, u)
		return provider.Feedback{}
	}
	return no
}

// isObject tells an RDAP object: RFC 9083 requires one of these members in each, and
// has errorCode only where there is none.
func isObject(text []byte) bool {
	var o struct {
		Class       *string          `json:"objectClassName"`
		Conformance []string         `json:"rdapConformance"`
		Error       *json.RawMessage `json:"errorCode"`
	}
	return json.Unmarshal(text, &o) == nil && (o.Class != nil || o.Conformance != nil) && o.Error == nil
}
