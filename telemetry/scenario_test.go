package telemetry

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// script plays calls of every fate and keeps what must have been counted.
type script struct {
	t *testing.T
	c *coordinator.Coordinator

	calls    int
	decided  map[[4]string]float64 // provider, endpoint, decision, reason
	outcomes map[[2]string]float64 // provider, outcome
	retries  map[string]float64
}

func (s *script) expect(p, endpoint, decision string, reason coordinator.Reason, n int) {
	s.decided[[4]string{p, endpoint, decision, string(reason)}] += float64(n)
}

func (s *script) answered(p string, o provider.Outcome, n int) {
	s.outcomes[[2]string{p, string(o)}] += float64(n)
}

// do makes a call and checks its end: "" for nil.
func (s *script) do(ctx context.Context, call coordinator.Call, fn func(context.Context) error, want coordinator.Reason) {
	s.calls++
	s.ended(s.c.Do(ctx, call, fn), want)
}

func (s *script) ended(err error, want coordinator.Reason) {
	if want == "" {
		assert.NoError(s.t, err)
		return
	}
	var e *coordinator.Error
	if assert.ErrorAs(s.t, err, &e) {
		assert.Equal(s.t, want, e.Reason)
	}
}

// refuse makes n calls that never go.
func (s *script) refuse(n int, call coordinator.Call, endpoint string, reason coordinator.Reason) {
	ctx, cancel := context.WithCancel(s.t.Context())
	if reason == coordinator.ReasonCanceled {
		cancel()
	}
	defer cancel()
	for range n {
		s.do(ctx, call, func(context.Context) error {
			s.t.Error("a refused call went")
			return nil
		}, reason)
	}
	s.expect(call.Provider, endpoint, "refused", reason, n)
}

// admit makes n calls that go and end so.
func (s *script) admit(n int, call coordinator.Call, fn func(context.Context) error, o provider.Outcome) {
	reason := coordinator.Reason(o)
	if o == provider.OK {
		reason = ""
	}
	for range n {
		s.do(s.t.Context(), call, fn, reason)
	}
	s.expect(call.Provider, call.Endpoint, "admitted", "", n)
	s.answered(call.Provider, o, n)
}

func scenarioProviders() []provider.Provider {
	hourly := []provider.Limit{{Name: "hourly", Max: 1, Per: "1h"}}
	return []provider.Provider{
		{Slug: "free", Category: "web", Endpoints: []provider.Endpoint{{Name: "search"}, {Name: "fetch"}}, Breaker: provider.Breaker{Off: true},
			Throttle: provider.Throttle{Limits: []provider.Limit{{Name: "per endpoint", Max: 1000, Per: "1m", Scope: provider.ScopeEndpoint}}}},
		{Slug: "strict", Throttle: provider.Throttle{Limits: hourly, Excess: provider.Reject}},
		{Slug: "late", Throttle: provider.Throttle{Limits: hourly}},
		{Slug: "queue", Throttle: provider.Throttle{RPS: 1, MaxQueue: 5, Limits: []provider.Limit{{Name: "each", Max: 5, Per: "1m", Scope: provider.ScopeKey}}}},
		{Slug: "broken", Breaker: provider.Breaker{Failures: 3, Cooldown: time.Hour}},
		{Slug: "flaky"},
		{Slug: "limited"},
		{Slug: "spent", Throttle: provider.Throttle{Limits: []provider.Limit{{Name: "daily", Max: 1000, Per: "24h"}}}},
		{Slug: "banned", Throttle: provider.Throttle{Penalty: 48 * time.Hour}},
	}
}

func TestScenarioOfAThousandCallsIsCountedExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, reader, _ := metered(t, nil, coordinator.Config{Providers: scenarioProviders(), Pools: map[string]int{"": 900}})
		s := play(t, c)
		s.check(collect(t, reader))
	})
}

