package telemetry

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNilProvidersMeanNone(t *testing.T) {
	tel, err := New(nil, nil)
	require.NoError(t, err)
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{Slug: "p"}}, Traces: []*coordinator.Trace{tel.Trace()}})
	require.NoError(t, err)
	require.NoError(t, tel.Observe(c))
	require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p"}, ok))
	require.Error(t, c.Do(t.Context(), coordinator.Call{Provider: "nobody"}, ok))
	require.NoError(t, tel.Close())
}

func TestObserveOnceAndClose(t *testing.T) {
	c, reader, tel := metered(t, nil, coordinator.Config{Providers: []provider.Provider{{Slug: "p"}}})
	require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p"}, ok))
	require.ErrorContains(t, tel.Observe(c), "observed already")
	require.ErrorContains(t, tel.Observe(nil), "the coordinator is nil")
	assert.Contains(t, collect(t, reader), "headgate.queue.length")
	require.NoError(t, tel.Close())
	require.NoError(t, tel.Close())
	require.ErrorContains(t, tel.Observe(c), "observed already")
	require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p"}, ok))
	got := collect(t, reader)
	assert.NotContains(t, got, "headgate.queue.length")
	calls, _ := got.find("headgate.call.duration", attrProvider, "p")
	assert.EqualValues(t, 2, calls.count, "the hooks go on")
}

// Before Observe nobody knows which endpoints exist, so a histogram has none.
func TestEndpointsAreKnownFromObserveOn(t *testing.T) {
	reader := metric.NewManualReader()
	tel, err := New(metric.NewMeterProvider(metric.WithReader(reader)), nil)
	require.NoError(t, err)
	c, err := coordinator.New(coordinator.Config{Traces: []*coordinator.Trace{tel.Trace()},
		Providers: []provider.Provider{{Slug: "p", Endpoints: []provider.Endpoint{{Name: "search"}}}}})
	require.NoError(t, err)
	call := coordinator.Call{Provider: "p", Endpoint: "search"}
	require.NoError(t, c.Do(t.Context(), call, ok))
	require.NoError(t, tel.Observe(c))
	require.NoError(t, c.Do(t.Context(), call, ok))
	got := collect(t, reader)
	without, _ := got.find("headgate.call.wait", attrProvider, "p")
	with, _ := got.find("headgate.call.wait", attrProvider, "p", attrEndpoint, "search")
	assert.EqualValues(t, 1, without.count)
	assert.EqualValues(t, 1, with.count)
	require.NoError(t, tel.Close())
}

// What gauges say of a provider that is saturated, paused and broken.
func TestGauges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, reader, _ := metered(t, nil, coordinator.Config{
			Pools: map[string]int{"": 3},
			Providers: []provider.Provider{{Slug: "p", Breaker: provider.Breaker{Failures: 1, Cooldown: time.Minute},
				Endpoints: []provider.Endpoint{{Name: "search"}},
				Throttle: provider.Throttle{MaxQueue: 5, MaxInFlight: 2, Limits: []provider.Limit{
					{Name: "hour", Max: 10, Per: "1h"},
					{Name: "ep", Max: 8, Per: "1m", Scope: provider.ScopeEndpoint},
					{Name: "key", Max: 4, Per: "day", Scope: provider.ScopeKey, Keys: map[string]int64{"big": 6}},
				}}}, {Slug: "other"}}})
		require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "other"}, ok))
		var all sync.WaitGroup
		for i := range 6 {
			key := [...]string{"big", "small"}[i%2]
			all.Go(func() {
				assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Endpoint: "search", Key: key}, takes(10*time.Second)))
			})
			synctest.Wait()
		}
		time.Sleep(time.Second)
		got := collect(t, reader)
		of := func(name string, kv ...string) float64 {
			t.Helper()
			return got.of(t, name, append([]string{attrProvider, "p"}, kv...)...)
		}
		assert.Equal(t, 4.0, of("headgate.queue.length"))
		assert.Equal(t, 5.0, of("headgate.queue.capacity"))
		assert.Equal(t, 1.0, of("headgate.queue.pressure"))
		assert.Equal(t, 1.0, of("headgate.queue.oldest"))
		assert.Equal(t, 2.0, of("headgate.calls.in_flight"))
		assert.Equal(t, 1.0, of("headgate.calls.oldest"))
		assert.Equal(t, 2.0, of("headgate.keys"))
		assert.Equal(t, 1.0, of("headgate.retry.budget"))
		assert.Equal(t, 0.0, of("headgate.pauses"))
		assert.Equal(t, 3.0, got.of(t, "headgate.pool.size"), "once, though two providers show it")
		assert.Equal(t, 2.0, got.of(t, "headgate.pool.in_flight"))
		hour := []string{attrLimit, "hour", attrUnit, "requests", attrScope, "provider"}
		assert.Equal(t, 10.0, of("headgate.limit.max", hour...))
		assert.Equal(t, 8.0, of("headgate.limit.remaining", hour...))
		assert.Equal(t, 0.2, of("headgate.limit.utilization", hour...))
		assert.Equal(t, 3600.0, of("headgate.limit.window", hour...))
		assert.Equal(t, 1.0, of("headgate.limit.origin", append(hour, attrOrigin, "declared")...))
		ep := []string{attrLimit, "ep", attrUnit, "requests", attrScope, "endpoint", attrEndpoint, "search"}
		assert.Equal(t, 6.0, of("headgate.limit.remaining", ep...))
		key := []string{attrLimit, "key", attrUnit, "requests", attrScope, "key"}
		assert.Equal(t, 10.0, of("headgate.limit.max", key...), "both keys")
		assert.Equal(t, 10.0, of("headgate.limit.declared", key...), "each with its own")
		assert.Equal(t, 8.0, of("headgate.limit.remaining", key...))
		assert.Equal(t, 0.25, of("headgate.limit.utilization", key...), "the busiest")
		assert.Equal(t, 2.0, of("headgate.limit.origin", append(key, attrOrigin, "declared")...))
		all.Wait()

		require.Error(t, c.Do(t.Context(), coordinator.Call{Provider: "p"}, answer(provider.Failed, 0)))
		require.NoError(t, c.Pause("p", time.Now().Add(time.Minute), "by hand"))
		got = collect(t, reader)
		for state, want := range map[string]float64{"open": 1, "closed": 0, "half-open": 0} {
			assert.Equal(t, want, of("headgate.breaker.state", attrBreaker, state), state)
		}
		assert.Equal(t, 1.0, of("headgate.pauses", attrScope, "provider", attrReason, "manual"))
		assert.Equal(t, 60.0, of("headgate.pause.remaining", attrScope, "provider", attrReason, "manual"))
		assert.InDelta(t, 3600-20, of("headgate.limit.reset", hour...), 1e-6, "the first was answered 20 s ago")
		assert.Equal(t, 0.0, of("headgate.queue.pressure"))
	})
}

