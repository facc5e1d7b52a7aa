package limit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

// evenly are limits whose unit costs whole nanoseconds, so that a refund is exact.
var evenly = []provider.Limit{
	{Max: 50, Per: "1s", Algorithm: provider.SlidingWindow},
	{Max: 20, Per: "1s", Algorithm: provider.SlidingWindowCounter},
	{Max: 20, Per: "1s", Algorithm: provider.FixedWindow},
	{Max: 20, Per: "minute", Algorithm: provider.FixedWindow},
	{Max: 20, Per: "1s", Algorithm: provider.TokenBucket},
	{Max: 20, Per: "1s", Burst: 50, Algorithm: provider.TokenBucket},
	{Max: 20, Per: "1s", Burst: 3, Algorithm: provider.TokenBucket},
	{Max: 20, Per: "1s", Algorithm: provider.LeakyBucket},
	{Max: 5, Algorithm: provider.InFlight},
}

// twins are two Rules of which one also lets ghosts go: calls that end as if they
// had never been.
type twins struct {
	testing.TB
	plain, haunted *Rule
	now            time.Duration
	ghosts, calls  []charged
}

func (w *twins) both(f func(r *Rule)) { f(w.plain); f(w.haunted) }

// same checks that nobody can tell them apart, now or later.
func (w *twins) same() {
	for n := int64(1); n <= w.plain.Heaviest()+1; n += 1 + n/4 {
		require.Equal(w, w.plain.Look(at(w.now), n), w.haunted.Look(at(w.now), n), "%d at %d", n, w.now)
		require.Equal(w, w.plain.When(at(w.now), 7*n), w.haunted.When(at(w.now), 7*n), "%d at %d", 7*n, w.now)
	}
	require.Equal(w, w.plain.Usage(at(w.now)), w.haunted.Usage(at(w.now)))
	require.Equal(w, w.plain.Idle(at(w.now)), w.haunted.Idle(at(w.now)))
}

// exorcise ends all ghosts, the last first, in each way that leaves nothing.
func (w *twins) exorcise(way int) {
	for len(w.ghosts) > 0 {
		k := len(w.ghosts) - 1
		g := w.ghosts[k]
		w.ghosts = w.ghosts[:k]
		switch way {
		case 0:
			w.haunted.GiveBack(at(g.at), at(w.now), g.n)
		case 1:
			w.haunted.Settle(at(g.at), at(w.now), g.n, 0)
		case 2:
			w.haunted.Settle(at(g.at), at(w.now), g.n, g.n)
			charged := w.now
			if w.haunted.Sent() {
				charged = g.at
			}
			for range g.n {
				w.haunted.Correct(at(charged), at(w.now), -1)
			}
		}
	}
	w.same()
}

// TestARefundIsExact: a Rule that took units and gave them back, or had them
// settled at 0 or corrected to 0, whatever happened in between, is one that never
// took them.
func TestARefundIsExact(t *testing.T) {
	for _, l := range evenly {
		for _, l := range []provider.Limit{l, sent(l)} {
			for way := range 3 {
				if l.Algorithm == provider.LeakyBucket && way > 0 {
					continue // its spacing holds
				}
				t.Run(fmt.Sprintf("%s %d per %s burst %d %s way %d", l.Algorithm, l.Max, l.Per, l.Burst, l.Counted, way), func(t *testing.T) {
					for seed := range uint64(12) {
						haunt(t, l, seed, way)
					}
				})
			}
		}
	}
}

