// Package transport is an [http.RoundTripper] over a Coordinator: any Go client
// that takes an http.Client goes through Headgate by one line.
//
//	client := &http.Client{Transport: &transport.Transport{Coordinator: c}}
//
// A request is routed to a provider by its URL, waits until the provider will
// accept it, is sent, read by the provider's dialect, and sent again where that
// may help and cannot harm. Requests of no declared provider pass untouched.
//
// Not in it: what an answer means (package dialect), when a call goes (package
// coordinator), redirects and cookies (http.Client), authentication but for the choice
// among several keys.
package transport

import (
	"errors"
	"net/http"
	"sync"

	"github.com/headgate/headgate/coordinator"
)

// Transport sends requests through a Coordinator. Only Coordinator is required.
// It is safe for concurrent use; its fields must not change, and it must not be
// copied, after first use. The providers that it routes to are those which the
// Coordinator has at first use.
//
// It keeps the contract of [http.RoundTripper]. The last response is returned as
// it is, a 429 included; an error is Base's own, or a *coordinator.Error where
// the request was refused before it was sent, or its context ended while it
// waited to be sent again; or says that the variable of a key is empty.
//
// A provider's in-flight slot is held until the response's body is closed or read
// to its end: who never closes a body keeps the slot. Waiting ends with the
// request's context; the deprecated Request.Cancel reaches only Base.
//
// The first request under a lease of its provider (in the function of Do, Get or
// Execute) goes under that lease: whoever has the lease decides on waiting, on the
// slot and on what is sent again. Any further request takes units of its own.
//
// A request is sent again only if its body can be had again: no body, or GetBody.
// After a refusal for its rate that is enough; after a failure its method must be
// idempotent, too (GET, HEAD, OPTIONS, TRACE, PUT, DELETE, or an Idempotency-Key
// or X-Idempotency-Key header).
type Transport struct {
	Coordinator *coordinator.Coordinator
	// Base sends. nil: http.DefaultTransport.
	Base http.RoundTripper
	// Route says which call a request is; false: not ours, it is passed on to
	// Base. nil: by the providers' base_url, hosts and endpoint paths. It must not
	// change the request.
	Route func(*http.Request) (coordinator.Call, bool)

	// Key gives the value of a key, or of what goes along with it, by the name of its
	// variable. nil: os.Getenv. It is asked where a provider declares several keys
	// (auth.env) in a header, the query, as bearer or basic: each request goes with
	// the one that the Coordinator picked, in the place of whatever key the client
	// had put there. It may be called from many goroutines.
	Key func(slug, alias string) string

	once    sync.Once
	table   *table
	err     error
	targets sync.Map // slug → *target: of calls that Route names
}

var _ http.RoundTripper = (*Transport)(nil)

// New returns a Transport over c, which must not be nil, and base (nil:
// http.DefaultTransport). It is an error if two providers of c claim one host and
// path; a Transport that is written as a literal returns the same error from
// RoundTrip.
func New(c *coordinator.Coordinator, base http.RoundTripper) (*Transport, error) {
	t := &Transport{Coordinator: c, Base: base}
	_, err := t.places()
	if err != nil {
		return nil, err
	}
	return t, nil
}

var errNoCoordinator = errors.New("transport: Coordinator is nil: it must be made by coordinator.New")

// places returns the routing table, made at first use.
func (t *Transport) places() (*table, error) {
	t.once.Do(func() {
		if t.Coordinator == nil {
			t.err = errNoCoordinator
			return
		}
		t.table, t.err = newTable(t.Coordinator.Providers())
	})
	return t.table, t.err
}

// RoundTrip sends a request when its provider will accept it. It never changes
// the request and always closes its body.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	call, to, err := t.route(r)
	if err != nil {
		closeBody(r)
		return nil, err
	}
	if to == nil {
		return t.base().RoundTrip(r)
	}
	x := &trip{base: t.base(), r: r, to: to, rewinds: rewinds(r), key: t.Key}
	if x.key == nil {
		x.key = fromEnvironment
	}
	if ls, ok := coordinator.LeaseFrom(r.Context()); ok && ls.Claim(t.Coordinator, to.slug) {
		return x.under(ls)
	}
	call.Replayable = x.rewinds && (call.Replayable || idempotent(r))
	return x.result(t.Coordinator.Do(r.Context(), call, x.try))
}

// CloseIdleConnections closes those of Base, if it can: [http.Client] asks for it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // nobody reads it: its error tells nothing
	}
}
