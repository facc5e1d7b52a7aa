package coordinator_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// With x/time/rate the next caller would wait 19.8 s for places that nobody uses.
func TestCancelledWaitersCostNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var went atomic.Int64
		count := func(context.Context) error { went.Add(1); return nil }
		for i := range 1000 {
			mine := ctx
			if i < 60 { // 50 go at once
				mine = t.Context()
			}
			go func() { _ = c.Do(mine, to, count) }()
			if i == 59 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		require.EqualValues(t, 50, went.Load())
		cancel() // 940 of the 950 who wait
		synctest.Wait()
		require.NoError(t, c.Do(t.Context(), to, ok))
		assert.Equal(t, second+1, time.Since(start))
	}, declare(provider.Throttle{RPS: 50}))
}

func TestHundredThousandWaitersLeaveNothingBehind(t *testing.T) {
	p := declare(provider.Throttle{RPS: 1000, MaxQueue: 200_000, MaxWait: provider.Forever})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		n := 100_000
		if testing.Short() {
			n = 10_000
		}
		rng := rand.New(rand.NewPCG(1, 1))
		var wg sync.WaitGroup
		var went, left atomic.Int64
		for i := range n {
			ctx, cancel := context.WithCancel(t.Context())
			if rng.IntN(2) == 0 {
				time.AfterFunc(time.Duration(rng.IntN(5000))*time.Millisecond, cancel)
			}
			wg.Go(func() {
				defer cancel()
				call := to
				call.Flow = string(rune('a' + i%7))
				if err := c.Do(ctx, call, ok); err == nil {
					went.Add(1)
				} else {
					left.Add(1)
				}
			})
		}
		wg.Wait()
		assert.EqualValues(t, n, went.Load()+left.Load())
		s := state(t, c)
		assert.Zero(t, s.Queue.Length)
		assert.Equal(t, went.Load(), s.Granted)
		assert.Zero(t, s.Lingering)
	}, p)
}

func TestFullQueueRefusesAtOnceAndAPlaceIsFreeAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.NoError(t, c.Do(t.Context(), to, ok))
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			go func() { _ = c.Do(ctx, to, ok) }()
		}
		synctest.Wait()
		e := refusal(t, c.Do(t.Context(), to, ok))
		assert.Equal(t, coordinator.ReasonQueueFull, e.Reason)
		assert.Equal(t, coordinator.QueueState{Length: 2, Capacity: 2, Wait: 3*second + 3}, e.Queue)
		assert.Equal(t, second+1, e.RetryAfter)
		cancel()
		synctest.Wait()
		require.NoError(t, c.Do(t.Context(), to, ok))
	}, declare(provider.Throttle{RPS: 1, MaxQueue: 2}))
}

func TestTurnExactlyAtTheDeadlineIsNotTooLate(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.NoError(t, c.Do(t.Context(), to, ok))
		call := to
		call.Wait = second + 1
		require.NoError(t, c.Do(t.Context(), call, ok))
		call.Wait = second
		start := time.Now()
		e := refusal(t, c.Do(t.Context(), call, ok))
		assert.Equal(t, coordinator.ReasonTooLate, e.Reason)
		assert.ErrorIs(t, e, context.DeadlineExceeded)
		assert.Equal(t, second+1, e.RetryAfter)
		assert.Equal(t, "rps", e.Limit.Name)
		assert.Zero(t, time.Since(start), "refused now, not at the deadline")
	}, declare(provider.Throttle{RPS: 1}))
}

func TestPredictionCountsThoseAhead(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.NoError(t, c.Do(t.Context(), to, ok))
		for range 10 {
			go func() { _ = c.Do(t.Context(), to, ok) }()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*second)
		defer cancel()
		e := refusal(t, c.Do(ctx, to, ok))
		assert.Equal(t, coordinator.ReasonTooLate, e.Reason)
		assert.InDelta(t, 11*second, e.RetryAfter, float64(time.Microsecond))
		time.Sleep(20 * second)
	}, declare(provider.Throttle{RPS: 1}))
}

func TestExcessPolicies(t *testing.T) {
	for name, test := range map[string]struct {
		throttle provider.Throttle
		waits    int
		reason   coordinator.Reason
	}{
		"reject":               {provider.Throttle{RPS: 1, Excess: provider.Reject}, 0, coordinator.ReasonRateLimited},
		"reject, leaky burst":  {provider.Throttle{RPS: 1, RPM: 30, Burst: 3, Algorithm: provider.LeakyBucket, Excess: provider.Reject}, 3, coordinator.ReasonRateLimited},
		"delay":                {provider.Throttle{RPS: 1, MaxQueue: 1, Excess: provider.Delay}, 29, coordinator.ReasonTooLate},
		"queue":                {provider.Throttle{RPS: 1, MaxQueue: 5}, 5, coordinator.ReasonQueueFull},
		"queue, short patient": {provider.Throttle{RPS: 1, MaxQueue: 5, MaxWait: 3 * second}, 2, coordinator.ReasonTooLate},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				require.NoError(t, c.Do(t.Context(), to, ok))
				var wg sync.WaitGroup
				var waited, refused atomic.Int64
				for range 40 {
					wg.Go(func() {
						switch err := c.Do(t.Context(), to, ok); {
						case err == nil:
							waited.Add(1)
						default:
							if e := refusal(t, err); e.Reason == test.reason && e.RetryAfter > 0 {
								refused.Add(1)
							}
						}
					})
				}
				wg.Wait()
				assert.EqualValues(t, test.waits, waited.Load())
				assert.EqualValues(t, 40-test.waits, refused.Load())
			}, declare(test.throttle))
		})
	}
}

