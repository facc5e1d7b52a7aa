package limit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

func newWindow(t testing.TB, l provider.Limit) *Rule {
	l.Algorithm = provider.SlidingWindow
	r, err := New(l)
	require.NoError(t, err)
	return r
}

// TestAUnitIsFreeStrictlyAfterItsWindow: a provider with closed windows counts both
// ends.
func TestAUnitIsFreeStrictlyAfterItsWindow(t *testing.T) {
	r := newWindow(t, provider.Limit{Max: 1, Per: "1s"})
	r.Take(at(100), 1)
	require.Equal(t, Never, r.Look(at(150), 1))
	r.Settle(at(100), at(200), 1, 1)
	const free = 200 + time.Second + 1
	require.Equal(t, free, r.Look(at(200), 1))
	require.Equal(t, free, r.Look(at(free-1), 1))
	require.Equal(t, free, r.Look(at(free), 1))
	require.Equal(t, free+5, r.Look(at(free+5), 1))
	require.False(t, r.Idle(at(free-1)))
	require.True(t, r.Idle(at(free)))
	require.Equal(t, Usage{Used: 1, ResetAt: free}, r.Usage(at(free-1)))
	require.Zero(t, r.Usage(at(free)))
}

// TestSettleOutOfOrder: an answer that is told late counts from when it was there.
func TestSettleOutOfOrder(t *testing.T) {
	r := newWindow(t, provider.Limit{Max: 3, Per: "1s"})
	for range 3 {
		r.Take(at(0), 1)
	}
	for _, settled := range []time.Duration{300, 100, 200} {
		r.Settle(at(0), at(settled), 1, 1)
	}
	for n, want := range []time.Duration{100, 200, 300} {
		require.Equal(t, want+time.Second+1, r.Look(at(400), int64(n+1)))
	}
}

// TestAFullRingFoldsItsOldest: whatever instants it is told, it keeps its bound,
// every unit, and none for less long.
func TestAFullRingFoldsItsOldest(t *testing.T) {
	rnd := newRand(5)
	r := &ring{}
	var exact charges
	for i := range 5000 {
		c := charged{time.Duration(rnd.IntN(100_000)), 1 + rnd.Int64N(3)}
		r.insert(c.at, c.n, 1)
		exact = append(exact, c)
		if i%25 > 0 {
			continue
		}
		require.LessOrEqual(t, len(r.entries), most)
		require.Equal(t, exact.sum(0, 100_000), int64(r.total()))
		since := time.Duration(rnd.IntN(100_000))
		require.GreaterOrEqual(t, int64(r.since(since)), exact.sum(since, 100_000), "after %d", i)
	}
}

// TestExactUpTo1024Entries, and each of them.
func TestExactUpTo1024Entries(t *testing.T) {
	r := newWindow(t, provider.Limit{Max: 1024, Per: "1s"})
	for i := range time.Duration(1024) {
		spend(t, r, at(i*977), 1)
	}
	for i := range time.Duration(1024) {
		require.Equal(t, i*977+time.Second+1, r.Look(at(1_000_500), int64(i+1)))
	}
}

// TestSumsSaturate: costs up to MaxInt64, charged again and again.
func TestSumsSaturate(t *testing.T) {
	for _, l := range small {
		for _, l := range []provider.Limit{l, sent(l)} {
			r, err := New(l)
			require.NoError(t, err)
			t.Run(fmt.Sprintf("%s %s", l.Algorithm, l.Counted), func(t *testing.T) {
				now := time.Duration(1000)
				for range 4 {
					r.Take(at(now), 1)
					r.Settle(at(now), at(now), 1, math.MaxInt64)
					r.Correct(at(now), at(now), math.MaxInt64)
					r.Take(at(now), math.MaxInt64)
					require.Equal(t, Never, r.Look(at(now), math.MaxInt64))
					require.Greater(t, r.Look(at(now), 1), now)
					u := r.Usage(at(now))
					require.GreaterOrEqual(t, u.Used, int64(0))
					require.Equal(t, int64(math.MaxInt64), u.Held)
					r.GiveBack(at(now), at(now), math.MaxInt64)
					now += 7
				}
				r.Correct(at(now), at(now), math.MinInt64)
				r.Settle(at(now), at(now), -1, -1)
				r.Settle(at(now), at(now), math.MaxInt64, 0)
				r.GiveBack(at(now), at(now), -1)
				r.Take(at(now), -1)
				require.Zero(t, r.Usage(at(now)).Held)
				require.Equal(t, now, r.Look(at(now), 0))
				require.Equal(t, now, r.Look(at(now), -5))
			})
		}
	}
}

// TestSaturatedUnitsLeaveInOrder: two overestimates count each in its time.
func TestSaturatedUnitsLeaveInOrder(t *testing.T) {
	r := newWindow(t, provider.Limit{Max: 5, Per: "1us"})
	for i := range time.Duration(3) {
		r.Take(at(i*100), 0)
		r.Settle(at(i*100), at(i*100), 0, math.MaxInt64)
	}
	require.Equal(t, time.Duration(1201), r.Look(at(300), 1))
	r.Correct(at(200), at(300), -math.MaxInt64+2)
	require.Equal(t, int64(2), r.Usage(at(300)).Used, "what is saturated is dropped at its old end")
}

// TestCase20_NoRollingWindowHoldsMore: 2 a second, calls around the boundary.
func TestCase20_NoRollingWindowHoldsMore(t *testing.T) {
	r := newWindow(t, provider.Limit{Max: 2, Per: "1s"})
	var went []time.Duration
	for _, now := range []time.Duration{0, 950 * time.Millisecond, 1050 * time.Millisecond, 1100 * time.Millisecond, 1951 * time.Millisecond, 2051 * time.Millisecond} {
		if r.Look(at(now), 1) <= now {
			spend(t, r, at(now), 1)
			went = append(went, now/time.Millisecond)
		}
	}
	require.Equal(t, []time.Duration{0, 950, 1050, 1951, 2051}, went)
	rnd := rand.New(rand.NewPCG(20, 20))
	l := provider.Limit{Max: 2, Per: "1s"}
	trips := storm(t, newWindow(t, l), rnd, 4000, 300*time.Millisecond)
	most, allowed := closedWindows(l, time.Second, arrive(trips, rnd), rnd)
	require.Equal(t, allowed, most)
}

// TestCase21_BurstAndSmooth: 60 a minute, all at once or one a second.
func TestCase21_BurstAndSmooth(t *testing.T) {
	burst := newWindow(t, provider.Limit{Max: 60, Per: "1m"})
	for range 60 {
		spend(t, burst, at(0), 1)
	}
	require.Equal(t, time.Minute+1, burst.Look(at(0), 1), "the 61st")
	bucket, err := New(provider.Limit{Max: 60, Per: "1m", Burst: 60, Algorithm: provider.TokenBucket})
	require.NoError(t, err)
	spend(t, bucket, at(0), 60)
	require.Equal(t, time.Second, bucket.Look(at(0), 1), "a bucket fills all the time")
	smooth, err := New(provider.Limit{Max: 60, Per: "1m", Algorithm: provider.LeakyBucket})
	require.NoError(t, err)
	for i := range time.Duration(60) {
		require.Equal(t, i*time.Second, smooth.Look(at(max(i-1, 0)*time.Second), 1))
		spend(t, smooth, at(i*time.Second), 1)
	}
	require.Equal(t, time.Minute+1, smooth.Look(at(59*time.Second), 1))
}
