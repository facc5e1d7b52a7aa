package coordinator_test

import (
	"context"
	"runtime"
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

// A hook that panics is the program's own fault, but it must not cost the provider's
// slots: the program may well go on.
func TestPanicInAHookLeavesNothingTaken(t *testing.T) {
	boom := func() { panic("boom") }
	for name, tr := range map[string]*coordinator.Trace{
		"going":   {Going: func(context.Context, coordinator.CallInfo, time.Duration) { boom() }},
		"waiting": {Waiting: func(context.Context, coordinator.CallInfo, coordinator.QueueState) { boom() }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // not bubble: Shutdown would wait for ever
				c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{once(provider.Throttle{MaxInFlight: 1})}, Traces: []*coordinator.Trace{tr}})
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for range 3 {
					go func() {
						defer func() { _ = recover() }()
						_ = c.Do(ctx, to, takes(second))
					}()
				}
				time.Sleep(10 * second)
				assert.Zero(t, state(t, c).InFlight)
				assert.Zero(t, state(t, c).Queue.Length)
			})
		})
	}
}
