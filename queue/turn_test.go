package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTagIsPerFlowNotPerLine: a flow with 100 keys has no more turns at a common
// gate than one with a single key.
func TestTagIsPerFlowNotPerLine(t *testing.T) {
	w := newWorld(t)
	all := w.gate(&spacing{every: second})
	key := func() *Route { return route(w.gate(&spacing{}), all) }
	for range 100 {
		r := key()
		w.add(r, "many", 1)
		w.add(r, "many", 1)
	}
	one := key()
	for range 100 {
		w.add(one, "one", 1)
	}
	w.hand()
	for i := range 100 {
		w.until(w.now + second)
		require.InDelta(t, w.count("many"), w.count("one"), 1, "after %d", i)
	}
}

// TestTagsAreKeptByGate: what a flow missed at a slow gate is no claim at a fast
// one, and what it had at a fast one is no debt at a slow one.
func TestTagsAreKeptByGate(t *testing.T) {
	w := newWorld(t)
	slow, fast := w.gate(&spacing{every: time.Hour}), w.gate(&spacing{every: second})
	both, quick := route(slow, fast), route(fast)
	w.blind = true
	for range 20 {
		w.add(both, "a", 1) // waits for hours
	}
	for range 8000 {
		w.add(quick, "b", 1)
		w.add(quick, "c", 1)
	}
	w.hand()
	w.until(2*time.Hour + 10*second) // b and c have gone 3,600 times each, a three times
	require.Equal(t, 3, w.count("a"))

	for range 1000 {
		w.add(quick, "a", 1)
	}
	b, c := w.count("b"), w.count("c")
	for range 300 {
		w.until(w.now + second)
		// within a round, and without arrears
		require.InDelta(t, (w.count("a") - 3), w.count("b")-b, 2)
		require.InDelta(t, w.count("b")-b, w.count("c")-c, 1)
	}

	w.until(8 * time.Hour) // all quick calls are through
	before := len(w.went)
	for range 5 {
		w.add(both, "b", 1) // has gone thousands of times at the fast gate
	}
	w.until(w.now + 4*time.Hour)
	turns := w.order()[before:]
	assert.Equal(t, []string{"b", "a", "b", "a"}, turns)
}

// TestPrioritiesShare: 1 : 4 : 16, and the low ones always advance.
func TestPrioritiesShare(t *testing.T) {
	w := newWorld(t)
	r := route(w.gate(&spacing{every: second}))
	for range 1000 {
		for name, weight := range map[string]int{"bulk": 1, "normal": 4, "interactive": 16} {
			w.enter(w.make(r, Flow{name, weight}, 1))
		}
	}
	w.blind = true
	w.hand()
	w.until(21 * 50 * second)
	for round := range w.went[21:] {
		counts := make(map[string]int)
		for _, c := range w.went[round : round+21] {
			counts[c.flow.Name]++
		}
		require.InDelta(t, 16, counts["interactive"], 1)
		require.InDelta(t, 4, counts["normal"], 1)
		require.InDelta(t, 1, counts["bulk"], 1)
		if round%21 == 0 {
			require.NotZero(t, counts["bulk"])
		}
	}
}

// TestOneRound: a call of a flow that comes new goes within one round of those
// that wait, however many of theirs there are and whenever it comes.
func TestOneRound(t *testing.T) {
	for at := range 20 {
		w := newWorld(t)
		w.blind = true
		r := route(w.gate(&spacing{every: second}))
		for i := range 10 {
			for range 1 + 50*(i%2) { // every other flow has one call only
				w.add(r, fmt.Sprint(i), 1)
			}
		}
		w.hand()
		w.until(time.Duration(at) * second)
		before := len(w.went)
		b := w.add(r, "b", 1)
		w.until(time.Hour)
		require.LessOrEqual(t, slices.Index(w.went, b)-before, 10, "came after %d", before)
	}
}

