package queue

import (
	"math"
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

// TestDeadlines: a turn exactly at the deadline is not too late, and Next tells
// when the first is.
func TestDeadlines(t *testing.T) {
	w := newWorld(t)
	g := w.gate(&pause{until: Never})
	var calls []*call
	for _, d := range []time.Duration{5, 3, 9, 3, Never, 0} {
		c := w.make(route(g), Flow{"a", 1}, 1)
		c.Deadline = d
		w.enter(c)
		calls = append(calls, c)
	}
	w.hand()
	before := func(at time.Duration) (ds []time.Duration) {
		for _, x := range w.q.Before(at) {
			ds = append(ds, x.Deadline)
		}
		return ds
	}
	assert.Empty(t, before(0))
	assert.ElementsMatch(t, []time.Duration{0, 3, 3}, before(5))
	assert.ElementsMatch(t, []time.Duration{0, 3, 3, 5, 9}, before(Never))
	assert.Nil(t, w.q.Expired(0), "exactly at the deadline")
	assert.Equal(t, &calls[5].Waiter, w.q.Expired(1))
	assert.Equal(t, time.Duration(1), w.q.Next())
	w.leave(calls[5])
	assert.Equal(t, time.Duration(4), w.q.Next())
	assert.Equal(t, Never, w.q.Opens())
	w.until(Never)
	assert.Equal(t, []fate{left, left, left, left, waits, left}, fates(calls))
	assert.Equal(t, []time.Duration{6, 4, 10, 4, 0, 0}, instants(calls))
	g.ruler.(*pause).until = 10
	w.q.Touch(&g.Gate)
	w.hand()
	assert.Equal(t, gone, calls[4].fate)
	w.empty()
}

func fates(calls []*call) (all []fate) {
	for _, c := range calls {
		all = append(all, c.fate)
	}
	return all
}

func instants(calls []*call) (all []time.Duration) {
	for _, c := range calls {
		all = append(all, c.at)
	}
	return all
}

// TestReturnKeepsPlace: a call that comes back goes before all who came later, in
// its own line and at its gate, also when it never waited before.
func TestReturnKeepsPlace(t *testing.T) {
	w := newWorld(t)
	r := route(w.gate(&spacing{every: second}))
	first, never := w.add(r, "a", 1), w.make(r, Flow{"a", 1}, 1)
	w.hand()
	never.Keep(w.q.Arrive())
	other := w.add(route(w.gates[0]), "a", 1) // of the same flow, by another route
	third := w.add(r, "a", 1)
	w.hand()
	w.enter(first)
	w.hand()
	w.enter(never)
	w.hand()
	assert.Same(t, &first.Waiter, w.q.Oldest())
	w.until(Never)
	assert.Equal(t, []*call{first, first, never, other, third}, w.went)
}

// TestAhead: what waits before a call, by gate.
func TestAhead(t *testing.T) {
	w := newWorld(t)
	g, h := w.gate(&pause{until: Never}), w.gate(&pause{until: Never})
	r, f := route(g, h), Flow{"a", 1}
	ahead := func(cost ...int64) []int64 { return w.q.Ahead(r, f, cost) }
	assert.Nil(t, ahead(1, 1))
	a := w.add(r, "a", 2)
	big := w.add(r, "a", math.MaxInt64)
	assert.Equal(t, []int64{math.MaxInt64, math.MaxInt64}, ahead(1, 1))
	assert.Nil(t, ahead(1, 0), "needs other gates")
	w.add(r, "a", 3)
	w.leave(big)
	assert.LessOrEqual(t, ahead(7, 7)[0], int64(5), "a lower bound once it was saturated")
	w.leave(a)
	assert.LessOrEqual(t, ahead(7, 7)[0], int64(3))
	assert.GreaterOrEqual(t, ahead(7, 7)[0], int64(0))
}

// TestBeyond64Gates: calls that differ only in gates beyond the 63rd share a line.
// Each waits for what it needs nevertheless.
func TestBeyond64Gates(t *testing.T) {
	w := newWorld(t)
	var gates []*gated
	for range 70 {
		gates = append(gates, w.gate(&pause{until: Never}))
	}
	r := route(gates...)
	need := func(i int) *call {
		c := w.make(r, Flow{"a", 1}, 0)
		c.Cost[i] = 1
		w.enter(c)
		return c
	}
	a, b, c := need(66), need(68), need(64)
	w.hand()
	open := func(i int) {
		gates[i].ruler.(*pause).until = 0
		w.q.Touch(&gates[i].Gate)
		w.hand()
	}
	open(68)
	require.Equal(t, waits, b.fate, "a line is first in, first out")
	open(66)
	assert.Equal(t, []fate{gone, gone, waits}, fates([]*call{a, b, c}))
	d := need(69)
	w.leave(c)
	open(69)
	require.Equal(t, gone, d.fate)
	w.empty()
}

func TestMisusePanics(t *testing.T) {
	w := newWorld(t)
	r := route(w.gate(&pause{until: Never}))
	c := w.add(r, "a", 1)
	enter := func(c *call) func() { return func() { w.q.Enter(0, &c.Waiter, c.route, c.flow) } }
	assert.Panics(t, enter(c), "it waits")
	assert.Panics(t, enter(w.make(r, Flow{"a", 0}, 1)), "no weight")
	assert.Panics(t, enter(w.make(r, Flow{"a", 1}, 0)), "no gate")
	short := w.make(r, Flow{"a", 1}, 1)
	short.Cost = nil
	assert.Panics(t, enter(short), "no cost")
	w.q.Leave(&short.Waiter) // does not wait: nothing happens
	w.hand()
	assert.Equal(t, 1, w.q.Len(), "and none of them left a trace")
}
