package queue

import "time"

// Gate is a place to wait at: whatever can say "not before t". [Gate.Init] makes
// it ready; it must not be copied afterwards.
type Gate struct {
	rule Rule
	soon bool // Never means: until an answer, which is near
	many bool // other queues take turns at it: who waits here and cannot go is in their way

	// Taking turns. It begins when a first call waits here and ends when no line in
	// the queue needs this gate any more, not when nobody waits here: a line that
	// waits for the next gate in the meantime does not forgive its rivals' debts.
	waiting []*group        // heap: least tag, then earliest head
	groups  map[Flow]*group // those that wait, and those that are ahead of v
	weight  int             // sum of the weights of those that wait
	v       float64         // the tag of a flow that comes new
	step    float64         // what the last call that went adds to v when the next one goes
	sweep   int             // number of groups at which those without use are dropped
	lines   int             // in the queue, that need this gate

	at    time.Duration // when it may open
	ti    int           // place in Queue.timed, +1; 0: none
	claim *line         // nobody else goes through here before it
	dirty bool          // in Queue.dirty
}

// Init makes a gate of a rule. answers says that when the rule says Never, the
// next answer opens it (a cap on what is in flight).
func (g *Gate) Init(r Rule, answers bool) { g.rule, g.soon = r, answers }

// Share says that other queues take turns at what the gate asks: a call that cannot
// go waits elsewhere, so that Waiting tells whether one could use a turn.
func (g *Gate) Share() { g.many = true }

// Waiting tells whether a call waits at this gate. A call waits at one gate only,
// though it needs others, too.
func (g *Gate) Waiting() bool { return len(g.waiting) > 0 }

// group is one flow at one gate.
type group struct {
	flow  Flow
	tag   float64
	lines []*line // heap: earliest head first; empty: does not wait
	i     int     // place in Gate.waiting
}

// tagOf is the tag of a flow that would wait here now.
func (g *Gate) tagOf(f Flow) float64 {
	gr := g.groups[f]
	switch {
	case gr == nil:
		return g.v
	case len(gr.lines) > 0:
		return gr.tag
	}
	return max(gr.tag, g.v)
}

// ahead tells that the order or a claim lets others through before a call of f and
// seq. ln is the line that the call heads, if any.
func (g *Gate) ahead(ln *line, f Flow, seq uint64) bool {
	if g.claim != nil {
		return g.claim != ln
	}
	if len(g.waiting) == 0 {
		return false
	}
	first, tag := g.waiting[0], g.tagOf(f)
	if first.tag != tag {
		return first.tag < tag
	}
	return first.lines[0].seq < seq
}

// turn is the line whose turn it is at g: the claimant if it is here, nobody if it
// is elsewhere, else the earliest of the flow with the least tag.
func (g *Gate) turn() *line {
	switch {
	case g.claim != nil && g.claim.home == g:
		return g.claim
	case g.claim != nil || len(g.waiting) == 0:
		return nil
	}
	return g.waiting[0].lines[0]
}

// park makes a line wait at g; whoever is first there then has its look.
func (q *Queue) park(ln *line, g *Gate) {
	f := ln.key.flow
	gr := g.groups[f]
	if gr == nil {
		gr = g.enroll(f)
	}
	ln.home, ln.group = g, gr
	push(&gr.lines, ln)
	if len(gr.lines) == 1 {
		gr.tag = max(gr.tag, g.v)
		g.weight += f.Weight
		push(&g.waiting, gr)
	} else {
		fix(g.waiting, gr.i)
	}
	q.Touch(g)
}

// enroll makes the group of a flow that has none. Those which are ahead of nobody
// any more are dropped when they have become many.
func (g *Gate) enroll(f Flow) *group {
	if len(g.groups) >= max(g.sweep, 16) {
		for f, gr := range g.groups {
			if len(gr.lines) == 0 && gr.tag <= g.v {
				delete(g.groups, f)
			}
		}
		g.sweep = 2 * len(g.groups)
	}
	if g.groups == nil {
		g.groups = make(map[Flow]*group)
	}
	gr := &group{flow: f, tag: g.v}
	g.groups[f] = gr
	return gr
}

// leave takes a line from its gate; who is first there then has its look.
func (q *Queue) leave(ln *line) {
	g, gr := ln.home, ln.group
	ln.home, ln.group = nil, nil
	pull(&gr.lines, ln.i)
	if len(gr.lines) > 0 {
		fix(g.waiting, gr.i)
	} else {
		pull(&g.waiting, gr.i)
		g.weight -= gr.flow.Weight
		if gr.tag <= g.v { // owes nothing
			delete(g.groups, gr.flow)
		}
	}
	if len(g.waiting) == 0 {
		q.untime(g)
		g.rest()
	}
	q.Touch(g)
}

// renew puts a line with another head into its place.
func (q *Queue) renew(ln *line) {
	ln.seq = ln.head.seq
	if ln.cost(ln.home) == 0 { // possible beyond 63 gates only
		q.leave(ln)
		q.park(ln, ln.needed())
		return
	}
	fix(ln.group.lines, ln.i)
	fix(ln.home.waiting, ln.group.i)
	q.Touch(ln.home)
}

// charge counts one call of f that goes through g.
//
// The tag of a flow that comes new, v, is where a fluid would be that serves all
// who wait in proportion to their weights: it gains 1/(sum of weights) a call, is
// never behind the flow that is served and never more than one of its calls ahead.
// The start tag alone (the textbook's start-time fair queueing) would stand still
// while ever new flows come, and whoever had gone once would wait for their end.
func (q *Queue) charge(g *Gate, f Flow) {
	if g.groups == nil {
		return
	}
	gr := g.groups[f]
	if gr == nil {
		gr = g.enroll(f)
	}
	waits := len(gr.lines) > 0
	start, weight, one := gr.tag, g.weight, 1/float64(f.Weight)
	if !waits {
		start = max(start, g.v)
		weight += f.Weight
	}
	g.v = max(g.v, start, min(g.v+g.step, start+one))
	g.step = 1 / float64(weight)
	gr.tag = start + one
	if waits {
		first := gr.i == 0
		fix(g.waiting, gr.i)
		if first {
			q.Touch(g) // another may be first now, and lighter
		}
	}
}

// rest forgets whose turn it was once no line needs g any more.
func (g *Gate) rest() {
	if g.lines == 0 && len(g.waiting) == 0 {
		g.waiting, g.groups, g.v, g.step, g.sweep = nil, nil, 0, 0, 0
	}
}

// timeAt has Hand look at g at an instant.
func (q *Queue) timeAt(g *Gate, at time.Duration) {
	if at == Never {
		q.untime(g)
		return
	}
	g.at = at
	if g.ti == 0 {
		push(&q.timed, g)
	} else {
		fix(q.timed, g.ti-1)
	}
}

func (q *Queue) untime(g *Gate) {
	if g.ti != 0 {
		pull(&q.timed, g.ti-1)
		g.ti = 0
	}
}
