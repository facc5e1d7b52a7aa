package coordinator

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// A process that has just started knows nothing of what a shared limit has counted
// until a call asks the ledger. Who wants to see a limit before that has the ledger
// peeked at. What a Peek says holds until a Take says more, and is asked again with
// each look, once a beat at most. A call never waits for it.

// mostPeeked bounds one Peek: a longer one could take a slow store so long that all
// would take it for lost.
const mostPeeked = 128

// seen is what a Peek said of a limit.
type seen struct {
	at     time.Duration // when that was; 0: it is to be asked again
	used   int64         // units used elsewhere that come back from back on, at the earliest
	rest   int64         // and others that are gone there
	back   time.Duration // 0: none is out
	closed time.Duration // learned: nothing goes before; 0: not
}

// look is a limit that is to be peeked at.
type look struct {
	g       *limitGate
	x       *shared
	counter *ledger.Counter
	at      time.Duration // of what was seen last
}

// untold tells that no Take has told what is left.
func (x *shared) untold() bool { return x.seen != nil || x.room < 0 && x.roomOf == 0 }

// outdated has what was seen be asked again, whenever that was.
func (x *shared) outdated() {
	if x.seen != nil {
		x.seen.at = 0
	}
}

// peekStates asks for what states of lanes show: all at once, so that many providers
// cost one round trip, and a ledger that is slow one budget, without a goroutine.
func (c *Coordinator) peekStates(lanes ...*lane) {
	if !c.mayPeek() {
		return
	}
	var all []look
	for _, l := range lanes {
		l.lock()
		all = append(all, l.looks()...)
		l.tell(l.unlock())
	}
	c.peek(all)
}

// peekDemands asks for what calls need.
func (l *lane) peekDemands(demands []Demand) {
	if !l.c.mayPeek() {
		return
	}
	all := make(map[*shared]look)
	l.lock()
	for _, d := range demands {
		for _, key := range append([]string{d.Call.Key}, l.keys...) {
			if key != d.Call.Key && d.Call.Key != "" {
				continue
			}
			r := l.route(d.Call.Endpoint, key)
			r.rest = keepUnused // until it is copied: the next route may be the end of an idle one
			for _, i := range r.shared {
				if k, ok := r.limits[i].look(); ok {
					all[k.x] = k
				}
			}
		}
	}
	l.tell(l.unlock())
	l.c.peek(slices.Collect(maps.Values(all)))
}

// mayPeek tells that the ledger answers, as far as is known.
func (c *Coordinator) mayPeek() bool {
	return c.ledger != nil && time.Since(c.origin) >= time.Duration(c.quiet.Load()) && c.ledger.Status().Up
}

// looks are the limits of a lane that are to be peeked at: no more than mostPeeked, if
// it has many keys. Those of a pool are shown whether they were used or not.
func (l *lane) looks() (all []look) {
	if slices.ContainsFunc(l.limits, func(d provider.Limit) bool { return d.Scope == provider.ScopeKey && l.c.settings.Shares(d) }) {
		for _, alias := range l.keys {
			if l.parts[partKey{key: alias}] == nil {
				l.route("", alias)
			}
		}
	}
	l.eachShared(func(g *limitGate) {
		if k, ok := g.look(); ok && len(all) < mostPeeked {
			all = append(all, k)
		}
	})
	return all
}

// look tells that a gate is to be peeked at.
func (g *limitGate) look() (look, bool) {
	x, l := g.shared, g.l
	if l.apart || !x.untold() {
		return look{}, false
	}
	k := look{g: g, x: x, counter: x.counter}
	if x.seen != nil {
		k.at = x.seen.at
	}
	return k, k.at == 0 || l.now.Mono-k.at >= l.c.settings.Beat
}

// peek asks the ledger, outside every lock and within its budget: what was never seen
// first. Where it fails, nobody asks again for a beat.
func (c *Coordinator) peek(all []look) {
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b look) int { return cmp.Compare(a.at, b.at) })
	ctx, cancel := context.WithTimeout(context.Background(), c.settings.Budget)
	defer cancel()
	for some := range slices.Chunk(all, mostPeeked) {
		counters := make([]*ledger.Counter, len(some))
		for i, k := range some {
			counters[i] = k.counter
		}
		usages, err := c.ledger.Peek(ctx, counters)
		if err != nil || len(usages) != len(some) {
			c.quiet.Store(int64(time.Since(c.origin) + c.settings.Beat))
			return
		}
		take(some, usages)
	}
}

// take puts what a Peek said into the gates, lane by lane.
func take(some []look, usages []ledger.Usage) {
	for len(some) > 0 {
		l := some[0].g.l
		l.lock()
		n := 0
		for ; n < len(some) && some[n].g.l == l; n++ {
			some[n].see(&usages[n])
		}
		l.tell(l.unlock())
		some, usages = some[n:], usages[n:]
	}
}

// see puts it into the gate, unless something newer is known there: the answer to a
// Take, another limit, the loss of the ledger.
func (k *look) see(u *ledger.Usage) {
	g, x, l := k.g, k.x, k.g.l
	if l.apart || g.shared != x || x.counter != k.counter || !x.untold() {
		return
	}
	most, gone, mine := g.rule.Heaviest(), u.Used, g.usage()
	if !g.rule.Sent() {
		gone += u.Held // used already where calls count as they are sent
	}
	room := most - gone
	if u.Max > 0 {
		room = min(most, u.Max) - gone
	}
	room = max(room, 0)
	s := &seen{at: l.now.Mono}
	s.rest = max(0, most-mine.Used-mine.Held-room)
	s.used = min(s.rest, max(0, u.Used-mine.Used))
	s.rest -= s.used
	if !u.ResetAt.IsZero() {
		s.back = l.mono(u.ResetAt)
	}
	if !u.NotBefore.IsZero() {
		s.closed = l.mono(u.NotBefore)
	}
	if s.closed > l.now.Mono {
		room = 0
	}
	x.room, x.roomAt, x.seen = room, l.now.Mono, s
	l.q.Touch(&g.Gate)
}

// resets is when units come back, where those of this process do at an instant (not
// above now: none is out).
func (x *shared) resets(at, now time.Duration) time.Duration {
	if s := x.seen; s != nil {
		if at <= now {
			at = s.back
		}
		at = max(at, s.closed)
	}
	return max(at, x.before)
}

// likeSeen has a shadow's gate count what was seen to be gone elsewhere. Of a window all
// of it is taken to come back with the first, so that a forecast stays a lower bound. Of
// a cap nothing counts: what others hold may come back any time.
func (g *limitGate) likeSeen(x *shared) {
	s, at := x.seen, x.roomAt
	g.notBefore = max(g.notBefore, s.closed)
	switch {
	case g.d.Algorithm == provider.TokenBucket: // a part of the next one is there already
		at = s.back - g.rule.Window()/time.Duration(g.d.Max)
	case !g.rule.Aligned():
		at = s.back - g.rule.Window() - 1
	}
	g.gone(at, s.used)
	g.gone(x.roomAt, s.rest)
}

// gone has n more units count from an instant on.
func (g *limitGate) gone(at time.Duration, n int64) {
	then := g.l.then(at)
	g.rule.Correct(then, then, n)
}
