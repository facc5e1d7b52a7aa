package coordinator_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

func fail(t *testing.T, c *coordinator.Coordinator, n int) {
	t.Helper()
	for range n {
		require.Error(t, c.Do(t.Context(), to, answers(provider.Failed, 0)))
	}
}

func TestOpenBreakerSpendsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		fail(t, c, 5)
		before := state(t, c)
		assert.Equal(t, "open", before.Breaker.State)
		for range 100 {
			e := refusal(t, c.Do(t.Context(), to, ok))
			assert.Equal(t, coordinator.ReasonCircuitOpen, e.Reason)
			assert.Equal(t, 30*second+1, e.RetryAfter)
		}
		assert.Equal(t, before.Limits, state(t, c).Limits)
		assert.EqualValues(t, 5, before.Limits[0].Used)
	}, once(provider.Throttle{RPM: 60}))
}

func TestOpeningRefusesAllWhoWait(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var ls []*coordinator.Lease
		for range 5 {
			l, err := c.Acquire(t.Context(), to)
			require.NoError(t, err)
			ls = append(ls, l)
		}
		errs := make(chan error, 20)
		for range 20 {
			go func() { errs <- c.Do(t.Context(), to, ok) }()
		}
		synctest.Wait()
		for _, l := range ls {
			l.Report(provider.Feedback{Outcome: provider.Overloaded})
			l.Release()
		}
		start := time.Now()
		for range 20 {
			e := refusal(t, <-errs)
			assert.Equal(t, coordinator.ReasonCircuitOpen, e.Reason)
			assert.Equal(t, coordinator.StageQueue, e.Stage)
		}
		assert.Zero(t, time.Since(start))
	}, once(provider.Throttle{RPM: 5}))
}

func TestProbeGoesAloneWhileOthersWait(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		fail(t, c, 5)
		time.Sleep(30*second + 1)
		start := time.Now()
		went := calls(t, c, 3, to, second)
		assert.Equal(t, []time.Duration{0, second, second}, went)
		assert.Equal(t, 2*second, time.Since(start))
		assert.Equal(t, "closed", state(t, c).Breaker.State)
	}, once(provider.Throttle{}))
}

func TestFailedProbeRefusesThoseWhoWaitForIt(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		fail(t, c, 5)
		time.Sleep(30*second + 1)
		probe, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		errs := make(chan error, 1)
		go func() { errs <- c.Do(t.Context(), to, ok) }()
		synctest.Wait()
		probe.Report(provider.Feedback{Outcome: provider.Failed})
		probe.Release()
		require.ErrorIs(t, <-errs, coordinator.ErrCircuitOpen)
	}, once(provider.Throttle{}))
}

func TestProbeThatWasNotSentGivesItsPlaceBack(t *testing.T) {
	for name, end := range map[string]func(*coordinator.Lease){
		"forgotten": (*coordinator.Lease).Forget,
		"canceled":  (*coordinator.Lease).Release,
		"ignored":   func(l *coordinator.Lease) { l.Report(provider.Feedback{Outcome: provider.RateLimited}); l.Release() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				fail(t, c, 5)
				time.Sleep(30*second + 1)
				probe, err := c.Acquire(t.Context(), to)
				require.NoError(t, err)
				end(probe)
				require.NoError(t, c.Do(t.Context(), to, ok))
				assert.Equal(t, "closed", state(t, c).Breaker.State)
			}, once(provider.Throttle{}))
		})
	}
}

func TestProbeThatHangsHasFailedAfterItsTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		fail(t, c, 5)
		time.Sleep(30*second + 1)
		probe, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		start := time.Now()
		require.ErrorIs(t, c.Do(t.Context(), to, ok), coordinator.ErrCircuitOpen, "who waited for it is refused when it is overdue")
		assert.Equal(t, time.Minute+1, time.Since(start))
		probe.Report(provider.Feedback{Outcome: provider.OK})
		probe.Release()
		assert.Equal(t, "open", state(t, c).Breaker.State, "the late answer is ignored")
	}, once(provider.Throttle{}))
}

