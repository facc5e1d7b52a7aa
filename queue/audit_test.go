package queue

import (
	"slices"

	"github.com/stretchr/testify/require"
)

// audit checks, by brute force, what must be true after each Hand. The one
// sentence above all: no head that could go waits.
func (w *world) audit() {
	q := &w.q
	require.Empty(w.t, q.dirty)
	n := 0
	for key, ln := range q.lines {
		n += w.auditLine(key, ln)
		w.auditHead(ln)
	}
	require.Equal(w.t, w.waiting, n, "calls in all lines")
	for _, g := range w.gates {
		w.auditGate(g)
	}
	isHeap(w, q.timed, func(g *Gate, i int) bool { return g.ti == i+1 })
	isHeap(w, q.due, func(x *Waiter, i int) bool { return x.due == i })
	for i := range q.timed {
		require.GreaterOrEqual(w.t, q.timed[i].at, q.Opens())
	}
}

func isHeap[T node[T]](w *world, h []T, placed func(T, int) bool) {
	for i := range h {
		require.True(w.t, placed(h[i], i), "an element knows its place")
		require.False(w.t, i > 0 && h[i].less(h[(i-1)/2]), "heap order")
	}
}

// auditLine checks a line against the test's own book and returns its length.
func (w *world) auditLine(key lineKey, ln *line) (n int) {
	book := w.classes[key]
	require.Equal(w.t, key, ln.key)
	require.NotNil(w.t, ln.head)
	require.Equal(w.t, ln.head.seq, ln.seq)
	sum := make([]int64, len(key.route.Gates))
	var last *Waiter
	for x := ln.head; x != nil; x = x.next {
		require.Same(w.t, ln, x.line)
		require.True(w.t, x.prev == last)
		require.True(w.t, last == nil || last.seq < x.seq, "first in, first out")
		require.Contains(w.t, book, x.Owner.(*call))
		for i, c := range x.Cost {
			sum[i] += c
		}
		last = x
		n++
	}
	require.Same(w.t, ln.tail, last)
	require.Len(w.t, book, n)
	require.Equal(w.t, sum, ln.ahead)
	require.NotNil(w.t, ln.home)
	require.NotZero(w.t, ln.cost(ln.home), "waits at a gate that it does not need")
	require.Same(w.t, ln.home.groups[key.flow], ln.group)
	require.True(w.t, slices.Contains(ln.group.lines, ln))
	if ln.until != 0 {
		w.claims++
		require.LessOrEqual(w.t, ln.until, w.now+claimHorizon)
		require.Greater(w.t, ln.until, w.now, "a claim outlives its horizon")
	}
	return n
}

// auditHead checks that a head that waits could not go.
func (w *world) auditHead(ln *line) {
	for i, g := range ln.key.route.Gates {
		n := ln.head.Cost[i]
		if n == 0 {
			continue
		}
		if g.claim == ln {
			require.NotZero(w.t, ln.until)
		}
		if w.of(g).ruler.Look(w.now, n) > w.now || g.claim != nil && g.claim != ln {
			return
		}
		if g.claim == nil && w.passed(g, ln) {
			return
		}
	}
	require.Failf(w.t, "a head that could go waits", "now %v, flow %v, at gate %d", w.now, ln.key.flow,
		slices.IndexFunc(w.gates, func(g *gated) bool { return &g.Gate == ln.home }))
}

// passed tells that a line would pass another that waits at g and is earlier.
func (w *world) passed(g *Gate, ln *line) bool {
	tag := g.v
	if gr := g.groups[ln.key.flow]; gr != nil {
		tag = gr.tag
		if !w.waitsAt(g, ln.key.flow) {
			tag = max(tag, g.v)
		}
	}
	for _, x := range w.q.lines {
		if x.home != g || x == ln {
			continue
		}
		if x.group.tag < tag || x.group.tag == tag && x.head.seq < ln.head.seq {
			return true
		}
	}
	return false
}

func (w *world) waitsAt(g *Gate, f Flow) bool {
	for _, x := range w.q.lines {
		if x.home == g && x.key.flow == f {
			return true
		}
	}
	return false
}

func (w *world) auditGate(g *gated) {
	routes, here, weight := 0, 0, 0
	for _, ln := range w.q.lines {
		if ln.home == &g.Gate {
			here++
		}
		if slices.Contains(ln.key.route.Gates, &g.Gate) {
			routes++
		}
	}
	require.Equal(w.t, routes, g.lines)
	require.False(w.t, g.dirty)
	isHeap(w, g.waiting, func(gr *group, i int) bool { return gr.i == i })
	for _, gr := range g.waiting {
		require.Same(w.t, gr, g.groups[gr.flow])
		require.NotEmpty(w.t, gr.lines)
		isHeap(w, gr.lines, func(ln *line, i int) bool { return ln.i == i })
		weight += gr.flow.Weight
		here -= len(gr.lines)
	}
	require.Zero(w.t, here, "lines at a gate")
	require.Equal(w.t, weight, g.weight)
	require.Equal(w.t, len(g.waiting) > 0, g.Waiting())
	if routes == 0 {
		require.Nil(w.t, g.groups)
		require.Nil(w.t, g.claim)
	}
	if g.claim != nil {
		require.Same(w.t, g.claim, w.q.lines[g.claim.key], "a claim of nobody")
		require.NotZero(w.t, g.claim.until)
	}
	w.auditTimer(g)
}

// auditTimer checks that a gate is looked at in time for who is first there.
func (w *world) auditTimer(g *gated) {
	if len(g.waiting) == 0 {
		require.Zero(w.t, g.ti, "a timer for nobody")
		return
	}
	first := g.turn()
	if first == nil {
		return
	}
	at := g.ruler.Look(w.now, first.cost(&g.Gate))
	require.Greater(w.t, at, w.now, "the first at a gate is not refused by it")
	if at == Never && first.until != 0 {
		at = first.until
	}
	if at == Never {
		require.Zero(w.t, g.ti, "a timer for an event")
		return
	}
	require.NotZero(w.t, g.ti, "no timer")
	require.LessOrEqual(w.t, g.at, at, "a timer that is late")
	require.Greater(w.t, g.at, w.now)
}
