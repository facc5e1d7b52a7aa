package referee

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/provider"
)

const maxBody = 1 << 20

var _ http.Handler = (*Referee)(nil)

// ServeHTTP plays the provider that the path names: /<slug>/<path of an
// endpoint>. A request that cannot be judged (no such provider: 404; a cost that
// is no number: 400) is no arrival. After Close every request is aborted.
func (r *Referee) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !r.enter() {
		panic(http.ErrAbortHandler)
	}
	defer r.running.Done()
	slug, path, _ := strings.Cut(strings.TrimPrefix(req.URL.EscapedPath(), "/"), "/")
	j := r.judges[slug]
	if j == nil {
		write(w, Answer{Status: http.StatusNotFound, Body: `{"error":"no such provider"}`})
		return
	}
	c, err := j.read(req, path)
	if err != nil {
		write(w, Answer{Status: http.StatusBadRequest, Body: fmt.Sprintf(`{"error":%q}`, err)})
		return
	}
	// Not the request's context: what is on its way arrives, its client gone or not.
	if !r.sleep(context.Background(), r.draw(j.play.Go)) {
		panic(http.ErrAbortHandler)
	}
	j.arrive(c)
	defer j.end(c, provider.Canceled) // Answer may panic
	a := j.answer(c)
	if !r.work(c, a, r.draw(j.play.Back)) {
		panic(http.ErrAbortHandler) // closes the connection, and logs nothing
	}
	// Settled before the first byte is out, so that nobody can have the answer while
	// its call still counts as in flight.
	j.answered(c, outcome(a))
	write(w, a)
}

// read makes a call of a request. The body is read here because net/http notices
// that a client has gone only once it has been.
func (j *judge) read(req *http.Request, path string) (*call, error) {
	var b []byte
	if req.Body != nil && req.Body != http.NoBody {
		var err error
		if b, err = io.ReadAll(io.LimitReader(req.Body, maxBody)); err != nil {
			return nil, fmt.Errorf("body cannot be read")
		}
		req.Body = io.NopCloser(bytes.NewReader(b))
	}
	cost, err := headerCost(req)
	if j.play.Cost != nil {
		cost, err = j.play.Cost(req), nil
	}
	if err != nil {
		return nil, err
	}
	body := newSent(req, b)
	r := j.route(req, path, body)
	c := &call{ctx: req.Context(), route: r}
	c.Arrival = Arrival{Provider: j.slug, Request: req, Key: j.key(req, r, path, body)}
	if r != nil {
		c.Endpoint = r.Name
		if c.page = r.filled("page", path); c.page == "" {
			c.page = r.rest.filled("page", body)
		}
	}
	c.Cost, err = j.fullCost(c.Endpoint, cost)
	return c, err
}

// work passes the time until the answer can be written; false: it never can.
func (r *Referee) work(c *call, a Answer, back time.Duration) bool {
	if a.Hang {
		select {
		case <-c.ctx.Done():
		case <-r.closed:
		}
		return false
	}
	if a.Drop {
		r.sleep(c.ctx, a.Delay)
		return false
	}
	return r.sleep(c.ctx, a.Delay+back)
}

// sleep tells whether it slept its time: neither ctx nor the referee ended.
func (r *Referee) sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	case <-r.closed:
		return false
	}
}

// answer is what c gets, its defaults filled in.
func (j *judge) answer(c *call) Answer {
	if c.ok {
		var a Answer
		if j.play.Answer != nil {
			a = j.play.Answer(c.Arrival)
		}
		if a.Status == 0 {
			a.Status = http.StatusOK
		}
		if j.voice != nil {
			return spoken(j.voice.answer(a, c))
		}
		if a.Body == "" && a.Status == http.StatusOK {
			a.Body = `{"ok":true}`
		}
		return a
	}
	if j.voice != nil {
		return spoken(j.voice.refuse(c))
	}
	a := j.play.Refuse
	if a.Status == 0 {
		a.Status = http.StatusTooManyRequests
	}
	if a.Header == nil && c.wait > 0 {
		seconds := (c.wait + time.Second - 1) / time.Second
		a.Header = http.Header{"Retry-After": {strconv.FormatInt(int64(seconds), 10)}}
	}
	if a.Body == "" {
		a.Body = fmt.Sprintf(`{"error":"refused","limit":%q}`, c.broke)
	}
	return a
}

// spoken is an answer of the voice. One that it cannot say after all is a 500, so
// that nobody takes silence for consent.
func spoken(a Answer, err error) Answer {
	if err != nil {
		return Answer{Status: http.StatusInternalServerError, Body: fmt.Sprintf(`{"error":%q}`, "referee: "+err.Error())}
	}
	return a
}

func write(w http.ResponseWriter, a Answer) {
	h := w.Header()
	maps.Copy(h, a.Header)
	if a.Status == http.StatusNoContent || a.Status == http.StatusNotModified {
		w.WriteHeader(a.Status)
		return
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	if h.Get("Content-Length") == "" {
		h.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	w.WriteHeader(a.Status)
	_, _ = io.WriteString(w, a.Body) // the client may have gone: nothing to be done about it
}

// outcome is the class of an answer by the standard rules.
func outcome(a Answer) provider.Outcome {
	if a.Outcome != "" {
		return a.Outcome
	}
	if a.Status == http.StatusForbidden && a.Header.Get("Retry-After") != "" {
		return provider.RateLimited // who says when to come back means the rate
	}
	return provider.OfStatus(a.Status)
}
