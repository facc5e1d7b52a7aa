package transport_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/transport"
)

// still is a Base that costs nothing: one answer for all.
type still struct{ res *http.Response }

func (s still) RoundTrip(*http.Request) (*http.Response, error) {
	s.res.Body = http.NoBody
	return s.res, nil
}

// idle is a transport over a stub with nothing to wait for: three limits, breaker
// and cap, two declared endpoints.
func idle(tb testing.TB) (*transport.Transport, *http.Request) {
	tb.Helper()
	p := provider.Provider{
		Slug: "p", BaseURL: "https://api.example.com/v1",
		Throttle:  provider.Throttle{RPS: 1e9, RPM: 1e9, RPH: 1e9, MaxInFlight: 1000},
		Endpoints: []provider.Endpoint{{Name: "host", Path: "/hosts/{value}"}, {Name: "search", Path: "/search"}},
	}
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{p}})
	require.NoError(tb, err)
	t, err := transport.New(c, still{&http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}}})
	require.NoError(tb, err)
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, "https://api.example.com/v1/hosts/8.8.8.8?key=x", nil)
	require.NoError(tb, err)
	r.Header.Set("Accept", "application/json")
	return t, r
}

func TestRoundTripCostsAtMostEightAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	tr, r := idle(t)
	trip := func(rt http.RoundTripper) float64 {
		return testing.AllocsPerRun(1000, func() {
			res, err := rt.RoundTrip(r)
			if err != nil || res.Body.Close() != nil {
				t.Fatal(err)
			}
		})
	}
	assert.LessOrEqual(t, trip(tr)-trip(tr.Base), 8.0)
}

func BenchmarkRoundTrip(b *testing.B) {
	tr, r := idle(b)
	for name, rt := range map[string]http.RoundTripper{"stub": tr.Base, "transport": tr} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				res, err := rt.RoundTrip(r)
				if err != nil {
					b.Fatal(err)
				}
				_ = res.Body.Close()
			}
		})
	}
}
