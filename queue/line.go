package queue

import (
	"math"
	"time"
)

// lineKey names a line: the calls of one flow that need the same gates.
type lineKey struct {
	flow  Flow
	route *Route
	mask  uint64 // which gates of the route are needed; those from the 64th on share a bit
}

// line is first in, first out.
type line struct {
	key        lineKey
	head, tail *Waiter
	seq        uint64        // of its head
	ahead      []int64       // sum of the costs of all who are in it
	home       *Gate         // where it waits
	group      *group        // its flow's at home
	i          int           // place in group.lines
	moves      int           // how often its head was sent on from one gate to another
	until      time.Duration // end of its claim; 0: none
}

func maskOf(cost []int64) (m uint64) {
	for i, n := range cost {
		if n != 0 {
			m |= 1 << min(i, 63)
		}
	}
	return m
}

// cost is what the head takes at g.
func (ln *line) cost(g *Gate) int64 {
	for i, x := range ln.key.route.Gates {
		if x == g {
			return ln.head.Cost[i]
		}
	}
	return 0
}

// line returns the line of a key, a new one where there is none.
func (q *Queue) line(key lineKey) *line {
	ln := q.lines[key]
	if ln != nil {
		return ln
	}
	ln = &line{key: key, ahead: make([]int64, len(key.route.Gates))}
	if q.lines == nil {
		q.lines = make(map[lineKey]*line)
	}
	q.lines[key] = ln
	ln.count(1)
	return ln
}

// insert puts w in by its order of arrival: last, but for a call that came back.
func (ln *line) insert(w *Waiter) {
	w.line = ln
	after := ln.tail
	if after != nil && after.seq > w.seq { // came back: near the front
		after = nil
		for x := ln.head; x.seq < w.seq; x = x.next {
			after = x
		}
	}
	w.prev = after
	if after == nil {
		w.next, ln.head = ln.head, w
	} else {
		w.next, after.next = after.next, w
	}
	if w.next == nil {
		ln.tail = w
	} else {
		w.next.prev = w
	}
	for i, n := range w.Cost {
		ln.ahead[i] = add(ln.ahead[i], n)
	}
}

// unlink takes w out of its line.
func (ln *line) unlink(w *Waiter) {
	if w.prev == nil {
		ln.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		ln.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.line, w.prev, w.next = nil, nil, nil
	for i, n := range w.Cost {
		ln.ahead[i] -= min(n, ln.ahead[i])
	}
}

// remove takes w out of the queue, and its line where it was the last of it.
func (q *Queue) remove(w *Waiter) {
	ln, first := w.line, w.prev == nil
	ln.unlink(w)
	if w.Deadline != Never {
		pull(&q.due, w.due)
	}
	q.n--
	switch {
	case ln.head == nil:
		q.drop(ln)
	case first:
		ln.moves = 0
		q.renew(ln)
	}
}

// drop takes an empty line out of the queue.
func (q *Queue) drop(ln *line) {
	q.leave(ln)
	delete(q.lines, ln.key)
	if len(q.lines) == 0 {
		q.lines = nil // a map keeps the room of its best day
	}
	ln.count(-1)
}

// count tells the gates of a line that it is there, or no more. Gates that share a
// bit of its mask are left out: it may not need them.
func (ln *line) count(n int) {
	for i, g := range ln.key.route.Gates {
		if i < 63 && ln.key.mask&(1<<i) != 0 {
			g.lines += n
			g.rest()
		}
	}
}

// needed is a gate that the head needs.
func (ln *line) needed() *Gate {
	for i, g := range ln.key.route.Gates {
		if ln.head.Cost[i] != 0 {
			return g
		}
	}
	return nil // Enter refuses such a call
}

// add is a saturating sum of costs.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
