package coordinator

import (
	"math"
	"slices"
	"time"

	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/queue"
)

// routeKey names the calls that need the same gates.
type routeKey struct{ endpoint, key string }

// route is what a call needs: the gates of its provider, endpoint and key. The
// first of its gates is the breaker's, then come the pauses, the pools, the limits.
type route struct {
	// What each call looks at comes first, and is near.
	cost    []int64 // of a call that names no cost, by gate
	pauses  []*pauseGate
	limits  []*limitGate
	shared  []int         // those of limits that are kept in the ledger
	parts   []*part       // the keys and endpoints that it counts in
	keyed   *pauseGate    // of the key, where there is one, else the provider's
	place   int           // of its endpoint in the declaration, from 1; 0: none
	pool    int           // number of gates before the pools
	skip    int           // and before the limits
	out     int           // calls that are out
	wait    int           // calls that wait
	used    time.Duration // last asked for
	section uint64        // in which that was: who asked may still mean to go by it

	// Where the slices begin: a usual route is one piece.
	cost1   [8]int64
	pauses1 [3]*pauseGate
	limits1 [4]*limitGate
	parts1  [2]*part
	gates1  [8]*queue.Gate

	queue.Route
	routeKey
	rest time.Duration // how long it is kept unused, at least
}

// keepUnused is how long a key without limits of its own is remembered: not to be
// made again for each call.
const keepUnused = time.Minute

// partKey names a scope smaller than the provider: one of the two may be empty.
type partKey struct{ endpoint, key string }

// part is the state of one key, one endpoint, or both: it sleeps when nobody uses it
// (see asleep.go), and is forgotten when idle.
type part struct {
	id     partKey
	pause  *pauseGate    // nil where both are named
	limits []*limitGate  // by limit; nil: none of its routes needs it
	used   time.Duration // last asked for, by a route that was dropped
	refs   int           // routes
	out    int           // calls that are out
	wait   int           // calls that wait
}

// counts tells that a limit is of its scope.
func (pt *part) counts() bool {
	return slices.ContainsFunc(pt.limits, func(g *limitGate) bool { return g != nil })
}

func (r *route) goes(n int) {
	r.out += n
	for _, pt := range r.parts {
		pt.out += n
	}
}

func (r *route) waits(n int) {
	r.wait += n
	for _, pt := range r.parts {
		pt.wait += n
	}
}

// route returns the route of an endpoint and a key, made at first use. Two idle
// ones are looked at and forgotten with each that is asked for.
func (l *lane) route(endpoint, key string) *route {
	if len(l.keyed) > 0 {
		l.forgetIdle()
	}
	if len(l.naps) > 0 {
		l.forgetSleepers()
	}
	if endpoint == "" && key == "" {
		return l.plain
	}
	id := routeKey{endpoint, key}
	r := l.routes[id]
	if r == nil {
		r = l.newRoute(id)
		r.rest = keepUnused
		for _, pt := range r.parts {
			if pt.counts() {
				r.rest = 0 // until its longest window is over
			}
		}
		if slices.Contains(l.keys, key) {
			r.rest = keepUnused // a call has the routes of all keys before it goes by one
		}
		l.routes[id] = r
		if key != "" || len(l.endpoints) == 0 {
			l.keyed = append(l.keyed, r)
		}
	}
	r.used, r.section = l.now.Mono, l.section
	return r
}

func (l *lane) newRoute(id routeKey) *route {
	r := &l.route1
	if id != (routeKey{}) || r.Gates != nil {
		r = new(route)
	}
	r.routeKey, r.place = id, l.place(id.endpoint)
	r.pauses, r.limits, r.parts = append(r.pauses1[:0], &l.pause), r.limits1[:0], r.parts1[:0]
	if id.endpoint != "" {
		r.pauses = append(r.pauses, l.partOf(r, partKey{endpoint: id.endpoint}).pause)
	}
	if id.key != "" {
		r.pauses = append(r.pauses, l.partOf(r, partKey{key: id.key}).pause)
	}
	instead := slices.ContainsFunc(l.limits, func(d provider.Limit) bool {
		return d.Instead && slices.Contains(d.Endpoints, id.endpoint)
	})
	for i := range l.limits {
		d := &l.limits[i]
		if len(d.Endpoints) == 0 && instead && !l.isBad(d) || len(d.Endpoints) > 0 && !slices.Contains(d.Endpoints, id.endpoint) {
			continue
		}
		g := l.gateOf(r, i)
		if g.shared != nil {
			r.shared = append(r.shared, len(r.limits))
		}
		r.limits = append(r.limits, g)
	}
	r.keyed = r.pauseOf(provider.ScopeKey)
	r.pool = 1 + len(r.pauses)
	r.skip = r.pool + len(l.pools)
	r.Gates = append(r.gates1[:0], &l.door.Gate)
	for _, p := range r.pauses {
		r.Gates = append(r.Gates, &p.Gate)
	}
	for _, g := range l.pools {
		r.Gates = append(r.Gates, &g.Gate)
	}
	for _, g := range r.limits {
		r.Gates = append(r.Gates, &g.Gate)
	}
	r.cost = l.costOf(r, nil, r.cost1[:0])
	return r
}

