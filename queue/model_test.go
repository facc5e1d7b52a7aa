package queue

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gated is a gate with its rule.
type gated struct {
	Gate
	ruler
	w *world

	here  []*line // by the audit's own count
	onWay int
}

func (g *gated) Look(now time.Duration, n int64) time.Duration {
	g.w.looks++
	if g.w.looks > g.w.bound {
		panic("Hand does not end")
	}
	return g.ruler.Look(now, n)
}

type fate int

const (
	outside fate = iota
	waits
	gone
	left
)

// call is a waiter with its story.
type call struct {
	Waiter
	route *Route
	flow  Flow
	fate  fate
	at    time.Duration // of its last going or leaving
}

// world is a queue in virtual time.
type world struct {
	t      testing.TB
	q      Queue
	now    time.Duration
	gates  []*gated
	agenda []event // by instant, then by order of adding
	seq    int
	blind  bool // no audit after each Hand: for the tests with very many calls

	classes map[lineKey][]*call // what waits, by the test's own book
	waiting int
	went    []*call
	goes    func(*call) // after a call has gone
	looks   int         // by the present Hand
	bound   int
	peak    int // most looks of one Hand
	claims  int // seen by the audit
	stays   int
}

type event struct {
	at  time.Duration
	seq int
	do  func()
}

func newWorld(t testing.TB) *world {
	return &world{t: t, classes: make(map[lineKey][]*call), bound: 1 << 30, goes: func(*call) {}}
}

func (w *world) gate(r ruler) *gated {
	_, answers := r.(*slots)
	g := &gated{ruler: r, w: w}
	g.Init(g, answers)
	w.gates = append(w.gates, g)
	return g
}

func route(gates ...*gated) *Route {
	r := &Route{}
	for _, g := range gates {
		r.Gates = append(r.Gates, &g.Gate)
	}
	return r
}

// of finds the test's view of a gate.
func (w *world) of(g *Gate) *gated { return g.rule.(*gated) }

// add makes a call that costs n at each gate and puts it into the queue.
func (w *world) add(r *Route, flow string, n int64) *call {
	c := w.make(r, Flow{flow, 1}, n)
	w.enter(c)
	return c
}

func (w *world) make(r *Route, f Flow, n int64) *call {
	c := &call{route: r, flow: f}
	c.Owner, c.Deadline = c, Never
	c.Cost = make([]int64, len(r.Gates))
	for i := range c.Cost {
		c.Cost[i] = n
	}
	return c
}

func (c *call) class() lineKey { return lineKey{c.flow, c.route, maskOf(c.Cost)} }

func (w *world) enter(c *call) {
	w.must(c.fate != waits, "enters twice")
	w.q.Enter(w.now, &c.Waiter, c.route, c.flow)
	c.fate = waits
	w.waiting++
	w.classes[c.class()] = append(w.classes[c.class()], c)
}

// goOrWait is what the coordinator does with a call.
func (w *world) goOrWait(c *call) {
	if w.q.Blocked(w.now, c.route, c.flow, c.Cost) != nil {
		w.enter(c)
		return
	}
	c.fate = waits // it passes through the book only
	w.waiting++
	w.classes[c.class()] = append(w.classes[c.class()], c)
	w.must(len(w.classes[c.class()]) == 1, "goes at once past its own line")
	w.turn(&c.Waiter)
	w.q.Went(c.route, c.flow, c.Cost)
}

func (w *world) leave(c *call) {
	w.q.Leave(&c.Waiter)
	if c.fate == waits {
		c.fate, c.at = left, w.now
		w.forget(c)
	}
}

func (w *world) forget(c *call) {
	w.waiting--
	key := c.class()
	i := slices.Index(w.classes[key], c)
	w.classes[key] = slices.Delete(w.classes[key], i, i+1)
	if len(w.classes[key]) == 0 {
		delete(w.classes, key)
	}
}

func (w *world) turn(x *Waiter) {
	c := x.Owner.(*call)
	w.must(c.fate == waits, "goes without waiting")
	w.must(!c.Waits() && c.Route() == nil, "still in the queue as it goes")
	if !w.blind {
		for _, o := range w.classes[c.class()] {
			w.must(!o.Earlier(x), "a later call of a line goes first")
		}
	}
	for i, g := range c.route.Gates {
		if n := c.Cost[i]; n != 0 {
			r := w.of(g).ruler
			w.must(r.Look(w.now, n) <= w.now, "goes through a gate that refuses it")
			r.take(w.now, n)
		}
	}
	c.fate, c.at = gone, w.now
	w.forget(c)
	w.went = append(w.went, c)
	w.goes(c)
}

// hand hands on and checks all that must be true afterwards.
func (w *world) hand() {
	w.looks = 0
	w.q.Hand(w.now, w.turn)
	w.peak = max(w.peak, w.looks)
	w.must(w.q.Len() == w.waiting, "Len is %d, not %d", w.q.Len(), w.waiting)
	if !w.blind {
		w.audit()
	}
}

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	e := event{w.now + d, w.seq, do}
	i, _ := slices.BinarySearchFunc(w.agenda, e, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
	})
	w.agenda = slices.Insert(w.agenda, i, e)
}

// until lets time pass to t; it stops before where nothing more can happen.
func (w *world) until(t time.Duration) {
	for {
		next := w.q.Next()
		if len(w.agenda) > 0 {
			next = min(next, w.agenda[0].at)
		}
		if next > t || next == Never {
			break
		}
		w.must(next >= w.now, "an instant of the past")
		w.now = next
		for len(w.agenda) > 0 && w.agenda[0].at <= w.now {
			e := w.agenda[0]
			w.agenda = w.agenda[1:]
			e.do()
		}
		for x := w.q.Expired(w.now); x != nil; x = w.q.Expired(w.now) {
			w.leave(x.Owner.(*call))
		}
		w.hand()
	}
	if t != Never {
		w.now = t
	}
}

// count is how many calls of a flow have gone.
func (w *world) count(flow string) (n int) {
	for _, c := range w.went {
		if c.flow.Name == flow {
			n++
		}
	}
	return n
}

// order is the flows of the calls that have gone.
func (w *world) order() (names []string) {
	for _, c := range w.went {
		names = append(names, c.flow.Name)
	}
	return names
}

// empty checks that nothing of all that waited has stayed.
func (w *world) empty() {
	w.t.Helper()
	q := &w.q
	require.Zero(w.t, q.Len())
	require.Empty(w.t, q.All())
	require.Nil(w.t, q.Oldest())
	require.Equal(w.t, Never, q.Next())
	require.Nil(w.t, q.lines)
	for name, n := range map[string]int{"dirty": len(q.dirty), "timed": len(q.timed), "due": len(q.due), "front": len(q.front)} {
		require.Zero(w.t, n, name)
	}
	for name, n := range map[string]int{"dirty": cap(q.dirty), "timed": cap(q.timed), "due": cap(q.due), "front": cap(q.front)} {
		require.LessOrEqual(w.t, n, 64, "capacity of "+name)
	}
	for _, x := range q.dirty[:cap(q.dirty)] {
		require.Nil(w.t, x, "a gate stays behind the end of dirty")
	}
	for _, g := range w.gates {
		rule, soon := g.rule, g.soon
		g.at = 0 // stale, and not read
		require.Equal(w.t, Gate{rule: rule, soon: soon}, g.Gate, "a gate is as it was made")
	}
}
