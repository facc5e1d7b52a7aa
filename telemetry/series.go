package telemetry

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// words are all outcomes and reasons that a histogram may have as an attribute.
// "unknown" is the first: it stands for every other one, too.
var words = [...]string{
	string(provider.Unknown), string(provider.OK), string(provider.RateLimited), string(provider.QuotaSpent),
	string(provider.Banned), string(provider.Overloaded), string(provider.Unauthorized), string(provider.Rejected),
	string(provider.Failed), string(provider.Canceled), string(coordinator.ReasonTooLate),
	string(coordinator.ReasonCircuitOpen), string(coordinator.ReasonQueueFull), string(coordinator.ReasonLedger),
	string(coordinator.ReasonTooHeavy), string(coordinator.ReasonInvalid), string(coordinator.ReasonShutdown),
}

var wordAt = func() map[string]int {
	m := make(map[string]int, len(words))
	for i, w := range words {
		m[w] = i
	}
	return m
}()

// place is what a call goes to.
type place struct{ provider, endpoint string }

// series are the attribute sets of one place, each made once.
type series struct {
	place

	wait    []metric.RecordOption
	start   []trace.SpanStartOption
	attempt [len(words)]atomic.Pointer[[]metric.RecordOption]
	call    [len(words)]atomic.Pointer[[]metric.RecordOption]
}

// lane are the series of one provider. A provider that declares no endpoint takes
// calls to whatever their callers name: those have the series of none.
type lane struct {
	none      *series
	endpoints map[string]*series // as declared
}

func (l *lane) series(endpoint string) *series {
	if s := l.endpoints[endpoint]; s != nil {
		return s
	}
	return l.none
}

// seriesOf finds the series of a call that has been admitted, and makes those of its
// provider for the first.
func (t *Telemetry) seriesOf(call *coordinator.CallInfo) *series {
	if s := t.last.Load(); s != nil && s.provider == call.Provider && s.endpoint == call.Endpoint {
		return s // calls to one place come in rows
	}
	s := t.find(call)
	t.last.Store(s)
	return s
}

func (t *Telemetry) find(call *coordinator.CallInfo) *series {
	if l := (*t.series.Load())[call.Provider]; l != nil {
		return l.series(call.Endpoint)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := *t.series.Load()
	l := all[call.Provider]
	if l == nil {
		l = t.newLane(call.Provider)
		all = maps.Clone(all)
		all[call.Provider] = l
		t.series.Store(&all)
	}
	return l.series(call.Endpoint)
}

func (t *Telemetry) newLane(slug string) *lane {
	l := &lane{none: newSeries(place{provider: slug}), endpoints: make(map[string]*series)}
	if t.core == nil {
		return l
	}
	for p := range t.core.Providers() {
		if p.Slug != slug {
			continue
		}
		for _, e := range p.Endpoints {
			l.endpoints[e.Name] = newSeries(place{slug, e.Name})
		}
		break
	}
	return l
}

func newSeries(at place) *series {
	return &series{place: at, wait: record(at.attrs()), start: startOptions(at)}
}

func (p place) attrs(more ...attribute.KeyValue) []attribute.KeyValue {
	all := append(make([]attribute.KeyValue, 0, 4), attribute.String(attrProvider, p.provider))
	if p.endpoint != "" {
		all = append(all, attribute.String(attrEndpoint, p.endpoint))
	}
	return append(all, more...)
}

func record(attrs []attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attrs...))}
}

// with returns the options for one word: two that make them at once make the same.
func (s *series) with(of *[len(words)]atomic.Pointer[[]metric.RecordOption], key, word string) []metric.RecordOption {
	i := 1 // ok
	if word != string(provider.OK) {
		i = wordAt[word]
	}
	if o := of[i].Load(); o != nil {
		return *o
	}
	attrs := s.attrs()
	if key != attrError || word != string(provider.OK) {
		attrs = s.attrs(attribute.String(key, words[i]))
	}
	o := record(attrs)
	of[i].Store(&o)
	return o
}

func (t *Telemetry) going(ctx context.Context, call coordinator.CallInfo, waited time.Duration) {
	s := t.seriesOf(&call)
	if t.meter != nil && call.Attempt == 1 {
		t.timed[callWait].Record(ctx, waited.Seconds(), s.wait...)
	}
	if t.tracer != nil {
		t.spanGoing(ctx, call, waited)
	}
}

func (t *Telemetry) attempt(ctx context.Context, call coordinator.CallInfo, f provider.Feedback, took time.Duration) {
	if t.meter != nil {
		s := t.seriesOf(&call)
		t.timed[attemptDuration].Record(ctx, took.Seconds(), s.with(&s.attempt, attrOutcome, string(f.Outcome))...)
	}
	if t.tracer != nil {
		t.spanAttempt(ctx, call, f.Outcome, took)
	}
}

func (t *Telemetry) end(ctx context.Context, call coordinator.CallInfo, err error, took time.Duration) {
	e, _ := err.(*coordinator.Error) // that or nil, by the hook's contract
	if t.meter != nil {
		word := string(provider.OK)
		if e != nil {
			word = string(e.Reason)
		}
		s := t.seriesOf(&call)
		t.timed[callDuration].Record(ctx, took.Seconds(), s.with(&s.call, attrError, word)...)
	}
	if t.tracer != nil {
		t.spanEnd(ctx, call, e)
	}
}

func (t *Telemetry) refused(ctx context.Context, call coordinator.CallInfo, e *coordinator.Error) {
	if e.Reason == coordinator.ReasonUnknownProvider {
		t.unknown.Add(1)
	}
	if t.tracer != nil {
		t.spanRefused(ctx, call, e)
	}
}
