package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/headgate/headgate/coordinator"
)

// labels are the values of an instrument's attributes, in the table's order.
type labels struct {
	id     number
	values [6]string
}

// mostLabels bounds what is remembered of labels: throttles that are updated for
// ever may name ever new limits.
const mostLabels = 1 << 16

// optionsOf returns the attribute set of labels, made once.
func (t *Telemetry) optionsOf(l labels) []metric.ObserveOption {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.options[l]; o != nil {
		return o
	}
	var attrs []attribute.KeyValue
	for i, key := range instruments[l.id].attrs {
		if l.values[i] != "" {
			attrs = append(attrs, attribute.String(key, l.values[i]))
		}
	}
	o := []metric.ObserveOption{metric.WithAttributeSet(attribute.NewSet(attrs...))}
	if len(t.options) >= mostLabels {
		clear(t.options)
	}
	t.options[l] = o
	return o
}

// observation is one collection.
type observation struct {
	metric.Observer

	t *Telemetry
}

func (o observation) options(id number, values []string) []metric.ObserveOption {
	l := labels{id: id}
	copy(l.values[:], values)
	return o.t.optionsOf(l)
}

func (o observation) int(id number, n int64, values ...string) {
	o.ObserveInt64(o.t.ints[id], n, o.options(id, values)...)
}

func (o observation) float(id number, x float64, values ...string) {
	o.ObserveFloat64(o.t.floats[id], x, o.options(id, values)...)
}

func (o observation) seconds(id number, d time.Duration, values ...string) {
	o.float(id, d.Seconds(), values...)
}

// observer reads all states, once a collection.
func (t *Telemetry) observer(c *coordinator.Coordinator) metric.Callback {
	return func(_ context.Context, to metric.Observer) error {
		o := observation{to, t}
		if n := t.unknown.Load(); n > 0 {
			o.int(decisions, n, "", "", "refused", string(coordinator.ReasonUnknownProvider))
		}
		declared := declaredLimits(c)
		pools := make(map[string]bool)
		states := c.States()
		if len(states) > 0 && states[0].Ledger != nil { // the same of all
			o.ledger(states[0].Ledger)
		}
		for _, s := range states {
			o.calls(s)
			o.queue(c, s)
			o.gates(s)
			for _, l := range limitsOf(s, declared[s.Provider]) {
				o.limit(s.Provider, l)
			}
			for _, p := range s.Pools {
				if !pools[p.Name] { // each of its providers shows it
					pools[p.Name] = true
					o.int(poolInFlight, int64(p.Used), p.Name)
					o.int(poolSize, int64(p.Size), p.Name)
					o.int(poolWaiting, int64(p.Waiting), p.Name)
				}
			}
		}
		return nil
	}
}

// calls are what was decided and what became of it.
func (o observation) calls(s coordinator.State) {
	for _, d := range s.Decisions {
		decision := "refused"
		if d.Admitted {
			decision = "admitted"
		}
		o.int(decisions, d.Count, s.Provider, d.Endpoint, decision, string(d.Reason))
	}
	for outcome, n := range s.Outcomes {
		o.int(outcomes, n, s.Provider, string(outcome))
	}
	o.int(retries, s.Retries, s.Provider)
	o.float(retryBudget, s.RetryBudget, s.Provider)
	o.int(inFlight, int64(s.InFlight), s.Provider)
	o.seconds(inFlightOldest, s.OldestOut, s.Provider)
	o.int(lingering, int64(s.Lingering), s.Provider)
	o.int(ignored, s.Ignored, s.Provider)
	o.int(keys, int64(s.KeyCount), s.Provider)
}

func (o observation) queue(c *coordinator.Coordinator, s coordinator.State) {
	o.int(queueLength, int64(s.Queue.Length), s.Provider)
	if s.Queue.Capacity > 0 {
		o.int(queueCapacity, int64(s.Queue.Capacity), s.Provider)
	}
	o.seconds(queueWait, s.Queue.Wait, s.Provider)
	o.seconds(queueOldest, s.Oldest, s.Provider)
	if p, err := c.Pressure(s.Provider); err == nil {
		o.int(queuePressure, oneIf(p.High), s.Provider)
	}
}

// gates are the breaker and the pauses.
func (o observation) gates(s coordinator.State) {
	if s.Breaker.State != "off" {
		for _, state := range []string{"closed", "open", "half-open"} {
			o.int(breakerState, oneIf(s.Breaker.State == state), s.Provider, state)
		}
	}
	type pause struct{ scope, why string }
	count, longest := make(map[pause]int64), make(map[pause]time.Duration)
	for _, p := range s.Pauses {
		at := pause{p.Scope, cause(p.Why)}
		count[at]++
		longest[at] = max(longest[at], p.Until.Sub(s.At))
	}
	if len(s.Pauses) == 0 {
		count[pause{}] = 0 // so that there is a series, whose rise can be seen
	}
	for at, n := range count {
		o.int(pauses, n, s.Provider, at.scope, at.why)
		o.seconds(pauseRemaining, longest[at], s.Provider, at.scope, at.why)
	}
}

func (o observation) ledger(s *coordinator.LedgerState) {
	for _, mode := range []string{"shared", "share", "deny", "open"} {
		o.int(ledgerMode, oneIf(s.Mode == mode), mode)
	}
	o.int(ledgerReplicas, int64(s.Replicas))
}

func oneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
