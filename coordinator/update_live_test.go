package coordinator_test

import (
	"context"
	"fmt"
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

// A pause and an open breaker are what the provider does, not what was declared.
func TestUpdateLeavesPausesAndBreaker(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.Error(t, c.Do(t.Context(), to, answers(provider.RateLimited, time.Minute)))
		require.NoError(t, c.Update("p", provider.Throttle{RPS: 100}))
		assert.Equal(t, time.Minute, until(t, c))
		require.NoError(t, c.Resume("p"))
		fail(t, c, 5)
		require.NoError(t, c.Update("p", provider.Throttle{RPS: 200}))
		assert.Equal(t, "open", state(t, c).Breaker.State)
	}, once(provider.Throttle{}))
}

// What a key's call that is out answers counts for the key, also when the throttle
// has changed meanwhile and the key was not asked for.
func TestUpdateDoesNotLoseAKeysCallThatIsOut(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		k, other := to, to
		k.Key, other.Key = "k", "other"
		ls, err := c.Acquire(t.Context(), k)
		require.NoError(t, err)
		require.NoError(t, c.Update("p", provider.Throttle{RPS: 100}))
		time.Sleep(2 * time.Minute)
		for range 10 {
			require.NoError(t, c.Do(t.Context(), other, ok))
		}
		ls.Report(provider.Feedback{Outcome: provider.RateLimited, Scope: provider.ScopeKey, RetryAfter: time.Hour})
		ls.Release()
		assert.Zero(t, room(t, c, k), "it is paused")
		assert.Equal(t, 50, room(t, c, other))
	}, once(provider.Throttle{}))
}

// Updates under a storm of calls: everybody goes or is refused, and nothing stays.
func TestUpdateInAStorm(t *testing.T) {
	ths := []provider.Throttle{
		{RPS: 50, MaxInFlight: 5}, {RPS: 20, Algorithm: provider.LeakyBucket}, {RPM: 600, Burst: 20, Algorithm: provider.TokenBucket},
		ten(scoped(provider.ScopeKey), per("1s")), {MaxInFlight: 2, Limits: ten(named("rps"), by(provider.FixedWindow), per("1s")).Limits},
	}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		rng := rand.New(rand.NewPCG(9, 9))
		var wg sync.WaitGroup
		for range 2000 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(20_000))*ms)
			call := coordinator.Call{Provider: "p", Key: fmt.Sprint(rng.IntN(3)), Flow: fmt.Sprint(rng.IntN(3))}
			trip := time.Duration(rng.IntN(100)) * ms
			wg.Go(func() {
				defer cancel()
				_ = c.Do(ctx, call, takes(trip))
			})
			if rng.IntN(10) == 0 {
				time.Sleep(time.Duration(rng.IntN(300)) * ms)
				require.NoError(t, c.Update("p", ths[rng.IntN(len(ths))]))
				synctest.Wait()
				require.Zero(t, c.Overlooked("p"), "a call that could go waits")
			}
		}
		wg.Wait()
		time.Sleep(2 * time.Minute)
		for _, l := range state(t, c).Limits {
			assert.Zero(t, l.Used+l.Held, l.Name)
		}
		assert.Zero(t, state(t, c).Lingering)
	}, declare(ths[0]))
}
