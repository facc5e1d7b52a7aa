package coordinator_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// Whoever counts calls in flight by the hooks must see each end, however it ends.
func TestTraceTellsTheEndHoweverACallEnds(t *testing.T) {
	release, forget := (*coordinator.Lease).Release, (*coordinator.Lease).Forget
	answer := func(ls *coordinator.Lease) { ls.Report(provider.Feedback{}) }
	lease := func(use ...func(*coordinator.Lease)) func(*testing.T, *coordinator.Coordinator, coordinator.Call) {
		return func(t *testing.T, c *coordinator.Coordinator, call coordinator.Call) {
			ls, err := c.Acquire(t.Context(), call)
			require.NoError(t, err)
			for _, f := range use {
				f(ls)
			}
		}
	}
	for name, run := range map[string]func(*testing.T, *coordinator.Coordinator, coordinator.Call){
		"panic": func(t *testing.T, c *coordinator.Coordinator, call coordinator.Call) {
			assert.Panics(t, func() { _ = c.Do(t.Context(), call, func(context.Context) error { panic("boom") }) })
		},
		"goexit": func(t *testing.T, c *coordinator.Coordinator, call coordinator.Call) {
			go func() { _ = c.Do(t.Context(), call, func(context.Context) error { runtime.Goexit(); return nil }) }()
			synctest.Wait()
		},
		"forgotten inside": func(t *testing.T, c *coordinator.Coordinator, call coordinator.Call) {
			assert.Error(t, c.Do(t.Context(), call, func(ctx context.Context) error {
				ls, _ := coordinator.LeaseFrom(ctx)
				ls.Forget()
				return context.Canceled
			}))
		},
		"lease released":  lease(release, release), //nolint:gocritic // twice is what it is about
		"lease answered":  lease(answer, release),
		"lease forgotten": lease(forget),
		"and released":    lease(forget, release, release), //nolint:gocritic // likewise
		"after sending":   lease((*coordinator.Lease).Sent, forget),
		"after answering": lease(answer, forget, release),
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.loose = true
			bubbleWith(t, coordinator.Config{Providers: []provider.Provider{once(provider.Throttle{})}, Traces: []*coordinator.Trace{s.trace()}},
				func(t *testing.T, c *coordinator.Coordinator) {
					run(t, c, coordinator.Call{Provider: "p", Flow: "it"})
					assert.Equal(t, "gae", s.steps["it"])
				})
		})
	}
}

// What State counts by reason is what callers and hooks were told.
func TestStateCountsRefusalsByTheReasonTold(t *testing.T) {
	s := newStory(t)
	s.loose = true
	p := declare(provider.Throttle{RPM: 20})
	p.Breaker.Failures = 1
	bubbleWith(t, coordinator.Config{Providers: []provider.Provider{p}, Traces: []*coordinator.Trace{s.trace()}}, func(t *testing.T, c *coordinator.Coordinator) {
		now, patient := to, to
		now.Wait, patient.Wait = -1, 10*second
		for _, outcome := range []provider.Outcome{provider.Banned, provider.QuotaSpent} {
			require.Error(t, c.Do(t.Context(), to, answers(outcome, time.Hour)))
			require.Error(t, c.Do(t.Context(), now, ok))
			require.NoError(t, c.Resume("p"))
		}
		require.Error(t, c.Do(t.Context(), patient, answers(provider.RateLimited, time.Minute)), "refused on its way to the next try")
		require.NoError(t, c.Resume("p"))
		require.Error(t, c.Do(t.Context(), to, answers(provider.Failed, 0)))
		time.Sleep(31 * second)
		probe, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		require.Error(t, c.Do(t.Context(), now, ok))
		probe.Release()
		assert.Equal(t, s.refused, state(t, c).Refused)
	})
}

func TestTraceCountsTheOnlyTryOfALease(t *testing.T) {
	recorded(t, declare(provider.Throttle{}), func(t *testing.T, c *coordinator.Coordinator, r *record) {
		ls, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		ls.Report(provider.Feedback{})
		ls.Release()
		assert.Equal(t, []string{"going p////0 try 1 after 0s", "attempt p////0 try 1 ok in 0s", "end p////0 try 1 in 0s, error false"}, r.take())
	})
}

func TestTraceTellsOfANilFunction(t *testing.T) {
	s := newStory(t)
	bubbleWith(t, coordinator.Config{Providers: []provider.Provider{declare(provider.Throttle{})}, Traces: []*coordinator.Trace{s.trace()}},
		func(t *testing.T, c *coordinator.Coordinator) {
			require.Error(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Flow: "it"}, nil))
			assert.Equal(t, "r", s.steps["it"], "a refusal like any other")
		})
}