func haunt(t *testing.T, l provider.Limit, seed uint64, way int) {
	rnd := newRand(seed)
	plain, err := New(l)
	require.NoError(t, err)
	w := &twins{TB: t, plain: plain, haunted: plain.Fresh(), now: time.Second}
	for range 200 {
		n := 1 + rnd.Int64N(2)
		switch rnd.IntN(6) {
		case 0, 1:
			if w.haunted.Look(at(w.now), n) <= w.now && (l.Algorithm != provider.LeakyBucket || len(w.ghosts) == 0) {
				w.both(func(r *Rule) { r.Take(at(w.now), n) })
				w.calls = append(w.calls, charged{w.now, n})
			}
		case 2:
			if w.haunted.Look(at(w.now), n) <= w.now && (l.Algorithm != provider.LeakyBucket || len(w.ghosts) == 0) {
				w.haunted.Take(at(w.now), n)
				w.ghosts = append(w.ghosts, charged{w.now, n})
			}
		case 3:
			if k := len(w.calls); k > 0 {
				c := w.calls[0]
				w.both(func(r *Rule) { r.Settle(at(c.at), at(w.now), c.n, c.n) })
				w.calls = w.calls[1:]
			}
		case 4:
			w.exorcise(way)
		case 5:
			w.now += below(rnd, 100*time.Millisecond)
		}
	}
	w.exorcise(way)
}

// TestARefundDoesNotFillABucketTwice: while a call was out the bucket became full:
// what it would have missed less has been lost.
func TestARefundDoesNotFillABucketTwice(t *testing.T) {
	r, err := New(provider.Limit{Max: 10, Per: "10s", Algorithm: provider.TokenBucket, Counted: provider.CountedSent})
	require.NoError(t, err)
	r.Take(at(0), 4)
	full := at(5 * time.Second) // a second ago
	r.Take(full, 10)
	require.Equal(t, 6*time.Second, r.Look(full, 1))
	r.GiveBack(at(0), full, 4)
	require.Equal(t, 6*time.Second, r.Look(full, 1), "the first 4 had come back by themselves")
	r.GiveBack(full, full, 10)
	require.True(t, r.Idle(full))

	r.Take(at(10*time.Second), 4) // two of which come back by themselves
	r.Take(at(12*time.Second), 8)
	require.Equal(t, int64(10), r.Usage(at(12*time.Second)).Used)
	r.GiveBack(at(10*time.Second), at(12*time.Second), 4)
	require.Equal(t, int64(8), r.Usage(at(12*time.Second)).Used)
}

// TestABucketRemembersABoundedPast: a charge that is older than what is remembered
// comes back in part, never whole where it should not.
func TestABucketRemembersABoundedPast(t *testing.T) {
	r, err := New(provider.Limit{Max: 1000, Per: "1s", Algorithm: provider.TokenBucket, Counted: provider.CountedSent})
	require.NoError(t, err)
	for i := range time.Duration(900) {
		r.Take(at(i), 1)
	}
	require.Len(t, r.algo.(*bucket).past, remembered)
	used := r.Usage(at(900)).Used
	r.GiveBack(at(899), at(900), 1)
	require.Equal(t, used-1, r.Usage(at(900)).Used, "the last is remembered")
	r.GiveBack(at(3), at(900), 1)
	require.Equal(t, used-1, r.Usage(at(900)).Used, "the fourth is not: strict")
	require.LessOrEqual(t, cap(r.algo.(*bucket).past), remembered)
}

// TestARefundNeverTakesFromOthers: what has left already, or was never charged, is
// not taken from what is there.
func TestARefundNeverTakesFromOthers(t *testing.T) {
	for _, l := range evenly[:len(evenly)-1] {
		for _, l := range []provider.Limit{l, sent(l)} {
			r, err := New(l)
			require.NoError(t, err)
			r.Take(at(0), 2)
			r.Settle(at(0), at(0), 2, 2)
			later := at(2 * time.Minute)
			spend(t, r, later, 2)
			used := r.Usage(later).Used
			r.Correct(at(0), later, -2)
			require.Equal(t, used, r.Usage(later).Used, "%v", l)
			if l.Counted == provider.CountedSent {
				r.GiveBack(at(0), later, 2)
				require.Equal(t, used, r.Usage(later).Used, "%v", l)
			}
			r.Correct(later, later, -5)
			require.Zero(t, r.Usage(later).Used, "%v", l)
			r.GiveBack(later, later, 5)
			r.Settle(later, later, 5, 0)
			require.Zero(t, r.Usage(later), "%v", l)
		}
	}
}

