package rdap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"

	"github.com/headgate/headgate/provider"
)

var errPrivate = errors.New("the server's address is private")

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
	case errors.Is(err, errPrivate):
		f.Outcome, f.Detail = provider.Rejected, errPrivate.Error() // and will be the next time
	default:
		f.Outcome, f.Detail = provider.Failed, reason(err)
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

// reason is err in a word or two, none of them err's own.
func reason(err error) string {
	var (
		timeout     net.Error
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case errors.As(err, &dns):
		return "name lookup failed"
	case errors.As(err, &certificate):
		return "certificate not trusted"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed early"
	}
	return "network error"
}

// private are the blocks, besides those that net/netip knows, that lead to no public
// host (IANA's special-purpose registries), or to one that the address hides.
var private = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // of carriers, and of clouds' metadata
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2001::/32"), // Teredo
	netip.MustParsePrefix("2002::/16"), // 6to4
	netip.MustParsePrefix("fec0::/10"),
}

// translated is the prefix under which an IPv6-only network has the IPv4 hosts (RFC
// 6052): the last four bytes are the address.
var translated = netip.MustParsePrefix("64:ff9b::/96")

// publicOnly keeps a dialer from private and local addresses. A server's name comes
// from an answer, so without it whoever writes answers could have this program
// connect to a service of its own network.
func publicOnly(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !isPublic(at.Addr().WithZone("").Unmap()) {
		return errPrivate
	}
	return nil
}

func isPublic(ip netip.Addr) bool {
	if translated.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	for _, block := range private {
		if block.Contains(ip) {
			return false
		}
	}
	return ip.IsGlobalUnicast() && !ip.IsPrivate()
}
