package limit

import (
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

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
	if early := t - slotOf(s.rule.per) - 1; early >= now {
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

// TestWhenInSlots is a lower bound, at most two slots a round early.
func TestWhenInSlots(t *testing.T) {
	r := newWindow(t, provider.Limit{Max: 3000, Per: "1s"})
	rnd := newRand(8)
	now := time.Duration(0)
	for range 9000 {
		now = max(now, r.Look(at(now), 1)) + below(rnd, 650*time.Microsecond)
		if r.Look(at(now), 1) > now {
			continue
		}
		r.Take(at(now), 1)
		if rnd.IntN(100) > 0 { // some stay out
			r.Settle(at(now), at(now), 1, 1)
		}
	}
	require.True(t, r.algo.(*window).slotted)
	for k, want := range simulate(r, now, 9000) {
		got := r.When(at(now), int64(k+1))
		if early := want - got; early < 0 || early > time.Duration(2+2*k/3000)*slotOf(r.per) {
			require.Fail(t, "not what happens", "call %d: %d, not %d", k+1, got, want)
		}
	}
}
