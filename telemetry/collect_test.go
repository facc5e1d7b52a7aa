package telemetry

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// metered makes a coordinator whose metrics are read by hand.
func metered(t testing.TB, tracers trace.TracerProvider, cfg coordinator.Config) (*coordinator.Coordinator, *metric.ManualReader, *Telemetry) {
	t.Helper()
	reader := metric.NewManualReader()
	tel, err := New(metric.NewMeterProvider(metric.WithReader(reader)), tracers)
	require.NoError(t, err)
	cfg.Traces = append(cfg.Traces, tel.Trace())
	c, err := coordinator.New(cfg)
	require.NoError(t, err)
	require.NoError(t, tel.Observe(c))
	t.Cleanup(func() { require.NoError(t, tel.Close()) })
	return c, reader, tel
}

// point is one series of a collection: a histogram's value is its sum.
type point struct {
	attrs map[string]string
	value float64
	count uint64
}

// is tells whether the point has exactly the attributes.
func (p point) is(kv ...string) bool {
	if len(kv)/2 != len(p.attrs) {
		return false
	}
	for i := 0; i < len(kv); i += 2 {
		if p.attrs[kv[i]] != kv[i+1] {
			return false
		}
	}
	return true
}

type points map[string][]point

// of returns the value of the series with exactly these attributes.
func (ps points) of(t testing.TB, name string, kv ...string) float64 {
	t.Helper()
	p, ok := ps.find(name, kv...)
	require.True(t, ok, "%s %v is not among %v", name, kv, ps[name])
	return p.value
}

func (ps points) find(name string, kv ...string) (point, bool) {
	for _, p := range ps[name] {
		if p.is(kv...) {
			return p, true
		}
	}
	return point{}, false
}

func collect(t testing.TB, r metric.Reader) points {
	t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(t, r.Collect(context.Background(), &rm))
	all := make(points)
	for _, s := range rm.ScopeMetrics {
		for _, m := range s.Metrics {
			all[m.Name] = pointsOf(t, m.Data)
		}
	}
	return all
}

func pointsOf(t testing.TB, data metricdata.Aggregation) (all []point) {
	t.Helper()
	switch d := data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			all = append(all, point{attrsOf(p.Attributes), float64(p.Value), 1})
		}
	case metricdata.Gauge[float64]:
		for _, p := range d.DataPoints {
			all = append(all, point{attrsOf(p.Attributes), p.Value, 1})
		}
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			all = append(all, point{attrsOf(p.Attributes), p.Sum, p.Count})
		}
	default:
		require.Fail(t, "unexpected aggregation", "%T", data)
	}
	return all
}

func attrsOf(set attribute.Set) map[string]string {
	m := make(map[string]string)
	for _, kv := range set.ToSlice() {
		m[string(kv.Key)] = kv.Value.String()
	}
	return m
}

func ok(context.Context) error { return nil }

func answer(o provider.Outcome, advice time.Duration) func(context.Context) error {
	return func(context.Context) error {
		return provider.Feedback{Outcome: o, RetryAfter: advice}.Err(errors.New("?key=secret"))
	}
}

func takes(d time.Duration) func(context.Context) error {
	return func(context.Context) error {
		time.Sleep(d)
		return nil
	}
}
