package coordinator

import (
	"slices"
	"time"

	"github.com/headgate/headgate/breaker"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/queue"
)

// shadow is a copy of a lane that is played forward by its own clock, with the
// decision's own code: what it lets go is what the lane will. It is told no answer
// but ok, a round trip after a call went.
type shadow struct {
	*lane
	trip time.Duration
	out  []due // calls that are out, in order of their ends
}

// due is the end of a call.
type due struct {
	at time.Duration
	ls *Lease
}

// shadow copies what decides: gates, who waits, what is out. It needs the lane's
// lock; the shadow does not.
func (l *lane) shadow(trip time.Duration) *shadow {
	s := &shadow{trip: trip, lane: &lane{
		c: &Coordinator{origin: l.c.origin}, slug: l.slug, endpoints: l.endpoints,
		wallTime: l.wall(), wallAt: l.now.Mono, now: l.now, p: l.p, t: l.t, b: l.b, limits: l.limits, fresh: l.fresh, base: l.base,
		counts: counts{admitted: make([]int64, len(l.endpoints))}, general: make([]*limitGate, len(l.general)), parts: make(map[partKey]*part), routes: make(map[routeKey]*route),
		trips: l.trips, least: l.least, skew: l.skew, keys: l.keys, turn: l.turn, aligned: l.aligned, guessed: l.guessed, timerAt: queue.Never,
	}}
	s.door.l = s.lane
	s.door.Init(&s.door, false)
	s.pause.init(s.lane, provider.ScopeProvider, "")
	s.pause.like(&l.pause)
	for _, g := range l.pools { // what other lanes hold they hold
		s.pools = append(s.pools, newPoolGate(s.lane, &pool{name: g.p.name, size: g.p.size, used: g.p.used}))
	}
	s.likeLimits(s.general, l.general)
	s.copyParts(l, routeKey{}) // what counts by key or endpoint counts those without as one
	s.plain = s.newRoute(routeKey{})
	leases := s.copyOut(l)
	s.copyLater(l, leases)
	s.copyTrials(l, leases)
	s.copyBreaker(l, leases)
	s.copyWaiting(l)
	return s
}

// like takes over what is known of a scope; trials follow when the leases are there.
func (p *pauseGate) like(x *pauseGate) {
	p.on, p.until, p.began, p.why, p.detail = x.on, x.until, x.began, x.why, x.detail
	p.floor, p.refused, p.pace, p.told, p.unsettled = x.floor, x.refused, x.pace, x.told, x.unsettled
	p.unauthorized, p.warm, p.last = x.unauthorized, x.warm, x.last
}

func (l *lane) likeLimits(to, from []*limitGate) {
	for i, g := range from {
		if g != nil {
			to[i] = l.likeLimit(g)
		}
	}
}

// likeLimit is a gate with the same history.
func (l *lane) likeLimit(x *limitGate) *limitGate {
	g := &limitGate{l: l, rule: x.rule.Clone(), d: x.d, endpoint: x.endpoint, key: x.key, notBefore: x.notBefore, spentAt: x.spentAt, trial: x.trial,
		told: x.told, skew: x.skew, declared: x.declared, learned: x.learned, maxUntil: x.maxUntil}
	if x.shared != nil {
		g.notBefore = max(g.notBefore, x.shared.before) // what others will take nobody knows
		l.likeShared(g, x)
	}
	g.Init(g, g.answers())
	return g
}

// likeShared has no more go than the ledger last said is left, until the window is over
// in which it said so.
func (l *lane) likeShared(g, x *limitGate) {
	if x.shared.seen != nil {
		g.likeSeen(x.shared)
		return
	}
	now := l.now.Mono
	until := g.over(x.shared.roomAt)
	if g.caps() || x.shared.room <= 0 || until <= now || g.told.until > now && g.told.rest(g.rule.Held()) <= x.shared.room {
		return
	}
	g.told = told{went: g.told.went, mute: g.told.mute, most: g.told.went + x.shared.room, until: until}
}

// routeLike is the route of the same calls, with what l knows of their parts.
func (s *shadow) routeLike(l *lane, id routeKey) *route {
	if id == (routeKey{}) {
		return s.plain
	}
	if r := s.routes[id]; r != nil {
		return r
	}
	s.copyParts(l, id)
	r := s.newRoute(id)
	s.routes[id] = r
	return r
}

