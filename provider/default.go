package provider

import (
	"cmp"
	"slices"
	"time"
)

// WithDefaults returns t with the documented defaults in the place of zeros:
// Excess queue, MaxQueue 1,000 (without a meaning under delay and reject),
// MaxWait 1h (30s under delay), Penalty 1s, MaxRetryAfter 24h, Learn lower, and
// a BadAnswers of its own with its defaults. The short form and Limits stay as
// they are: Expand fills those in. A second time changes nothing.
func (t Throttle) WithDefaults() Throttle {
	wait := time.Hour
	if t.Excess == Delay {
		wait = 30 * time.Second
	}
	t.Excess = cmp.Or(t.Excess, Queue)
	t.MaxQueue = cmp.Or(t.MaxQueue, 1000)
	t.MaxWait = cmp.Or(t.MaxWait, wait)
	t.Penalty = cmp.Or(t.Penalty, time.Second)
	t.MaxRetryAfter = cmp.Or(t.MaxRetryAfter, 24*time.Hour)
	t.Learn = cmp.Or(t.Learn, LearnLower)
	if t.BadAnswers != nil {
		bad := t.BadAnswers.WithDefaults()
		bad.Name = cmp.Or(bad.Name, badAnswersName)
		t.BadAnswers = &bad
	}
	return t
}

const badAnswersName = "bad_answers"

// WithDefaults returns l with its defaults filled in and its aliases resolved:
// sliding_log becomes sliding_window counted sent, gcra becomes token_bucket, no
// algorithm becomes sliding_window (fixed_window where Per is a calendar word),
// the burst of a token_bucket Max, Zone of a calendar period "UTC", Counted
// answered, Unit requests, Scope provider, Basis provider. A second time changes
// nothing.
func (l Limit) WithDefaults() Limit {
	_, calendar := l.Per.Duration()
	if l.Algorithm == SlidingLog {
		l.Counted = CountedSent
	}
	l.Algorithm = l.algorithm()
	if l.Algorithm == TokenBucket {
		l.Burst = cmp.Or(l.Burst, l.Max)
	}
	if calendar {
		l.Zone = cmp.Or(l.Zone, "UTC")
	}
	l.Counted = cmp.Or(l.Counted, CountedAnswered)
	l.Unit = cmp.Or(l.Unit, Requests)
	l.Scope = cmp.Or(l.Scope, ScopeProvider)
	l.Basis = cmp.Or(l.Basis, BasisProvider)
	return l
}

// algorithm is the one that counts: aliases resolved, the default filled in.
func (l Limit) algorithm() Algorithm {
	switch l.Algorithm {
	case "":
		if _, calendar := l.Per.Duration(); calendar {
			return FixedWindow
		}
		return SlidingWindow
	case SlidingLog:
		return SlidingWindow
	case GCRA:
		return TokenBucket
	}
	return l.Algorithm
}

// WithDefaults returns p with the defaults in the place of zeros: Step 1 where
// pages are counted, Items $[*], Max 10.
func (p Paging) WithDefaults() Paging {
	if p.Next == (Source{}) {
		p.Step = cmp.Or(p.Step, 1)
	}
	p.Items = cmp.Or(p.Items, "$[*]")
	p.Max = cmp.Or(p.Max, 10)
	return p
}

// WithDefaults returns b with the defaults in the place of zeros: 5 failures in
// a row, 30s, 1 probe.
func (b Breaker) WithDefaults() Breaker {
	b.Failures = cmp.Or(b.Failures, 5)
	b.Cooldown = cmp.Or(b.Cooldown, 30*time.Second)
	b.Probes = cmp.Or(b.Probes, 1)
	return b
}

// WithDefaults returns r with the defaults in the place of zeros: 3 attempts (the
// first counts), Base 500ms (never above a Max that is given), Max 30s (never
// below a Base that is given), a Budget of 0.2.
func (r Retry) WithDefaults() Retry {
	base, longest := 500*time.Millisecond, 30*time.Second
	if r.Max > 0 {
		base = min(base, r.Max)
	}
	r.Attempts = cmp.Or(r.Attempts, 3)
	r.Base = cmp.Or(r.Base, base)
	r.Max = cmp.Or(r.Max, max(longest, r.Base))
	r.Budget = cmp.Or(r.Budget, 0.2)
	return r
}

// WithThrottle returns p under another throttle. What only the declared limits gave
// a meaning to goes with them: that a signal says which is spent (the longest of
// its scope is, then), and costs in a unit that no limit counts. It shares nothing
// with p and t that anybody can change; it is not validated.
func (p Provider) WithThrottle(t Throttle) Provider {
	p.Throttle = t
	p = p.Clone()
	names := p.Throttle.names()
	if b := t.WithDefaults().BadAnswers; b != nil {
		names = append(names, b.Name)
	}
	for i, s := range p.Dialect.Signals {
		if !slices.Contains(names, s.Limit) {
			p.Dialect.Signals[i].Limit = ""
		}
	}
	for _, e := range p.Endpoints {
		for unit := range e.Cost {
			counts := func(l Limit) bool { return l.WithDefaults().Unit == unit }
			if unit != Requests && !slices.ContainsFunc(t.Limits, counts) {
				delete(e.Cost, unit)
			}
		}
	}
	return p
}
