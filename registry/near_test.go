package registry

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"shodan", "shodan", 0},
		{"shodan", "shodna", 1}, {"shodan", "shdoan", 1}, {"ab", "ba", 1}, {"ca", "abc", 3},
		{"shodan", "shodann", 1}, {"shodan", "shoda", 1}, {"shodan", "shoban", 1},
		{"kitten", "sitting", 3}, {"abcd", "badc", 2},
	} {
		assert.Equal(t, c.want, distance(c.a, c.b), "%s → %s", c.a, c.b)
		assert.Equal(t, c.want, distance(c.b, c.a), "%s → %s", c.b, c.a)
	}
}

func TestClose(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"shodan", "shodna", true}, {"shodan", "Shodan", true}, {"SHODNA", "shodan", true},
		{"virus-total", "virustotal", true}, {"crtsh", "crt-sh", true}, {"ipapi", "ip-api", true},
		{"google", "google-safe-browsing", true}, {"safe-browsing", "google-safe-browsing", true},
		{"shodan", "censys", false}, {"shodan", "virustotal", false},
		{"shodan", "shdona-xx", false}, {"", "", true}, {"", "ip", false}, {"vt", "ip", false}, {"vt", "vt", true},
		{"ip", "ip-api", false}, {strings.Repeat("shodan", 100_000), "shodan", false},
	} {
		assert.Equal(t, c.want, Close(c.a, c.b), "%.20q, %q", c.a, c.b)
		assert.Equal(t, c.want, Close(c.b, c.a), "%.20q, %q", c.b, c.a)
	}
}

func TestNearIsNearestFirstAndAtMostThree(t *testing.T) {
	var r Registry
	for _, s := range []string{"shodan-5", "shodan-4", "shodan", "shoban", "virustotal", "ip-api"} {
		require.NoError(t, r.Declare(provider.Provider{Slug: s}))
	}
	assert.Equal(t, []string{"shodan", "shoban", "shodan-4"}, r.Near("SHODAN"))
	assert.Equal(t, []string{"virustotal"}, r.Near("virus-total"))
	assert.Empty(t, r.Near("censys"))
	assert.Empty(t, r.Near(""))
}
