package telemetry

import (
	"slices"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// limitSum is one limit as it is shown: of scope key, all keys together.
type limitSum struct {
	name, endpoint, unit, scope string

	max, declared, remaining int64
	busiest                  float64
	window, reset            time.Duration
	origins                  map[string]int64 // how many keys have their number from there
}

// declaredLimits are the limits of all providers as declared and updated, by slug and
// name.
func declaredLimits(c *coordinator.Coordinator) map[string]map[string]provider.Limit {
	all := make(map[string]map[string]provider.Limit)
	for p := range c.Providers() {
		of := make(map[string]provider.Limit)
		limits, _ := p.Throttle.Expand() // it is in force: nothing is wrong with it
		for _, l := range limits {
			of[l.Name] = l
		}
		if bad := p.Throttle.WithDefaults().BadAnswers; bad != nil {
			of[bad.Name] = *bad
		}
		all[p.Slug] = of
	}
	return all
}

// limitsOf sums a State's limits up.
func limitsOf(s coordinator.State, declared map[string]provider.Limit) (all []*limitSum) {
	for _, l := range s.Limits {
		all = append(all, single(s, l, provider.ScopeProvider, "", declared))
	}
	for endpoint, limits := range s.Endpoints {
		for _, l := range limits {
			all = append(all, single(s, l, provider.ScopeEndpoint, endpoint, declared))
		}
	}
	return append(all, keyLimits(s, declared)...)
}

func newSum(l coordinator.LimitState, scope, endpoint string) *limitSum {
	return &limitSum{name: l.Name, unit: l.Unit, scope: scope, endpoint: endpoint, origins: make(map[string]int64)}
}

func single(s coordinator.State, l coordinator.LimitState, scope, endpoint string, declared map[string]provider.Limit) *limitSum {
	x := newSum(l, scope, endpoint)
	x.add(s, l, declared[l.Name])
	return x
}

// keyLimits are those of scope key, each over all keys.
func keyLimits(s coordinator.State, declared map[string]provider.Limit) (all []*limitSum) {
	for _, k := range s.Keys {
		for _, l := range k.Limits {
			i := slices.IndexFunc(all, func(x *limitSum) bool { return x.name == l.Name })
			if i < 0 {
				i = len(all)
				all = append(all, newSum(l, provider.ScopeKey, ""))
			}
			all[i].add(s, l, declared[l.Name].OfKey(k.Key))
		}
	}
	return all
}

// add adds one counter to the sum. declared is the zero value where nobody did.
func (x *limitSum) add(s coordinator.State, l coordinator.LimitState, declared provider.Limit) {
	x.max += l.Max
	x.declared += declared.Max
	x.remaining += l.Left
	x.window, _ = l.Per.Duration()
	x.origins[l.Origin]++
	busy := float64(l.Room-l.Left) / float64(max(l.Room, 1))
	if busy >= x.busiest {
		x.busiest, x.reset = busy, max(l.ResetAt.Sub(s.At), 0)
	}
}

func (o observation) limit(slug string, x *limitSum) {
	values := []string{slug, x.endpoint, x.name, x.unit, x.scope}
	o.float(limitMax, float64(x.max), values...)
	if x.declared > 0 {
		o.float(limitDeclared, float64(x.declared), values...)
	}
	o.float(limitRemaining, float64(x.remaining), values...)
	o.float(limitUtilization, x.busiest, values...)
	if x.window > 0 {
		o.seconds(limitWindow, x.window, values...)
	}
	o.seconds(limitReset, x.reset, values...)
	for origin, n := range x.origins {
		o.int(limitOrigin, n, append(values, origin)...)
	}
}
