package limit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

// throughput is how many calls of one unit go in a time, with demand always at
// hand and every answer after the same round trip.
func throughput(r *Rule, roundTrip, total time.Duration) (went int64) {
	type flight struct{ granted, settled time.Duration }
	var flying []flight
	for now := time.Duration(0); now < total; {
		for len(flying) > 0 && flying[0].settled <= now {
			r.Settle(at(flying[0].granted), at(flying[0].settled), 1, 1)
			flying = flying[1:]
		}
		next := r.Look(at(now), 1)
		if next <= now {
			r.Take(at(now), 1)
			flying = append(flying, flight{now, now + roundTrip})
			went++
			continue
		}
		if len(flying) > 0 {
			next = min(next, flying[0].settled)
		}
		now = next
	}
	return went
}

// TestUtilisation: holding a call until its answer costs W/(W + round trip) and
// no more than 2 % besides.
func TestUtilisation(t *testing.T) {
	rows := []struct {
		limit provider.Limit
		pace  time.Duration // what the round trip adds to: the window, or for a bucket of 1 the interval
	}{
		{provider.Limit{Max: 50, Per: "1s", Algorithm: provider.SlidingWindow}, time.Second},
		{provider.Limit{Max: 1, Per: "1s", Algorithm: provider.SlidingWindow}, time.Second},
		{provider.Limit{Max: 60, Per: "1m", Algorithm: provider.SlidingWindow}, time.Minute},
		{provider.Limit{Max: 50, Per: "1s", Algorithm: provider.LeakyBucket}, time.Second},
		{provider.Limit{Max: 1, Per: "1s", Algorithm: provider.LeakyBucket}, time.Second},
		{provider.Limit{Max: 7, Per: "10s", Algorithm: provider.LeakyBucket}, 10 * time.Second},
		{provider.Limit{Max: 50, Per: "1s", Algorithm: provider.TokenBucket}, time.Second},
		{provider.Limit{Max: 600, Per: "1m", Burst: 50, Algorithm: provider.TokenBucket}, 5 * time.Second},
		{provider.Limit{Max: 3, Per: "1s", Burst: 1, Algorithm: provider.TokenBucket}, time.Second / 3},
		{provider.Limit{Max: 50, Per: "1s", Algorithm: provider.FixedWindow}, time.Second},
		{provider.Limit{Max: 1, Per: "1s", Algorithm: provider.FixedWindow}, time.Second},
		{provider.Limit{Max: 60, Per: "minute", Algorithm: provider.FixedWindow}, time.Minute},
		{provider.Limit{Max: 100, Per: "1s", Algorithm: provider.SlidingWindowCounter}, time.Second},
	}
	for _, row := range rows {
		for _, roundTrip := range []time.Duration{0, row.pace / 50, row.pace / 10, row.pace / 2} {
			t.Run(fmt.Sprintf("%s %d per %s burst %d round trip %s", row.limit.Algorithm, row.limit.Max, row.limit.Per, row.limit.Burst, roundTrip), func(t *testing.T) {
				r, err := New(row.limit)
				require.NoError(t, err)
				per, _ := row.limit.Per.Duration()
				const windows = 200
				total := windows * per
				ideal := float64(row.limit.Max) * windows * float64(row.pace) / float64(row.pace+roundTrip)
				require.GreaterOrEqual(t, float64(throughput(r, roundTrip, total)), 0.98*ideal)
			})
		}
	}
}
