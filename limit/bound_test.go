package limit

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

// arrival is what a provider sees of a call.
type arrival struct {
	at time.Duration
	n  int64
}

// trip is one call through a Rule: it arrives somewhere between going and answer.
type trip struct {
	granted, settled time.Duration
	taken, counts    int64
}

// below is a length of time in [0, d).
func below(rnd *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rnd.Int64N(int64(d)))
}

// storm sends calls through a Rule as fast as it lets them, most of the time, with
// random costs and delays; some are given back, some are not charged, some are
// settled late and out of order. It returns those that were sent, with what the
// provider counts of each.
func storm(t *testing.T, r *Rule, rnd *rand.Rand, steps int, scale time.Duration) []trip {
	var trips []trip
	var flying []trip
	now := 10 * scale
	for range steps {
		switch heavy := 1 + rnd.Int64N(min(3, r.Heaviest())); rnd.IntN(8) {
		case 0, 1, 2, 3:
			if r.Look(at(now), heavy) > now {
				break
			}
			r.Take(at(now), heavy)
			flying = append(flying, trip{granted: now, settled: now + below(rnd, scale), taken: heavy, counts: heavy})
			continue
		case 4:
			if free := r.Look(at(now), 1); free < Never {
				now = max(now, free)
				continue
			}
		case 5:
			if k := len(flying); k > 0 && rnd.IntN(4) == 0 {
				i := rnd.IntN(k)
				r.GiveBack(at(flying[i].granted), at(now), flying[i].taken)
				flying = slices.Delete(flying, i, i+1)
			}
		}
		now += below(rnd, scale/8+1)
		for i := 0; i < len(flying); {
			if flying[i].settled > now {
				i++
				continue
			}
			f := flying[i]
			f.counts = rnd.Int64N(f.taken + 1)
			r.Settle(at(f.granted), at(f.settled), f.taken, f.counts)
			trips, flying = append(trips, f), slices.Delete(flying, i, i+1)
		}
	}
	require.Greater(t, len(trips), steps/40, "the storm sent next to nothing")
	return trips
}