// Spans count nothing and lose nothing: one a call, one an attempt.
func TestScenarioHasASpanForEachCallAndAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		c, reader, _ := metered(t, trace.NewTracerProvider(trace.WithSpanProcessor(spans)), coordinator.Config{Providers: scenarioProviders()})
		s := play(t, c)
		s.check(collect(t, reader))
		named := map[string]int{}
		for _, span := range spans.Ended() {
			named[span.Name()]++
			for _, kv := range span.Attributes() {
				assert.NotContains(t, kv.Value.String(), "secret")
			}
			assert.NotContains(t, span.Status().Description, "secret")
		}
		attempts := 0.0
		for _, n := range s.outcomes {
			attempts += n
		}
		assert.Equal(t, map[string]int{spanCall: 1000, spanAttempt: int(attempts)}, named)
		assert.Len(t, spans.Started(), len(spans.Ended()))
	})
}

func play(t *testing.T, c *coordinator.Coordinator) *script {
	s := &script{t: t, c: c, decided: map[[4]string]float64{}, outcomes: map[[2]string]float64{}, retries: map[string]float64{}}
	s.plain()
	s.queued()
	s.repeated()
	s.told()
	s.leases()
	s.retriesGivenUp()
	s.refuse(20, coordinator.Call{Provider: "nobody"}, "", coordinator.ReasonUnknownProvider)
	require.NoError(t, c.Shutdown(t.Context()))
	s.refuse(1000-s.calls, coordinator.Call{Provider: "free", Endpoint: "fetch"}, "fetch", coordinator.ReasonShutdown)
	return s
}

// plain are calls that go at once or are refused at once.
func (s *script) plain() {
	s.admit(400, coordinator.Call{Provider: "free", Endpoint: "search"}, ok, provider.OK)
	s.admit(100, coordinator.Call{Provider: "free"}, ok, provider.OK)
	s.admit(1, coordinator.Call{Provider: "strict"}, ok, provider.OK)
	s.refuse(49, coordinator.Call{Provider: "strict"}, "", coordinator.ReasonRateLimited)
	s.refuse(20, coordinator.Call{Provider: "strict", Cost: map[string]int64{provider.Requests: 2}}, "", coordinator.ReasonTooHeavy)
	s.refuse(20, coordinator.Call{Provider: "free", Endpoint: "nowhere"}, "", coordinator.ReasonInvalid)
	s.refuse(20, coordinator.Call{Provider: "free", Endpoint: "search"}, "search", coordinator.ReasonCanceled)
	for range 10 { // declared without an adapter
		_, err := s.c.Execute(s.t.Context(), coordinator.Call{Provider: "free"}, provider.Query{})
		s.ended(err, coordinator.ReasonInvalid)
		s.calls++
	}
	s.expect("free", "", "refused", coordinator.ReasonInvalid, 10)
	s.admit(1, coordinator.Call{Provider: "late"}, ok, provider.OK)
	s.refuse(20, coordinator.Call{Provider: "late", Wait: time.Minute}, "", coordinator.ReasonTooLate)
	s.admit(3, coordinator.Call{Provider: "broken"}, answer(provider.Failed, 0), provider.Failed)
	s.refuse(27, coordinator.Call{Provider: "broken"}, "", coordinator.ReasonCircuitOpen)
}

// queued are 50 calls to a queue of 5 places: 1 goes, 5 wait of which 2 give up.
func (s *script) queued() {
	var all sync.WaitGroup
	call := coordinator.Call{Provider: "queue", Key: "a", Flow: "someone"}
	s.admit(1, call, ok, provider.OK)
	for i := range 5 {
		ctx, cancel := context.WithCancel(s.t.Context())
		want := coordinator.Reason("")
		if i < 2 {
			want = coordinator.ReasonCanceled
			time.AfterFunc(time.Duration(i+1)*time.Millisecond, cancel)
		}
		s.calls++
		all.Go(func() {
			defer cancel()
			s.ended(s.c.Do(ctx, call, ok), want)
		})
		synctest.Wait()
	}
	s.refuse(44, call, "", coordinator.ReasonQueueFull)
	all.Wait()
	s.expect("queue", "", "refused", coordinator.ReasonCanceled, 2)
	s.expect("queue", "", "admitted", "", 3)
	s.answered("queue", provider.OK, 3)
}

