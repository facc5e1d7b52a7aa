package ledgertest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/headgate/headgate/provider"
)

// Each judge sees one unit too many, and none where there is none.
func TestJudges(t *testing.T) {
	const s = time.Second
	at := func(n int64, all ...time.Duration) (trips []trip) {
		for _, a := range all {
			trips = append(trips, trip{from: a, to: a, n: n, held: n})
		}
		return trips
	}
	for _, c := range []struct {
		name      string
		limit     provider.Limit
		good, bad []trip
	}{
		{"sliding", provider.Limit{Max: 3, Per: "10s"}, at(1, 0, 0, 9*s, 10*s+1), at(1, 0, 0, 9*s, 10*s)},
		{"leaky", provider.Limit{Max: 3, Per: "10s", Algorithm: provider.LeakyBucket}, at(3, 0, 10*s+1), at(2, 0, 9*s)},
		{"fixed", provider.Limit{Max: 3, Per: "10s", Algorithm: provider.FixedWindow}, at(3, 9*s, 10*s+s/10, 29*s), at(2, 11*s, 19*s)},
		{"fixed, too early", provider.Limit{Max: 3, Per: "10s", Algorithm: provider.FixedWindow}, at(3, 9*s, 11*s), at(3, 9*s, 10*s)},
		{
			"counter",
			provider.Limit{Max: 100, Per: "60s", Algorithm: provider.SlidingWindowCounter},
			append(at(80, 30*s), at(73, 100*s)...), append(at(80, 30*s), at(74, 100*s)...),
		},
		{"bucket", provider.Limit{Max: 10, Per: "10s", Burst: 3, Algorithm: provider.TokenBucket}, at(3, 0, 3*s), at(3, 0, 3*s-1)},
		{
			"in flight", provider.Limit{Max: 3, Algorithm: provider.InFlight},
			[]trip{{from: 0, to: s, held: 2}, {from: s, to: 2 * s, held: 3}}, []trip{{from: 0, to: s, held: 2}, {from: s - 1, to: s, held: 2}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, rnd := newModel(c.limit, time.Unix(0, 0)), rand.New(rand.NewPCG(1, 1))
			var worst int64
			for range 100 {
				assert.LessOrEqual(t, m.overrun(c.good, rnd), int64(0))
				worst = max(worst, m.overrun(c.bad, rnd))
			}
			assert.Positive(t, worst)
		})
	}
}

// A trip may arrive at any instant of it, its ends included.
func TestArrivals(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	trips := []trip{{from: 5, to: 7, n: 1}, {from: 6, to: 6, n: 2}}
	seen := map[charged]bool{}
	for range 400 {
		for _, a := range arrivals(trips, rnd) {
			seen[a] = true
		}
	}
	assert.Equal(t, map[charged]bool{{5, 1}: true, {6, 1}: true, {7, 1}: true, {6, 2}: true}, seen)
}