func TestHangingProviderOpensTheBreakerThoughEveryCallerHasADeadline(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for range 20 {
			require.NoError(t, c.Do(t.Context(), to, takes(100*time.Millisecond)))
		}
		for i := range 5 {
			require.Equal(t, "closed", state(t, c).Breaker.State, i)
			ctx, cancel := context.WithTimeout(t.Context(), second)
			e := refusal(t, c.Do(ctx, to, takes(time.Hour)))
			cancel()
			assert.Equal(t, coordinator.ReasonFailed, e.Reason)
		}
		assert.Equal(t, "open", state(t, c).Breaker.State)
	}, once(provider.Throttle{}))
}

func TestImpatientCallersOpenNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for range 20 {
			require.NoError(t, c.Do(t.Context(), to, takes(time.Second)))
		}
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*second)
			e := refusal(t, c.Do(ctx, to, takes(time.Hour)))
			cancel()
			assert.Equal(t, coordinator.ReasonCanceled, e.Reason)
		}
		assert.Equal(t, "closed", state(t, c).Breaker.State)
	}, once(provider.Throttle{}))
}

func TestDeclaredTimeoutIsAFailure(t *testing.T) {
	p := once(provider.Throttle{})
	p.Timeout = second
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for range 5 {
			e := refusal(t, c.Do(t.Context(), to, takes(time.Hour)))
			assert.Equal(t, coordinator.ReasonFailed, e.Reason)
			assert.True(t, e.Answer.Unanswered)
		}
		assert.Equal(t, "open", state(t, c).Breaker.State)
	}, p)
}

func TestUnclassifiableErrorsOpenNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		gone := errors.New("not found")
		for range 20 {
			err := c.Do(t.Context(), to, func(context.Context) error { return gone })
			require.ErrorIs(t, err, gone)
			assert.Equal(t, coordinator.ReasonUnknown, refusal(t, err).Reason)
		}
		assert.Equal(t, "closed", state(t, c).Breaker.State)
	}, once(provider.Throttle{}))
}

func TestOurOwnRefusalsAndTheProvidersLimitsNeverCount(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		now := to
		now.Wait = -1
		for range 20 {
			_ = c.Do(t.Context(), now, ok)
			_ = c.Do(t.Context(), now, func(ctx context.Context) error { return c.Do(ctx, coordinator.Call{Provider: "nobody"}, ok) })
		}
		for range 20 {
			require.NoError(t, c.Resume("p"))
			_ = c.Do(t.Context(), to, answers(provider.RateLimited, time.Millisecond))
		}
		s := state(t, c)
		assert.Equal(t, "closed", s.Breaker.State)
		assert.Zero(t, s.Breaker.Failures)
	}, once(provider.Throttle{RPM: 25}))
}

func TestBreakerIsAskedWhileTheLaneIsPausedOrFull(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		fail(t, c, 5)
		require.NoError(t, c.Pause("p", time.Now().Add(time.Hour), "test"))
		e := refusal(t, c.Do(t.Context(), to, ok))
		assert.Equal(t, coordinator.ReasonCircuitOpen, e.Reason)
	}, once(provider.Throttle{}))
}

// A transport knows that a request was never written, and gives its units back. But
// a provider that cannot be reached has failed, and what was not sent may be sent
// again.
func TestProviderThatCannotBeReachedOpensTheBreakerAndCostsNothing(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		tries := 0
		dial := func(ctx context.Context) error {
			tries++
			ls, _ := coordinator.LeaseFrom(ctx)
			ls.Forget()
			return refused
		}
		e := refusal(t, c.Do(t.Context(), to, dial))
		assert.Equal(t, 3, tries, "though it is not replayable")
		assert.Equal(t, coordinator.ReasonFailed, e.Reason)
		require.Error(t, c.Do(t.Context(), to, dial))
		s := state(t, c)
		assert.Equal(t, "open", s.Breaker.State)
		assert.Zero(t, s.Limits[0].Used+s.Limits[0].Held)
		time.Sleep(31 * second)
		assert.Panics(t, func() {
			_ = c.Do(t.Context(), to, func(ctx context.Context) error {
				ls, _ := coordinator.LeaseFrom(ctx)
				ls.Forget()
				panic("boom")
			})
		})
		require.NoError(t, c.Do(t.Context(), to, ok), "the probe's place is back")
	}, declare(provider.Throttle{RPM: 10}))
}
