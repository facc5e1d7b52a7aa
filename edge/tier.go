package edge

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/provider"
)

// ParseTiers reads tiers from YAML in the form of [provider.ParseOverrides], in
// which a tier stands where a provider does:
//
//	providers:
//	  free: {throttle: {rpm: 60, burst: 10, algorithm: token_bucket}}
//	  pro:
//	    throttle:
//	      rpm: 600
//	      max_wait: 2s
//	      limits: [{name: search, max: 10, per: 1s, endpoints: [search]}]
//
// as strictly as that: unknown keys, wrong types and what is written twice are
// errors with line and column. routes are those that limits may name.
func ParseTiers(yaml []byte, routes []provider.Endpoint) (map[string]provider.Throttle, error) {
	o, err := provider.ParseOverrides(yaml)
	if err != nil {
		return nil, fmt.Errorf("edge: tiers: %w", err)
	}
	var faults []error
	tiers := make(map[string]provider.Throttle)
	for _, name := range o.Slugs() {
		p, err := o.Apply(provider.Provider{Slug: name, Endpoints: routes})
		if err != nil {
			faults = append(faults, fmt.Errorf("edge: tiers: %w", err))
		}
		tiers[name] = p.Throttle
	}
	return tiers, errors.Join(faults...)
}

// plan is what the tiers and the service declare, as the limits of one lane: a
// request is a call to the endpoint "tier/route" under the client's key, so that
// all that binds it is asked and taken at one instant.
type plan struct {
	lane   provider.Provider
	visits map[visit]*passage
	routes []string // with "": requests of no route
	tiers  []string
	faults []error
}

// visit is who asks for what.
type visit struct{ tier, route string }

func (v visit) endpoint() string { return v.tier + "/" + v.route }

// passage is what holds for all such visits.
type passage struct {
	endpoint string
	wait     time.Duration             // below 0: none
	own      map[string]provider.Limit // each client's own limits, by name
	policy   string                    // the field that tells them
	sized    bool                      // but for clients that have sizes of their own
}

func newPlan(cfg Config) *plan {
	p := &plan{visits: make(map[visit]*passage), tiers: slices.Sorted(maps.Keys(cfg.Tiers))}
	for _, e := range cfg.Service.Endpoints {
		p.routes = append(p.routes, e.Name)
	}
	p.routes = append(p.routes, "")
	if len(p.tiers) == 0 {
		p.tiers = []string{""}
	}
	shared := cfg.Service.Throttle
	p.lane = provider.Provider{
		Slug: cfg.Service.Slug, Name: cfg.Service.Name, Throttle: provider.Throttle{MaxQueue: shared.MaxQueue},
		Breaker: provider.Breaker{Off: true}, Retry: provider.Retry{Off: true},
	}
	for _, tier := range p.tiers {
		if len(cfg.Tiers) > 0 && (tier == "" || strings.ContainsAny(tier, "/\"\\") || strings.ContainsFunc(tier, unprintable)) {
			p.fault("tier %q: its name must be of printable ASCII, without / and quotes", tier)
		}
		for _, route := range p.routes {
			v := visit{tier, route}
			p.visits[v] = &passage{endpoint: v.endpoint(), wait: waitOf(cfg.Tiers[tier], shared), own: make(map[string]provider.Limit)}
			p.lane.Endpoints = append(p.lane.Endpoints, provider.Endpoint{Name: v.endpoint()})
		}
	}
	for _, tier := range p.tiers {
		t := cfg.Tiers[tier]
		p.meaningless("tier "+tier, t, t.MaxQueue != 0)
		p.addTier(tier, t)
	}
	p.meaningless("service", shared, false)
	p.addShared(shared)
	p.finish()
	return p
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }

func (p *plan) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Errorf("edge: "+format, args...))
}

// waitOf is how long a request may wait; not at all where nobody says.
func waitOf(tier, service provider.Throttle) time.Duration {
	switch {
	case tier.MaxWait > 0:
		return tier.MaxWait
	case service.MaxWait > 0:
		return service.MaxWait
	}
	return -1
}

// meaningless finds fields that say how we call somebody; here somebody calls us.
func (p *plan) meaningless(whose string, t provider.Throttle, queue bool) {
	for _, f := range []struct {
		key   string
		given bool
	}{
		{"excess", t.Excess != ""}, {"max_queue", queue}, {"penalty", t.Penalty != 0}, {"warmup", t.Warmup != 0},
		{"arrival_within", t.ArrivalWithin != 0}, {"least_round_trip", t.LeastRoundTrip != 0}, {"max_retry_after", t.MaxRetryAfter != 0}, {"adaptive", t.Adaptive},
		{"learn", t.Learn != ""}, {"bad_answers", t.BadAnswers != nil}, {"off", len(t.Off) > 0},
	} {
		if f.given {
			p.fault("%s: %s has no meaning for requests that come in: leave it out", whose, f.key)
		}
	}
	if t.MaxWait == provider.Forever {
		p.fault("%s: max_wait must have an end: a request that waits holds a connection", whose)
	}
}