// arrive puts each call somewhere into its trip.
func arrive(trips []trip, rnd *rand.Rand) []arrival {
	out := make([]arrival, 0, len(trips))
	for _, f := range trips {
		a := f.granted
		switch rnd.IntN(3) {
		case 0:
			a = f.settled
		case 1:
			a += below(rnd, f.settled-f.granted+1)
		}
		out = append(out, arrival{a, f.counts})
	}
	slices.SortFunc(out, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	return out
}

// A judge is a provider: the most that it ever counts, in its own measure, and what
// it allows.
type judge func(l provider.Limit, per time.Duration, arrivals []arrival, rnd *rand.Rand) (most, allowed int64)

// closedWindows counts every window [x, x+per], both ends in.
func closedWindows(l provider.Limit, per time.Duration, arrivals []arrival, _ *rand.Rand) (most, allowed int64) {
	var sum int64
	first := 0
	for _, a := range arrivals {
		sum += a.n
		for arrivals[first].at+per < a.at {
			sum -= arrivals[first].n
			first++
		}
		most = max(most, sum)
	}
	return most, l.Max
}

// alignedWindows counts aligned windows of a provider whose clock is behind ours by
// less than the guard.
func alignedWindows(l provider.Limit, per time.Duration, arrivals []arrival, rnd *rand.Rand) (most, allowed int64) {
	behind := below(rnd, max(per/100, 1))
	counts := map[time.Duration]int64{}
	for _, a := range arrivals {
		w := (a.at + wallAhead - behind) / per
		counts[w] += a.n
		most = max(most, counts[w])
	}
	return most, l.Max
}

// twoCounters is the estimate, in units of 1/per.
func twoCounters(l provider.Limit, per time.Duration, arrivals []arrival, _ *rand.Rand) (most, allowed int64) {
	counts := map[time.Duration]int64{}
	for _, a := range arrivals {
		w, elapsed := (a.at+wallAhead)/per, (a.at+wallAhead)%per
		counts[w] += a.n
		most = max(most, counts[w-1]*int64(per-elapsed)+counts[w]*int64(per))
	}
	return most, l.Max * int64(per)
}

// fullBucket is what a bucket misses, in units of 1/max ns.
func fullBucket(l provider.Limit, per time.Duration, arrivals []arrival, _ *rand.Rand) (most, allowed int64) {
	var missing int64
	var last time.Duration
	for _, a := range arrivals {
		missing = max(0, missing-int64(a.at-last)*l.Max) + a.n*int64(per)
		last, most = a.at, max(most, missing)
	}
	return most, cmp.Or(l.Burst, l.Max) * int64(per)
}

var bounds = []struct {
	limit provider.Limit
	judge judge
}{
	{provider.Limit{Max: 5, Per: "1us", Algorithm: provider.SlidingWindow}, closedWindows},
	{provider.Limit{Max: 1, Per: "300ns", Algorithm: provider.SlidingWindow}, closedWindows},
	{provider.Limit{Max: 6, Per: "1us", Algorithm: provider.LeakyBucket}, closedWindows},
	{provider.Limit{Max: 5, Per: "3us", Algorithm: provider.FixedWindow}, alignedWindows},
	{provider.Limit{Max: 5, Per: "1us", Algorithm: provider.SlidingWindowCounter}, twoCounters},
	{provider.Limit{Max: 7, Per: "1us", Algorithm: provider.TokenBucket}, fullBucket},
	{provider.Limit{Max: 3, Per: "1us", Burst: 1, Algorithm: provider.TokenBucket}, fullBucket},
	{provider.Limit{Max: 3, Per: "1us", Burst: 9, Algorithm: provider.TokenBucket}, fullBucket},
}

// TestTheProviderNeverCountsMore: wherever between going and answer a call
// arrives, no provider that enforces the limit counts more than it allows.
func TestTheProviderNeverCountsMore(t *testing.T) {
	for i, b := range bounds {
		per, _ := b.limit.Per.Duration()
		t.Run(fmt.Sprintf("%s %d per %s", b.limit.Algorithm, b.limit.Max, per), func(t *testing.T) {
			for seed := range uint64(60) {
				rnd := rand.New(rand.NewPCG(seed, uint64(i)))
				r, err := New(b.limit)
				require.NoError(t, err)
				trips := storm(t, r, rnd, 1500, []time.Duration{per / 10, per / 2, 3 * per}[seed%3])
				for range 10 {
					most, allowed := b.judge(b.limit, per, arrive(trips, rnd), rnd)
					require.LessOrEqual(t, most, allowed)
				}
			}
		})
	}
}

// TestCountedSentIsBrokenByDelay is why calls are held: counted when they are
// sent, a varying delay breaks every bound at the provider. It also shows that the
// judges do see it.
func TestCountedSentIsBrokenByDelay(t *testing.T) {
	for i, b := range bounds {
		per, _ := b.limit.Per.Duration()
		r, err := New(sent(b.limit))
		require.NoError(t, err)
		rnd := rand.New(rand.NewPCG(1, uint64(i)))
		trips := storm(t, r, rnd, 3000, per/2)
		broken := false
		for range 20 {
			most, allowed := b.judge(b.limit, per, arrive(trips, rnd), rnd)
			broken = broken || most > allowed
		}
		require.True(t, broken, b.limit.Algorithm)
	}
}

// TestSentHoldsForWhatIsGranted: counted: sent keeps its bound for the instants of
// going.
func TestSentHoldsForWhatIsGranted(t *testing.T) {
	for i, b := range bounds {
		per, _ := b.limit.Per.Duration()
		for seed := range uint64(20) {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			r, err := New(sent(b.limit))
			require.NoError(t, err)
			trips := storm(t, r, rnd, 1500, per/2)
			for i := range trips {
				trips[i].settled = trips[i].granted
			}
			most, allowed := b.judge(b.limit, per, arrive(trips, rnd), rnd)
			require.LessOrEqual(t, most, allowed, b.limit.Algorithm)
		}
	}
}

// TestInFlightNeverMore: held units never exceed max.
func TestInFlightNeverMore(t *testing.T) {
	r, err := New(provider.Limit{Max: 3, Algorithm: provider.InFlight})
	require.NoError(t, err)
	trips := storm(t, r, rand.New(rand.NewPCG(1, 2)), 3000, 1000)
	for _, f := range trips {
		var out int64
		for _, g := range trips {
			if g.granted <= f.granted && f.granted < g.settled {
				out += g.taken
			}
		}
		require.LessOrEqual(t, out, int64(3))
	}
}

// TestLeakySpacing: grants are 0.9 intervals × cost apart at least, never before
// their schedule, and the schedule is caught up with.
func TestLeakySpacing(t *testing.T) {
	const per, n = 10_000, 7 // an interval of 1428.57 ns
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		r, err := New(provider.Limit{Max: n, Per: "10us", Algorithm: provider.LeakyBucket})
		require.NoError(t, err)
		trips := storm(t, r, rnd, 1500, per/6)
		slices.SortFunc(trips, func(a, b trip) int { return cmp.Compare(a.granted, b.granted) })
		for i := 1; i < len(trips); i++ {
			gap := int64(trips[i].granted - trips[i-1].granted)
			require.GreaterOrEqual(t, 10*n*gap, 9*per*trips[i-1].taken)
		}
	}
}
