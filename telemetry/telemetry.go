// Package telemetry tells OpenTelemetry what a Coordinator does: metrics of what it
// decided, who waits and what is left of each limit, and a span for each call.
//
//	t, err := telemetry.New(meterProvider, tracerProvider)
//	cfg.Traces = append(cfg.Traces, t.Trace())
//	c, err := coordinator.New(cfg)
//	err = t.Observe(c)
//	defer t.Close()
//
// What is counted is counted in the core and observed when a reader collects; only
// the three histograms are written to while a call runs. The number of series is
// bounded by what is declared: a flow or a key is never an attribute, neither of a
// metric nor of a span. docs/telemetry.md lists all instruments.
//
// Not in it: an SDK, an exporter (the program chooses them), logs.
package telemetry

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// scope is the name of the instrumentation scope.
const scope = "github.com/headgate/headgate/telemetry"

// Telemetry are the instruments and hooks of one Coordinator. It is made by [New]
// and safe for concurrent use.
type Telemetry struct {
	meter  metric.Meter // nil: no metrics
	tracer trace.Tracer // nil: no spans

	ints   [len(instruments)]metric.Int64Observable
	floats [len(instruments)]metric.Float64Observable
	timed  [len(instruments)]metric.Float64Histogram

	series  atomic.Pointer[map[string]*lane] // by provider; read without a lock, replaced under mu
	last    atomic.Pointer[series]           // of the last call
	unknown atomic.Int64                     // calls to providers that nobody declared, which no State counts

	mu       sync.Mutex
	core     *coordinator.Coordinator // nil: Observe was not called
	observed metric.Registration      // nil: none
	options  map[labels][]metric.ObserveOption
	pauses   map[pausedScope]coordinator.PauseChange
}

// New creates all instruments. A nil provider means none of its kind: metrics alone,
// or spans alone; the program's global ones are otel.GetMeterProvider() and
// otel.GetTracerProvider(). The error names each instrument that the meter refused.
func New(meters metric.MeterProvider, tracers trace.TracerProvider) (*Telemetry, error) {
	t := &Telemetry{
		options: make(map[labels][]metric.ObserveOption),
		pauses:  make(map[pausedScope]coordinator.PauseChange),
	}
	t.series.Store(&map[string]*lane{})
	if tracers != nil {
		t.tracer = tracers.Tracer(scope)
	}
	if meters == nil {
		return t, nil
	}
	t.meter = meters.Meter(scope)
	if err := t.create(); err != nil {
		return nil, err
	}
	return t, nil
}

// create makes the instruments of the table.
func (t *Telemetry) create() error {
	var faults []error
	for id, x := range instruments[:] {
		var err error
		about, unit := metric.WithDescription(x.text), metric.WithUnit(x.unit)
		switch x.kind {
		case counter:
			t.ints[id], err = t.meter.Int64ObservableCounter(x.name, about, unit)
		case sum:
			t.ints[id], err = t.meter.Int64ObservableUpDownCounter(x.name, about, unit)
		case gauge:
			t.floats[id], err = t.meter.Float64ObservableGauge(x.name, about, unit)
		case histogram:
			t.timed[id], err = t.meter.Float64Histogram(x.name, about, unit, metric.WithExplicitBucketBoundaries(x.bounds...))
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("telemetry: instrument %s: %w", x.name, err))
		}
	}
	return errors.Join(faults...)
}

// Trace are the hooks, for Config.Traces of the one Coordinator that is then given to
// Observe. A panic in one (an SDK's processor runs in it) goes to OpenTelemetry's
// error handler, once, without its value.
func (t *Telemetry) Trace() *coordinator.Trace {
	tr := &coordinator.Trace{Going: t.going, Attempt: t.attempt, End: t.end, Refused: t.refused, Panicked: panicked}
	if t.tracer != nil {
		tr.Begin, tr.Try, tr.Waiting, tr.Paused = t.begin, t.try, t.waiting, t.paused
	}
	return tr
}

func panicked(hook string, value any) {
	otel.Handle(fmt.Errorf("telemetry: the hook %s panicked with a %T; calls go on, this is told once", hook, value))
}

// Observe has c's state read whenever a reader collects, and c's declarations for the
// names of endpoints: before it no histogram has any. One Telemetry observes one
// Coordinator, once: the series of two would be one and the same.
func (t *Telemetry) Observe(c *coordinator.Coordinator) error {
	if c == nil {
		return errors.New("telemetry: the coordinator is nil; give the one that has the Trace")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.core != nil {
		return errors.New("telemetry: a coordinator is observed already; make another Telemetry for another one")
	}
	if t.meter == nil {
		t.know(c)
		return nil
	}
	var all []metric.Observable
	for id := range instruments {
		if t.ints[id] != nil {
			all = append(all, t.ints[id])
		} else if t.floats[id] != nil {
			all = append(all, t.floats[id])
		}
	}
	registration, err := t.meter.RegisterCallback(t.observer(c), all...)
	if err != nil {
		return fmt.Errorf("telemetry: the meter refused the callback: %w", err)
	}
	t.observed = registration
	t.know(c)
	return nil
}

// know has series made anew, now that somebody knows which endpoints exist. It needs
// the lock.
func (t *Telemetry) know(c *coordinator.Coordinator) {
	t.core = c
	t.series.Store(&map[string]*lane{})
	t.last.Store(nil)
}

// Close has nothing observed any more; the hooks go on. It may be called twice.
func (t *Telemetry) Close() error {
	t.mu.Lock()
	registration := t.observed
	t.observed = nil
	t.mu.Unlock()
	if registration == nil {
		return nil
	}
	if err := registration.Unregister(); err != nil { // it may wait for a collection, which needs mu
		return fmt.Errorf("telemetry: the meter kept the callback: %w", err)
	}
	return nil
}

// cause is a reason or an outcome that may be an attribute: what somebody wrote by
// hand (a pause's why) is not.
func cause(why string) string {
	if provider.Outcome(why).Valid() {
		return why
	}
	return "manual"
}
