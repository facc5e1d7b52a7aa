package soak

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/provider"
)

var algorithms = []provider.Algorithm{provider.SlidingWindow, provider.TokenBucket, provider.GCRA, provider.LeakyBucket, provider.FixedWindow, provider.SlidingWindowCounter}

func (w *world) newSite(slug string) *site {
	s := &site{dialect: w.n(len(dialects))}
	s.p = provider.Provider{
		Slug: slug, Category: pick(w.rng, "", "x", "y"),
		Endpoints: []provider.Endpoint{
			{Name: "a", Path: "/a/{value}", Kinds: []provider.Kind{provider.IP}, Replayable: true},
			{Name: "b", Path: "/b/{value}", Kinds: []provider.Kind{provider.Domain}, Cost: map[string]int64{provider.Requests: 2}},
			{Name: "c", Path: "/c/{value}", Kinds: []provider.Kind{provider.Hash}},
		},
		Breaker: provider.Breaker{Off: w.chance(3), Failures: 1 + w.n(5), Cooldown: time.Second + w.ms(5000), Probes: 1 + w.n(3)},
		Retry:   provider.Retry{Off: w.chance(4), Attempts: 1 + w.n(5), Base: 10*time.Millisecond + w.ms(500), Budget: 0.1 + 0.9*w.rng.Float64()},
		Dialect: dialects[s.dialect],
	}
	if !w.patient && w.chance(2) {
		s.p.Timeout = 300*time.Millisecond + w.ms(3000)
	}
	if keys := w.n(4); keys > 0 {
		s.p.Auth = provider.Auth{Kind: "header", Name: "X-Api-Key", Env: []string{"k", "l", "m"}[:keys]}
	}
	s.p.Throttle = w.policy(provider.Throttle{Limits: w.limits()})
	s.apart = map[string]bool{}
	for _, l := range s.p.Throttle.Limits {
		if l.Unit == provider.Tokens {
			s.p.Endpoints[1].Cost[l.Unit] = 3
		}
		for _, e := range l.Endpoints {
			s.apart[e] = s.apart[e] || l.Instead
		}
	}
	if w.chance(2) {
		s.elastic = w.newElastic(&s.p)
	}
	return s
}

// limits draws what a provider declares.
func (w *world) limits() []provider.Limit {
	scopes := []string{provider.ScopeProvider, provider.ScopeKey, provider.ScopeEndpoint, provider.ScopeKeyEndpoint}
	var all []provider.Limit
	for i := range w.n(4) {
		l := provider.Limit{Name: fmt.Sprint("l", i), Max: int64(4 + w.n(20)), Per: provider.Period(fmt.Sprint(200+w.n(3000), "ms")),
			Scope: pick(w.rng, scopes...), Algorithm: pick(w.rng, algorithms...)}
		switch w.n(9) {
		case 0:
			l.Unit, l.Max = provider.Tokens, int64(20+w.n(100))
		case 1:
			l.Endpoints = []string{"a"}
		case 2:
			l.Charges = []provider.Outcome{provider.OK}
		case 3:
			l.Counted = provider.CountedSent
		case 4:
			l.Algorithm, l.Per, l.Max = "", pick(w.rng, provider.Minute, provider.Hour), 50*l.Max
			l.Zone = pick(w.rng, "", "Asia/Kathmandu", "America/New_York")
		case 5:
			l.Scope, l.Keys = provider.ScopeKey, map[string]int64{"k": min(l.Max, max(3, l.Max/2))} // which the referee does not know: so only less
		case 6:
			l.Endpoints, l.Instead = []string{"c"}, true
		}
		all = append(all, l)
	}
	if w.chance(2) {
		all = append(all, provider.Limit{Name: "cap", Max: int64(2 + w.n(6)), Algorithm: provider.InFlight, Scope: pick(w.rng, scopes...)})
	}
	return all
}

// policy draws what is ours: it may change at any time, both ways.
func (w *world) policy(th provider.Throttle) provider.Throttle {
	th.Excess = pick(w.rng, "", "", provider.Queue, provider.Delay, provider.Reject)
	th.MaxQueue = pick(w.rng, 0, 3, 50, 10_000)
	th.MaxWait = pick(w.rng, 0, 500*time.Millisecond, 10*time.Second, provider.Forever)
	th.Penalty = 20*time.Millisecond + w.ms(500)
	th.Warmup = pick(w.rng, 0, 0, w.ms(3000))
	th.Adaptive = w.chance(5)
	th.Learn = pick(w.rng, "", provider.LearnRaise)
	th.MaxRetryAfter = pick(w.rng, 0, 0, 2*time.Second)
	if th.BadAnswers = nil; w.chance(5) {
		th.BadAnswers = &provider.Limit{Max: 5, Per: "3s"}
	}
	if w.chance(4) {
		th.Limits = append(th.Limits, provider.Limit{Name: "ours", Max: int64(4 + w.n(10)), Per: provider.Period(fmt.Sprint(50+w.n(1000), "ms")),
			Algorithm: pick(w.rng, algorithms...), Basis: provider.BasisPacing})
	}
	return th
}

// plan is another throttle for a site, live: policy of any kind, but of what the
// referee enforces no more than that, and none of it left out for a time, since what
// went meanwhile would not be known.
func (w *world) plan(s *site) provider.Throttle {
	th := s.p.Clone().Throttle
	var kept []provider.Limit
	for _, l := range th.Limits {
		if l.Basis == provider.BasisPacing {
			continue
		}
		if s.elastic != nil && l.Name == s.elastic.limit.Name {
			l.Max = s.elastic.resize(w)
		} else if w.chance(4) {
			l.Max = min(l.Max, max(3, l.Max/2)) // three is what the heaviest call costs
		}
		kept = append(kept, l)
	}
	th.Limits = kept
	th = w.policy(th)
	if s.elastic != nil {
		th.Learn = "" // what the referee tells is its own, larger size
	}
	if w.chance(6) {
		th.Off = []string{pick(w.rng, "a", "b", "c")}
	}
	return th
}

// dialects are ways to say no. The first is not spoken but for the plain 429.
var dialects = []provider.Dialect{
	{},
	{},
	{Signals: []provider.Signal{{Status: []int{403}, Body: "slow down", Outcome: provider.RateLimited}}},
	{
		Signals:    []provider.Signal{{Status: []int{200}, JSON: &provider.Match{Path: "$.error.code", Equals: "over_limit"}, Outcome: provider.RateLimited}},
		RetryAfter: []provider.Source{{JSON: "$.error.wait", As: "milliseconds"}},
	},
	{
		Budgets: []provider.BudgetSource{{Name: "l0", Limit: provider.Source{Header: "X-Quota"}, Remaining: provider.Source{Header: "X-Quota-Left"},
			Reset: provider.Source{Header: "X-Quota-Reset", As: "milliseconds"}}},
		Signals: []provider.Signal{{Status: []int{402}, Header: &provider.Match{Name: "X-Why", Equals: "rate"}, Outcome: provider.RateLimited, Before: true}},
		Only:    true,
	},
}
