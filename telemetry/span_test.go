package telemetry

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// traced runs f in virtual time with a coordinator whose spans are all recorded.
func traced(t *testing.T, f func(t *testing.T, c *coordinator.Coordinator, spans *tracetest.SpanRecorder, tracers *trace.TracerProvider), ps ...provider.Provider) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		tracers := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
		tel, err := New(nil, tracers)
		require.NoError(t, err)
		c, err := coordinator.New(coordinator.Config{Providers: ps, Traces: []*coordinator.Trace{tel.Trace()}})
		require.NoError(t, err)
		require.NoError(t, tel.Observe(c))
		f(t, c, spans, tracers)
		require.NoError(t, c.Shutdown(t.Context()))
		assert.Len(t, spans.Ended(), len(spans.Started()), "each span ends")
	})
}

func attrs(s trace.ReadOnlySpan) map[string]any {
	m := make(map[string]any)
	for _, kv := range s.Attributes() {
		m[string(kv.Key)] = kv.Value.AsInterface()
	}
	return m
}

func events(s trace.ReadOnlySpan) (names []string) {
	for _, e := range s.Events() {
		names = append(names, e.Name)
	}
	return names
}

func event(t *testing.T, s trace.ReadOnlySpan, name string) map[string]any {
	t.Helper()
	i := slices.IndexFunc(s.Events(), func(e trace.Event) bool { return e.Name == name })
	require.GreaterOrEqual(t, i, 0, "%s is not among %v", name, events(s))
	m := make(map[string]any)
	for _, kv := range s.Events()[i].Attributes {
		m[string(kv.Key)] = kv.Value.AsInterface()
	}
	return m
}

// ended returns the spans of one name, in the order of their ends.
func ended(spans *tracetest.SpanRecorder, name string) (all []trace.ReadOnlySpan) {
	for _, s := range spans.Ended() {
		if s.Name() == name {
			all = append(all, s)
		}
	}
	return all
}

func TestSpanOfACallThatIsRetried(t *testing.T) {
	traced(t, func(t *testing.T, c *coordinator.Coordinator, spans *tracetest.SpanRecorder, tracers *trace.TracerProvider) {
		ctx, user := tracers.Tracer("program").Start(t.Context(), "user")
		call := coordinator.Call{Provider: "p", Endpoint: "search", Flow: "alice", Key: "k1"}
		tries := 0
		require.NoError(t, c.Do(ctx, call, func(ctx context.Context) error {
			_, inner := tracers.Tracer("program").Start(ctx, "inner")
			defer inner.End()
			time.Sleep(time.Second)
			if tries++; tries == 1 {
				return answer(provider.RateLimited, 5*time.Second)(ctx)
			}
			return nil
		}))
		user.End()

		whole, tried, inner := ended(spans, spanCall)[0], ended(spans, spanAttempt), ended(spans, "inner")
		require.Len(t, tried, 2)
		assert.Equal(t, user.SpanContext().SpanID(), whole.Parent().SpanID())
		assert.Equal(t, 7*time.Second, whole.EndTime().Sub(whole.StartTime()))
		assert.Equal(t, map[string]any{attrProvider: "p", attrEndpoint: "search", "headgate.attempts": int64(2)}, attrs(whole))
		assert.Equal(t, codes.Unset, whole.Status().Code)
		assert.Equal(t, []string{eventGoing, eventRetry, eventWaiting, eventPaused, eventGoing}, events(whole))
		assert.Equal(t, map[string]any{attrScope: "provider", attrReason: "rate_limited", "headgate.pause.remaining": 5.0}, event(t, whole, eventPaused))
		assert.Equal(t, map[string]any{"headgate.attempts": int64(1)}, event(t, whole, eventRetry))
		assert.EqualValues(t, 1, event(t, whole, eventWaiting)["headgate.queue.length"])
		for i, s := range tried {
			assert.Equal(t, whole.SpanContext().SpanID(), s.Parent().SpanID())
			assert.Equal(t, s.SpanContext().SpanID(), inner[i].Parent().SpanID(), "what the function starts is below its attempt")
			assert.Equal(t, time.Second, s.EndTime().Sub(s.StartTime()))
			assert.EqualValues(t, i+1, attrs(s)["headgate.attempt"])
		}
		assert.Equal(t, "rate_limited", attrs(tried[0])[attrOutcome])
		assert.Equal(t, codes.Error, tried[0].Status().Code)
		assert.Equal(t, "ok", attrs(tried[1])[attrOutcome])
		assert.NotContains(t, attrs(tried[1]), attrError)
		for _, s := range spans.Ended() {
			assert.NotContains(t, slices.Collect(maps.Values(attrs(s))), any("alice"))
			assert.NotContains(t, slices.Collect(maps.Values(attrs(s))), any("k1"))
		}
	}, provider.Provider{Slug: "p", Endpoints: []provider.Endpoint{{Name: "search"}}})
}

func TestSpanOfARefusal(t *testing.T) {
	traced(t, func(t *testing.T, c *coordinator.Coordinator, spans *tracetest.SpanRecorder, _ *trace.TracerProvider) {
		require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p"}, ok))
		require.Error(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Wait: time.Minute}, ok))
		s := ended(spans, spanCall)[1]
		assert.Equal(t, map[string]any{attrProvider: "p", "headgate.attempts": int64(0), attrError: "too_late", "headgate.stage": "entry", attrLimit: "hourly",
			"headgate.retry_after": 3600.000000001}, attrs(s))
		assert.Equal(t, codes.Error, s.Status().Code)
		assert.Contains(t, s.Status().Description, "Retry in")
	}, provider.Provider{Slug: "p", Throttle: provider.Throttle{Limits: []provider.Limit{{Name: "hourly", Max: 1, Per: "1h"}}}})
}

