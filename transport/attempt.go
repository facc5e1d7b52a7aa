package transport

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// attempt is one request on the wire. Its trace may be called by Base at any time,
// even after the attempt: so no attempt is used again.
type attempt struct {
	lease   *coordinator.Lease
	res     *http.Response
	err     error
	body    heldBody
	tee     *tee // nil: the body tells no amounts
	trace   httptrace.ClientTrace
	asked   atomic.Bool // for a connection
	got     atomic.Bool // a connection
	wrote   atomic.Bool // the whole request
	done    atomic.Bool // the slot is given back
	dropped bool        // it is sent again; nobody was given res
	lent    bool        // the lease is the caller's: he releases it
	expires context.Context
	cancel  func() // nil: it has no context of its own
}

// traced adds our hooks to those that ctx has.
func (a *attempt) traced(ctx context.Context) context.Context {
	a.trace.GetConn = a.getConn
	a.trace.GotConn = a.gotConn
	a.trace.WroteRequest = a.wroteRequest
	return httptrace.WithClientTrace(ctx, &a.trace)
}

func (a *attempt) getConn(string) { a.asked.Store(true) }

func (a *attempt) gotConn(httptrace.GotConnInfo) { a.got.Store(true) }

// wroteRequest is the instant of sending: for a request with a body, of its end,
// since nobody can say when in between it was counted.
func (a *attempt) wroteRequest(info httptrace.WroteRequestInfo) {
	if info.Err == nil {
		a.wrote.Store(true)
		a.lease.Sent()
	}
}

// unsent tells that not one byte was written: a connection was asked for and none
// was got. A Base that asks for none may be one that does not trace; and what was
// handed to a connection may still be written after RoundTrip has returned.
func (a *attempt) unsent() bool { return a.asked.Load() && !a.got.Load() }

// bounded puts the declared timeout, which ctx has, on a context that outlives the
// attempt's function: the Coordinator cancels ctx at its end, while the response's
// body is still to be read. It ends with the caller's context, too.
func (a *attempt) bounded(ctx, callers context.Context) context.Context {
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(callers, func() { cancel(context.Cause(callers)) })
	release := func() {}
	if at, ok := ctx.Deadline(); ok {
		own, release = context.WithDeadline(own, at)
	}
	a.expires = own
	a.cancel = func() {
		stop()
		release()
		cancel(context.Canceled)
	}
	return own
}

// expired makes sure that ctx is over where the attempt's own context, which has
// the same deadline, is: the Coordinator tells by ctx that it was the provider
// which took too long.
func (a *attempt) expired(ctx context.Context) {
	if a.expires != nil && errors.Is(a.expires.Err(), context.DeadlineExceeded) {
		<-ctx.Done() // its timer is due
	}
}

// cause is Base's error as the Coordinator is to classify it. net/http's errors
// for a broken connection have no type of their own, so once the request is out
// any error is the network's.
func (a *attempt) cause() error {
	if _, told := provider.FeedbackOf(a.err); told || !a.wrote.Load() || errors.Is(a.err, context.Canceled) {
		return a.err
	}
	return &brokenError{a.err}
}

// brokenError is a net.Error, whatever it holds.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error   { return e.error }
func (e *brokenError) Temporary() bool { return false }
func (e *brokenError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.error, &t) && t.Timeout()
}