// copyParts takes over what l knows of the parts of a route.
func (s *shadow) copyParts(l *lane, id routeKey) {
	for _, part := range []partKey{{endpoint: id.endpoint}, {key: id.key}, {id.endpoint, id.key}} {
		x := l.parts[part]
		if x == nil && l.asleep[part] != nil {
			l.route(part.endpoint, part.key) // wakes it
			x = l.parts[part]
		}
		if x == nil || s.parts[part] != nil {
			continue
		}
		pt := s.partOf(new(route), part)
		if x.pause != nil {
			pt.pause.like(x.pause)
		}
		s.likeLimits(pt.limits, x.limits)
	}
}

// copyOut takes over the calls that are out: they end a round trip after they went,
// or now.
func (s *shadow) copyOut(l *lane) map[*Lease]*Lease {
	leases := make(map[*Lease]*Lease)
	for i, x := range l.out {
		ls := s.copyLease(l, x)
		leases[x] = ls
		ls.route.goes(1)
		ls.at = int32(i)
		s.lane.out = append(s.lane.out, ls)
		s.out = append(s.out, due{max(x.granted+s.trip, s.now.Mono), ls})
	}
	slices.SortStableFunc(s.out, func(a, b due) int { return int(a.at - b.at) })
	return leases
}

func (s *shadow) copyLease(l *lane, x *Lease) *Lease {
	r := s.routeLike(l, x.route.routeKey)
	ls := &Lease{terms: terms{l: s.lane, route: r, wait: queue.Waiter{Cost: l.onRoute(r, x, x.wait.Cost)},
		granted: x.granted, sent: x.sent, settled: x.settled, state: x.state, early: x.early, all: x.all, f: x.f}}
	if x.rare != nil {
		ls.rare = &rare{arrived: x.rare.arrived, used: l.onRoute(r, x, x.rare.used)}
	}
	return ls
}

// onRoute is a lease's units by gate of r, the copy of its route as it is now: the
// lease may have gone before an Update. What no gate counts any more is left out.
func (l *lane) onRoute(r *route, x *Lease, units []int64) []int64 {
	if units == nil {
		return nil
	}
	now := make([]int64, len(r.Gates))
	copy(now[:r.skip], units) // endpoints, keys and pools stay as they are
	for i, g := range x.route.limits {
		for j, like := range r.limits {
			if like.d.Name == g.d.Name && l.inForce(x.route, g) {
				now[r.skip+j] = units[x.route.skip+i]
			}
		}
	}
	return now
}

// inForce tells that calls of a route are counted by g still.
func (l *lane) inForce(r *route, g *limitGate) bool {
	if slices.Contains(l.general, g) {
		return true
	}
	return slices.ContainsFunc(r.parts, func(pt *part) bool { return l.parts[pt.id] == pt && slices.Contains(pt.limits, g) })
}

func (s *shadow) copyLater(l *lane, leases map[*Lease]*Lease) {
	for _, x := range l.later {
		ls := leases[x.ls]
		if ls == nil {
			ls = s.copyLease(l, x.ls) // it has ended; its units are held still
		}
		s.settleLater(&later{at: x.at, ls: ls, early: x.early})
	}
}

// copyTrials puts copies of leases in the place of those that gates know.
func (s *shadow) copyTrials(l *lane, leases map[*Lease]*Lease) {
	s.pause.trial = leases[l.pause.trial]
	for id, pt := range s.parts {
		if x := l.parts[id]; pt.pause != nil && x != nil {
			pt.pause.trial = leases[x.pause.trial]
		}
	}
}

// copyBreaker says what an open breaker means as a pause does: nothing before an
// instant, then one alone, whose answer is ok.
func (s *shadow) copyBreaker(l *lane, leases map[*Lease]*Lease) {
	state, until := l.breaker.State(l.clock())
	if l.breaker == nil || state == breaker.Closed {
		return
	}
	if s.pause.on = true; state == breaker.Open {
		s.pause.until, s.pause.trial = max(s.pause.until, l.mono(until)+1), nil // at that instant itself it is open still
	}
	for x, ls := range leases {
		if x.token.Probe() {
			s.pause.trial = ls
		}
	}
}

func (s *shadow) copyWaiting(l *lane) {
	for _, x := range l.waiters() {
		ls := &Lease{terms: terms{l: s.lane, route: s.routeLike(l, x.route.routeKey), flow: x.flow, priority: x.priority,
			wait: queue.Waiter{Cost: x.wait.Cost, Deadline: x.wait.Deadline}}}
		ls.wait.Keep(x.wait.Place())
		for _, o := range x.options() {
			ls.rarely().options = append(ls.rarely().options, &option{route: s.routeLike(l, o.route.routeKey), Waiter: queue.Waiter{Cost: o.Cost}})
		}
		s.line(ls)
	}
}
