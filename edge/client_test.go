package edge_test

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/headgate/headgate/edge"
)

func TestAddress(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		name, remote string
		forwarded    []string
		want         string
	}{
		{"the peer", "192.0.2.7:5555", nil, "192.0.2.7"},
		{"whom nobody trusts says nothing", "192.0.2.7:5555", []string{"203.0.113.1"}, "192.0.2.7"},
		{"a proxy's word", "10.0.0.1:1", []string{"203.0.113.1"}, "203.0.113.1"},
		{"what stands before may be invented", "10.0.0.1:1", []string{"1.1.1.1, 203.0.113.1"}, "203.0.113.1"},
		{"through two proxies", "10.0.0.1:1", []string{"1.1.1.1, 203.0.113.1 ,10.9.9.9"}, "203.0.113.1"},
		{"lines are one list", "10.0.0.1:1", []string{"1.1.1.1", "203.0.113.1", "10.9.9.9"}, "203.0.113.1"},
		{"the last that can be read", "10.0.0.1:1", []string{"203.0.113.1, unknown, 10.9.9.9"}, "10.9.9.9"},
		{"empty members", "10.0.0.1:1", []string{"203.0.113.1,, "}, "203.0.113.1"},
		{"nothing but proxies", "10.0.0.1:1", []string{"10.1.1.1"}, "10.1.1.1"},
		{"an empty field", "10.0.0.1:1", []string{""}, "10.0.0.1"},
		{"with a port", "10.0.0.1:1", []string{"203.0.113.1:8080"}, "203.0.113.1"},
		{"IPv6 by network", "[2001:db8:1:2:3:4:5:6]:99", nil, "2001:db8:1:2::/64"},
		{"IPv6 with a zone", "[fe80::1%eth0]:99", nil, "fe80::/64"},
		{"IPv6 in brackets", "[fd00::1]:99", []string{"[2001:db8::1]"}, "2001:db8::/64"},
		{"IPv6 in brackets with a port", "[fd00::1]:99", []string{"[2001:db8::1]:443"}, "2001:db8::/64"},
		{"IPv4 in IPv6", "[::ffff:10.0.0.1]:99", []string{"::ffff:203.0.113.1"}, "203.0.113.1"},
		{"a socket", "@", []string{"203.0.113.1"}, "@"},
		{"nothing", "", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = c.remote
			for _, line := range c.forwarded {
				r.Header.Add("X-Forwarded-For", line)
			}
			assert.Equal(t, c.want, edge.Address(r, trusted))
		})
	}
}

func TestFingerprint(t *testing.T) {
	assert.Equal(t, edge.Fingerprint("a"), edge.Fingerprint("a"))
	assert.NotEqual(t, edge.Fingerprint("a"), edge.Fingerprint("b"))
	long := edge.Fingerprint(strings.Repeat("secret", 1000))
	assert.Len(t, long, 22)
	assert.NotContains(t, long, "secret")
}