// limitsOf writes a throttle out. A limit without a scope gets that one.
func (p *plan) limitsOf(whose string, t provider.Throttle, scope string) []provider.Limit {
	own := len(t.Limits)
	t.Limits = slices.Clone(t.Limits)
	for i, d := range t.Limits {
		if d.Scope == "" {
			t.Limits[i].Scope = scope
		}
	}
	all, err := t.Expand()
	if err != nil {
		p.fault("%s: %w", whose, err)
		return nil
	}
	var instead []string // that leave the throttle's other limits
	for i, d := range all {
		if i < len(all)-own { // of the short form
			all[i].Scope = scope
		}
		if d.Instead {
			instead = append(instead, d.Endpoints...)
		}
		p.checkLimit(whose, d)
	}
	for i, d := range all {
		if d.Algorithm != provider.InFlight {
			all[i].Counted = provider.CountedSent // a request has arrived when it is here
		}
		if len(d.Endpoints) == 0 && len(instead) > 0 {
			all[i].Endpoints = slices.DeleteFunc(slices.Clone(p.routes), func(r string) bool { return slices.Contains(instead, r) })
		}
		all[i].Instead = false
	}
	return all
}

func (p *plan) checkLimit(whose string, d provider.Limit) {
	if d.Unit != provider.Requests {
		p.fault("%s: limit %q: unit %s: only requests are counted here", whose, d.Name, d.Unit)
	}
	if len(d.Charges) > 0 {
		p.fault("%s: limit %q: charges has no meaning for requests that come in: leave it out", whose, d.Name)
	}
	for _, e := range d.Endpoints {
		if !slices.Contains(p.routes, e) {
			p.fault("%s: limit %q: there is no route %q: it must be an endpoint of the service", whose, d.Name, e)
		}
	}
}

// addTier adds the limits of a tier: of each client apart, where they do not say
// otherwise.
func (p *plan) addTier(tier string, t provider.Throttle) {
	for _, d := range p.limitsOf("tier "+tier, t, provider.ScopeKey) {
		routes := d.Endpoints
		if len(routes) == 0 {
			routes = p.routes
		}
		d.Name = tier + "/" + d.Name
		p.add(d, []string{tier}, routes)
	}
}

// addShared adds the limits that all tiers share. One of each route counts it in all
// tiers together, so it becomes one limit a route.
func (p *plan) addShared(t provider.Throttle) {
	for _, d := range p.limitsOf("service", t, provider.ScopeProvider) {
		routes := d.Endpoints
		if len(routes) == 0 {
			routes = p.routes
		}
		scope, each := d.Scope, false
		switch d.Scope {
		case provider.ScopeEndpoint:
			scope, each = provider.ScopeProvider, true
		case provider.ScopeKeyEndpoint:
			scope, each = provider.ScopeKey, true
		}
		d.Scope = scope
		if !each {
			p.add(d, p.tiers, routes)
			continue
		}
		name := d.Name
		for _, r := range routes {
			d.Name = name + "@" + r
			p.add(d, p.tiers, []string{r})
		}
	}
}

// add puts a limit into the lane, for these tiers on these routes.
func (p *plan) add(d provider.Limit, tiers, routes []string) {
	d.Endpoints = nil
	for _, tier := range tiers {
		for _, route := range routes {
			v := visit{tier, route}
			pass := p.visits[v]
			if pass == nil {
				continue // of no route that there is: told already
			}
			d.Endpoints = append(d.Endpoints, v.endpoint())
			if d.Scope == provider.ScopeKey || d.Scope == provider.ScopeKeyEndpoint {
				pass.own[d.Name] = d
			}
		}
	}
	if len(d.Endpoints) == len(p.visits) && d.Scope != provider.ScopeEndpoint {
		d.Endpoints = nil // all
	}
	if len(tiers)*len(routes) > 0 {
		p.lane.Throttle.Limits = append(p.lane.Throttle.Limits, d)
	}
}

// finish writes the policies, which stay the same as long as the plan does.
func (p *plan) finish() {
	for _, pass := range p.visits {
		var all []standing
		for _, d := range p.lane.Throttle.Limits {
			if _, own := pass.own[d.Name]; !own {
				continue
			}
			l := standing{name: d.Name, unit: d.Unit, max: d.Max}
			l.window, _ = d.Per.Duration()
			all = append(all, l)
			pass.sized = pass.sized || len(d.Keys) > 0
		}
		pass.policy = policyOf(all)
	}
}
