package rdap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/headgate/headgate/adapters/reach"
	"github.com/headgate/headgate/provider"
)

// failed is the error of a request that f ended. It names the server: one of many.
func (s step) failed(f provider.Feedback, cause error) error {
	return fmt.Errorf("rdap: %s: %w", s.url.Hostname(), f.Err(cause))
}

// broken says why there is no whole answer. Where the caller's deadline ended it
// nothing is classified: whether the server hung or the caller was hasty depends on
// how long it ran and on what is usual, which only the Coordinator knows.
func (s step) broken(ctx context.Context, err error, f provider.Feedback) error {
	ended := ctx.Err()
	if ended != nil && !errors.Is(err, ended) {
		err = errors.Join(ended, err) // a cause of the context's own (context.Cause) hides it
	}
	switch {
	case errors.Is(ended, context.DeadlineExceeded):
		return fmt.Errorf("rdap: %s: %w", s.url.Hostname(), lateError{err})
	case ended != nil:
		f.Outcome, f.Detail = provider.Canceled, "canceled"
	case errors.Is(err, reach.ErrPrivate):
		f.Outcome, f.Detail = provider.Rejected, reach.ErrPrivate.Error() // and will be the next time
	default:
		f.Outcome, f.Detail = provider.Failed, reach.Reason(err)
	}
	return s.failed(f, err)
}

// lateError is the end of the caller's deadline; its text is not the cause's.
type lateError struct{ cause error }

func (e lateError) Error() string { return "the deadline passed" }

func (e lateError) Unwrap() error { return e.cause }

// mayArrive tells whether a request that got no answer may have been written: not
// where there was no connection, or none that could be trusted.
func mayArrive(err error) bool {
	var (
		op          *net.OpError
		certificate *tls.CertificateVerificationError
	)
	return !(errors.As(err, &op) && op.Op == "dial" || errors.As(err, &certificate))
}
