package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// Advice below 0 is no advice: the floor holds, not an instant in the past.
func TestAdviceBelowZeroIsNone(t *testing.T) {
	for _, outcome := range []provider.Outcome{provider.RateLimited, provider.Banned} {
		t.Run(string(outcome), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				require.Error(t, c.Do(t.Context(), to, answers(outcome, -time.Hour)))
				assert.Equal(t, 10*second, until(t, c))
			}, once(provider.Throttle{Penalty: 10 * second}))
		})
	}
}

// Advice beyond all reason is a pause like any other: it is told as one, with an
// instant, and ended by Resume.
func TestAdviceForEverHasAnInstant(t *testing.T) {
	recorded(t, once(provider.Throttle{}), func(t *testing.T, c *coordinator.Coordinator, r *record) {
		e := refusal(t, c.Do(t.Context(), to, answers(provider.RateLimited, math.MaxInt64)))
		assert.Positive(t, e.RetryAfter)
		assert.False(t, e.RetryAt.IsZero(), "in %s", e.RetryAfter)
		assert.False(t, state(t, c).Pauses[0].Until.IsZero())
		assert.NotContains(t, r.take(), `paused provider "" rate_limited until 0s`, "that is the end of a pause")
		e = refusal(t, c.Do(t.Context(), to, ok))
		assert.Equal(t, coordinator.ReasonTooLate, e.Reason)
		require.NoError(t, c.Resume("p"))
		require.NoError(t, c.Do(t.Context(), to, ok))
	})
}

// A request is sent once: a second Sent does not make it arrive later.
func TestSentCountsOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		ls, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		ls.Sent()
		time.Sleep(200 * ms)
		ls.Sent()
		ls.Release()
		require.NoError(t, c.Do(t.Context(), to, ok))
		assert.Equal(t, 250*ms+second+1, time.Since(start))
	}, declare(provider.Throttle{RPS: 1}))
}

// Costs up to the largest number add up to the largest number, never to a small one.
func TestCostsSaturate(t *testing.T) {
	th := limits(provider.Limit{Name: "all", Max: math.MaxInt64, Per: "1m", Unit: provider.Tokens})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for range 3 {
			ls, err := c.Acquire(t.Context(), units(provider.Tokens, math.MaxInt64))
			require.NoError(t, err)
			require.Error(t, c.Do(t.Context(), units(provider.Tokens, 1), ok))
			ls.Report(provider.Feedback{})
			ls.Report(provider.Feedback{Used: map[string]int64{provider.Tokens: math.MaxInt64}})
			ls.Release()
			e := refusal(t, c.Do(t.Context(), units(provider.Tokens, 1), ok))
			assert.Equal(t, time.Minute+1, e.RetryAfter)
			time.Sleep(time.Minute + 1)
		}
	}, declare(th))
}

// A quota whose reset nobody told is tried ever more rarely while the provider says
// again that it is spent; once it has answered, the next time is a first time.
func TestTrialsOfASpentQuotaStartAfreshAfterAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		spent := func() time.Duration {
			require.Error(t, c.Do(t.Context(), to, answers(provider.QuotaSpent, 0)))
			now := to
			now.Wait = -1
			e := refusal(t, c.Do(t.Context(), now, ok))
			time.Sleep(e.RetryAfter)
			return e.RetryAfter
		}
		assert.Equal(t, 600*ms, spent())
		assert.Equal(t, 1200*ms, spent())
		for range 5 {
			time.Sleep(time.Hour)
			require.NoError(t, c.Do(t.Context(), to, ok))
		}
		assert.Equal(t, 600*ms, spent())
	}, once(provider.Throttle{RPM: 100}))
}

// The longest wait is that of the whole call: its queue, its pauses and its back-off
// together.
func TestLongestWaitIsOfTheWholeCall(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		require.NoError(t, c.Pause("p", start.Add(6*second), "test"))
		call := to
		call.Wait = 10 * second
		e := refusal(t, c.Do(t.Context(), call, answers(provider.RateLimited, 6*second)))
		assert.Equal(t, 6*second, time.Since(start), "told at once that 12 s are too many")
		assert.Equal(t, coordinator.ReasonRateLimited, e.Reason)
		assert.Equal(t, 6*second, e.RetryAfter)
		require.NoError(t, c.Resume("p"))
		start = time.Now()
		require.NoError(t, c.Pause("p", start.Add(6*second), "test"))
		var at []time.Time
		require.NoError(t, c.Do(t.Context(), call, flaky(1, provider.RateLimited, 4*second, &at)), "and 10 are not")
		assert.Equal(t, 10*second, time.Since(start))
	}, declare(provider.Throttle{}))
}

