package queue

import (
	"slices"
	"time"
)

// audit checks, by brute force, what must be true after each Hand. The one
// sentence above all: no head that could go waits.
func (w *world) audit() {
	q := &w.q
	w.must(len(q.dirty) == 0, "a gate stays dirty")
	n := 0
	for _, g := range w.gates {
		g.here, g.onWay = g.here[:0], 0
	}
	for key, ln := range q.lines {
		n += w.auditLine(key, ln)
		home := w.of(ln.home)
		home.here = append(home.here, ln)
		for i, g := range key.route.Gates {
			if i < 63 && ln.head.Cost[i] != 0 {
				w.of(g).onWay++
			}
		}
	}
	for _, ln := range q.lines {
		w.auditHead(ln)
	}
	w.must(n == w.waiting, "%d calls in all lines, %d wait", n, w.waiting)
	for _, g := range w.gates {
		w.auditGate(g)
	}
	isHeap(w, q.timed, func(g *Gate, i int) bool { return g.ti == i+1 })
	isHeap(w, q.due, func(x *Waiter, i int) bool { return x.due == i })
	for i := range q.timed {
		w.must(q.timed[i].at >= q.Opens(), "Opens is too late")
	}
}

// must is require without its reflection: these checks run some millions of times.
func (w *world) must(ok bool, format string, args ...any) {
	if !ok {
		w.t.Helper()
		w.t.Fatalf(format, args...)
	}
}

func isHeap[T node[T]](w *world, h []T, placed func(T, int) bool) {
	for i := range h {
		w.must(placed(h[i], i), "an element does not know its place")
		w.must(i == 0 || !h[i].less(h[(i-1)/2]), "no heap")
	}
}

// auditLine checks a line against the test's own book and returns its length.
func (w *world) auditLine(key lineKey, ln *line) (n int) {
	book := w.classes[key]
	w.must(ln.key == key, "a line under another key")
	w.must(ln.head != nil && ln.head.seq == ln.seq, "a line does not know its head")
	sum := make([]int64, len(key.route.Gates))
	var last *Waiter
	for x := ln.head; x != nil; x = x.next {
		w.must(x.line == ln && x.prev == last, "a broken line")
		w.must(last == nil || last.seq < x.seq, "not first in, first out")
		c := x.Owner.(*call)
		w.must(c.fate == waits && c.route == key.route && c.flow == key.flow, "in the line of others")
		for i, n := range x.Cost {
			sum[i] += n
		}
		last = x
		n++
	}
	w.must(ln.tail == last, "a wrong tail")
	w.must(len(book) == n, "%d calls in a line that should have %d", n, len(book))
	w.must(slices.Equal(sum, ln.ahead), "ahead is %v, not %v", ln.ahead, sum)
	w.must(ln.home != nil && ln.cost(ln.home) != 0, "waits at a gate that it does not need")
	w.must(ln.group == ln.home.groups[key.flow] && slices.Contains(ln.group.lines, ln), "in the group of others")
	if ln.until != 0 {
		w.claims++
		w.must(ln.until <= w.now+claimHorizon && ln.until > w.now, "a claim outlives its horizon")
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
		w.must(g.claim != ln || ln.until != 0, "a claim that its line knows nothing of")
		passes := g.claim == nil && w.passed(g, ln)
		w.must(g.claim != nil || g.ahead(ln, ln.key.flow, ln.seq) == passes, "not the order by tag and arrival")
		if w.of(g).ruler.Look(w.now, n) > w.now || g.claim != nil && g.claim != ln {
			return
		}
		if passes {
			return
		}
	}
	w.must(false, "a head that could go waits: now %v, flow %v, at gate %d", w.now, ln.key.flow,
		slices.IndexFunc(w.gates, func(g *gated) bool { return &g.Gate == ln.home }))
}

// passed tells that a line would pass another that waits at g and is earlier.
func (w *world) passed(g *Gate, ln *line) bool {
	tag, here := g.v, w.of(g).here
	if gr := g.groups[ln.key.flow]; gr != nil {
		tag = max(gr.tag, g.v)
		if slices.ContainsFunc(here, func(x *line) bool { return x.group == gr }) {
			tag = gr.tag
		}
	}
	for _, x := range here {
		if x != ln && (x.group.tag < tag || x.group.tag == tag && x.head.seq < ln.head.seq) {
			return true
		}
	}
	return false
}

func (w *world) auditGate(g *gated) {
	here, weight := len(g.here), 0
	w.must(g.onWay == g.lines, "%d lines on their way to a gate that says %d", g.onWay, g.lines)
	w.must(!g.dirty, "a gate thinks that it is dirty")
	isHeap(w, g.waiting, func(gr *group, i int) bool { return gr.i == i })
	for _, gr := range g.waiting {
		w.must(gr == g.groups[gr.flow] && len(gr.lines) > 0, "a group that should not wait")
		isHeap(w, gr.lines, func(ln *line, i int) bool { return ln.i == i })
		weight += gr.flow.Weight
		here -= len(gr.lines)
	}
	w.must(here == 0, "%d lines too few at a gate", here)
	w.must(weight == g.weight, "weight %d, not %d", g.weight, weight)
	w.must(g.Waiting() == (len(g.waiting) > 0), "Waiting")
	w.must(g.onWay > 0 || g.Waiting() || g.groups == nil && g.claim == nil, "a gate that nobody needs remembers")
	w.must(g.claim == nil || w.q.lines[g.claim.key] == g.claim && g.claim.until != 0, "a claim of nobody")
	w.auditTimer(g)
}

// auditTimer checks that a gate is looked at in time for who is first there.
func (w *world) auditTimer(g *gated) {
	if len(g.waiting) == 0 {
		w.must(g.ti == 0, "a timer for nobody")
		return
	}
	first := g.turn()
	if first == nil {
		return
	}
	at := g.ruler.Look(w.now, first.cost(&g.Gate))
	if at <= w.now && slices.Contains(w.q.front, &g.Gate) {
		if at = w.auditStay(g); at == Never {
			return
		}
	}
	w.must(at > w.now, "the first at a gate is not refused by it")
	if at == Never && first.until != 0 {
		at = first.until
	}
	if at == Never {
		w.must(g.ti == 0, "a timer for an event")
		return
	}
	w.must(g.ti != 0 && g.at > w.now, "no timer")
	w.must(g.at <= at, "a timer for %v that should be for %v", g.at, at)
}

// auditStay returns the instant at which somebody may go, where the first at an
// open gate stays because everybody needs another that refuses whoever comes.
func (w *world) auditStay(g *gated) (at time.Duration) {
	w.stays++
	w.must(g.onWay == len(w.q.lines), "some could go without")
	for _, x := range w.gates {
		if x.onWay == len(w.q.lines) {
			at = max(at, x.ruler.Look(w.now, 1))
		}
	}
	return at
}
