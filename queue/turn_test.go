package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// fair is one gate's order written down naively: every flow that ever came, and
// all who wait in one list.
type fair struct {
	tags    map[Flow]float64
	v, step float64
	list    []*call
}

func (m *fair) waits(f Flow) bool {
	return slices.ContainsFunc(m.list, func(c *call) bool { return c.flow == f })
}

func (m *fair) enter(c *call) {
	if !m.waits(c.flow) {
		m.tags[c.flow] = max(m.tags[c.flow], m.v)
	}
	m.list = append(m.list, c)
}

func (m *fair) leave(c *call) {
	i := slices.Index(m.list, c)
	m.list = slices.Delete(m.list, i, i+1)
	if len(m.list) == 0 {
		*m = fair{tags: make(map[Flow]float64)}
	}
}

func (m *fair) next() *call {
	return slices.MinFunc(m.list, func(a, b *call) int {
		ta, tb := m.tags[a.flow], m.tags[b.flow]
		if ta < tb || ta == tb && a.seq < b.seq {
			return -1
		}
		return 1
	})
}

func (m *fair) goes() *call {
	c := m.next()
	weights := make(map[Flow]int)
	for _, x := range m.list {
		weights[x.flow] = x.flow.Weight
	}
	sum := 0
	for _, n := range weights {
		sum += n
	}
	one := 1 / float64(c.flow.Weight)
	start := m.tags[c.flow]
	m.v = max(m.v, start, min(m.v+m.step, start+one))
	m.step = 1 / float64(sum)
	m.tags[c.flow] = start + one
	m.leave(c)
	return c
}

// TestOrderAtOneGate compares the order at one gate with the naive one.
func TestOrderAtOneGate(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		g := w.gate(&spacing{every: second})
		routes := []*Route{route(g), route(g), route(g)} // lines of one flow
		m := &fair{tags: make(map[Flow]float64)}
		w.goes = func(c *call) {
			want := m.goes()
			if want != c {
				r.Fatalf("%v goes, not %v", c.flow, want.flow)
			}
		}
		for range rapid.IntRange(1, 150).Draw(r, "steps") {
			switch what := rapid.IntRange(0, 9).Draw(r, "what"); {
			case what < 5:
				f := Flow{rapid.StringMatching("[a-d]").Draw(r, "flow"), rapid.SampledFrom([]int{1, 4, 16}).Draw(r, "weight")}
				c := w.make(routes[rapid.IntRange(0, 2).Draw(r, "route")], f, 1)
				w.enter(c)
				m.enter(c)
			case what < 6 && len(m.list) > 0:
				c := m.list[rapid.IntRange(0, len(m.list)-1).Draw(r, "who")]
				w.leave(c)
				m.leave(c)
			case what < 7 && len(w.went) > 0: // an old call comes back
				if c := w.went[rapid.IntRange(0, len(w.went)-1).Draw(r, "back")]; c.fate == gone {
					w.enter(c)
					m.enter(c)
				}
			default:
				w.now += second
			}
			w.hand()
		}
	})
}

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

// TestDebtOutlivesAMove: with one slot all wait now at the cap, now at the limit.
// That nobody waits at the other in the meantime does not forgive bulk, which came
// first, the turns that it has had.
func TestDebtOutlivesAMove(t *testing.T) {
	w := newWorld(t)
	w.blind = true
	slot, rate := &slots{limit: 1}, w.gate(&spacing{every: second})
	cap := w.gate(slot)
	w.goes = func(*call) {
		trip := second / 4
		if len(w.went)%2 == 0 {
			trip += second
		}
		w.after(trip, func() {
			slot.out--
			w.q.Touch(&cap.Gate)
		})
	}
	shut := w.gate(&pause{until: Never})
	w.add(route(shut), "bystander", 1) // so that not everybody needs the cap
	r := route(cap, rate)
	for range 2000 {
		w.enter(w.make(r, Flow{"bulk", 1}, 1))
	}
	for range 2000 {
		w.enter(w.make(r, Flow{"interactive", 16}, 1))
	}
	w.hand()
	w.until(1000 * second)
	n := len(w.went)
	require.Greater(t, n, 800)
	assert.InDelta(t, n/17, w.count("bulk"), 20, "a claim now and then gives it some more")
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

// capped is a lane with a cap and a limit, whose answers take so long that now the
// one is shut, now the other.
func capped(t *testing.T, limit int64, trip time.Duration) (w *world, cap, rate *gated) {
	w = newWorld(t)
	w.blind = true
	slot := &slots{limit: limit}
	cap, rate = w.gate(slot), w.gate(&spacing{every: second})
	n := 0
	w.goes = func(*call) {
		n++
		w.after(trip*time.Duration(60+n*37%80)/100, func() {
			slot.out--
			w.q.Touch(&cap.Gate)
		})
	}
	return w, cap, rate
}

// TestPrioritiesShareBehindACap: moves between a cap and a limit are no reason
// for a claim, which would give bulk more than its share.
func TestPrioritiesShareBehindACap(t *testing.T) {
	for _, limit := range []int64{1, 2, 3} {
		for _, trip := range []time.Duration{9, 19, 29} {
			w, cap, rate := capped(t, limit, trip*second/10)
			r := route(cap, rate)
			for range 1000 {
				w.enter(w.make(r, Flow{"bulk", 1}, 1))
				w.enter(w.make(r, Flow{"normal", 4}, 1))
				w.enter(w.make(r, Flow{"interactive", 16}, 1))
			}
			w.hand()
			for range 1000 {
				w.until(w.now + second)
				require.Nil(t, cap.claim)
			}
			n := float64(len(w.went))
			require.Greater(t, n, 300.)
			assert.InDelta(t, n/21, w.count("bulk"), 2)
			assert.InDelta(t, n*4/21, w.count("normal"), 4)
		}
	}
}

// TestNobodyWanders: the calls of 1,000 keys do not run from the limit to the cap
// and back each time that one of them opens.
func TestNobodyWanders(t *testing.T) {
	w, cap, rate := capped(t, 2, 2*second)
	for i := range 1000 {
		r := route(cap, rate, w.gate(&spacing{}))
		for range 10 {
			w.add(r, fmt.Sprint(i), 1)
		}
	}
	w.hand()
	w.peak = 0
	w.until(1000 * second)
	require.Greater(t, len(w.went), 700)
	assert.LessOrEqual(t, w.peak, 30, "looks of one Hand")
}