// TestSequentialFlowDoesNotStarveAQueue: b comes back as soon as it has gone, a has
// 5,000 waiting. Neither has more than its half, and b has it.
func TestSequentialFlowDoesNotStarveAQueue(t *testing.T) {
	w := newWorld(t)
	w.blind = true
	r := route(w.gate(&spacing{every: second}))
	for range 5000 {
		w.add(r, "a", 1)
	}
	w.goes = func(c *call) {
		if c.flow.Name == "b" {
			w.after(second/4, func() { w.add(r, "b", 1) })
		}
	}
	w.add(r, "b", 1)
	w.hand()
	for range 200 {
		w.until(w.now + 5*second)
		require.InDelta(t, w.count("a"), w.count("b"), 1)
	}
}

// TestFreshFlowsDoNotStarve: flows that each have one urgent call come twice as
// fast as calls go. One that has gone once advances nevertheless.
func TestFreshFlowsDoNotStarve(t *testing.T) {
	w := newWorld(t)
	w.blind = true
	r := route(w.gate(&spacing{every: second}))
	for range 20 {
		w.enter(w.make(r, Flow{"bulk", 1}, 1))
	}
	for i := range 4000 {
		w.after(time.Duration(i)*second/2, func() {
			if w.waiting < 100 { // places are bounded
				w.enter(w.make(r, Flow{fmt.Sprint(i), 1}, 1))
			}
		})
	}
	w.hand()
	w.until(1000 * second)
	assert.GreaterOrEqual(t, w.count("bulk"), 8, "about one in 100 places")
}

// TestGoingAtOnceIsATurn: while a heavy call waits whose flow has gone before, a
// flow that comes new may go at once: it is its turn. It has one.
func TestGoingAtOnceIsATurn(t *testing.T) {
	w := newWorld(t)
	r := route(w.gate(&window{limit: 10, per: time.Hour}))
	w.add(r, "heavy", 1)
	w.add(r, "x", 1)
	w.add(r, "heavy", 9)
	w.hand()
	require.Equal(t, []string{"heavy", "x"}, w.order())
	w.gates[0].enroll(Flow{"new", 1}).tag = -3 // it was here long ago
	for range 5 {
		w.goOrWait(w.make(r, Flow{"new", 1}, 1))
		w.hand()
	}
	assert.Equal(t, []string{"heavy", "x", "new"}, w.order())
	w.goOrWait(w.make(r, Flow{"newer", 1}, 1))
	w.hand()
	assert.Len(t, w.went, 3, "that turn is over")
}

// TestForgetKeepsDebts: making room for new flows, a gate forgets those that owe
// nothing, and no others.
func TestForgetKeepsDebts(t *testing.T) {
	w := newWorld(t)
	r := route(w.gate(&pause{}))
	g := w.gates[0]
	w.add(r, "a", 2)
	g.v = 5
	for i := range 1000 {
		g.enroll(Flow{fmt.Sprint(i), 1}).tag = 5
	}
	owes := g.enroll(Flow{"owes", 1})
	owes.tag = 5.5
	for i := range 1000 {
		g.enroll(Flow{fmt.Sprint("new ", i), 1})
		require.Less(t, len(g.groups), 2000)
	}
	assert.Less(t, len(g.groups), 20)
	assert.Same(t, owes, g.groups[owes.flow])
	assert.Contains(t, g.groups, Flow{"a", 1}, "it waits")
	g.v = 5.5
	for i := range 40 {
		g.enroll(Flow{fmt.Sprint("newer ", i), 1})
	}
	assert.NotContains(t, g.groups, owes.flow, "a debt that v has reached")
}

// TestWhoLeavesIsForgotten: 1,000 flows give up, one waits on.
func TestWhoLeavesIsForgotten(t *testing.T) {
	w := newWorld(t)
	r := route(w.gate(&pause{until: Never}))
	w.add(r, "a", 1)
	for i := range 1000 {
		w.leave(w.add(r, fmt.Sprint(i), 1))
	}
	assert.Len(t, w.gates[0].groups, 1)
}
