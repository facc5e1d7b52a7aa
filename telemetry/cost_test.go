package telemetry

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// measured makes a coordinator, with metrics and with spans or without.
func measured(t testing.TB, metrics bool, tracers trace.TracerProvider) func() {
	t.Helper()
	p := provider.Provider{Slug: "p", Endpoints: []provider.Endpoint{{Name: "search"}}}
	cfg := coordinator.Config{Providers: []provider.Provider{p}}
	var c *coordinator.Coordinator
	if metrics {
		c, _, _ = metered(t, tracers, cfg)
	} else {
		var err error
		c, err = coordinator.New(cfg)
		require.NoError(t, err)
	}
	ctx, call := context.Background(), coordinator.Call{Provider: "p", Endpoint: "search"}
	return func() {
		if err := c.Do(ctx, call, ok); err != nil {
			t.Fatal(err)
		}
	}
}

func unsampled() trace.TracerProvider {
	return sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
}

func TestAllocsOfACall(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates; make test runs this once more without it")
	}
	bare := testing.AllocsPerRun(1000, measured(t, false, nil))
	metrics := testing.AllocsPerRun(1000, measured(t, true, nil))
	spans := testing.AllocsPerRun(1000, measured(t, true, unsampled()))
	assert.Zero(t, metrics-bare, "metrics alone")
	assert.LessOrEqual(t, spans-bare, 6.0, "with spans that are not sampled")
}

// Hooks alone, whatever the core's share: the attribute sets are made once.
func TestAllocsOfTheHooks(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates; make test runs this once more without it")
	}
	tel, err := New(metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())), nil)
	require.NoError(t, err)
	tr, ctx := tel.Trace(), context.Background()
	call := coordinator.CallInfo{Provider: "p", Endpoint: "search", Attempt: 1}
	var failure error = &coordinator.Error{Reason: coordinator.ReasonFailed}
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		tr.Going(ctx, call, 1)
		tr.Attempt(ctx, call, provider.Feedback{Outcome: provider.Failed}, 1)
		tr.End(ctx, call, failure, 1)
	}))
}

func BenchmarkCall(b *testing.B) {
	for name, do := range map[string]func(){
		"bare":      measured(b, false, nil),
		"metrics":   measured(b, true, nil),
		"unsampled": measured(b, true, unsampled()),
		"sampled":   measured(b, true, sdktrace.NewTracerProvider()),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				do()
			}
		})
	}
}

// A collection reads all declarations and states.
func BenchmarkCollect(b *testing.B) {
	var ps []provider.Provider
	for i := range 200 {
		ps = append(ps, provider.Provider{Slug: fmt.Sprint("p", i), Throttle: provider.Throttle{RPS: 1000, RPM: 1000}})
	}
	c, reader, _ := metered(b, nil, coordinator.Config{Providers: ps})
	for _, p := range ps {
		if err := c.Do(context.Background(), coordinator.Call{Provider: p.Slug}, ok); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		collect(b, reader)
	}
}
