package telemetry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	apimetric "go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// Names that nobody restricts reach no attribute but as they are, and none that
// callers make up reaches a metric.
func TestHostileNames(t *testing.T) {
	const evil = "\"; DROP <script>alert('x')</script> \n{}\xff"
	synctest.Test(t, func(t *testing.T) {
		c, reader, _ := metered(t, nil, coordinator.Config{Providers: []provider.Provider{
			{Slug: "p", Name: evil, Category: "a \"b\" <c>", Throttle: provider.Throttle{Limits: []provider.Limit{{Name: "<b> \"1\"", Max: 5, Per: "1m", Scope: provider.ScopeKey}}}},
			{Slug: "q", Name: evil, Endpoints: []provider.Endpoint{{Name: "a \"b\" <c>"}}},
		}})
		for i := range 200 {
			made := fmt.Sprint(evil, i)
			assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Endpoint: made, Key: made, Flow: made}, ok))
			assert.Error(t, c.Do(t.Context(), coordinator.Call{Provider: "q", Endpoint: made}, ok))
			assert.Error(t, c.Do(t.Context(), coordinator.Call{Provider: made}, ok))
			assert.Error(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Priority: 99}, ok))
		}
		require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "q", Endpoint: "a \"b\" <c>"}, ok))
		got := collect(t, reader)
		assert.Equal(t, 200.0, got.of(t, "headgate.call.decisions", attrDecision, "refused", attrReason, "unknown_provider"))
		assert.Equal(t, 200.0, got.of(t, "headgate.call.decisions", attrProvider, "p", attrDecision, "admitted"))
		assert.Equal(t, 1.0, got.of(t, "headgate.call.decisions", attrProvider, "q", attrEndpoint, "a \"b\" <c>", attrDecision, "admitted"))
		waited, found := got.find("headgate.call.wait", attrProvider, "p")
		assert.True(t, found)
		assert.EqualValues(t, 200, waited.count)
		for name, series := range got {
			assert.LessOrEqual(t, len(series), 6, name)
			for _, p := range series {
				for _, value := range p.attrs {
					assert.NotContains(t, value, "DROP", name)
				}
			}
		}
		of := []string{attrProvider, "p", attrLimit, "<b> \"1\"", attrUnit, "requests", attrScope, "key"}
		assert.Equal(t, 200.0, got.of(t, "headgate.keys", attrProvider, "p"))
		assert.Equal(t, 100*4.0, got.of(t, "headgate.limit.remaining", of...), "the hundred busiest keys")
		assert.Equal(t, 0.2, got.of(t, "headgate.limit.utilization", of...))
	})
}

// exporters fail, or panic, as the network does.
type badExporter struct {
	metric.Exporter

	fault func() error
}

func (e badExporter) Temporality(k metric.InstrumentKind) metricdata.Temporality {
	return metric.DefaultTemporalitySelector(k)
}

func (e badExporter) Aggregation(k metric.InstrumentKind) metric.Aggregation {
	return metric.DefaultAggregationSelector(k)
}
func (e badExporter) Export(context.Context, *metricdata.ResourceMetrics) error { return e.fault() }
func (e badExporter) ExportSpans(context.Context, []trace.ReadOnlySpan) error   { return e.fault() }
func (e badExporter) ForceFlush(context.Context) error                          { return nil }
func (e badExporter) Shutdown(context.Context) error                            { return nil }
func (e badExporter) OnStart(context.Context, trace.ReadWriteSpan)              {}
func (e badExporter) OnEnd(trace.ReadOnlySpan)                                  { _ = e.fault() }

// reported collects what OpenTelemetry's error handler is told. The handler is global,
// so tests that ask it do not run beside one another.
func reported(t *testing.T) func() []string {
	t.Helper()
	var mu sync.Mutex
	var all []string
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, err.Error())
	}))
	t.Cleanup(func() { otel.SetErrorHandler(before) })
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func TestFailingExportersBreakNoCall(t *testing.T) {
	told := reported(t)
	synctest.Test(t, func(t *testing.T) {
		bad := badExporter{fault: func() error { return errors.New("exporter is down") }}
		meters := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(bad, metric.WithInterval(time.Second))))
		tracers := trace.NewTracerProvider(trace.WithBatcher(bad), trace.WithSyncer(bad))
		tel, err := New(meters, tracers)
		require.NoError(t, err)
		c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{Slug: "p"}}, Traces: []*coordinator.Trace{tel.Trace()}})
		require.NoError(t, err)
		require.NoError(t, tel.Observe(c))
		for range 10 {
			require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p"}, ok))
			time.Sleep(time.Second)
		}
		require.ErrorContains(t, meters.ForceFlush(t.Context()), "exporter is down")
		s, err := c.State("p")
		require.NoError(t, err)
		assert.EqualValues(t, 10, s.Granted)
		assert.Zero(t, s.InFlight)
		_ = meters.Shutdown(t.Context())
		_ = tracers.Shutdown(t.Context())
		require.NoError(t, tel.Close())
	})
	assert.NotEmpty(t, told())
}

// A processor that panics does so in our hooks: no call breaks, the counts go on, and
// it is told once a hook, without what was thrown.
func TestPanickingProcessorsBreakNoCall(t *testing.T) {
	told := reported(t)
	bad := badExporter{fault: func() error { panic("?key=secret") }}
	c, reader, _ := metered(t, trace.NewTracerProvider(trace.WithSpanProcessor(bad)), coordinator.Config{Providers: []provider.Provider{{Slug: "p"}}})
	for range 5 {
		require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p"}, ok))
		require.Error(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Priority: 99}, ok))
	}
	got := collect(t, reader)
	assert.Equal(t, 5.0, got.of(t, "headgate.call.decisions", attrProvider, "p", attrDecision, "admitted"))
	calls, _ := got.find("headgate.call.duration", attrProvider, "p")
	assert.EqualValues(t, 5, calls.count)
	text := strings.Join(told(), "\n")
	for _, hook := range []string{"Attempt", "End", "Refused"} {
		assert.Equal(t, 1, strings.Count(text, "the hook "+hook+" panicked with a string"), text)
	}
	assert.NotContains(t, text, "secret")
}

// badMeter refuses one instrument, or every callback.
type badMeter struct {
	noop.Meter

	refuses string
}

type badMeters struct {
	noop.MeterProvider

	refuses string
}

func (p badMeters) Meter(string, ...apimetric.MeterOption) apimetric.Meter {
	return badMeter{refuses: p.refuses}
}

func (m badMeter) Float64Histogram(name string, _ ...apimetric.Float64HistogramOption) (apimetric.Float64Histogram, error) {
	if name == m.refuses {
		return nil, errors.New("no room")
	}
	return noop.Float64Histogram{}, nil
}

func (badMeter) RegisterCallback(apimetric.Callback, ...apimetric.Observable) (apimetric.Registration, error) {
	return nil, errors.New("no callbacks")
}

func TestMetersThatRefuse(t *testing.T) {
	_, err := New(badMeters{refuses: "headgate.call.wait"}, nil)
	require.EqualError(t, err, "telemetry: instrument headgate.call.wait: no room")

	tel, err := New(badMeters{}, nil)
	require.NoError(t, err)
	c, err := coordinator.New(coordinator.Config{Traces: []*coordinator.Trace{tel.Trace()}})
	require.NoError(t, err)
	require.EqualError(t, tel.Observe(c), "telemetry: the meter refused the callback: no callbacks")
	require.NoError(t, tel.Close())
}
