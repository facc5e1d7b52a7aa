package queue

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEqualTagsHeavyAndLight: a heavy and a light call have one tag. The order is
// total, so the gate's timer is set for the one whose turn it is.
func TestEqualTagsHeavyAndLight(t *testing.T) {
	for _, heavyFirst := range []bool{true, false} {
		w := newWorld(t)
		r := route(w.gate(&window{limit: 3, per: 10 * second}))
		w.add(r, "z", 1)
		w.hand()
		w.now = second
		w.add(r, "z", 1)
		w.hand()
		w.now = 2 * second
		costs := map[bool]int64{true: 3, false: 1}
		first := w.add(r, "a", costs[heavyFirst])
		second := w.add(r, "b", costs[!heavyFirst])
		w.hand()
		if heavyFirst {
			require.Equal(t, waits, second.fate, "the light one passes the heavy one")
		} else {
			require.Equal(t, gone, first.fate, "the light one waits for the heavy one")
		}
		w.until(Never)
		if heavyFirst {
			require.Equal(t, 11*time.Second, first.at)
			require.Equal(t, 21*time.Second, second.at)
		} else {
			require.Equal(t, 12*time.Second, second.at)
		}
		w.empty()
	}
}

// TestHeavyIsNotPassedAtItsGate: light calls come all the time, and each of them
// would find room. A flow of them passes in its turn and no more.
func TestHeavyIsNotPassedAtItsGate(t *testing.T) {
	w := newWorld(t)
	r := route(w.gate(&window{limit: 10, per: 10 * second}))
	for i := range 1000 {
		w.after(time.Duration(i)*second, func() { w.goOrWait(w.make(r, Flow{"light", 1}, 1)) })
	}
	w.hand()
	w.until(100 * second)
	for range 20 {
		w.add(r, "heavy", 10)
	}
	w.hand()
	w.until(1000 * second)
	require.Equal(t, 20, w.count("heavy"))
	for i, c := range w.went {
		if c.flow.Name == "heavy" && i > 0 {
			assert.LessOrEqual(t, c.at-w.went[i-1].at, 10*second, "waits for room, and for nothing else")
		}
	}
	first := slices.IndexFunc(w.went, func(c *call) bool { return c.flow.Name == "heavy" })
	for i := first; i < first+38; i += 2 {
		assert.Equal(t, "heavy", w.went[i].flow.Name, "by turns")
	}
}

// TestLaterDoesNotPassFromElsewhere: two flows have one tag. A later call that comes
// from its own gate does not pass an earlier one that waits; an earlier one does.
func TestLaterDoesNotPassFromElsewhere(t *testing.T) {
	w := newWorld(t)
	all := w.gate(&window{limit: 10, per: time.Hour})
	w.turnAway(all, 5)
	shut, shut2 := w.gate(&pause{until: second}), w.gate(&pause{until: second})
	early := w.add(route(shut, all), "early", 1)
	heavy := w.add(route(all), "heavy", 6)
	later := w.add(route(shut2, all), "later", 1)
	w.hand()
	f := Flow{"new", 1}
	assert.Equal(t, &all.Gate, w.q.Blocked(w.now, heavy.route, f, []int64{1}), "it comes last of all")
	w.until(2 * second)
	assert.Equal(t, []fate{gone, waits, waits}, fates([]*call{early, heavy, later}))
}

// TestColdGateBlocksNobody: calls for a key that is closed for an hour, heavy ones
// among them, do not delay a call of another key by a nanosecond.
func TestColdGateBlocksNobody(t *testing.T) {
	run := func(cold bool) (at []time.Duration) {
		w := newWorld(t)
		w.bound = 1000
		all := w.gate(&window{limit: 10, per: 10 * second})
		shut, open := w.gate(&pause{until: time.Hour}), w.gate(&window{limit: 100, per: second})
		for i := range 150 {
			w.after(time.Duration(i)*second*9/10, func() { w.add(route(all, open), "a", 1) })
			if i%20 == 0 {
				w.after(time.Duration(i)*second*8/10, func() { w.add(route(all, open), "c", 7) })
			}
			if !cold {
				continue
			}
			w.after(time.Duration(i)*second*11/10, func() {
				w.add(route(all, shut), "b", 1+int64(i%10)) // the cold gate comes last
				w.add(route(shut, all), "b", 1+int64(i%10)) // or first
			})
		}
		w.until(time.Hour - 1)
		for _, c := range w.went {
			require.NotEqual(t, "b", c.flow.Name)
			at = append(at, c.at)
		}
		require.Len(t, at, 158)
		return at
	}
	assert.Equal(t, run(false), run(true))
}

// TestStaleTagMarksTheGate: the heavy call of a flow is first at a gate; a call of
// the same flow that is earlier comes through from another gate, and so the turn
// at the first is another flow's. Its call is light, and there is room.
func TestStaleTagMarksTheGate(t *testing.T) {
	w := newWorld(t)
	all, key := w.gate(&window{limit: 10, per: time.Hour}), w.gate(&pause{until: second})
	early := w.add(route(key, all), "a", 1)
	w.hand()
	w.turnAway(all, 5)
	heavy := w.add(route(all), "a", 6)
	light := w.add(route(all), "b", 2)
	w.hand()
	require.Equal(t, waits, light.fate)
	w.until(second)
	assert.Equal(t, gone, early.fate)
	assert.Equal(t, gone, light.fate, "its turn, and nobody looked")
	assert.Equal(t, waits, heavy.fate)
}

// turnAway uses up n units of a gate.
func (w *world) turnAway(g *gated, n int64) { g.take(w.now, n) }

// TestHeadLeavesByCancel: who comes behind a heavy call goes at once when it leaves.
func TestHeadLeavesByCancel(t *testing.T) {
	w := newWorld(t)
	all := w.gate(&window{limit: 10, per: time.Hour})
	w.turnAway(all, 5)
	r := route(all)
	heavy := w.add(r, "a", 10)
	next := w.add(r, "a", 1)   // in its line
	heavy2 := w.add(r, "b", 9) // and who comes behind at the gate
	light := w.add(route(all), "c", 1)
	w.hand()
	require.Empty(t, w.went)
	w.leave(heavy)
	w.hand()
	assert.Equal(t, []*call{next}, w.went)
	w.leave(heavy2)
	w.hand()
	assert.Equal(t, []*call{next, light}, w.went)
	w.empty()
}

// TestCancelCostsNothing: 1,000 wait at 50 a second and 989 of them give up. The
// next caller goes at the next free instant.
func TestCancelCostsNothing(t *testing.T) {
	w := newWorld(t)
	r := route(w.gate(&spacing{every: second / 50}))
	var calls []*call
	for range 1000 {
		calls = append(calls, w.add(r, "a", 1))
	}
	w.blind = true
	w.hand()
	w.until(10 * second / 50)
	require.Len(t, w.went, 11)
	for _, c := range calls {
		w.leave(c)
	}
	next := w.add(r, "a", 1)
	w.hand()
	w.until(Never)
	assert.Equal(t, 11*second/50, next.at)
	w.empty()
}
