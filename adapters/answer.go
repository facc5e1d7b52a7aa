package adapters

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
)

// What is read of an answer at most: data, and anything else.
const (
	maxBody  = 8 << 20
	maxOther = 64 << 10
)

// result reads the answer once and makes a Result or an error of it.
func (h *HTTP) result(ctx context.Context, l lookup, res *http.Response, secrets []string) (provider.Result, error) {
	at, e := time.Now(), l.e
	var limit int64 = maxBody + 1
	switch {
	case res.StatusCode < 200:
		limit = 0 // after a 101 that nobody asked for the body is a connection that may stay silent
	case res.StatusCode >= 300:
		limit = maxOther
	}
	body, readErr := io.ReadAll(io.LimitReader(res.Body, limit))
	f := dialect.Read(h.p.Dialect, res, body, at)
	f.Date = dialect.Date(res.Header)
	if f.Outcome != provider.OK {
		return provider.Result{}, h.failed(e, f, StatusError(res.StatusCode))
	}
	if readErr != nil {
		return provider.Result{}, h.cut(ctx, e, readErr, secrets)
	}
	r := provider.Result{Provider: h.p.Slug, Endpoint: e.Name, Feedback: f, At: at}
	no := noAnswer(res, body, f.Empty)
	switch {
	case no.Outcome != "":
	case res.StatusCode >= 300, res.StatusCode == http.StatusNoContent, res.StatusCode == http.StatusResetContent,
		f.Empty && (l.page.paging != nil || len(trim(body)) == 0):
		r.Data, r.Empty = l.page.none(), true
	case l.page.paging == nil:
		r.Data = data(body)
		r.Empty = f.Empty || isEmpty(r.Data)
	case !l.page.read(&r, res.Header, body):
		no = refused(res, provider.Rejected, "a page that is no answer of the API")
	}
	if no.Outcome != "" {
		return provider.Result{}, h.failed(e, no, StatusError(res.StatusCode))
	}
	r.Suspicious = r.Empty && e.EmptyIsSuspicious && !l.page.later // an empty later page is the end
	return r, nil
}

// refused is what an ok becomes that is no answer.
func refused(res *http.Response, o provider.Outcome, why string) provider.Feedback {
	return provider.Feedback{Outcome: o, Detail: fmt.Sprintf("status %d: %s", res.StatusCode, why)}
}

// noAnswer tells an ok that is no answer of the API: neither data nor "no data".
// Its zero value means that it is one. empty: the dialect reads it as "no data".
func noAnswer(res *http.Response, body []byte, empty bool) provider.Feedback {
	status, text, encoding := res.StatusCode, trim(body), res.Header.Get("Content-Encoding")
	switch {
	case len(body) > maxBody:
		return refused(res, provider.Rejected, "the answer is longer than 8 MiB")
	case encoding != "" && !strings.EqualFold(encoding, "identity") && len(body) > 0:
		return refused(res, provider.Rejected, "the answer has an encoding that was not asked for")
	case status >= 300 && status < 400:
		return refused(res, provider.Rejected, "a redirect that is not followed")
	case !empty && status >= 400 && len(text) > 0 && !json.Valid(text):
		return refused(res, provider.Rejected, "a page that is no answer of the API")
	case !empty && status < 300 && status != http.StatusNoContent && status != http.StatusResetContent && len(text) == 0:
		// Some mean "nothing found", others are overloaded: nobody can tell.
		return refused(res, provider.Unknown, "the answer is empty")
	}
	return provider.Feedback{}
}

// trim drops a byte order mark and the space around a body.
func trim(body []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
}

// data is body as JSON: itself where it is, else a string of it.
func data(body []byte) json.RawMessage {
	text := bytes.ToValidUTF8(trim(body), []byte("\ufffd"))
	if json.Valid(text) {
		return text
	}
	quoted, err := json.Marshal(string(text))
	if err != nil {
		return nil // a string always marshals
	}
	return quoted
}

// isEmpty tells [], {} and null, whatever stands between the brackets.
func isEmpty(d json.RawMessage) bool {
	if string(d) == "null" {
		return true
	}
	if len(d) < 2 || d[0] != '[' && d[0] != '{' {
		return false
	}
	return len(bytes.TrimSpace(d[1:len(d)-1])) == 0
}

// sameOrigin lets a redirect be followed inside the provider's own origin, three
// times. Elsewhere the key would go along (net/http drops Authorization there,
// but no x-apikey), and the other host's limits are not ours to spend. A Referer
// would carry a key that stands in the query. One that makes a GET of a POST is
// not followed but for 303, which says so: the body, and with it the question,
// would be gone.
func sameOrigin(then func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		req.Header.Del("Referer")
		from, to := via[len(via)-1].URL, req.URL
		same := from.Host == to.Host && from.Scheme == to.Scheme
		upgraded := from.Host == to.Host && from.Scheme == "http" && to.Scheme == "https" && from.Port() == ""
		asked := req.Method == via[len(via)-1].Method || req.Response.StatusCode == http.StatusSeeOther
		if len(via) > 3 || !same && !upgraded || !asked {
			return http.ErrUseLastResponse
		}
		if then != nil {
			return then(req, via)
		}
		return nil
	}
}
