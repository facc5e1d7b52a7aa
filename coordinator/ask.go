package coordinator

import (
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// A call that needs a limit which is shared goes in two steps: the lane's decision,
// which takes everything that is local, then the ledger, outside every lock. Refused
// there, the whole local step is given back, the limit gets a not-before, and the call
// returns to its place in the queue.

// shared is what a limit's gate knows of the budget that it shares with other
// processes.
type shared struct {
	counter *ledger.Counter
	before  time.Duration // the ledger's not-before; it may move both ways
	asked   int64         // units that the ledger is being asked for
	learnt  ledger.Learnt // what it was last told of answers
	roomOf  ledger.Hold   // the grant that told room: answers meet each other on their way
	room    int64         // how many more it had, as it last said; -1: not known
	seen    *seen         // what a Peek said, where room is of it; nil: a Take's, or not known
	roomAt  time.Duration // when that was
	share   share         // while it does not answer
}

// borrowed is what a lease holds in the ledger, or owes it.
type borrowed struct {
	hold    ledger.Hold    // 0: none: it has not asked yet, or went without
	units   []ledger.Units // what it asks for
	limits  []int          // of each: the place in the route's limits
	settled []bool         // of each
	told    []charged      // of each: what the ledger counts of it by now
	asking  bool           // the ledger has not answered yet
	apart   bool           // it took its turn while the lane was apart, by its share
	alone   bool           // it is the one call after a pause
	trial   ledger.Trial   // and what it has found
}

// charged is units that the ledger counts from an instant on.
type charged struct {
	at time.Duration
	n  int64
}

// The ledger's Event is not told to us: it is asked again so soon.
const (
	leastPoll = 5 * time.Millisecond
	mostPoll  = 250 * time.Millisecond
)

// share gives a gate its part in the ledger, where its limit is shared.
func (g *limitGate) share() {
	led := g.l.c.ledger
	if led == nil || !g.l.c.settings.Shares(*g.d) {
		g.shared = nil
		return
	}
	counter := ledger.NewCounter(g.l.slug, *g.d, g.endpoint, g.key)
	if g.shared == nil {
		g.shared = &shared{room: -1}
	}
	g.shared.counter = counter
	g.shared.outdated()
	if g.l.apart && g.l.c.settings.Mode == ledger.Share {
		was := g.shared.share
		g.part(led.Status())
		if was.until > g.l.now.Mono { // what was taken of it stays taken
			g.shared.share.spare, g.shared.share.until = min(was.spare, g.shared.share.spare), max(was.until, g.shared.share.until)
		}
	}
}

// asks tells that a call has to ask the ledger: it takes of a limit that is shared.
func (ls *Lease) asks() bool {
	for _, i := range ls.route.shared {
		if ls.wait.Cost[ls.route.skip+i] != 0 {
			return true
		}
	}
	return false
}

// asking notes what a call that has taken its turn will ask for. It needs the lock.
func (l *lane) asking(ls *Lease) {
	b := &borrowed{asking: true, apart: l.apart}
	for _, i := range ls.route.shared {
		if n, s := ls.wait.Cost[ls.route.skip+i], ls.route.limits[i].shared; n != 0 && s != nil {
			b.limits = append(b.limits, i)
			b.units = append(b.units, ledger.Units{Counter: s.counter, N: n})
			s.asked += n
		}
	}
	b.settled, b.told = make([]bool, len(b.limits)), make([]charged, len(b.limits))
	ls.rarely().borrowed = b
}

// second is the second step of a call that has taken the first. again: the call waits
// for another turn, or has had it.
func (w *walk) second(ls *Lease) (again bool, refusal *Error) {
	l, led := w.l, w.l.c.ledger
	var grant ledger.Grant
	var err error
	status := led.Status()
	if status.Up {
		t := ledger.Take{Provider: l.slug, Endpoint: ls.route.endpoint, Key: ls.route.key, Units: ls.rare.borrowed.units}
		w.hooked(ls, func() { grant, err = led.Take(w.ctx, t) })
	}
	l.lock()
	ls.answered()
	if err == nil && status.Up && l.apart {
		l.rejoin()
	}
	switch {
	case !status.Up || err != nil && w.ctx.Err() == nil:
		again, refusal = l.unasked(w, ls, led.Status())
	case err != nil:
		l.returned(ls)
		refusal = w.gaveUpLocked(ls, w.ctx.Err())
	case grant.Hold != 0:
		again, refusal = l.granted(w, ls, grant)
	default:
		l.refusedThere(ls, grant)
		again, refusal = l.comesBack(w, ls)
	}
	l.tell(l.unlock())
	return again, refusal
}

// answered ends the time in which a call asks.
func (ls *Lease) answered() {
	b := ls.rare.borrowed
	if !b.asking {
		return
	}
	b.asking = false
	for _, i := range b.limits {
		if g := ls.route.limits[i]; g.shared != nil {
			g.shared.asked = max(0, g.shared.asked-ls.wait.Cost[ls.route.skip+i])
			ls.l.q.Touch(&g.Gate)
		}
	}
}

// granted lets the call go, unless the lane has closed since it took its turn.
func (l *lane) granted(w *walk, ls *Lease, grant ledger.Grant) (again bool, refusal *Error) {
	b := ls.rare.borrowed
	l.rooms(ls, grant)
	if l.shutMeanwhile(ls) {
		l.owe(owed{settle: &ledger.Settlement{Hold: grant.Hold, Back: true}})
		return l.comesBack(w, ls)
	}
	b.hold, b.alone = grant.Hold, grant.Alone
	l.wentOut(ls)
	l.admitted(ls)
	return false, nil
}

// rooms notes how much more there is in the ledger.
func (l *lane) rooms(ls *Lease, grant ledger.Grant) {
	for k, i := range ls.rare.borrowed.limits {
		g := ls.route.limits[i]
		if g.shared == nil || k >= len(grant.Room) || grant.Hold != 0 && grant.Hold < g.shared.roomOf {
			continue
		}
		g.shared.room, g.shared.roomAt, g.shared.seen = grant.Room[k], l.now.Mono, nil
		g.shared.roomOf = max(g.shared.roomOf, grant.Hold)
	}
}

// shutMeanwhile tells that a pause has begun, the breaker has opened or the coordinator
// was shut down since the call took its turn.
func (l *lane) shutMeanwhile(ls *Lease) bool {
	if l.down || !l.breaker.Closed() && !ls.token.Probe() && ls.wait.Cost[0] != 0 {
		return true
	}
	for i, p := range ls.route.pauses {
		if ls.wait.Cost[1+i] != 0 && p.on && p.trial != ls {
			return true
		}
	}
	return false
}

// refusedThere puts what the ledger said into the gates.
func (l *lane) refusedThere(ls *Lease, grant ledger.Grant) {
	b := ls.rare.borrowed
	l.rooms(ls, grant)
	if grant.By < 0 || grant.By >= len(b.limits) {
		l.pausedThere(ls, grant)
		return
	}
	g := ls.route.limits[b.limits[grant.By]]
	if g.shared == nil {
		return
	}
	wait := grant.Wait
	if wait == ledger.Event {
		w, _ := g.d.Per.Duration()
		wait = min(max(w/100, leastPoll), mostPoll)
		if g.caps() {
			wait = leastPoll
		}
	}
	g.shared.before = after(l.now.Mono, max(wait, 1))
	g.shared.room, g.shared.seen = min(max(g.shared.room, 0), ls.wait.Cost[ls.route.skip+b.limits[grant.By]]-1), nil
	l.q.Touch(&g.Gate)
	l.refuseLate(&g.Gate, g.shared.before)
}

// pausedThere is a pause that another process has told: it is one here, too.
func (l *lane) pausedThere(ls *Lease, grant ledger.Grant) {
	wait := grant.Wait
	if wait == ledger.Event {
		wait = mostPoll // somebody's call is out alone
	}
	p := ls.route.pauses[0]
	if grant.Pause != nil {
		p = ls.route.pauseOf(grant.Pause.Scope)
		if at := l.told(grant.Pause.Until); at > l.now.Mono {
			l.pauseFrom(p, grant.Pause)
		}
	}
	p.there = after(l.now.Mono, max(wait, 1))
	l.q.Touch(&p.Gate)
	l.refuseLate(&p.Gate, p.there)
}

// pauseFrom begins or extends a pause that another process has told.
func (l *lane) pauseFrom(p *pauseGate, told *ledger.Pause) {
	p.began = l.now.Mono
	p.prolong(l.told(told.Until), provider.Outcome(told.Why), told.Detail)
}

// returned gives the local step back.
func (l *lane) returned(ls *Lease) {
	l.giveBack(ls)
	ls.rare.borrowed, ls.rare.rides, ls.rare.marks = nil, nil, nil
}

// comesBack gives the local step back and has the call decided again, in its place.
func (l *lane) comesBack(w *walk, ls *Lease) (again bool, refusal *Error) {
	l.returned(ls)
	ls.state, ls.f, ls.ready = waiting, nil, nil
	w.back = true
	return true, l.enter(w, ls)
}

// owed is what the lane has to tell the ledger when it is unlocked: one of these.
type owed struct {
	settle *ledger.Settlement
	charge *ledger.Charge
	news   *ledger.News
}

func (l *lane) owe(o owed) {
	if l.c.ledger != nil {
		l.owed = append(l.owed, o)
	}
}

// pay tells the ledger, in order: one goroutine at a time, without the lock.
func (l *lane) pay() {
	if l.c.ledger == nil {
		return
	}
	l.mu.Lock()
	for !l.paying && len(l.owed) > 0 {
		l.paying = true
		all := l.owed
		l.owed = nil
		l.mu.Unlock()
		for _, o := range all {
			switch {
			case o.settle != nil:
				l.c.ledger.Settle(*o.settle)
			case o.charge != nil:
				l.c.ledger.Charge(*o.charge)
			default:
				l.c.ledger.Tell(*o.news)
			}
		}
		l.mu.Lock()
		l.paying = false
	}
	l.mu.Unlock()
}

// settleThere settles some of a lease's units in the ledger: n of those of the i-th
// limit of its route count, from an instant on. What was settled before it corrects.
func (l *lane) settleThere(ls *Lease, i int, at time.Duration, n int64) {
	if ls.rare == nil || ls.rare.borrowed == nil {
		return
	}
	b := ls.rare.borrowed
	for k, x := range b.limits {
		switch {
		case x != i || b.settled[k] && ls.route.limits[i].caps():
		case b.settled[k]:
			l.chargeThere(b, k, b.told[k].at, n-b.told[k].n)
			b.told[k].n = n
		case b.hold != 0:
			l.owe(owed{settle: &ledger.Settlement{Hold: b.hold, At: l.c.origin.Add(at), Part: []ledger.Part{{Unit: k, Charged: n}}, Trial: b.trial}})
			b.settled[k], b.told[k] = true, charged{at, n}
		case !ls.route.limits[i].caps():
			l.rechargeThere(b, k, at, n)
			b.settled[k] = true
		}
	}
}

// rechargeThere has n units count from an instant on, instead of what was told before.
func (l *lane) rechargeThere(b *borrowed, k int, at time.Duration, n int64) {
	l.chargeThere(b, k, b.told[k].at, -b.told[k].n)
	l.chargeThere(b, k, at, n)
	b.told[k] = charged{at, n}
}

// chargeThere counts units that went without being asked for, or (n below 0) takes some
// back.
func (l *lane) chargeThere(b *borrowed, k int, at time.Duration, n int64) {
	if n != 0 {
		l.owe(owed{charge: &ledger.Charge{Counter: b.units[k].Counter, At: l.c.origin.Add(at), N: n}})
	}
}