// A limit that answers lowered is below the declared one; an update is a declaration.
func TestLearnedLimitIsBelowTheDeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, reader, _ := metered(t, nil, coordinator.Config{Providers: []provider.Provider{{Slug: "p", Throttle: provider.Throttle{RPM: 60}}}})
		rpm := []string{attrProvider, "p", attrLimit, "rpm", attrUnit, "requests", attrScope, "provider"}
		l, err := c.Acquire(t.Context(), coordinator.Call{Provider: "p"})
		require.NoError(t, err)
		l.Report(provider.Feedback{Budgets: []provider.Budget{{Name: "rpm", Limit: 40, HasLimit: true, Remaining: 39, HasRemaining: true, Reset: time.Minute, HasReset: true, Window: time.Minute}}})
		l.Release()
		got := collect(t, reader)
		assert.Equal(t, 40.0, got.of(t, "headgate.limit.max", rpm...))
		assert.Equal(t, 60.0, got.of(t, "headgate.limit.declared", rpm...))
		assert.Equal(t, 1.0, got.of(t, "headgate.limit.origin", append(rpm, attrOrigin, "learned")...))

		require.NoError(t, c.Update("p", provider.Throttle{RPM: 30}))
		assert.Equal(t, 30.0, collect(t, reader).of(t, "headgate.limit.declared", rpm...))
	})
}

// There may be a million keys that are paused.
func TestPausesRememberedAreBounded(t *testing.T) {
	tel, err := New(nil, nil)
	require.NoError(t, err)
	until := time.Now().Add(time.Hour)
	for i := range 5 * mostPauses {
		tel.paused(coordinator.PauseChange{Provider: "p", Scope: "key", Name: fmt.Sprint(i), Until: until})
	}
	assert.LessOrEqual(t, len(tel.pauses), mostPauses)
	last := coordinator.CallInfo{Provider: "p", Key: fmt.Sprint(5*mostPauses - 1)}
	assert.Len(t, tel.pausesOf(last), 1)
	before := len(tel.pauses)
	tel.paused(coordinator.PauseChange{Provider: "p", Scope: "key", Name: last.Key})
	assert.Empty(t, tel.pausesOf(last))
	assert.Less(t, len(tel.pauses), before, "what is over is forgotten")

	tel.paused(coordinator.PauseChange{Provider: "q", Scope: "provider", Until: time.Now()})
	assert.Empty(t, tel.pausesOf(coordinator.CallInfo{Provider: "q"}), "over, though nobody has told so yet")
}

// Readers collect, calls go and declarations change, all at once.
func TestEverythingAtOnce(t *testing.T) {
	c, reader, tel := metered(t, unsampled(), coordinator.Config{Providers: []provider.Provider{{Slug: "a"}, {Slug: "b"}}})
	var all sync.WaitGroup
	for i := range 4 {
		slug := [...]string{"a", "b"}[i%2]
		all.Go(func() {
			for range 200 {
				assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: slug}, ok))
			}
		})
	}
	all.Go(func() {
		for i := range 20 {
			collect(t, reader)
			assert.NoError(t, c.Update("a", provider.Throttle{RPS: float64(1_000_000 + i)}))
		}
	})
	all.Wait()
	got := collect(t, reader)
	assert.Equal(t, 400.0, got.of(t, "headgate.call.decisions", attrProvider, "a", attrDecision, "admitted"))
	assert.Equal(t, 400.0, got.of(t, "headgate.call.decisions", attrProvider, "b", attrDecision, "admitted"))
	require.NoError(t, tel.Close())
}
