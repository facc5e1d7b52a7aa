package edge

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Fingerprint is a name for a client of whom only a secret is known, such as its API
// key: 22 letters that always are the same for it, and from which nobody finds it.
// Names of clients are seen in hooks, logs and State; a secret must not be.
func Fingerprint(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// longestClient is the longest name that is kept as it is: it may come from a header
// of the size that an attacker likes, and is kept for the longest window.
const longestClient = 128

// Address returns the address that a request comes from, without its port: an IPv4
// address, or the /64 network of an IPv6 address, since whoever has one of that
// has all. X-Forwarded-For counts only as far as trusted proxies have written it:
// from its end on, the first address that is no trusted proxy's, or the last that
// can be read. Anybody can write what stands before.
//
// Where RemoteAddr is no address (a Unix socket) it is returned as it is, and
// nothing is trusted.
func Address(r *http.Request, trusted []netip.Prefix) string {
	at, ok := parseAddr(r.RemoteAddr)
	if !ok {
		return r.RemoteAddr
	}
	lines := r.Header["X-Forwarded-For"]
	for i := len(lines) - 1; i >= 0; i-- {
		rest, more := lines[i], true
		for more {
			if !contains(trusted, at) {
				return network(at)
			}
			var last string
			if rest, last, more = cutLast(rest); strings.TrimSpace(last) == "" {
				continue
			}
			next, ok := parseAddr(strings.TrimSpace(last))
			if !ok {
				return network(at)
			}
			at = next
		}
	}
	return network(at)
}

func cutLast(list string) (rest, last string, more bool) {
	if i := strings.LastIndexByte(list, ','); i >= 0 {
		return list[:i], list[i+1:], true
	}
	return "", list, false
}

// parseAddr reads an address with or without a port, in its one form: no zone, and
// IPv4 as IPv4.
func parseAddr(s string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(s); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	at, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	return at.Unmap().WithZone(""), err == nil
}

func contains(all []netip.Prefix, at netip.Addr) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(at) })
}

// network is the address, or the network that one IPv6 customer has at least.
func network(at netip.Addr) string {
	if at.Is6() {
		if p, err := at.Prefix(64); err == nil {
			return p.String()
		}
	}
	return at.String()
}
