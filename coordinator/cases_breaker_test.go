package coordinator_test

import (
	"context"
	"errors"
	"fmt"
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

// One refusal with advice holds everybody who waits, not only its own caller.
func TestCase33_OneRetryAfterHoldsAllWhoWait(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		ls, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		var refusedAt time.Time
		var wg sync.WaitGroup
		var went atomic.Int64
		for range 50 {
			wg.Go(func() {
				assert.NoError(t, c.Do(t.Context(), to, func(ctx context.Context) error {
					assert.GreaterOrEqual(t, time.Since(refusedAt), time.Minute)
					went.Add(1)
					return sleep(ctx, 10*ms)
				}))
			})
		}
		synctest.Wait()
		require.Equal(t, 50, state(t, c).Queue.Length)
		time.Sleep(300 * ms)
		refusedAt = time.Now()
		ls.Report(provider.Feedback{Outcome: provider.RateLimited, RetryAfter: time.Minute})
		ls.Release()
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		assert.Zero(t, went.Load())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.EqualValues(t, 1, went.Load(), "then one goes alone")
		wg.Wait()
		assert.EqualValues(t, 50, went.Load())
	}, declare(provider.Throttle{RPS: 1}))
}

// Shorter advice that comes later does not shorten a pause; longer advice moves it.
func TestCase34_APauseIsOnlyEverExtended(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		var ls []*coordinator.Lease
		for range 4 {
			l, err := c.Acquire(t.Context(), to)
			require.NoError(t, err)
			ls = append(ls, l)
		}
		told := func(i int, advice time.Duration) time.Duration {
			ls[i].Report(provider.Feedback{Outcome: provider.RateLimited, RetryAfter: advice})
			ls[i].Release()
			return state(t, c).Pauses[0].Until.Sub(start)
		}
		waits := make(chan time.Duration)
		assert.Equal(t, 60*second, told(0, 60*second))
		go func() {
			assert.NoError(t, c.Do(t.Context(), to, ok))
			waits <- time.Since(start)
		}()
		time.Sleep(20 * second)
		assert.Equal(t, 60*second, told(1, 10*second))
		assert.Equal(t, 60*second, told(2, 40*second), "the same instant")
		assert.Equal(t, 140*second, told(3, 120*second))
		assert.Equal(t, 140*second, <-waits, "who waits learns of it")
	}, once(provider.Throttle{}))
}

// Twenty refusals are a provider that works, twenty failures one that does not.
func TestCase36_LimitsAreNoFailures(t *testing.T) {
	for outcome, want := range map[provider.Outcome]string{provider.RateLimited: "closed", provider.Failed: "open"} {
		t.Run(string(outcome), func(t *testing.T) {
			p := once(provider.Throttle{})
			p.Breaker.Failures = 20
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				for range 20 {
					require.Equal(t, "closed", state(t, c).Breaker.State)
					require.Error(t, c.Do(t.Context(), to, answers(outcome, second)))
				}
				assert.Equal(t, want, state(t, c).Breaker.State)
			}, p)
		})
	}
}

// What we refuse ourselves says nothing of the provider: it neither adds to the
// failures in a row nor ends the row.
func TestCase36_OurOwnRefusalsMoveNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		fail(t, c, 4)
		out, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		now, soon := to, to
		now.Wait = -1
		ctx, giveUp := context.WithCancel(t.Context())
		for range 2 {
			go func() { assert.ErrorIs(t, c.Do(ctx, soon, ok), context.Canceled) }()
		}
		synctest.Wait()
		for range 10 {
			require.ErrorIs(t, c.Do(t.Context(), to, ok), coordinator.ErrQueueFull)
			require.ErrorIs(t, c.Do(t.Context(), now, ok), coordinator.ErrRateLimited)
		}
		giveUp()
		synctest.Wait()
		require.ErrorIs(t, c.Do(ctx, to, ok), context.Canceled)
		out.Forget()
		canceled, cancel := context.WithCancel(t.Context())
		require.Error(t, c.Do(canceled, to, func(context.Context) error { cancel(); return canceled.Err() }))
		require.Error(t, c.Do(t.Context(), to, func(context.Context) error {
			return fmt.Errorf("inside: %w", &coordinator.Error{Reason: coordinator.ReasonQueueFull})
		}))
		s := state(t, c).Breaker
		assert.Equal(t, "closed", s.State)
		assert.Equal(t, 4, s.Failures)
		fail(t, c, 1)
		assert.Equal(t, "open", state(t, c).Breaker.State, "the row was not broken")
	}, once(provider.Throttle{MaxInFlight: 1, MaxQueue: 2}))
}

