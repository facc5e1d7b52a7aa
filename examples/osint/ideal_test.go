package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

func expand(t *testing.T, limits ...provider.Limit) []provider.Limit {
	t.Helper()
	for i := range limits {
		if limits[i].Name == "" {
			limits[i].Name = string(rune('a' + i))
		}
	}
	all, err := provider.Throttle{Limits: limits}.Expand()
	require.NoError(t, err)
	return all
}

func TestIdeals(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name   string
		limits []provider.Limit
		n      int
		want   []time.Duration
	}{
		{"no limit", nil, 3, []time.Duration{0, 0, 0}},
		{"sliding", []provider.Limit{{Max: 2, Per: "10s"}}, 5, []time.Duration{0, 0, 10 * s, 10 * s, 20 * s}},
		{"calendar word", []provider.Limit{{Max: 2, Per: "minute"}}, 3, []time.Duration{0, 0, 60 * s}},
		{"fixed", []provider.Limit{{Max: 2, Per: "10s", Algorithm: provider.FixedWindow}}, 5, []time.Duration{0, 0, 10 * s, 10 * s, 20 * s}},
		{"fixed, not from its begin", []provider.Limit{{Max: 2, Per: "10s", Algorithm: provider.FixedWindow}, {Max: 1, Per: "3s"}}, 5, []time.Duration{0, 3 * s, 10 * s, 13 * s, 20 * s}},
		{"leaky", []provider.Limit{{Max: 5, Per: "60s", Algorithm: provider.LeakyBucket}}, 3, []time.Duration{0, 12 * s, 24 * s}},
		{"token bucket", []provider.Limit{{Max: 1, Per: "2s", Burst: 3, Algorithm: provider.TokenBucket}}, 5, []time.Duration{0, 0, 0, 2 * s, 4 * s}},
		// 4 in the first window leave room for one more when 1/4 of the next is over.
		{"counter", []provider.Limit{{Max: 4, Per: "8s", Algorithm: provider.SlidingWindowCounter}}, 6, []time.Duration{0, 0, 0, 0, 10 * s, 12 * s}},
		{"in flight", []provider.Limit{{Max: 1, Algorithm: provider.InFlight}}, 2, []time.Duration{0, 0}},
		// Shodan's: one a second, thirty a minute.
		{"two limits", []provider.Limit{{Max: 1, Per: "1s"}, {Max: 3, Per: "1m"}}, 5, []time.Duration{0, s, 2 * s, 60 * s, 61 * s}},
		{"another unit", []provider.Limit{{Max: 1, Per: "1m", Unit: "credits"}}, 2, []time.Duration{0, 0}},
	} {
		got := ideals(provider.Provider{}, expand(t, c.limits...), make([]string, c.n))
		assert.Equal(t, c.want, got, c.name)
	}
}

func TestIdealsOfEndpoints(t *testing.T) {
	const s = time.Second
	p := provider.Provider{Endpoints: []provider.Endpoint{{Name: "a", Cost: map[string]int64{"credits": 2}}, {Name: "b"}, {Name: "c"}, {Name: "d", Cost: map[string]int64{"credits": 1}}}}
	for _, c := range []struct {
		name   string
		limits []provider.Limit
		calls  []string
		want   []time.Duration
	}{
		{"each apart", []provider.Limit{{Max: 1, Per: "1s", Scope: provider.ScopeEndpoint}}, []string{"a", "a", "b", "b"}, []time.Duration{0, 0, s, s}},
		{"one counter for two", []provider.Limit{{Max: 1, Per: "1s", Endpoints: []string{"a", "b"}}}, []string{"a", "b", "c"}, []time.Duration{0, 0, s}},
		{"instead", []provider.Limit{{Max: 1, Per: "10s"}, {Max: 1, Per: "1s", Endpoints: []string{"b"}, Instead: true}}, []string{"a", "b", "b", "c"}, []time.Duration{0, 0, s, 10 * s}},
		{"credits", []provider.Limit{{Max: 4, Per: "10s", Unit: "credits"}}, []string{"a", "a", "a", "b"}, []time.Duration{0, 0, 0, 10 * s}},
		{"in the order given", []provider.Limit{{Max: 2, Per: "10s", Unit: "credits"}}, []string{"d", "a", "d"}, []time.Duration{0, 0, 10 * s}},
		{"never", []provider.Limit{{Max: 1, Per: "10s", Unit: "credits"}}, []string{"a", "b"}, []time.Duration{0}},
	} {
		assert.Equal(t, c.want, ideals(p, expand(t, c.limits...), c.calls), c.name)
	}
}

// No window of any limit ever holds more than its maximum, and nobody could have
// gone a microsecond earlier: counted by force, for sliding windows.
func TestIdealsAgainstBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var limits []provider.Limit
		for range 1 + rng.IntN(3) {
			limits = append(limits, provider.Limit{
				Max: 1 + rng.Int64N(5), Per: provider.Period((time.Duration(1+rng.IntN(20)) * 100 * time.Millisecond).String()),
			})
		}
		limits = expand(t, limits...)
		got := ideals(provider.Provider{}, limits, make([]string, 40))
		require.Len(t, got, 40)
		require.True(t, slices.IsSorted(got))
		admits := func(i int, at time.Duration) bool {
			for _, l := range limits {
				per, _ := l.Per.Duration()
				n := int64(1)
				for _, x := range got[:i] {
					if x > at-per {
						n++
					}
				}
				if n > l.Max {
					return false
				}
			}
			return true
		}
		for i, at := range got {
			require.True(t, admits(i, at), "call %d at %v: too early for %v", i, at, limits)
			if i > 0 && at > got[i-1] {
				require.False(t, admits(i, at-time.Microsecond), "call %d at %v: too late for %v", i, at, limits)
			}
		}
	}
}
