package limit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

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

// slotted is a Rule beside the list of all that it was charged, exact to the
// nanosecond.
type slotted struct {
	testing.TB
	rule  *Rule
	exact windowModel
	out   []charged // in flight, by when they went
	calls []charged // settled, by when they are charged
}

// look checks that Look is no sooner than the truth allows and at most one slot
// later, and returns it.
func (s *slotted) look(now time.Duration, n int64) time.Duration {
	t := s.rule.Look(at(now), n)
	if t == Never {
		return t
	}
	room := s.rule.spec.capacity - n
	if !s.rule.Sent() {
		room -= s.rule.held
	}
	require.True(s, s.exact.fits(t, room), "%d at %d: sooner than the window allows", n, now)
	if early := t - s.rule.spec.slot - 1; early >= now {
		require.False(s, s.exact.fits(early, room), "%d at %d: more than a slot late", n, now)
	}
	return t
}

// TestSlotsAreStrict: beyond 1,024 entries instants are true to a slot, never on the
// lax side, whatever comes late, is given back, corrected or left out.
func TestSlotsAreStrict(t *testing.T) {
	for _, counted := range []string{provider.CountedAnswered, provider.CountedSent} {
		for seed := range uint64(2) {
			rnd := newRand(seed)
			s := &slotted{TB: t, exact: windowModel{per: time.Millisecond}}
			s.rule = newWindow(t, provider.Limit{Max: 4000, Per: "1ms", Counted: counted})
			w, turns := s.rule.algo.(*window), 0
			for now := time.Duration(0); now < 6*time.Millisecond; now += below(rnd, 400) + 1 {
				if now > 3*time.Millisecond && now < 5*time.Millisecond && rnd.IntN(50) > 0 {
					continue // quiet: it becomes exact again
				}
				before := w.slotted
				s.storm(now, rnd)
				if before != w.slotted {
					turns++
				}
				require.LessOrEqual(t, len(w.entries), most)
			}
			require.GreaterOrEqual(t, turns, 3, "exact, slots, exact, slots")
		}
	}
}

// storm settles what is due, lets a call go, if one may, and takes back a part of
// another.
func (s *slotted) storm(now time.Duration, rnd *rand.Rand) {
	if rnd.IntN(50) == 0 {
		s.exact.forget(now)
	}
	for len(s.out) > 0 && s.out[0].at+3000 <= now {
		c := charged{s.out[0].at + below(rnd, 3000), s.out[0].n}
		if s.rule.Sent() {
			c.at = s.out[0].at
		} else {
			s.exact.charge(c.at, c.n)
		}
		s.rule.Settle(at(s.out[0].at), at(c.at), c.n, c.n)
		s.calls, s.out = append(s.calls, c), s.out[1:]
	}
	n := 1 + rnd.Int64N(3)
	t := s.rule.Look(at(now), n)
	if rnd.IntN(5) == 0 {
		t = s.look(now, n)
	}
	if t <= now {
		s.rule.Take(at(now), n)
		s.out = append(s.out, charged{now, n})
		if s.rule.Sent() {
			s.exact.charge(now, n)
		}
	}
	if k := len(s.calls); k > 0 && rnd.IntN(10) == 0 {
		c := &s.calls[k-1-rnd.IntN(min(k, 2000))]
		delta := rnd.Int64N(c.n + 1)
		s.rule.Correct(at(c.at), at(now), -delta)
		s.exact.refund(c.at, delta)
		c.n -= delta
	}
	if k := len(s.out); k > 0 && rnd.IntN(10) == 0 {
		c := s.out[k-1]
		s.rule.GiveBack(at(c.at), at(now), c.n)
		if s.out = s.out[:k-1]; s.rule.Sent() {
			s.exact.refund(c.at, c.n)
		}
	}
}

// forget leaves out what can count no more.
func (m *windowModel) forget(now time.Duration) {
	kept := m.charges[:0]
	for _, c := range m.charges {
		if c.at+m.per >= now-10_000 {
			kept = append(kept, c)
		}
	}
	m.charges = kept
}

// TestSlotsHoldTheBoundAtTheProvider: the storm of the other bounds, in slots.
func TestSlotsHoldTheBoundAtTheProvider(t *testing.T) {
	l := provider.Limit{Max: 5000, Per: "100us"}
	for seed := range uint64(3) {
		rnd := newRand(seed)
		r := newWindow(t, l)
		trips := storm(t, r, rnd, 40_000, 200)
		require.True(t, r.algo.(*window).slotted)
		for range 3 {
			most, allowed := closedWindows(l, 100*time.Microsecond, arrive(trips, rnd), rnd)
			require.LessOrEqual(t, most, allowed)
			require.Greater(t, most, allowed*8/10, "the storm did not come near the bound")
		}
	}
}

// TestSlotsCostAThousandth of utilisation.
func TestSlotsCostAThousandth(t *testing.T) {
	for _, n := range []int64{1000, 1100, 5000} {
		r := newWindow(t, provider.Limit{Max: n, Per: "1s"})
		const windows = 50
		ideal := float64(windows*n) / 1.05
		require.GreaterOrEqual(t, float64(throughput(r, 50*time.Millisecond, windows*time.Second)), 0.999*ideal, "%d", n)
		paced := newWindow(t, provider.Limit{Max: n, Per: "1s"})
		var went int64 // as evenly as they come
		for now := time.Duration(0); now < windows*time.Second; now += time.Second / time.Duration(n) {
			if paced.Look(at(now), 1) <= now {
				spend(t, paced, at(now), 1)
				went++
			}
		}
		require.GreaterOrEqual(t, float64(went), 0.998*float64(windows*n), "%d", n)
	}
}

// TestAMonthOf15500FitsIn20KiB, exact while there are few.
func TestAMonthOf15500FitsIn20KiB(t *testing.T) {
	r := newWindow(t, provider.Limit{Max: 15_500, Per: "744h"})
	rnd := newRand(1)
	now := time.Duration(0)
	for range 40_000 {
		now = max(now, r.Look(at(now), 1)) + below(rnd, 4*time.Minute)
		if r.Look(at(now), 1) > now {
			continue
		}
		r.Take(at(now), 1)
		r.Settle(at(now), at(now+below(rnd, 10*time.Second)), 1, 1)
	}
	w := r.algo.(*window)
	require.True(t, w.slotted)
	size := unsafe.Sizeof(Rule{}) + unsafe.Sizeof(*w) + uintptr(cap(w.entries))*unsafe.Sizeof(entry{})
	require.LessOrEqual(t, size, uintptr(20<<10))
	require.LessOrEqual(t, cap(w.entries), most)
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