// Half-open lets through as many probes as declared and no more; one that was given
// up, or that says nothing, lets another go in its place.
func TestCase36_AsManyProbesAsDeclared(t *testing.T) {
	p := once(provider.Throttle{})
	p.Breaker = provider.Breaker{Failures: 5, Cooldown: 30 * second, Probes: 3}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		fail(t, c, 5)
		time.Sleep(30*second + 1)
		now := to
		now.Wait = -1
		var probes []*coordinator.Lease
		take := func(n int) {
			t.Helper()
			for range n {
				ls, err := c.Acquire(t.Context(), now)
				require.NoError(t, err)
				probes = append(probes, ls)
			}
			e := refusal(t, c.Do(t.Context(), now, ok))
			require.Equal(t, coordinator.ReasonCircuitOpen, e.Reason, "%d probes are out", n)
			assert.Positive(t, e.RetryAfter)
		}
		take(3)
		probes[0].Release() // cancelled
		take(1)
		probes[1].Report(provider.Feedback{Outcome: provider.Unknown}) // ignored
		probes[1].Release()
		take(1)
		assert.Equal(t, "half-open", state(t, c).Breaker.State)
		for _, ls := range probes[2:] {
			ls.Report(provider.Feedback{})
			ls.Release()
		}
		assert.Equal(t, "closed", state(t, c).Breaker.State)
	}, p)
}

// A retry is a call like any other to the limits, is as early as it first was to
// those who wait, and holds no slot while it does.
func TestCase37_ARetryTakesNewPermitsInItsPlaceWithoutASlot(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		var mu sync.Mutex
		var order []string
		note := func(name string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, fmt.Sprintf("%s %v", name, time.Since(start).Truncate(100*ms)))
		}
		call := to
		call.Replayable = true
		tries := 0
		var wg sync.WaitGroup
		wg.Go(func() {
			assert.NoError(t, c.Do(t.Context(), call, func(ctx context.Context) error {
				tries++
				note(fmt.Sprint("first, try ", tries))
				if tries == 1 {
					return provider.Feedback{Outcome: provider.Failed, RetryAfter: 10 * second}.Err(nil)
				}
				return sleep(ctx, 100*ms)
			}))
		})
		synctest.Wait()
		wg.Go(func() {
			assert.NoError(t, c.Do(t.Context(), to, func(ctx context.Context) error {
				note("second, in its slot")
				return sleep(ctx, 20*second)
			}))
		})
		synctest.Wait()
		time.Sleep(second)
		wg.Go(func() {
			assert.NoError(t, c.Do(t.Context(), to, func(context.Context) error { note("third"); return nil }))
		})
		wg.Wait()
		assert.Equal(t, []string{"first, try 1 0s", "second, in its slot 0s", "first, try 2 20s", "third 20.1s"}, order)
		s := state(t, c)
		assert.EqualValues(t, 4, s.Limits[0].Used, "each attempt is a request")
		assert.EqualValues(t, 4, s.Granted)
		assert.EqualValues(t, 1, s.Retries)
	}, declare(provider.Throttle{RPM: 10, MaxInFlight: 1}))
}

// An adapter whose own client retries (each time through the gate) does not multiply
// what one call may ask of the provider.
func TestCase37_NestedRetriesDoNotMultiply(t *testing.T) {
	p := declare(provider.Throttle{})
	p.Breaker.Off = true
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		call := to
		call.Replayable = true
		asked := 0
		err := c.Do(t.Context(), call, func(ctx context.Context) error {
			return c.Do(ctx, call, func(context.Context) error {
				asked++
				return provider.Feedback{Outcome: provider.Failed}.Err(errors.New("again"))
			})
		})
		require.Error(t, err)
		assert.LessOrEqual(t, asked, 3, "the attempts of one call")
	}, p)
}

// However many calls fail at once, and whatever loop each has inside, what is sent
// again stays within the provider's budget, and nothing goes without a permit.
func TestCase37_AllRetriesTogetherStayWithinTheBudget(t *testing.T) {
	p := declare(provider.Throttle{RPM: 1_000_000})
	p.Breaker.Off = true
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		call := to
		call.Replayable = true
		var asked atomic.Int64
		for range 100 {
			go func() {
				_ = c.Do(t.Context(), call, func(ctx context.Context) (err error) {
					for range 3 { // the loop of the adapter's own client
						err = c.Do(ctx, to, func(context.Context) error {
							asked.Add(1)
							return provider.Feedback{Outcome: provider.Failed}.Err(errors.New("again"))
						})
					}
					return err
				})
			}()
		}
		time.Sleep(time.Minute)
		s := state(t, c)
		assert.LessOrEqual(t, s.Retries, int64(80), "a fifth of what was asked for: retries earn no further ones")
		assert.Positive(t, s.Retries)
		assert.Equal(t, 3*(100+s.Retries), asked.Load())
		assert.Equal(t, 100+s.Retries+asked.Load(), s.Granted, "each with a permit of its own")
	}, p)
}