// A lease that was never sent is a call that was cancelled.
func TestTraceTellsAForgottenLeaseAsCanceled(t *testing.T) {
	recorded(t, declare(provider.Throttle{}), func(t *testing.T, c *coordinator.Coordinator, r *record) {
		ls, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		ls.Forget()
		ls.Release()
		assert.Equal(t, []string{"attempt p////0 try 1 canceled in 0s", "end p////0 try 1 in 0s, error true"}, r.take()[1:])
	})
}

// A hook that panics breaks no call; it is told once.
func TestPanicInAHookBreaksNothing(t *testing.T) {
	ctxOf := func(context.Context, coordinator.CallInfo) context.Context { panic("boom") }
	for name, tr := range map[string]*coordinator.Trace{
		"Begin":    {Begin: ctxOf},
		"Try":      {Try: ctxOf},
		"Going":    {Going: func(context.Context, coordinator.CallInfo, time.Duration) { panic("boom") }},
		"Waiting":  {Waiting: func(context.Context, coordinator.CallInfo, coordinator.QueueState) { panic("boom") }},
		"Attempt":  {Attempt: func(context.Context, coordinator.CallInfo, provider.Feedback, time.Duration) { panic("boom") }},
		"End":      {End: func(context.Context, coordinator.CallInfo, error, time.Duration) { panic("boom") }},
		"Refused":  {Refused: func(context.Context, coordinator.CallInfo, *coordinator.Error) { panic("boom") }},
		"Breaker":  {Breaker: func(coordinator.BreakerChange) { panic("boom") }},
		"Paused":   {Paused: func(coordinator.PauseChange) { panic("boom") }},
		"Pressure": {Pressure: func(coordinator.PressureChange) { panic("boom") }},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			tr.Panicked = func(hook string, value any) {
				told = append(told, hook)
				assert.Equal(t, "boom", value)
				panic("again")
			}
			p := once(provider.Throttle{MaxInFlight: 1, MaxQueue: 2})
			p.Breaker = provider.Breaker{Failures: 2, Cooldown: second}
			bubbleWith(t, coordinator.Config{Providers: []provider.Provider{p}, Traces: []*coordinator.Trace{tr}}, func(t *testing.T, c *coordinator.Coordinator) {
				var all sync.WaitGroup
				for range 3 {
					all.Go(func() { assert.NoError(t, c.Do(t.Context(), to, takes(second))) })
				}
				synctest.Wait()
				require.ErrorIs(t, c.Do(t.Context(), to, never(t)), coordinator.ErrQueueFull)
				require.ErrorIs(t, c.Do(t.Context(), to, never(t)), coordinator.ErrQueueFull)
				all.Wait()
				require.Error(t, c.Do(t.Context(), to, answers(provider.RateLimited, second)))
				for range 2 {
					require.Error(t, c.Do(t.Context(), to, answers(provider.Failed, 0)))
				}
				time.Sleep(2 * second)
				require.NoError(t, c.Do(t.Context(), to, ok))
				assert.Equal(t, []string{name}, told, "once")
			})
		})
	}
}

// Contexts that hooks make reach the function, its hooks, and nested calls.
func TestHooksMakeContexts(t *testing.T) {
	type key string
	var seen []any
	tr := &coordinator.Trace{
		Begin: func(ctx context.Context, _ coordinator.CallInfo) context.Context {
			return context.WithValue(ctx, key("call"), "c")
		},
		Try: func(ctx context.Context, info coordinator.CallInfo) context.Context {
			return context.WithValue(ctx, key("try"), info.Attempt)
		},
		Attempt: func(ctx context.Context, _ coordinator.CallInfo, _ provider.Feedback, _ time.Duration) {
			seen = append(seen, ctx.Value(key("call")), ctx.Value(key("try")))
		},
		End: func(ctx context.Context, _ coordinator.CallInfo, _ error, _ time.Duration) {
			seen = append(seen, ctx.Value(key("call")), ctx.Value(key("try")))
		},
	}
	p := declare(provider.Throttle{})
	p.Retry = provider.Retry{Base: second}
	bubbleWith(t, coordinator.Config{Providers: []provider.Provider{p}, Traces: []*coordinator.Trace{tr, {Begin: func(context.Context, coordinator.CallInfo) context.Context { return nil }}}}, func(t *testing.T, c *coordinator.Coordinator) {
		call := to
		call.Replayable = true
		tries := 0
		require.NoError(t, c.Do(t.Context(), call, func(ctx context.Context) error {
			tries++
			assert.Equal(t, "c", ctx.Value(key("call")))
			assert.Equal(t, tries, ctx.Value(key("try")))
			_, leased := coordinator.LeaseFrom(ctx)
			assert.True(t, leased)
			if tries == 1 {
				return provider.Feedback{Outcome: provider.Failed}.Err(nil)
			}
			return nil
		}))
		assert.Equal(t, []any{"c", 1, "c", 2, "c", nil}, seen)
	})
}
