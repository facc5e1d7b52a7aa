package referee

import (
	"fmt"
	"slices"
	"time"

	"github.com/headgate/headgate/provider"
)

// largest bounds Max, Burst and a single cost, so that plain int64 sums stay
// exact without a thought about overflow.
const largest = 1 << 42

// who is the scope of one counter: whose calls it counts.
type who struct{ key, endpoint string }

// rule is one limit as it is enforced: a counter for each scope.
type rule struct {
	limit    provider.Limit
	fresh    func() counter
	counters map[who]counter
	instead  map[string]bool // endpoints that left the general limits

	last map[who]time.Time // admitted arrivals of a leaky bucket, and
	gap  time.Duration     // the smallest time between two; -1: none yet
}

func newRule(l provider.Limit, p Play) (*rule, error) {
	l = withDefaults(l)
	if l.Max < 1 || l.Max > largest {
		return nil, fmt.Errorf("max: %d, would have to be 1 to 2^42", l.Max)
	}
	if l.Burst < 0 || l.Burst > largest {
		return nil, fmt.Errorf("burst: %d, would have to be 0 to 2^42", l.Burst)
	}
	scopes := []string{provider.ScopeProvider, provider.ScopeKey, provider.ScopeEndpoint, provider.ScopeKeyEndpoint}
	if !slices.Contains(scopes, l.Scope) {
		return nil, fmt.Errorf("scope: %q, would have to be one of %q", l.Scope, scopes)
	}
	if l.Instead && len(l.Endpoints) == 0 {
		return nil, fmt.Errorf("instead: needs endpoints")
	}
	for _, o := range l.Charges {
		if !o.Valid() {
			return nil, fmt.Errorf("charges: %q is no outcome", o)
		}
	}
	fresh, err := maker(l, p)
	if err != nil {
		return nil, err
	}
	return &rule{limit: l, fresh: fresh, counters: map[who]counter{}, last: map[who]time.Time{}, gap: -1}, nil
}

// withDefaults fills in what Expand would have, and resolves aliases.
func withDefaults(l provider.Limit) provider.Limit {
	switch l.Algorithm {
	case "":
		l.Algorithm = provider.SlidingWindow
		if _, word := l.Per.Duration(); word {
			l.Algorithm = provider.FixedWindow
		}
	case provider.SlidingLog:
		l.Algorithm = provider.SlidingWindow
	case provider.GCRA:
		l.Algorithm = provider.TokenBucket
	}
	if l.Algorithm == provider.TokenBucket && l.Burst == 0 {
		l.Burst = l.Max
	}
	if l.Unit == "" {
		l.Unit = provider.Requests
	}
	if l.Scope == "" {
		l.Scope = provider.ScopeProvider
	}
	return l
}

// maker returns what makes an empty counter for l.
func maker(l provider.Limit, p Play) (func() counter, error) {
	if l.Algorithm == provider.InFlight {
		if l.Per != "" {
			return nil, fmt.Errorf("per: %q, in_flight has none", l.Per)
		}
		return func() counter { return &flights{max: l.Max, live: map[*call]int64{}} }, nil
	}
	d, word := l.Per.Duration()
	if d == 0 {
		return nil, fmt.Errorf("per: %q, would have to be a duration from 1ns to 744h, or minute, hour, day or month", l.Per)
	}
	if word {
		if l.Algorithm != provider.FixedWindow {
			return nil, fmt.Errorf("algorithm: %q, a calendar period is a fixed_window", l.Algorithm)
		}
		cal, err := newCalendar(l)
		if err != nil {
			return nil, err
		}
		return func() counter { return newFixed(l.Max, p.Closed, cal.start) }, nil
	}
	w := int64(d)
	switch l.Algorithm {
	case provider.SlidingWindow, provider.LeakyBucket:
		return func() counter { return &log{max: l.Max, w: w, closed: p.Closed} }, nil
	case provider.FixedWindow:
		start := func(t int64) int64 { return floor(t-int64(p.Phase), w) + int64(p.Phase) }
		return func() counter { return newFixed(l.Max, p.Closed, start) }, nil
	case provider.SlidingWindowCounter:
		return func() counter { return &estimate{max: l.Max, w: w, used: map[int64]int64{}} }, nil
	case provider.TokenBucket:
		return func() counter { return newBucket(l.Max, w, l.Burst) }, nil
	}
	return nil, fmt.Errorf("algorithm: %q is not known", l.Algorithm)
}

// cost is what c costs in this limit: 0 where it does not match.
func (r *rule) cost(c *call) int64 {
	if len(r.limit.Endpoints) == 0 && r.instead[c.Endpoint] {
		return 0
	}
	if len(r.limit.Endpoints) > 0 && !slices.Contains(r.limit.Endpoints, c.Endpoint) {
		return 0
	}
	if r.limit.Algorithm == provider.InFlight && r.limit.Unit == provider.Requests {
		return 1 // a call is one call in flight, however much it costs
	}
	return c.Cost[r.limit.Unit]
}

// who is the scope of c in this limit.
func (r *rule) who(c *call) who {
	switch r.limit.Scope {
	case provider.ScopeKey:
		return who{key: c.Key}
	case provider.ScopeEndpoint:
		return who{endpoint: c.Endpoint}
	case provider.ScopeKeyEndpoint:
		return who{c.Key, c.Endpoint}
	}
	return who{}
}

func (r *rule) counter(c *call) counter {
	w := r.who(c)
	k := r.counters[w]
	if k == nil {
		k = r.fresh()
		r.counters[w] = k
	}
	return k
}

// most is the bound that a violation names.
func (r *rule) most() int64 {
	if r.limit.Algorithm == provider.TokenBucket {
		return r.limit.Burst
	}
	return r.limit.Max
}

// free tells that an answer of outcome o is not charged. A call without an answer
// always is.
func (r *rule) free(o provider.Outcome) bool {
	return len(r.limit.Charges) > 0 && o != "" && o != provider.Canceled && !slices.Contains(r.limit.Charges, o)
}

// space keeps the smallest gap of a leaky bucket.
func (r *rule) space(c *call) {
	if r.limit.Algorithm != provider.LeakyBucket {
		return
	}
	w := r.who(c)
	if last, ok := r.last[w]; ok {
		if gap := c.At.Sub(last); r.gap < 0 || gap < r.gap {
			r.gap = gap
		}
	}
	r.last[w] = c.At
}
