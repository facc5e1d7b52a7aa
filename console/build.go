package console

import (
	"maps"
	"slices"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

const mostFlowsShown = 20

// provider is a row as it is told.
func (k *Console) provider(r *row) Provider {
	d := r.about
	p := Provider{
		Slug: d.slug, Name: d.name, Category: d.category, Off: d.throttle.Off, Excess: string(d.throttle.WithDefaults().Excess),
		Condition: r.verdict.condition, Why: r.verdict.why, Until: instant(r.verdict.until), Breaker: Breaker{State: "closed"},
		Budget: 1,
	}
	s := r.state
	if s == nil {
		p.Limits = unused(d.throttle)
		if p.Excess == string(provider.Queue) {
			p.Queue.Capacity = d.throttle.WithDefaults().MaxQueue
		}
		if d.declaration.Breaker.Off {
			p.Breaker.State = "off"
		}
		return p
	}
	p.Limits = limits(s.Limits, "")
	for _, endpoint := range slices.Sorted(maps.Keys(s.Endpoints)) {
		p.Limits = append(p.Limits, limits(s.Endpoints[endpoint], clipped(endpoint))...)
	}
	p.Queue = Queue{Length: s.Queue.Length, Capacity: s.Queue.Capacity, Wait: seconds(s.Queue.Wait)}
	if s.Queue.Length > 0 {
		p.Queue.Since, p.Queue.Oldest = instant(s.At.Add(-s.Oldest)), seconds(s.Oldest)
	}
	p.InFlight = s.InFlight
	if s.InFlight > 0 {
		p.OutSince = instant(s.At.Add(-s.OldestOut))
	}
	p.Breaker = Breaker{s.Breaker.State, s.Breaker.Failures, instant(s.Breaker.Until)}
	for i := range s.Pauses {
		p.Pauses = append(p.Pauses, k.pause(s.Provider, &s.Pauses[i]))
	}
	for _, x := range s.Pools {
		p.Pools = append(p.Pools, Pool(x))
	}
	if len(s.Keys) > 0 {
		p.Busiest = k.key(s.Provider, &s.Keys[0])
	}
	p.KeyCount, p.Budget = s.KeyCount, s.RetryBudget
	p.Rate, p.Errors, p.Refusals = s.Lately.RPS, s.Lately.ErrorRate, s.Lately.Refusals
	p.P50, p.P99 = seconds(s.Lately.P50), seconds(s.Lately.P99)
	return p
}

// detail is a row with everything that there is.
func (k *Console) detail(at time.Time, r *row) Detail {
	d := Detail{At: at, Provider: k.provider(r)}
	s := r.state
	if s == nil {
		return d
	}
	for i := range s.Keys {
		d.Keys = append(d.Keys, *k.key(s.Provider, &s.Keys[i]))
	}
	if rec := k.opt.Recorder; rec != nil {
		d.Flows = rec.flowsOf(s.Provider, mostFlowsShown)
		d.Refused, d.Answers, d.Last = rec.heard(s.Provider)
		for i := range d.Answers {
			d.Answers[i].Key = k.keyName(s.Provider, d.Answers[i].Key)
		}
		if d.Last != nil {
			d.Last.Key = k.keyName(s.Provider, d.Last.Key)
		}
	}
	d.History = k.history.of(s.Provider)
	d.Granted, d.Retries, d.Ignored, d.Lingering = s.Granted, s.Retries, s.Ignored, s.Lingering
	d.Outcomes, d.Reasons, d.RoundTrip = s.Outcomes, s.Refused, seconds(s.RoundTrip)
	d.LeastTrip, d.Refuted = seconds(s.LeastRoundTrip), s.LeastRoundTripRefuted
	return d
}

// keyName is the name of a key; "" stays: a call without a key has none.
func (k *Console) keyName(slug, alias string) string {
	if alias == "" {
		return ""
	}
	return k.opt.KeyName(slug, alias)
}

func (k *Console) key(slug string, s *coordinator.KeyState) *Key {
	n := &Key{Name: k.keyName(slug, s.Key), InFlight: s.InFlight, Limits: limits(s.Limits, "")}
	if s.Pause != nil {
		p := k.pause(slug, s.Pause)
		n.Pause = &p
	}
	return n
}

func (k *Console) pause(slug string, p *coordinator.PauseState) Pause {
	name := clipped(p.Name)
	if p.Scope == provider.ScopeKey {
		name = k.keyName(slug, p.Name)
	}
	return Pause{Scope: p.Scope, Name: name, Why: clipped(p.Why), Until: instant(p.Until), Trial: p.Trial}
}

// shared is the same of all providers.
func shared(rows []*row) *Shared {
	for _, r := range rows {
		if r.state == nil || r.state.Ledger == nil {
			continue
		}
		l := r.state.Ledger
		return &Shared{l.Mode, l.Replicas, l.Detail}
	}
	return nil
}

func limits(states []coordinator.LimitState, endpoint string) (all []Limit) {
	for i := range states {
		l := &states[i]
		all = append(all, Limit{
			Name: l.Name, Endpoint: endpoint, Unit: l.Unit, Max: l.Max, Room: l.Room, Used: l.Used, Held: l.Held, Left: l.Left,
			Per: string(l.Per), Reset: instant(l.ResetAt), Origin: l.Origin, Shared: l.Shared,
		})
	}
	return all
}

// unused are the limits of a provider that was never called, as they are declared.
func unused(t provider.Throttle) (all []Limit) {
	declared, _ := t.Expand() // it is in force: nothing is wrong with it
	for _, l := range declared {
		if l.Scope != provider.ScopeProvider {
			continue
		}
		n := Limit{Name: l.Name, Unit: l.Unit, Max: l.Max, Room: l.Max, Left: l.Max, Per: string(l.Per), Origin: "declared"}
		if l.Algorithm == provider.TokenBucket {
			n.Room, n.Left = l.Burst, l.Burst
		}
		switch l.Basis {
		case provider.BasisPacing, provider.BasisAssumed:
			n.Origin = l.Basis
		}
		all = append(all, n)
	}
	return all
}

// instant is t as it is told: to the millisecond, so that an instant which is the
// same by two readings of the clock is told the same.
func instant(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Round(time.Millisecond)
}

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