// repeated are calls that need three attempts, or wait for a pause to end.
func (s *script) repeated() {
	for range 20 {
		tries := 0
		s.do(s.t.Context(), coordinator.Call{Provider: "flaky", Replayable: true}, func(ctx context.Context) error {
			if tries++; tries < 3 {
				return answer(provider.Failed, 0)(ctx)
			}
			return nil
		}, "")
		time.Sleep(time.Minute)
	}
	s.expect("flaky", "", "admitted", "", 20)
	s.answered("flaky", provider.Failed, 40)
	s.answered("flaky", provider.OK, 20)
	s.retries["flaky"] = 40

	var tries atomic.Int32
	var all sync.WaitGroup
	for range 10 {
		s.calls++
		all.Go(func() {
			s.ended(s.c.Do(s.t.Context(), coordinator.Call{Provider: "limited"}, func(ctx context.Context) error {
				if tries.Add(1) == 1 {
					return answer(provider.RateLimited, 5*time.Second)(ctx)
				}
				return nil
			}), "")
		})
		synctest.Wait()
	}
	all.Wait()
	s.expect("limited", "", "admitted", "", 10)
	s.answered("limited", provider.RateLimited, 1)
	s.answered("limited", provider.OK, 10)
	s.retries["limited"] = 1
}

// told are calls that end with every other outcome, and what these bring.
func (s *script) told() {
	for o, n := range map[provider.Outcome]int{provider.Rejected: 10, provider.Unauthorized: 2, provider.Overloaded: 2, provider.Canceled: 3} {
		s.admit(n, coordinator.Call{Provider: "free", Endpoint: "search"}, answer(o, 0), o)
	}
	s.admit(10, coordinator.Call{Provider: "free", Endpoint: "search"}, func(context.Context) error { return errors.New("what?") }, provider.Unknown)
	s.admit(1, coordinator.Call{Provider: "spent"}, answer(provider.QuotaSpent, 36*time.Hour), provider.QuotaSpent)
	s.refuse(10, coordinator.Call{Provider: "spent", Wait: -1}, "", coordinator.ReasonQuotaSpent)
	s.admit(1, coordinator.Call{Provider: "banned"}, answer(provider.Banned, 0), provider.Banned)
	s.refuse(10, coordinator.Call{Provider: "banned", Wait: -1}, "", coordinator.ReasonBanned)
}

// leases are calls that are not functions.
func (s *script) leases() {
	for i := range 50 {
		s.calls++
		l, err := s.c.Acquire(s.t.Context(), coordinator.Call{Provider: "free", Endpoint: "fetch"})
		require.NoError(s.t, err)
		if i < 40 {
			l.Report(provider.Feedback{})
		}
		l.Release()
		l.Release()
	}
	s.expect("free", "fetch", "admitted", "", 50)
	s.answered("free", provider.OK, 40)
	s.answered("free", provider.Canceled, 10)
}

// retriesGivenUp are calls that went, and give up behind the pause that they began:
// a refusal, which is no second decision.
func (s *script) retriesGivenUp() {
	for range 5 {
		ctx, cancel := context.WithCancel(s.t.Context())
		time.AfterFunc(time.Second, cancel)
		s.do(ctx, coordinator.Call{Provider: "limited"}, answer(provider.RateLimited, 5*time.Second), coordinator.ReasonCanceled)
		time.Sleep(time.Minute)
	}
	s.expect("limited", "", "admitted", "", 5)
	s.answered("limited", provider.RateLimited, 5)
	s.retries["limited"] += 5
}