// The race of grant and cancel, on purpose: the turn of a waiter comes while its
// goroutine is on its way to say that it gives up. Both happen under the lane's
// lock, one after the other: the cancel is seen first, the lock is held until the
// turn has come. The unit of a turn that nobody uses must come back at once.
func TestGrantMeetsCancel(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for range 20 {
			ls, err := c.Acquire(t.Context(), to)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			got := make(chan error, 1)
			asked := false
			go func() {
				got <- c.Do(ctx, to, func(context.Context) error { asked = true; return nil })
			}()
			synctest.Wait()
			c.HoldLane("p", func() {
				cancel()
				for range 100 { // the waiter runs up to the lock
					runtime.Gosched()
				}
			}, ls)
			require.ErrorIs(t, <-got, context.Canceled)
			assert.False(t, asked)
			now := to
			now.Wait = -1
			require.NoError(t, c.Do(t.Context(), now, ok), "the unit of a turn that met its cancel is lost")
			time.Sleep(2 * second)
		}
	}, declare(provider.Throttle{RPS: 1}))
}

func TestFlowsTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for range 500 {
			go func() { _ = c.Do(t.Context(), coordinator.Call{Provider: "p", Flow: "a"}, ok) }()
		}
		synctest.Wait()
		start := time.Now()
		require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Flow: "b"}, ok))
		assert.LessOrEqual(t, time.Since(start), 2*second+2)
		time.Sleep(500 * second)
	}, declare(provider.Throttle{RPS: 1, MaxQueue: 1000}))
}

func TestColdKeyBlocksNobody(t *testing.T) {
	th := limits(provider.Limit{Name: "k", Max: 1, Per: "1h", Scope: provider.ScopeKey})
	th.MaxWait = 3 * time.Hour
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		a, b := to, to
		a.Key, b.Key = "a", "b"
		require.NoError(t, c.Do(t.Context(), a, ok))
		go func() { _ = c.Do(t.Context(), a, ok) }()
		synctest.Wait()
		start := time.Now()
		require.NoError(t, c.Do(t.Context(), b, ok))
		assert.Zero(t, time.Since(start))
		time.Sleep(2 * time.Hour)
	}, declare(th))
}

func TestPressureIsToldOnceAMark(t *testing.T) {
	told := make(chan coordinator.PressureChange, 10)
	tr := &coordinator.Trace{Pressure: func(p coordinator.PressureChange) { told <- p }}
	bubbleWith(t, coordinator.Config{Providers: []provider.Provider{declare(provider.Throttle{RPS: 1, MaxQueue: 10})},
		Traces: []*coordinator.Trace{tr}}, func(t *testing.T, c *coordinator.Coordinator) {
		for range 11 {
			go func() { _ = c.Do(t.Context(), to, ok) }()
			synctest.Wait()
		}
		require.Len(t, told, 1)
		high := <-told
		assert.True(t, high.High)
		assert.Equal(t, 8, high.Queue.Length)
		time.Sleep(20 * second)
		require.Len(t, told, 1)
		low := <-told
		assert.False(t, low.High)
		assert.Equal(t, 5, low.Queue.Length)
	})
}

func TestShutdownRefusesWhoWaitsAndWaitsForWhatIsInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		errs := make(chan error, 2)
		go func() { errs <- c.Do(t.Context(), to, takes(5*second)) }()
		synctest.Wait()
		go func() { errs <- c.Do(t.Context(), to, ok) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		require.ErrorIs(t, c.Shutdown(ctx), context.DeadlineExceeded)
		require.ErrorIs(t, <-errs, coordinator.ErrShutdown)
		require.NoError(t, c.Shutdown(t.Context()))
		require.NoError(t, <-errs)
		require.ErrorIs(t, c.Do(t.Context(), to, ok), coordinator.ErrShutdown)
	}, declare(provider.Throttle{RPS: 1}))
}

// Calendar quotas follow the corrected clock, also for those who wait already: the
// lane looks at the date once a minute while somebody waits for one.
func TestWaitersFollowAClockThatIsSet(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.NoError(t, c.Do(t.Context(), to, ok))
		start := time.Now()
		done := make(chan error, 1)
		go func() { done <- c.Do(t.Context(), to, ok) }()
		synctest.Wait()
		c.WakeAfterStep("p", 23*time.Hour)
		synctest.Wait()
		require.Empty(t, done)
		c.WakeAfterStep("p", 24*time.Hour+time.Minute)
		require.NoError(t, <-done)
		assert.Zero(t, time.Since(start))
	}, declare(provider.Throttle{MaxWait: provider.Forever, Limits: []provider.Limit{{Name: "day", Max: 1, Per: provider.Day}}}))
}