// TestAnEstimateThatWasTooLow is charged in full, and the limit is over until it has
// drained.
func TestAnEstimateThatWasTooLow(t *testing.T) {
	for _, row := range []struct {
		limit provider.Limit
		free  time.Duration // when one unit may go, 25 having been charged at 0
	}{
		{provider.Limit{Max: 10, Per: "1s", Algorithm: provider.SlidingWindow}, time.Second + 1},
		{provider.Limit{Max: 10, Per: "1s", Algorithm: provider.TokenBucket}, 1600 * time.Millisecond},
		{provider.Limit{Max: 10, Per: "1s", Algorithm: provider.FixedWindow}, 1010*time.Millisecond - wallAhead},
		{provider.Limit{Max: 10, Per: "1s", Algorithm: provider.LeakyBucket}, time.Second + 1},
		// 25 × (1 − e) + 1 ≤ 10 from e = 0.64 on, in the next window.
		{provider.Limit{Max: 10, Per: "1s", Algorithm: provider.SlidingWindowCounter}, 1640*time.Millisecond - wallAhead},
	} {
		for _, l := range []provider.Limit{row.limit, sent(row.limit)} {
			r, err := New(l)
			require.NoError(t, err)
			r.Take(at(0), 3)
			r.Settle(at(0), at(0), 3, 20)
			r.Correct(at(0), at(0), 5)
			require.Equal(t, row.free, r.Look(at(0), 1), "%v", l)
			require.Equal(t, int64(25), r.Usage(at(0)).Used, "%v", l)
		}
	}
}

// TestTheLeakyScheduleIsKept: lateness is caught up with at 0.9 intervals, up to ten
// of them; a heavy call is followed by its cost; a refund does not shorten it.
func TestTheLeakyScheduleIsKept(t *testing.T) {
	const ms = time.Millisecond
	r, err := New(provider.Limit{Max: 1000, Per: "100s", Algorithm: provider.LeakyBucket}) // 100 ms
	require.NoError(t, err)
	next := func(now time.Duration) time.Duration { return r.Look(at(now), 1) / ms }
	spend(t, r, at(0), 1)
	require.Equal(t, time.Duration(100), next(0))
	spend(t, r, at(105*ms), 1) // 5 ms late
	require.Equal(t, time.Duration(200), next(105*ms))
	spend(t, r, at(250*ms), 1) // 50 ms late
	require.Equal(t, time.Duration(340), next(250*ms))
	spend(t, r, at(340*ms), 3)
	require.Equal(t, time.Duration(610), next(340*ms))
	spend(t, r, at(10_000*ms), 1) // 9 s late, of which 1 s is not forgiven
	now := 10_000 * ms
	for i := range 200 {
		want := now + 90*ms
		if i >= 100 {
			want = now + 100*ms
		}
		require.Equal(t, want, r.Look(at(now), 1), "call %d", i)
		now = want
		r.Take(at(now), 1)
		r.Settle(at(now), at(now), 1, 0)
	}
}

// TestAGiveBackRestoresTheLeakySchedule of the last grant, and of no other.
func TestAGiveBackRestoresTheLeakySchedule(t *testing.T) {
	r, err := New(provider.Limit{Max: 100, Per: "100s", Algorithm: provider.LeakyBucket})
	require.NoError(t, err)
	r.Take(at(0), 1)
	r.GiveBack(at(0), at(1), 1)
	require.Equal(t, time.Duration(1), r.Look(at(1), 1))
	r.Take(at(1), 1)
	r.Take(at(1*time.Second+1), 5)
	require.Equal(t, 6*time.Second+1, r.Look(at(1*time.Second+2), 1))
	r.GiveBack(at(1*time.Second+1), at(1*time.Second+2), 5)
	require.Equal(t, 1*time.Second+2, r.Look(at(1*time.Second+2), 1))
	r.Take(at(1*time.Second+2), 1)
	r.GiveBack(at(1), at(1*time.Second+3), 1)
	require.Equal(t, 2*time.Second+1, r.Look(at(1*time.Second+3), 1), "another grant has followed")
}
