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

// broken says why there is no whole answer.
func (s step) broken(ctx context.Context, err error, f provider.Feedback) error {
	if errors.Is(err, reach.ErrPrivate) {
		f.Outcome = provider.Rejected // and will be the next time
	}
	return fmt.Errorf("rdap: %s: %w", s.url.Hostname(), reach.Broken(ctx, err, err, f))
}

// mayArrive tells whether a request that got no answer may have been written: not
// where there was no connection, or none that could be trusted.
func mayArrive(err error) bool {
	var (
		op          *net.OpError
		certificate *tls.CertificateVerificationError
	)
	return !(errors.As(err, &op) && op.Op == "dial" || errors.As(err, &certificate))
}