// Resume lets who waits go now: for a pause, one alone first; for a quota that was
// told to be spent, as many as it holds.
func TestResumeWakesWhoWaits(t *testing.T) {
	for name, close := range map[string]func(*testing.T, *coordinator.Coordinator){
		"pause": func(t *testing.T, c *coordinator.Coordinator) {
			require.NoError(t, c.Pause("p", time.Now().Add(30*time.Minute), "test"))
		},
		"refusal": func(t *testing.T, c *coordinator.Coordinator) {
			require.Error(t, c.Do(t.Context(), keyed("k"), answers(provider.RateLimited, 30*time.Minute)))
		},
		"key": func(t *testing.T, c *coordinator.Coordinator) {
			require.Error(t, c.Do(t.Context(), keyed("k"), func(context.Context) error {
				return provider.Feedback{Outcome: provider.RateLimited, Scope: provider.ScopeKey, RetryAfter: 30 * time.Minute}.Err(nil)
			}))
		},
		"spent": func(t *testing.T, c *coordinator.Coordinator) {
			require.Error(t, c.Do(t.Context(), keyed("k"), answers(provider.QuotaSpent, 30*time.Minute)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				close(t, c)
				start := time.Now()
				var wg sync.WaitGroup
				for range 5 {
					wg.Go(func() { assert.NoError(t, c.Do(t.Context(), keyed("k"), ok)) })
				}
				time.Sleep(time.Minute)
				assert.Equal(t, 5, state(t, c).Queue.Length)
				require.NoError(t, c.Resume("p"))
				wg.Wait()
				assert.Equal(t, time.Minute, time.Since(start))
			}, once(provider.Throttle{RPM: 10}))
		})
	}
}

// Shutdown ends every kind of waiting at once: in the queue, in a pause, between two
// tries; who is out ends in peace, and nobody comes any more, to no provider.
func TestShutdownEndsEveryWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := coordinator.New(coordinator.Config{Registry: registryOf(t), Providers: []provider.Provider{
			declare(provider.Throttle{RPS: 1}), {Slug: "paused"}, {Slug: "failing"}, {Slug: "unused"},
		}})
		require.NoError(t, err)
		require.NoError(t, c.Pause("paused", time.Now().Add(30*time.Minute), "test"))
		errs := make(chan error, 3)
		out := make(chan error, 1)
		go func() { out <- c.Do(t.Context(), to, takes(10*second)) }()
		synctest.Wait()
		go func() { errs <- c.Do(t.Context(), to, ok) }()
		go func() { errs <- c.Do(t.Context(), coordinator.Call{Provider: "paused"}, ok) }()
		go func() {
			errs <- c.Do(t.Context(), coordinator.Call{Provider: "failing", Replayable: true}, answers(provider.Overloaded, 20*time.Minute))
		}()
		synctest.Wait()
		start := time.Now()
		down := make(chan error, 2)
		for range 2 {
			go func() { down <- c.Shutdown(t.Context()) }()
		}
		for range 3 {
			e := refusal(t, <-errs)
			assert.True(t, errors.Is(e, coordinator.ErrShutdown) || e.Reason == coordinator.ReasonOverloaded && e.RetryAfter > 0, e)
		}
		assert.Zero(t, time.Since(start))
		assert.ErrorIs(t, c.Do(t.Context(), coordinator.Call{Provider: "unused"}, ok), coordinator.ErrShutdown)
		require.NoError(t, <-out)
		require.NoError(t, <-down)
		require.NoError(t, <-down)
		assert.Equal(t, 10*second, time.Since(start))
	})
}

// Shutdown in the middle of a storm: every call returns, and nothing stays.
func TestShutdownInAStorm(t *testing.T) {
	for seed := range uint64(20) {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			rng := rand.New(rand.NewPCG(seed, 0))
			var wg sync.WaitGroup
			for i := range 200 {
				call := coordinator.Call{Provider: "p", Key: fmt.Sprint(i % 3), Replayable: true}
				fn := script(rng.IntN(100), time.Duration(rng.IntN(500))*ms)
				wg.Go(func() { _ = c.Do(t.Context(), call, fn) })
				time.Sleep(time.Duration(rng.IntN(10)) * ms)
			}
			time.Sleep(time.Duration(rng.IntN(3000)) * ms)
			ctx, cancel := context.WithTimeout(t.Context(), 10*second)
			defer cancel()
			require.NoError(t, c.Shutdown(ctx))
			wg.Wait()
			s := state(t, c)
			assert.Zero(t, s.InFlight+s.Queue.Length)
		}, func() provider.Provider {
			p := declare(provider.Throttle{RPS: 50, MaxInFlight: 5})
			p.Timeout = 5 * second
			return p
		}())
	}
}
