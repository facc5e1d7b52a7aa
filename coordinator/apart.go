package coordinator

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// While the ledger does not answer, a lane is apart and goes by the ledger's mode.
// Under share each process has an equal part of every limit; and until the window is
// over in which the ledger was lost, no more than an equal part of what was left of
// it when it last answered.

// share is a gate's part while its lane is apart.
type share struct {
	size  int64         // of the limit, for this process; 0: nothing
	spare int64         // of what was left; may be gone through until until
	until time.Duration // 0: it was not known, or does not matter
}

// LedgerState is how a provider stands with the budget that it shares.
type LedgerState struct {
	Mode     string    `json:"mode"` // shared; while it does not answer: share | deny | open
	Since    time.Time `json:"since,omitzero"`
	Replicas int       `json:"replicas"` // processes that share it; 0: not known
	Rank     int       `json:"rank"`     // of this one
	Detail   string    `json:"detail,omitempty"`
}

// LedgerChange tells that the ledger has begun or ceased to answer.
type LedgerChange struct {
	Up    bool
	State LedgerState
}

func (c *Coordinator) ledgerState() *LedgerState {
	if c.ledger == nil {
		return nil
	}
	s := c.ledger.Status()
	x := &LedgerState{Mode: "shared", Since: s.Since, Replicas: s.Replicas, Rank: s.Rank, Detail: s.Detail}
	if !s.Up {
		x.Mode = string(c.settings.Mode)
	}
	return x
}

// heard is what the ledger tells: pauses of other processes, and how it does.
func (c *Coordinator) heard(x ledger.Change) {
	switch {
	case x.Pause != nil:
		c.pausedElsewhere(x.Pause, true)
	case x.Resume != nil:
		c.pausedElsewhere(x.Resume, false)
	case x.Status != nil:
		for _, l := range *c.lanes.Load() {
			l.lock()
			if s := c.ledger.Status(); s.Up { // as it is by now: what is told may be over
				l.rejoin()
			} else {
				l.part(s)
			}
			l.tell(l.unlock())
		}
		if c.away.Swap(!x.Status.Up) == x.Status.Up { // else there is only one process more, or less
			for _, t := range c.traces {
				t.ledger(LedgerChange{Up: x.Status.Up, State: *c.ledgerState()})
			}
		}
	}
}

// pausedElsewhere takes over the beginning or the end of a pause.
func (c *Coordinator) pausedElsewhere(told *ledger.Pause, begins bool) {
	l, unknown := c.lane(told.Provider)
	if unknown != nil {
		return // declared by others only
	}
	l.lock()
	for _, p := range l.pausesNamed(told) {
		if begins {
			if l.told(told.Until) > l.now.Mono {
				l.pauseFrom(p, told)
			}
			continue
		}
		p.there = 0
		p.end()
		l.q.Touch(&p.Gate)
	}
	l.tell(l.unlock())
}

// pausesNamed are the gates of a told pause; of scope "" all of them.
func (l *lane) pausesNamed(told *ledger.Pause) (gates []*pauseGate) {
	switch told.Scope {
	case provider.ScopeKey:
		l.route("", told.Name) // makes it, where nobody has called yet
	case provider.ScopeEndpoint:
		l.route(told.Name, "")
	}
	l.eachPause(func(p *pauseGate) {
		if told.Scope == "" || p.scope == told.Scope && p.name == told.Name {
			gates = append(gates, p)
		}
	})
	return gates
}

// part has the lane go by the ledger's mode from now on.
func (l *lane) part(s ledger.Status) {
	if l.apart {
		return
	}
	l.apart = true
	if l.c.settings.Mode != ledger.Share {
		l.eachShared(func(g *limitGate) { l.q.Touch(&g.Gate) })
		return
	}
	l.eachShared(func(g *limitGate) { g.part(s) })
}

// part takes this process's share of a limit.
func (g *limitGate) part(s ledger.Status) {
	x, now := g.shared, g.l.now.Mono
	n, rank := int64(max(s.Replicas, g.l.c.settings.Replicas)), int64(s.Rank)
	x.before = 0
	if n == 0 { // nobody knows how many share it
		x.share = share{}
		return
	}
	x.share = share{size: portion(g.maxNow(), n, rank)}
	w, _ := g.d.Per.Duration()
	if x.room >= 0 && !g.caps() && now-x.roomAt <= w { // what was said before says nothing of now
		x.share.spare, x.share.until = portion(x.room, n, rank), g.over(now)
	}
	if x.share.size > 0 {
		g.fit()
	}
	g.l.q.Touch(&g.Gate)
}

