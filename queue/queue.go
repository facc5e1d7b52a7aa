// Package queue is ordered, bounded, fair waiting: who goes next, when calls of
// many flows wait at many gates. It is a plain data structure, guarded by its
// user; it has no clock, no lock, no goroutine, and takes nothing: its user
// takes, in the callback of [Queue.Hand].
//
// A [Gate] is whatever can say "not before t". A call needs a set of gates (a
// [Route]); the calls of one flow that need the same gates form a line, first in,
// first out. A line waits at exactly one gate: of those that refuse its head, the
// one that opens last. There it is not passed by later calls, heavy or not; at
// other gates it is. So a call that cannot go anyway is in nobody's way.
//
// At a gate flows take turns by tag (start-time fair queueing, counted in calls):
// the tag of a flow at a gate grows when one of its calls goes through, so a call
// that leaves costs nothing. Tags are kept by gate, not by flow alone: a flow that
// waited an hour at a slow gate would otherwise pass everybody at the fast ones
// until its one tag had caught up.
//
// Not in it: what a gate counts (package limit), when a call is too late
// (package coordinator).
package queue

import (
	"math"
	"time"
)

// Never is the instant of a gate that only an event opens.
const Never = time.Duration(math.MaxInt64)

// Rule is what a gate asks: an instant at or before now lets n units through now,
// a later one not before that instant, [Never] not before an event ([Queue.Touch]).
// What refuses n units refuses more than n. A Rule that has let through may refuse
// at once afterwards; the reverse takes time or a Touch: the instant that a Rule
// told is when it is asked again.
type Rule interface {
	Look(now time.Duration, n int64) time.Duration
}

// Route is a set of gates that a call needs all at once, in the order in which
// they are asked. It is compared by its address.
type Route struct {
	Gates []*Gate
}

// Flow is who asks: calls of one Flow go first in, first out; Flows take turns by
// Weight (above 0).
type Flow struct {
	Name   string
	Weight int
}

// Waiter is one call that waits. Cost and Deadline are set before Enter and stay
// as they are until it went or left. The zero value of the rest is ready.
type Waiter struct {
	Owner    any           // the user's
	Cost     []int64       // parallel to the gates of its route; 0: that gate is not needed
	Deadline time.Duration // the last instant at which it may go; Never: none

	seq        uint64 // order of arrival; kept over a second Enter
	line       *line  // nil: does not wait
	prev, next *Waiter
	due        int // place in Queue.due
}

// Waits tells whether the call is in a queue.
func (w *Waiter) Waits() bool { return w.line != nil }

// Route returns the route that the call waits for, nil where it does not wait.
func (w *Waiter) Route() *Route {
	if w.line == nil {
		return nil
	}
	return w.line.key.route
}

// Queue holds the calls that wait for the gates of one provider. The zero value
// is empty and ready.
type Queue struct {
	n     int
	seq   uint64
	lines map[lineKey]*line
	dirty []*Gate   // changed, or their waiters did: looked at by Hand
	front []*Gate   // open, but nobody may go before another opens: see Queue.stay
	timed []*Gate   // heap: least at first
	due   []*Waiter // heap: least deadline first
}

// Len is the number of calls that wait.
func (q *Queue) Len() int { return q.n }

// Blocked tells whether a call that does not wait yet may go now without passing
// anybody: nil, or the gate in its way. It costs O(gates) and allocates nothing.
func (q *Queue) Blocked(now time.Duration, r *Route, f Flow, cost []int64) *Gate {
	return blocked(now, r, f, cost, nil, math.MaxUint64)
}

// Went counts a call that went without waiting against its flow's turn. Hand must
// follow where somebody waits.
func (q *Queue) Went(r *Route, f Flow, cost []int64) {
	if q.n == 0 {
		return
	}
	for i, g := range r.Gates {
		if cost[i] != 0 {
			q.charge(g, f)
		}
	}
}

