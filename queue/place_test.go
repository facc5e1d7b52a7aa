package queue

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
