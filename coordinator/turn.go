package coordinator

import (
	"time"

	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/queue"
)

// read reads the clock: once in each critical section, inside the lock. What the
// calendar shows is read only where a limit follows it (see also wall).
func (l *lane) read() {
	l.section++
	l.now.Mono = time.Since(l.c.origin)
	if l.aligned {
		l.now.Wall = time.Duration(l.wall().UnixNano())
	}
}

// then is an earlier or later instant, by both clocks as they stand now.
func (l *lane) then(at time.Duration) limit.Now {
	return limit.Now{Mono: at, Wall: l.now.Wall - (l.now.Mono - at)}
}

// clock is the instant of this critical section, to measure by.
func (l *lane) clock() time.Time { return l.c.origin.Add(l.now.Mono) }

// wall is what the calendar shows in this critical section: read when first asked.
func (l *lane) wall() time.Time {
	if l.wallAt != l.now.Mono {
		l.wallTime, l.wallAt = time.Now(), l.now.Mono
	}
	return l.wallTime
}

// lock opens a critical section: the clock is read, what is due by it is settled.
func (l *lane) lock() {
	l.mu.Lock()
	for _, g := range l.pools {
		g.p.mu.Lock()
	}
	last := l.now.Mono
	l.read()
	if l.now.Mono-last > cold {
		l.ahead()
	}
	if len(l.later) > 0 {
		l.settleDue()
	}
}

// unlock lets go who may go now, sets the timer and ends the critical section. It
// returns what happened, to be told by the caller.
//
// Of a pool it wakes the lane whose turn it is, which may wake another: one after
// the other, so that no two are ever locked at once.
func (l *lane) unlock() []event {
	if l.q.Len() == 0 && len(l.pools) == 0 && l.timerAt == queue.Never && !l.high && (l.c.ledger == nil || len(l.later) == 0) {
		l.breakerMoved() // nobody waits: that is all that there is to do
		events := l.events
		l.events = nil
		l.mu.Unlock()
		return events
	}
	l.hand()
	events := l.events
	l.events = nil
	wakeAll(l.leave())
	return events
}

// leave unlocks, and returns the lanes that are to be woken.
func (l *lane) leave() (wake []*lane) {
	for i := len(l.pools) - 1; i >= 0; i-- {
		g := l.pools[i]
		if next := g.settle(); next != nil {
			wake = append(wake, next)
		}
		g.p.mu.Unlock()
	}
	l.mu.Unlock()
	return wake
}

// wakeAll has lanes hand out what pools have for them. Each turn uses a slot, takes
// a lane out of a ring, or is one in vain, of which a pool allows so many as it has
// lanes: so it ends.
func wakeAll(lanes []*lane) {
	for len(lanes) > 0 {
		l := lanes[0]
		l.lock()
		l.hand()
		lanes = append(lanes[1:], l.leave()...)
		l.pay()
	}
}

// hand refuses who is too late, lets go who may go, and sets the timer.
func (l *lane) hand() {
	for _, g := range l.pools { // others may have made it ours to go
		if g.p.used < g.p.size && g.turn() {
			l.q.Touch(&g.Gate)
		}
	}
	for moved := true; moved; moved = l.breakerMoved() { // an overdue probe fails in a look
		if l.q.Len() == 0 {
			continue
		}
		for w := l.q.Expired(l.now.Mono); w != nil; w = l.q.Expired(l.now.Mono) {
			ls := w.Owner.(*Lease)
			at, by := l.opensFor(ls, ls.options())
			l.refuse(ls, l.tooLate(ls, at, by))
		}
		l.q.Hand(l.now.Mono, l.goes)
	}
	l.pressure()
	l.setTimer()
}

// goes is the turn of a call that waited: it takes everything, and is woken.
func (l *lane) goes(w *queue.Waiter) {
	ls := w.Owner.(*Lease)
	l.unline(ls, w)
	l.take(ls)
	ls.ready <- struct{}{} // has room for the one message that it ever gets
}

// take is the instant of going.
func (l *lane) take(ls *Lease) {
	ls.granted = l.now.Mono
	ls.state = held
	var clock time.Time
	if !l.breaker.Closed() {
		clock = l.clock()
	}
	ls.token = l.breaker.Take(clock)
	r, cost := ls.route, ls.wait.Cost
	for i, p := range r.pauses {
		if cost[i+1] != 0 {
			p.take(ls)
		}
	}
	for i, g := range l.pools {
		if cost[r.pool+i] != 0 {
			g.take()
		}
	}
	for i, g := range r.limits {
		if n := cost[r.skip+i]; n != 0 {
			g.rule.Take(l.now, n)
			g.told.went += n
		}
	}
	quota := r.keyed
	quota.told.went++
	quota.unsettled++
	if l.tells {
		l.marks(ls)
	}
	if outer := ls.outer().slot(); outer != nil {
		ls.rarely().rides = outer
		outer.rarely().riders++
	}
	ls.route.goes(1)
	if len(l.keys) > 0 {
		l.used(ls.route.key)
	}
	ls.at = int32(len(l.out))
	l.out = append(l.out, ls)
	if r.shared != nil && ls.asks() {
		l.asking(ls)
		return
	}
	l.wentOut(ls)
}

// wentOut counts a call that has been granted everything.
func (l *lane) wentOut(ls *Lease) {
	ls.went = true
	l.counts.granted++
	s := l.second()
	s.went++
	if !ls.again {
		s.fresh++
	}
}

// setTimer has the lane looked at when the next gate may open, the next waiter is
// too late or the next settlement is due; never while nobody waits.
func (l *lane) setTimer() {
	at := queue.Never
	if l.q.Len() > 0 {
		at = l.q.Next()
		if len(l.later) > 0 {
			at = min(at, l.later[0].at)
		}
		if l.aligned { // dates follow the corrected clock; a timer does not
			at = min(at, l.now.Mono+time.Minute)
		}
	} else if l.c.ledger != nil && len(l.later) > 0 { // others may wait for these units
		at = l.later[0].at
	}
	if at == l.timerAt {
		return
	}
	l.timerAt = at
	switch {
	case l.timer == nil && at != queue.Never:
		l.timer = time.AfterFunc(max(at-l.now.Mono, 0), l.wake)
	case at != queue.Never:
		l.timer.Reset(max(at-l.now.Mono, 0))
	case l.timer != nil:
		l.timer.Stop()
	}
}

// wake is the timer. What happens in it is told by a caller's goroutine: that of
// whom it woke, else the next.
func (l *lane) wake() {
	l.lock()
	l.woke()
	wakeAll(l.leave())
	l.pay()
}

// woke has a look at everything that time may have opened. Limits that follow dates
// told their instants by a clock that may have been set meanwhile.
func (l *lane) woke() {
	l.timerAt = queue.Never
	if l.aligned {
		l.eachLimit(func(g *limitGate) {
			if g.rule.Aligned() {
				l.q.Touch(&g.Gate)
			}
		})
	}
	l.hand()
}