// A call that never began, made by the function of another, does not end the other's.
func TestRefusalInsideACallHasASpanOfItsOwn(t *testing.T) {
	traced(t, func(t *testing.T, c *coordinator.Coordinator, spans *tracetest.SpanRecorder, _ *trace.TracerProvider) {
		require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p"}, func(ctx context.Context) error {
			require.ErrorIs(t, c.Do(ctx, coordinator.Call{Provider: "nobody"}, ok), coordinator.ErrUnknownProvider)
			require.NoError(t, c.Do(ctx, coordinator.Call{Provider: "p"}, ok))
			time.Sleep(time.Second)
			return nil
		}))
		calls, tries := ended(spans, spanCall), ended(spans, spanAttempt)
		require.Len(t, calls, 3)
		outer := calls[2]
		assert.Equal(t, time.Second, outer.EndTime().Sub(outer.StartTime()))
		assert.Equal(t, codes.Unset, outer.Status().Code)
		for _, inner := range calls[:2] {
			assert.Equal(t, tries[1].SpanContext().SpanID(), inner.Parent().SpanID())
		}
		assert.Equal(t, "nobody", attrs(calls[0])[attrProvider])
		assert.Equal(t, "unknown_provider", attrs(calls[0])[attrError])
	}, provider.Provider{Slug: "p"})
}

func TestSpanOfALease(t *testing.T) {
	traced(t, func(t *testing.T, c *coordinator.Coordinator, spans *tracetest.SpanRecorder, _ *trace.TracerProvider) {
		l, err := c.Acquire(t.Context(), coordinator.Call{Provider: "p"})
		require.NoError(t, err)
		time.Sleep(time.Second)
		l.Report(provider.Feedback{Outcome: provider.Failed})
		time.Sleep(time.Second)
		l.Release()
		whole, tried := ended(spans, spanCall)[0], ended(spans, spanAttempt)[0]
		assert.Equal(t, whole.SpanContext().SpanID(), tried.Parent().SpanID())
		assert.Equal(t, 2*time.Second, tried.EndTime().Sub(tried.StartTime()))
		assert.Equal(t, whole.StartTime(), tried.StartTime())
		assert.Equal(t, "failed", attrs(tried)[attrOutcome])
		assert.Equal(t, "failed", attrs(whole)[attrError])
	}, provider.Provider{Slug: "p"})
}

// Each scope's pause is told to those it holds up, whoever paused it, and is no more
// told when it is over; what an operator wrote is no attribute.
func TestPausesAreToldToThoseWhoWait(t *testing.T) {
	traced(t, func(t *testing.T, c *coordinator.Coordinator, spans *tracetest.SpanRecorder, _ *trace.TracerProvider) {
		require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p"}, ok))
		require.NoError(t, c.Pause("p", time.Now().Add(time.Minute), "because bob@example.com said so"))
		require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p"}, ok))
		var all sync.WaitGroup
		for range 2 { // a limit, not a pause
			all.Go(func() { assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p"}, takes(time.Second))) })
		}
		all.Wait()
		calls := ended(spans, spanCall)
		require.Len(t, calls, 4)
		assert.Equal(t, map[string]any{attrScope: "provider", attrReason: "manual", "headgate.pause.remaining": 60.0}, event(t, calls[1], eventPaused))
		assert.Contains(t, events(calls[3]), eventWaiting)
		assert.NotContains(t, events(calls[3]), eventPaused)
	}, provider.Provider{Slug: "p", Throttle: provider.Throttle{MaxInFlight: 1}})
}

func TestCoalescedCallsAreLinked(t *testing.T) {
	traced(t, func(t *testing.T, c *coordinator.Coordinator, spans *tracetest.SpanRecorder, tracers *trace.TracerProvider) {
		var leader oteltrace.SpanContext
		require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p"}, func(ctx context.Context) error {
			leader = oteltrace.SpanContextFromContext(ctx)
			return nil
		}))
		ctx, second := tracers.Tracer("program").Start(t.Context(), "second")
		Coalesced(ctx, leader)
		Coalesced(ctx, oteltrace.SpanContext{})
		Coalesced(t.Context(), leader)
		second.End()
		links := ended(spans, "second")[0].Links()
		require.Len(t, links, 1)
		assert.Equal(t, ended(spans, spanAttempt)[0].SpanContext().SpanID(), links[0].SpanContext.SpanID())
	}, provider.Provider{Slug: "p"})
}

// Where the call is not sampled nothing below it is, and contexts stay as they are.
func TestUnsampledCallsHaveUnsampledAttempts(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracers := trace.NewTracerProvider(trace.WithSpanProcessor(spans), trace.WithSampler(trace.ParentBased(trace.NeverSample())))
	tel, err := New(nil, tracers)
	require.NoError(t, err)
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{Slug: "p"}}, Traces: []*coordinator.Trace{tel.Trace()}})
	require.NoError(t, err)
	require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p"}, func(ctx context.Context) error {
		assert.True(t, oteltrace.SpanContextFromContext(ctx).IsValid(), "the decision is handed on")
		_, inner := tracers.Tracer("program").Start(ctx, "inner")
		defer inner.End()
		assert.ErrorIs(t, c.Do(ctx, coordinator.Call{Provider: "nobody"}, ok), coordinator.ErrUnknownProvider)
		return nil
	}))
	l, err := c.Acquire(t.Context(), coordinator.Call{Provider: "p"})
	require.NoError(t, err)
	l.Release()
	assert.Empty(t, spans.Started())
}
