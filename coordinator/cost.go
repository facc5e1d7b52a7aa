package coordinator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/provider"
)

// costFor spells out a call's cost. A nested call takes no second slot, and goes
// through the gates at which its outer call is the only one that may.
func (l *lane) costFor(ls *Lease, r *route) []int64 {
	cost := r.cost
	if ls.named != nil {
		cost = l.costOf(r, ls.named, nil)
	}
	outer := ls.outer()
	if outer == nil && !ls.sheltered {
		return cost
	}
	inside := outer.slot() != nil
	if !inside && !ls.sheltered {
		return cost
	}
	cost = slices.Clone(cost)
	for i := range l.pools {
		cost[r.pool+i] = 0
	}
	if !inside {
		return cost
	}
	if outer.token.Probe() {
		cost[0] = 0
	}
	for i, p := range r.pauses {
		if p.trial != nil && ls.within(p.trial) {
			cost[1+i] = 0
		}
	}
	for i, g := range r.limits {
		if g.caps() {
			cost[r.skip+i] = 0
		}
	}
	return cost
}

// slot returns the lease under whose slot a call goes that is nested in ls: its
// own, or that of one further out; nil where all have ended.
func (ls *Lease) slot() *Lease {
	for ; ls != nil; ls = ls.outer() {
		switch {
		case ls.state == over:
		case ls.rare != nil && ls.rare.rides != nil:
			return ls.rare.rides
		default:
			return ls
		}
	}
	return nil
}

// orphan has the calls that wait under a lease that has ended wait for slots of
// their own.
func (l *lane) orphan(ls *Lease) {
	for _, x := range l.waiters() {
		if x.within(ls) {
			l.unline(x, nil)
			l.reenter(x)
		}
	}
}

// within tells that its call is nested in that of another lease.
func (ls *Lease) within(other *Lease) bool {
	for x := ls.outer(); x != nil; x = x.outer() {
		if x == other {
			return true
		}
	}
	return false
}

// ignored counts the units that no limit counts.
func ignored(r *route, cost map[string]int64) (n int64) {
	for unit := range cost {
		counted := unit == provider.Requests
		for _, g := range r.limits {
			counted = counted || g.d.Unit == unit
		}
		if !counted {
			n++
		}
	}
	return n
}

// costOf spells a call's cost out by gate, into cost: what the call names, else what its
// endpoint costs, else one request. A unit that no limit counts is ignored.
func (l *lane) costOf(r *route, named map[string]int64, cost []int64) []int64 {
	var declared map[string]int64
	for i := range l.endpoints {
		if l.endpoints[i].Name == r.endpoint {
			declared = l.endpoints[i].Cost
		}
	}
	for range r.skip {
		cost = append(cost, 1)
	}
	for _, g := range r.limits {
		cost = append(cost, unitCost(g.d, named, declared))
	}
	return cost
}

func unitCost(d *provider.Limit, named, declared map[string]int64) int64 {
	if d.Algorithm == provider.InFlight {
		return 1
	}
	if n, ok := named[d.Unit]; ok {
		return n
	}
	if n, ok := declared[d.Unit]; ok {
		return n
	}
	if d.Unit == provider.Requests {
		return 1
	}
	return 0
}

// check finds what is wrong with a call before it costs anything.
func (l *lane) check(call *Call) (detail string) {
	if call.Cost != nil {
		for unit, n := range call.Cost {
			if n < 0 {
				return fmt.Sprintf("cost of %d %s is below 0", n, unit)
			}
		}
	}
	if call.Priority < Bulk || call.Priority > Interactive {
		return fmt.Sprintf("priority %d is none of Bulk, Normal, Interactive", call.Priority)
	}
	if detail := l.checkKey(call.Key); detail != "" {
		return detail
	}
	if l.off && !l.t.Switched(call.Endpoint) {
		return switchedOff(call.Endpoint)
	}
	if call.Endpoint == "" || len(l.endpoints) == 0 || l.place(call.Endpoint) != 0 {
		return ""
	}
	names := make([]string, len(l.endpoints))
	for i := range l.endpoints {
		names[i] = l.endpoints[i].Name
	}
	return fmt.Sprintf("no such endpoint %q; declared are %s", call.Endpoint, strings.Join(names, ", "))
}

// switchedOff is why a call to an endpoint (or a provider) in Throttle.Off is refused.
func switchedOff(endpoint string) string {
	if endpoint == "" {
		return "the provider is switched off"
	}
	return fmt.Sprintf("endpoint %q is switched off", endpoint)
}

// tooHeavy returns the first limit that can never admit such a cost.
func (r *route) tooHeavy(cost []int64) *limitGate {
	for i, g := range r.limits {
		if n := cost[r.skip+i]; n > 0 && n > g.declared && n > g.rule.Heaviest() {
			return g
		}
	}
	return nil
}
