package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/headgate/headgate/provider"
)

// slowAfter: a call that ran so long before the caller's deadline ended it was let
// down by the provider, not by the deadline.
const slowAfter = 5 * time.Second

// classify says what an attempt told, by the first that knows: what was reported,
// feedback in the error's chain, Config.Classify, a status in the chain, the
// context, the network.
func (w *walk) classify(ls *Lease, err error) *provider.Feedback {
	if err == nil {
		return plainOK
	}
	return normal(w.read(ls, err))
}

func (w *walk) read(ls *Lease, err error) provider.Feedback {
	if f, ok := provider.FeedbackOf(err); ok {
		return f
	}
	if classify := ls.l.c.classify; classify != nil {
		if f, ok := classify(ls.l.slug, err); ok {
			return f
		}
	}
	if status, ok := statusOf(err); ok {
		return provider.Feedback{Outcome: provider.OfStatus(status), Detail: fmt.Sprintf("status %d", status)}
	}
	unanswered := provider.Feedback{Outcome: provider.Failed, Unanswered: true, Detail: kindOf(err)}
	own, callers := ls.ctx.Context.Err(), w.ctx.Err()
	switch {
	case errors.Is(callers, context.Canceled):
		unanswered.Outcome = provider.Canceled
	case callers == nil && errors.Is(own, context.DeadlineExceeded): // the declared timeout
	case callers != nil || isTimeout(err):
		if !ls.l.slow(ls) {
			unanswered.Outcome = provider.Canceled
		}
	case errors.Is(err, context.Canceled): // somebody below us
		unanswered.Outcome = provider.Canceled
	case isNetwork(err):
	default:
		return provider.Feedback{Outcome: provider.Unknown, Detail: "an error that nobody can classify"}
	}
	return unanswered
}

// slow tells that an attempt has been running for so long that the provider hangs:
// three times its median round trip, at most slowAfter.
func (l *lane) slow(ls *Lease) bool {
	l.lock()
	defer func() { l.tell(l.unlock()) }()
	long := slowAfter
	if m := l.trips.median(); m > 0 {
		long = min(long, 3*m)
	}
	return l.now.Mono-ls.granted >= long
}

func statusOf(err error) (int, bool) {
	var a interface{ StatusCode() int }
	if errors.As(err, &a) {
		return a.StatusCode(), true
	}
	var b interface{ HTTPStatusCode() int }
	if errors.As(err, &b) {
		return b.HTTPStatusCode(), true
	}
	return 0, false
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

func isNetwork(err error) bool {
	var n net.Error
	var errno syscall.Errno
	return errors.As(err, &n) || errors.As(err, &errno) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}

// kindOf names an error without its text, which may hold a URL with a key.
func kindOf(err error) string {
	var dns *net.DNSError
	switch status, ok := statusOf(err); {
	case err == nil:
		return ""
	case ok:
		return fmt.Sprintf("status %d", status)
	case errors.Is(err, context.Canceled):
		return "canceled"
	case isTimeout(err):
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "connection closed"
	case errors.As(err, &dns):
		return "host not found"
	case isNetwork(err):
		return "network error"
	}
	return "error"
}
