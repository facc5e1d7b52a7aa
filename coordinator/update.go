package coordinator

import (
	"fmt"
	"slices"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// Update puts another throttle in force, live: limits are matched by name and
// scope, and keep their history; waiters stay in their order; a lowered limit
// counts at once; pauses for unauthorized answers end. An invalid throttle changes
// nothing.
func (c *Coordinator) Update(slug string, t provider.Throttle) error {
	l, unknown := c.lane(slug)
	if unknown != nil {
		return unknown
	}
	l.lock()
	p := l.p.WithThrottle(t)
	err := p.Validate()
	if err == nil {
		err = l.declare(t)
	}
	if err == nil {
		l.eachPause(func(p *pauseGate) {
			p.unauthorized = 0
			if p.why == provider.Unauthorized {
				p.open()
			}
		})
	}
	l.tell(l.unlock())
	if err != nil {
		return fmt.Errorf("coordinator: update of %q: %w", slug, err)
	}
	return nil
}

// Pause lets nothing go to a provider before an instant; why is shown. A pause is
// only ever extended, except by Resume.
func (c *Coordinator) Pause(slug string, until time.Time, why string) error {
	l, unknown := c.lane(slug)
	if unknown != nil {
		return unknown
	}
	l.lock()
	at := l.told(until)
	if at <= l.now.Mono {
		l.tell(l.unlock())
		return fmt.Errorf("coordinator: pause of %q: until %s is not in the future", slug, until.Format(time.RFC3339))
	}
	l.pause.began = l.now.Mono
	l.pause.extend(at, provider.Outcome(why), why)
	l.tell(l.unlock())
	return nil
}

// Resume ends every pause of a provider, of its endpoints and of its keys, and
// forgets what its answers said of limits: a not-before, what is left, their size.
func (c *Coordinator) Resume(slug string) error {
	l, unknown := c.lane(slug)
	if unknown != nil {
		return unknown
	}
	l.lock()
	l.owe(owed{news: &ledger.News{Resume: &ledger.Pause{Provider: l.slug}}}) // those that this process does not know, too
	l.eachPause(func(p *pauseGate) {
		p.unauthorized, p.floor, p.told.until, p.pace.rate, p.there = 0, 0, 0, 0, 0
		p.open()
		l.q.Touch(&p.Gate)
	})
	l.eachLimit(func(g *limitGate) {
		g.notBefore, g.trial, g.told.until = 0, 0, 0
		if g.learned != 0 {
			g.resize(g.d.Max)
		}
		if g.shared != nil {
			g.shared.before, g.shared.learnt = 0, ledger.Learnt{}
			g.shared.outdated()
			l.owe(owed{news: &ledger.News{Learn: &ledger.Learnt{Counter: g.shared.counter}}}) // what others have told, too
		}
		l.q.Touch(&g.Gate)
	})
	l.tell(l.unlock())
	return nil
}

func (l *lane) eachPause(f func(*pauseGate)) {
	f(&l.pause)
	for _, pt := range l.parts {
		if pt.pause != nil {
			f(pt.pause)
		}
	}
}

func (l *lane) eachLimit(f func(*limitGate)) {
	each := func(gates []*limitGate) {
		for _, g := range gates {
			if g != nil {
				f(g)
			}
		}
	}
	each(l.general)
	for _, pt := range l.parts {
		each(pt.limits)
	}
}

// renew makes gates and routes of l.limits, of what is there already as far as it
// goes, and has all who wait wait there. declare has tried every limit.
func (l *lane) renew(before []provider.Limit) {
	waiters := l.waiters()
	for _, ls := range waiters {
		l.unline(ls, nil)
	}
	l.renewSleepers(before)
	l.general = l.renewLimits(l.general)
	old := l.parts
	l.parts, l.routes, l.keyed = make(map[partKey]*part), make(map[routeKey]*route), nil
	for id, pt := range old {
		pt.limits, pt.refs = l.renewLimits(pt.limits), 0
		l.parts[id] = pt
	}
	l.plain = l.newRoute(routeKey{})
	for id := range old { // keeps what is known of keys and endpoints until it is idle
		l.route(id.endpoint, id.key)
	}
	for id, pt := range l.parts {
		if pt.refs+pt.out == 0 && !pt.counts() {
			delete(l.parts, id) // no limit is of such a scope any more
		}
	}
	for _, ls := range waiters {
		l.reenter(ls)
	}
}

// renewLimits puts new numbers into the gates that stay and drops the others: calls
// in flight settle them still, and nobody asks them any more.
func (l *lane) renewLimits(gates []*limitGate) []*limitGate {
	kept := make([]*limitGate, len(l.limits))
	for i := range l.limits {
		all := &l.limits[i]
		was := slices.IndexFunc(gates, func(g *limitGate) bool {
			return g != nil && g.d.Name == all.Name && g.d.Scope == all.Scope && binds(all, g.endpoint)
		})
		if was < 0 {
			continue
		}
		g, d := gates[was], ofKey(all, gates[was].key)
		learned := g.learned
		if !sameNumbers(g.d, d) { // what answers said was of others
			g.notBefore, g.trial, learned = 0, 0, 0
			g.told = told{went: g.told.went, mute: g.told.mute}
		}
		g.rule, _ = limit.Replace(g.rule, *d, l.now)
		g.declare(d, l.freshRule(all, g.key).Heaviest())
		g.learned, g.skew = 0, unknownSkew
		g.share()
		if learned != 0 {
			g.resize(learned)
		}
		kept[i] = g
	}
	return kept
}

// binds tells that a limit is still one of what counts for an endpoint; "": for all.
func binds(d *provider.Limit, endpoint string) bool {
	return endpoint == "" || len(d.Endpoints) == 0 || slices.Contains(d.Endpoints, endpoint)
}

func sameNumbers(a, b *provider.Limit) bool {
	return a.Max == b.Max && a.Per == b.Per && a.Zone == b.Zone && a.Anchor == b.Anchor && a.Burst == b.Burst
}

// reenter puts a call that has waited back into the queue, on its route as it is
// now.
func (l *lane) reenter(ls *Lease) {
	endpoint := ls.route.endpoint
	ls.route = l.route(endpoint, ls.route.key)
	ls.wait.Cost = l.costFor(ls, ls.route)
	heavy, cost := ls.route.tooHeavy(ls.wait.Cost), ls.wait.Cost
	if len(l.keys) > 0 && ls.route.key == "" {
		x := ls.rarely()
		if x.options, heavy = l.options(ls, endpoint); len(x.options) > 0 {
			heavy, cost = nil, x.options[0].Cost
		}
	}
	var e *Error
	switch {
	case l.off && !l.t.Switched(endpoint):
		e = l.refusal(ls, ReasonInvalid, switchedOff(endpoint), 0)
	case heavy != nil:
		e = l.tooHeavy(ls, heavy)
	case free(cost): // nothing is left that it could wait for
		if all := ls.options(); len(all) > 0 {
			ls.route, ls.wait.Cost, ls.rare.options = all[0].route, cost, nil
		}
		l.take(ls)
		ls.ready <- struct{}{}
		return
	default:
		l.line(ls)
		return
	}
	x := ls.rarely()
	x.options, x.refusal = nil, e
	ls.state = refused
	ls.ready <- struct{}{}
}

func free(cost []int64) bool {
	return !slices.ContainsFunc(cost, func(n int64) bool { return n != 0 })
}

// slugs lists all that can be called, sorted.
func (c *Coordinator) slugs() (all []string) {
	for _, r := range []*registry.Registry{c.registry, &c.mine} {
		for e := range r.All() {
			all = append(all, e.Provider.Slug)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
