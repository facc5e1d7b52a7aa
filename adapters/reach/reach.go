// Package reach is what adapters share that connect to servers: a guard against
// addresses that an answer must not lead to, and errors for what broke off whose words
// hold nothing of the error's own text.
//
// Not in it: what an answer says (package dialect).
package reach

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"

	"github.com/headgate/headgate/provider"
)

// ErrPrivate is the error of a connection to a private or local address.
var ErrPrivate = errors.New("the server's address is private")

// Reason is err in a word or two, none of them err's own: its text may hold a URL
// with a key.
func Reason(err error) string {
	var (
		timeout     net.Error
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(err, ErrPrivate):
		return ErrPrivate.Error()
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

// PublicOnly is the Control of a net.Dialer that reaches no private or local address. A server's name comes
// from an answer, so without it whoever writes answers could have this program
// connect to a service of its own network.
func PublicOnly(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !isPublic(at.Addr().WithZone("").Unmap()) {
		return ErrPrivate
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

// Broken is the error of a request without a whole answer, by how ctx ended and by
// err, of which cause is what may be shown and unwrapped. f is what is known already:
// an outcome of its own counts where the network is at fault, else that is failed.
//
// Where the caller's deadline ended it nothing is classified: whether the server hung
// or the caller was hasty depends on how long it ran and on what is usual, which only
// the Coordinator knows.
func Broken(ctx context.Context, err, cause error, f provider.Feedback) error {
	ended := ctx.Err()
	if ended != nil && !errors.Is(cause, ended) {
		cause = errors.Join(ended, cause) // a cause of the context's own (context.Cause) hides it
	}
	switch {
	case errors.Is(ended, context.DeadlineExceeded):
		return lateError{cause}
	case ended != nil:
		f.Outcome, f.Detail = provider.Canceled, "canceled"
	default:
		f.Outcome, f.Detail = cmp.Or(f.Outcome, provider.Failed), Reason(err)
	}
	return f.Err(cause)
}

// lateError is the end of the caller's deadline; its text is not the cause's.
type lateError struct{ cause error }

func (e lateError) Error() string { return "the deadline passed" }

func (e lateError) Unwrap() error { return e.cause }
