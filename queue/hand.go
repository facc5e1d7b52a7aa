package queue

import "time"

// Claims: a line whose head was sent from gate to gate claimAfter times closes
// its gates to others until it goes, if each of them opens within claimHorizon.
// The claim ends after claimHorizon in any case.
const (
	claimAfter   = 16
	claimHorizon = 10 * time.Second
)

// blocked is the decision: nil, or where to wait. Among the gates whose rule
// refuses that is the one which opens last: who waited at another would hold up
// others there for a gate that is of no use to it yet. Where all rules agree, it is
// the first gate at which an earlier call waits: that one is not passed there,
// whatever it weighs.
func blocked(now time.Duration, r *Route, f Flow, cost []int64, ln *line, seq uint64) (in *Gate) {
	latest := now
	for i, g := range r.Gates {
		n := cost[i]
		if n == 0 {
			continue
		}
		if at := g.rule.Look(now, n); at > latest {
			in, latest = g, at
		} else if in == nil && g.ahead(ln, f, seq) {
			in = g
		}
	}
	return in
}

// Hand lets every call go that may go at now, in order. goes is called for each
// as it leaves the queue and takes what the call's gates count before it returns;
// it must not call the queue but for Touch, for Leave, and for Enter of a call behind
// others that wait for the same gates.
func (q *Queue) Hand(now time.Duration, goes func(*Waiter)) {
	for len(q.timed) > 0 && q.timed[0].at <= now {
		g := q.timed[0]
		q.untime(g)
		q.Touch(g)
	}
	for len(q.dirty) > 0 {
		last := len(q.dirty) - 1
		g := q.dirty[last]
		q.dirty[last], q.dirty = nil, q.dirty[:last]
		g.dirty = false
		q.look(g, now, goes)
	}
	if cap(q.dirty) > 64 {
		q.dirty = nil // a burst's memory does not stay
	}
}

// look lets the line whose turn it is at g go or wait elsewhere, or sets the
// gate's timer. Whatever changes whose turn it is touches the gate again.
func (q *Queue) look(g *Gate, now time.Duration, goes func(*Waiter)) {
	ln := g.turn()
	if ln == nil {
		return
	}
	if at := g.rule.Look(now, ln.cost(g)); at > now {
		q.shut(g, ln, at, now)
		return
	}
	w, r, f := ln.head, ln.key.route, ln.key.flow
	if to := blocked(now, r, f, w.Cost, ln, ln.seq); to != nil {
		if !q.stay(ln, to, now) {
			q.move(ln, to, now)
		}
		return
	}
	q.unclaim(ln)
	q.Went(r, f, w.Cost)
	q.remove(w)
	goes(w)
}

// shut is a gate's refusal of the line whose turn it is.
func (q *Queue) shut(g *Gate, ln *line, at, now time.Duration) {
	if ln.until != 0 {
		if at == Never && g.soon {
			at = ln.until
		}
		if at > ln.until || now >= ln.until {
			q.unclaim(ln) // it would close the rest for too long; touches g
			return
		}
	}
	q.timeAt(g, at)
}

// stay keeps a line at its open gate where every line needs both this gate and the
// one that is in the way, and the latter refuses whoever comes: one that left would
// only be followed by all the others, and 1,000 lines would wander between a cap
// and a limit each time that either opens. Whatever changes in the queue has the
// gate looked at again, and so has its timer.
func (q *Queue) stay(ln *line, to *Gate, now time.Duration) bool {
	g := ln.home
	if g.many || to.many || g.lines != len(q.lines) || to.lines != len(q.lines) || ln.until != 0 {
		return false
	}
	at := to.rule.Look(now, 1)
	if at <= now {
		return false
	}
	q.timeAt(g, at)
	q.front = append(q.front, g)
	return true
}

// move sends a line on to the gate in its way and sees to it that it is not sent
// from gate to gate for ever.
func (q *Queue) move(ln *line, to *Gate, now time.Duration) {
	q.leave(ln)
	ln.moves++
	if ln.moves >= claimAfter && ln.until == 0 {
		ln.stake(now)
	}
	q.park(ln, to)
}

// stake closes the gates of a line to all others, provided that nobody else has
// claimed one of them and that each opens soon. Else it is tried again with the
// next move.
func (ln *line) stake(now time.Duration) {
	for i, g := range ln.key.route.Gates {
		n := ln.head.Cost[i]
		if n == 0 {
			continue
		}
		at := g.rule.Look(now, n)
		if g.claim != nil || at > now+claimHorizon && !(at == Never && g.soon) {
			return
		}
	}
	ln.until = now + claimHorizon
	for i, g := range ln.key.route.Gates {
		if ln.head.Cost[i] != 0 {
			g.claim = ln
		}
	}
}

func (q *Queue) unclaim(ln *line) {
	if ln.until == 0 {
		return
	}
	ln.until, ln.moves = 0, 0
	for _, g := range ln.key.route.Gates {
		if g.claim == ln {
			g.claim = nil
			q.Touch(g)
		}
	}
}