// portion is an equal part of what n have, the rest going to the first of them.
func portion(all, n, rank int64) int64 {
	part := all / n
	if rank < all%n {
		part++
	}
	return part
}

// rejoin has the lane ask again. What went meanwhile and has no answer yet is told, so
// that nothing goes in its place.
func (l *lane) rejoin() {
	if !l.apart {
		return
	}
	l.apart = false
	l.eachShared(func(g *limitGate) {
		if x := g.shared; l.now.Mono < x.share.until { // until it says more, no more is known to be left
			x.room = max(0, x.share.spare)
		} else {
			x.room = -1
		}
		g.shared.share = share{}
		g.fit()
		l.q.Touch(&g.Gate)
	})
	for _, ls := range l.out {
		if ls.rare == nil || ls.rare.borrowed == nil || ls.rare.borrowed.hold != 0 || !ls.went {
			continue
		}
		for k, i := range ls.rare.borrowed.limits {
			if b := ls.rare.borrowed; !b.settled[k] && !ls.route.limits[i].caps() {
				l.rechargeThere(b, k, l.now.Mono, b.units[k].N)
			}
		}
	}
}

func (l *lane) eachShared(f func(*limitGate)) {
	l.eachLimit(func(g *limitGate) {
		if g.shared != nil {
			f(g)
		}
	})
}

// unasked decides on a call whose turn it is while the ledger does not answer.
func (l *lane) unasked(w *walk, ls *Lease, s ledger.Status) (again bool, refusal *Error) {
	switch mode := l.c.settings.Mode; {
	case mode == ledger.Deny:
		return false, l.denied(ls, s, "nothing goes without it")
	case s.Up: // it answers again by now, and those who watch it know: it is asked again, soon
		for _, i := range ls.rare.borrowed.limits {
			if g := ls.route.limits[i]; g.shared != nil {
				g.shared.before = max(g.shared.before, after(l.now.Mono, leastPoll))
				l.q.Touch(&g.Gate)
			}
		}
		return l.comesBack(w, ls)
	case !ls.rare.borrowed.apart: // it has ceased to answer just now: the limits are others than as it took its turn
		l.part(s)
		return l.comesBack(w, ls)
	case mode == ledger.Free:
	case max(s.Replicas, l.c.settings.Replicas) == 0:
		return false, l.denied(ls, s, "nobody knows how many processes share it (set Replicas)")
	default:
		for _, i := range ls.rare.borrowed.limits {
			if g := ls.route.limits[i]; g.shared != nil && g.shared.share.size == 0 {
				return false, l.denied(ls, s, fmt.Sprintf("this process's share of limit %s is nothing", g.d.Name))
			}
		}
		l.spend(ls, 1)
	}
	if l.shutMeanwhile(ls) {
		l.spend(ls, -1)
		return l.comesBack(w, ls)
	}
	l.wentOut(ls)
	l.admitted(ls)
	return false, nil
}

// spend takes of what was left in the ledger (by 1), or gives it back (by -1).
func (l *lane) spend(ls *Lease, by int64) {
	for _, i := range ls.rare.borrowed.limits {
		if g := ls.route.limits[i]; g.shared != nil && l.now.Mono < g.shared.share.until {
			g.shared.share.spare -= by * ls.wait.Cost[ls.route.skip+i]
			l.q.Touch(&g.Gate)
		}
	}
}

// denied refuses a call for want of the ledger.
func (l *lane) denied(ls *Lease, s ledger.Status, why string) *Error {
	detail := "the shared budget does not answer, and " + why
	if s.Detail != "" {
		detail = fmt.Sprintf("the shared budget does not answer (%s), and %s", s.Detail, why)
	}
	e := l.refusal(ls, ReasonLedger, detail, after(l.now.Mono, l.c.settings.Beat))
	e.Err = ledger.ErrDown
	l.returned(ls)
	return e
}

// opensThere is what the ledger, or a share of it, says of n more units: not before.
func (g *limitGate) opensThere(now time.Duration, n int64) time.Duration {
	x := g.shared
	at := x.before
	if g.l.apart && now < x.share.until && n > x.share.spare {
		at = max(at, x.share.until)
	}
	return max(at, now)
}

// askedOut tells that as much as the ledger may have left (or, while it does not answer,
// as this process may still take of that) is being asked for: whoever comes waits for an
// answer.
func (g *limitGate) askedOut(now time.Duration, n int64) bool {
	x := g.shared
	if g.l.apart {
		return x.asked > 0 && now < x.share.until && n > x.share.spare-x.asked
	}
	return x.asked > 0 && n > max(0, x.room)-x.asked
}