// Enter puts w behind the calls of its flow that wait for the same gates. A call
// that waited before keeps the place of its first Enter. Hand must follow. It
// panics where w waits already, needs no gate, or its flow has no weight.
func (q *Queue) Enter(now time.Duration, w *Waiter, r *Route, f Flow) {
	switch {
	case w.line != nil:
		panic("queue: Enter of a call that waits")
	case len(w.Cost) != len(r.Gates):
		panic("queue: a call has one cost for each gate of its route")
	case f.Weight <= 0:
		panic("queue: the weight of a flow is above 0")
	}
	key := lineKey{f, r, maskOf(w.Cost)}
	if key.mask == 0 {
		panic("queue: a call that needs no gate has nothing to wait for")
	}
	if w.seq == 0 {
		w.seq = q.Arrive()
	}
	ln := q.line(key)
	ln.insert(w)
	q.n++
	if w.Deadline != Never {
		push(&q.due, w)
	}
	switch {
	case ln.home == nil:
		ln.seq = w.seq
		to := blocked(now, r, f, w.Cost, ln, ln.seq)
		if to == nil {
			to = ln.needed() // Hand lets it go
		}
		q.park(ln, to)
	case ln.head == w: // an old call came back: its line is as early as its head
		q.renew(ln)
	}
}

// Leave takes w out: it was canceled, or refused. Its place is free at once, and
// it costs its flow nothing. It does nothing where w does not wait. Hand must
// follow.
func (q *Queue) Leave(w *Waiter) {
	if w.line == nil {
		return
	}
	if w.prev == nil {
		q.unclaim(w.line)
	}
	q.remove(w)
}

// Touch says that a gate's rule has changed other than by time; also where nobody
// waits at that gate, for calls that wait at another may need it. Hand must follow.
func (q *Queue) Touch(g *Gate) {
	if q.n > 0 {
		q.touch(g)
	}
}

func (q *Queue) touch(g *Gate) {
	q.mark(g)
	for _, x := range q.front {
		q.mark(x)
	}
	clear(q.front)
	q.front = q.front[:0]
}

// mark has Hand look at g.
func (q *Queue) mark(g *Gate) {
	if !g.dirty && len(g.waiting) > 0 {
		g.dirty = true
		q.dirty = append(q.dirty, g)
	}
}

// Next is the instant at which Hand or Expired should be called again, unless
// something happens before; Never where only an event changes anything.
func (q *Queue) Next() time.Duration {
	next := q.Opens()
	if len(q.due) > 0 {
		next = min(next, q.due[0].Deadline+1)
	}
	return next
}

// Opens is the earliest instant at which a gate that somebody waits at may open.
func (q *Queue) Opens() time.Duration {
	if len(q.timed) > 0 {
		return q.timed[0].at
	}
	return Never
}

// Ahead returns the units, by gate of r, that the calls of f which wait for the
// same gates as a call of that cost will take before it; nil where none wait. The
// slice is the queue's and true until the next change.
func (q *Queue) Ahead(r *Route, f Flow, cost []int64) []int64 {
	if q.n == 0 {
		return nil
	}
	if ln := q.lines[lineKey{f, r, maskOf(cost)}]; ln != nil {
		return ln.ahead
	}
	return nil
}

// Expired returns a call whose deadline lies before now, nil where there is none.
func (q *Queue) Expired(now time.Duration) *Waiter {
	if len(q.due) > 0 && q.due[0].Deadline < now {
		return q.due[0]
	}
	return nil
}

// Before returns the calls whose deadline lies before t. It costs O(as many).
func (q *Queue) Before(t time.Duration) []*Waiter { return dueBefore(q.due, 0, t, nil) }

func dueBefore(due []*Waiter, i int, t time.Duration, found []*Waiter) []*Waiter {
	if i >= len(due) || due[i].Deadline >= t {
		return found
	}
	found = append(found, due[i])
	return dueBefore(due, 2*i+2, t, dueBefore(due, 2*i+1, t, found))
}

// All returns the calls that wait, in no order. It costs O(as many).
func (q *Queue) All() []*Waiter {
	all := make([]*Waiter, 0, q.n)
	for _, ln := range q.lines {
		for w := ln.head; w != nil; w = w.next {
			all = append(all, w)
		}
	}
	return all
}

// Oldest returns the call that entered first, nil where none waits. It costs
// O(lines).
func (q *Queue) Oldest() *Waiter {
	var oldest *Waiter
	for _, ln := range q.lines {
		if oldest == nil || ln.head.seq < oldest.seq {
			oldest = ln.head
		}
	}
	return oldest
}

// Earlier tells that w entered before x.
func (w *Waiter) Earlier(x *Waiter) bool { return w.seq < x.seq }
