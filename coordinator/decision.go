package coordinator

import (
	"cmp"
	"slices"

	"github.com/headgate/headgate/provider"
)

// Decision counts the calls of an endpoint of which one thing was decided: that they
// go (when they went for the first time), or that they are refused (and never went),
// and why. The sum of a State's Decisions is the number of calls that are decided:
// those that wait are not.
type Decision struct {
	Endpoint string `json:"endpoint,omitempty"` // a declared one; "" for all other names
	Admitted bool   `json:"admitted"`
	Reason   Reason `json:"reason,omitempty"` // of a refusal
	Count    int64  `json:"count"`
}

// counts is what happened since the lane was made.
type counts struct {
	granted, retries, ignored int64
	outcomes                  [len(outcomes)]int64
	unnamed                   int64   // admitted, of no declared endpoint
	admitted                  []int64 // by the endpoint's place in the declaration
	refusals                  map[Reason]int64
	decided                   map[refusedAt]int64
}

type refusedAt struct {
	endpoint int
	reason   Reason
}

// place is where an endpoint stands in the declaration, from 1; 0: nowhere.
func (l *lane) place(endpoint string) int {
	for i := range l.endpoints {
		if l.endpoints[i].Name == endpoint {
			return i + 1
		}
	}
	return 0
}

// count is refused for who does not have the lock.
func (l *lane) count(w *walk, r Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read()
	l.refused(w, r)
}

// refused counts a refusal, and, of a call that never went, the decision.
func (l *lane) refused(w *walk, r Reason) {
	l.counts.refused(r)
	if w.attempts > 0 {
		return
	}
	l.second().refused++
	if l.counts.decided == nil {
		l.counts.decided = make(map[refusedAt]int64)
	}
	l.counts.decided[refusedAt{l.place(w.call.Endpoint), r}]++
}

// admitted counts a call that goes for the first time: when its turn is used, since a
// turn may meet the end of the call's context, and a count never falls.
// One that has yet to be granted by the ledger is counted then.
func (l *lane) admitted(ls *Lease) {
	if ls.went && !ls.retry {
		l.second().came++
		if place := ls.route.place; place > 0 {
			l.counts.admitted[place-1]++
		} else {
			l.counts.unnamed++
		}
	}
}

func (l *lane) decisions() (all []Decision) {
	name := func(place int) string {
		if place == 0 {
			return ""
		}
		return l.endpoints[place-1].Name
	}
	for i, n := range append([]int64{l.counts.unnamed}, l.counts.admitted...) {
		if n > 0 {
			all = append(all, Decision{Endpoint: name(i), Admitted: true, Count: n})
		}
	}
	for at, n := range l.counts.decided {
		all = append(all, Decision{Endpoint: name(at.endpoint), Reason: at.reason, Count: n})
	}
	slices.SortFunc(all, func(a, b Decision) int {
		return cmp.Or(cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Reason, b.Reason))
	})
	return all
}

// outcomes are counted in this order.
var outcomes = [...]provider.Outcome{provider.OK, provider.RateLimited, provider.QuotaSpent, provider.Banned, provider.Overloaded,
	provider.Unauthorized, provider.Rejected, provider.Failed, provider.Unknown, provider.Canceled}

func (c *counts) outcome(o provider.Outcome) {
	for i := range outcomes {
		if outcomes[i] == o {
			c.outcomes[i]++
			return
		}
	}
}

func (c *counts) byOutcome() map[provider.Outcome]int64 {
	m := make(map[provider.Outcome]int64)
	for i, n := range c.outcomes {
		if n > 0 {
			m[outcomes[i]] = n
		}
	}
	return m
}

func (c *counts) refused(r Reason) {
	if c.refusals == nil {
		c.refusals = make(map[Reason]int64)
	}
	c.refusals[r]++
}
