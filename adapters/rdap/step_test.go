package rdap

import (
	"net/netip"
	"net/url"
	"regexp"
	"testing"

	"github.com/headgate/headgate/provider"
	"pgregory.net/rapid"
)

// Whatever a server writes into Location, what is asked next is a public host name
// over https, and the page that says so is read back as the same.
func TestNoLocationLeadsAstray(t *testing.T) {
	from, err := url.Parse("https://rdap.nic.test/v1/domain/example.test")
	if err != nil {
		t.Fatal(err)
	}
	part := rapid.SampledFrom([]string{
		"https:", "http:", "HTTPS:", "file:", "//", "/", "\\", "@", ":", "?", "#", "%", "%2f", "%00", " ", "\n", "..", "[::1]", "127.0.0.1", "localhost",
		"a.test", "A.Test.", "0x7f.1", "2130706433", "443", "8443", "xn--", "é", "\xff", "user", "[", "]", ".", "-a.test",
	})
	host := regexp.MustCompile(`^[a-z0-9_][a-z0-9_.-]*\.[a-z0-9_-]+(:[0-9]+)?$`)
	rapid.Check(t, func(t *rapid.T) {
		location := rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) (s string) {
			for _, p := range rapid.SliceOfN(part, 1, 8).Draw(t, "parts") {
				s += p
			}
			return s
		}), rapid.Map(part, func(s string) string { return "https://" + s })).Draw(t, "location")
		u, err := target(from, location)
		if err != nil {
			return
		}
		if u.Scheme != "https" || u.User != nil || u.Fragment != "" || !host.MatchString(u.Host) {
			t.Fatalf("%q leads to %q", location, u)
		}
		if _, err := netip.ParseAddr(u.Hostname()); err == nil {
			t.Fatalf("%q leads to the address %s", location, u.Host)
		}
		hops, again, err := parsePage(formatPage(2, u), 3)
		if err != nil || hops != 2 || again.String() != u.String() {
			t.Fatalf("%q → %q → %d %v, %v", location, formatPage(2, u), hops, again, err)
		}
	})
}

// Whatever is asked about, a path has one segment of it without an escape, and it
// stays the same when it is asked again.
func TestAValueIsOneSegment(t *testing.T) {
	plain := regexp.MustCompile(`^[a-z0-9_.:-]+$`)
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]provider.Kind{provider.Domain, provider.IP, provider.Text}).Draw(t, "kind")
		value := rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z0-9./:%_-]{1,20}`), rapid.StringMatching(`(AS)?[0-9]{1,12}`),
			rapid.StringMatching(`[0-9a-f]{0,4}::[0-9a-f]{0,4}`), rapid.StringMatching(`[0-9]{1,3}(\.[0-9]{1,3}){3}`)).Draw(t, "value")
		got, err := canonical(kind, value)
		if err != nil {
			return
		}
		again, err := canonical(kind, got)
		if !plain.MatchString(got) || got == "." || got == ".." || err != nil || again != got {
			t.Fatalf("%s %q → %q → %q, %v", kind, value, got, again, err)
		}
	})
}
