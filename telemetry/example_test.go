package telemetry_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/telemetry"
)

func ExampleNew() {
	reader := metric.NewManualReader() // or an exporter: OTLP, Prometheus
	t, err := telemetry.New(metric.NewMeterProvider(metric.WithReader(reader)), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := coordinator.New(coordinator.Config{
		Providers: []provider.Provider{{Slug: "shodan", Throttle: provider.Throttle{RPS: 1, Excess: provider.Reject}}},
		Traces:    []*coordinator.Trace{t.Trace()},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := t.Observe(c); err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close()

	ask := func(context.Context) error { return nil }
	for range 3 {
		_ = c.Do(context.Background(), coordinator.Call{Provider: "shodan"}, ask)
	}

	var got metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &got); err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range got.ScopeMetrics[0].Metrics {
		if m.Name == "headgate.call.decisions" {
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				decision, _ := p.Attributes.Value("headgate.decision")
				fmt.Println(decision.AsString(), p.Value)
			}
		}
	}
	// Unordered output:
	// admitted 1
	// refused 2
}

func ExampleCoalesced() {
	spans := tracetest.NewSpanRecorder()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	t, err := telemetry.New(nil, tracers)
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{Slug: "p"}}, Traces: []*coordinator.Trace{t.Trace()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var leader trace.SpanContext
	_ = c.Do(context.Background(), coordinator.Call{Provider: "p"}, func(ctx context.Context) error {
		leader = trace.SpanContextFromContext(ctx)
		return nil
	})
	// Another, who wants the same, shares that answer.
	ctx, span := tracers.Tracer("program").Start(context.Background(), "lookup")
	telemetry.Coalesced(ctx, leader)
	span.End()
	for _, s := range spans.Ended() {
		fmt.Println(s.Name(), "links:", len(s.Links()))
	}
	// Output:
	// headgate.attempt links: 0
	// headgate.call links: 0
	// lookup links: 1
}