// isBad tells that d is the budget of bad answers: it binds every call.
func (l *lane) isBad(d *provider.Limit) bool {
	return l.t.BadAnswers != nil && l.t.BadAnswers.Name == d.Name
}

// gateOf returns the gate of a limit for a route, by the limit's scope.
func (l *lane) gateOf(r *route, i int) *limitGate {
	limits, d, id := l.general, &l.limits[i], partKey{}
	switch d.Scope {
	case provider.ScopeKey:
		id.key = r.key
	case provider.ScopeEndpoint:
		id.endpoint = r.endpoint
	case provider.ScopeKeyEndpoint:
		id = partKey{r.endpoint, r.key}
	}
	if d.Scope != provider.ScopeProvider {
		limits = l.partOf(r, id).limits
	}
	g := limits[i]
	if g == nil {
		if d.Scope == provider.ScopeProvider && i < len(l.near) && l.near[i].l == nil {
			g = &l.near[i].limitGate
			l.initLimitGate(g, d, id, l.freshRule(d, "").FreshIn(&l.near[i].room))
		} else {
			g = l.newLimitGate(d, id, nil)
		}
		limits[i] = g
	}
	return g
}

func (l *lane) partOf(r *route, id partKey) *part {
	pt := l.parts[id]
	if pt == nil {
		pt = &part{id: id, limits: make([]*limitGate, len(l.limits))}
		switch {
		case id.key == "":
			pt.pause = new(pauseGate)
			pt.pause.init(l, provider.ScopeEndpoint, id.endpoint)
		case id.endpoint == "":
			pt.pause = new(pauseGate)
			pt.pause.init(l, provider.ScopeKey, id.key)
		}
		l.rouse(pt)
		l.parts[id] = pt
	}
	if !slices.Contains(r.parts, pt) {
		r.parts = append(r.parts, pt)
		pt.refs++
	}
	return pt
}

// forgetIdle looks at two routes and drops those that nobody would miss.
func (l *lane) forgetIdle() {
	for range min(2, len(l.keyed)) {
		l.sweep %= len(l.keyed)
		if r := l.keyed[l.sweep]; !l.mayDrop(r) {
			l.sweep++
			continue
		}
		l.drop(l.keyed[l.sweep])
		last := len(l.keyed) - 1
		l.keyed[l.sweep] = l.keyed[last]
		l.keyed[last] = nil
		l.keyed = l.keyed[:last]
		if last == 0 {
			l.keyed = nil
			return
		}
	}
}

func (l *lane) drop(r *route) {
	delete(l.routes, r.routeKey)
	for _, pt := range r.parts {
		if pt.refs--; pt.refs == 0 {
			delete(l.parts, pt.id)
			l.sleep(pt)
		}
		pt.used = max(pt.used, r.used)
	}
}

// opens is a lower bound on the instant at which a call could go that comes behind
// ahead, and the gate which says so. It costs O(gates).
func (l *lane) opens(r *route, cost, ahead []int64) (at time.Duration, by *queue.Gate) {
	at = l.now.Mono
	for i, g := range r.Gates[:r.skip] {
		if cost[i] == 0 {
			continue
		}
		if t := l.aheadLook(i, r); t > at && t != queue.Never {
			at, by = t, g
		}
	}
	for i, g := range r.limits {
		n := cost[r.skip+i]
		if n == 0 {
			continue
		}
		if t := g.soonest(l.now.Mono, n, g.sooner()); t > at && t != queue.Never {
			at, by = t, &g.Gate
		}
		if ahead == nil || g.d.Unit != provider.Requests || len(g.d.Charges) > 0 {
			continue // what those ahead take may come back
		}
		if g.key != "" && l.extra > 0 {
			continue // those ahead may go with another key
		}
		if sum := ahead[r.skip+i]; sum > 0 && sum < math.MaxInt64-n {
			if g.d.Algorithm == provider.LeakyBucket {
				n = 1 // a heavy call goes at once and keeps its distance afterwards
			}
			if t := g.rule.When(l.now, sum+n); t != queue.Never && t-g.sooner() > at {
				at, by = t-g.sooner(), &g.Gate
			}
		}
	}
	return at, by
}

// aheadLook is what the i-th gate before the limits says.
func (l *lane) aheadLook(i int, r *route) time.Duration {
	if i == 0 || i >= r.pool {
		return l.now.Mono // a probe's answer may come any time, and anybody's at a pool
	}
	p := r.pauses[i-1]
	at := p.told.surely(l.now.Mono, 1, p.unsettled)
	if p.on && p.until > at {
		at = p.until // not the trial's time-out: its answer may come any time
	}
	return at
}
