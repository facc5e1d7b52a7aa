package coordinator_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// lull lets so many keys fall asleep that were not used for a minute: others are asked
// for.
func lull(t *testing.T, c *coordinator.Coordinator, keys int) {
	t.Helper()
	time.Sleep(time.Minute)
	for range keys + 10 {
		ask(t, c, keyed("awake"))
	}
}

// ask asks for the route of a call, and makes none.
func ask(t *testing.T, c *coordinator.Coordinator, call coordinator.Call) {
	t.Helper()
	_, err := c.Forecast(call, 0)
	require.NoError(t, err)
}

// used is what counts of a key's first limit.
func used(t *testing.T, c *coordinator.Coordinator, key string) int64 {
	t.Helper()
	for _, k := range state(t, c).Keys {
		if k.Key == key {
			return k.Limits[0].Used
		}
	}
	return -1
}

// A day's limit of a key that sleeps counts what it counted, for whoever asks: a call, a
// State, a Forecast.
func TestKeyThatSleepsForgetsNothing(t *testing.T) {
	for _, a := range []provider.Algorithm{provider.SlidingWindow, provider.FixedWindow, provider.SlidingWindowCounter, provider.TokenBucket} {
		t.Run(string(a), func(t *testing.T) {
			day := provider.Limit{Name: "day", Max: 100, Per: "24h", Algorithm: a, Scope: provider.ScopeKey}
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				spend := func(key string, n int) {
					for range n {
						require.NoError(t, c.Do(t.Context(), keyed(key), ok))
					}
				}
				spend("half", 50)
				spend("all", 100)
				lull(t, c, 2)
				require.Equal(t, 2, c.Asleep("p"))

				assert.Equal(t, 3, state(t, c).KeyCount)
				assert.Equal(t, "all", state(t, c).Keys[0].Key, "the busiest")
				assert.InDelta(t, 100, used(t, c, "all"), 1)
				assert.InDelta(t, 50, used(t, c, "half"), 1)
				require.Equal(t, 2, c.Asleep("p"), "to be looked at wakes nobody")

				later := c.Rehearse(0, coordinator.Demand{Call: keyed("half"), Calls: 60})[55]
				assert.Greater(t, time.Until(later), time.Minute)

				e := refusal(t, c.Do(t.Context(), keyed("all"), ok))
				assert.Equal(t, coordinator.ReasonTooLate, e.Reason)
				assert.Equal(t, "day", e.Limit.Name)
				require.Zero(t, c.Asleep("p"))
				spend("half", 50)
			}, declare(provider.Throttle{Limits: []provider.Limit{day}, MaxWait: time.Second}))
		})
	}
}

// What an Update says of a key's limits, it says of those that sleep.
func TestUpdateReachesKeysThatSleep(t *testing.T) {
	limit := func(name string, n int64) provider.Limit {
		return provider.Limit{Name: name, Max: n, Per: "24h", Scope: provider.ScopeKey}
	}
	throttle := func(ls ...provider.Limit) provider.Throttle {
		return provider.Throttle{Limits: ls, MaxWait: time.Second}
	}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for range 4 {
			require.NoError(t, c.Do(t.Context(), keyed("k"), ok))
		}
		lull(t, c, 1)
		require.NoError(t, c.Update("p", throttle(limit("other", 1000), limit("day", 4))))
		require.Equal(t, 1, c.Asleep("p"))
		assert.Equal(t, "day", refusal(t, c.Do(t.Context(), keyed("k"), ok)).Limit.Name)

		lull(t, c, 1)
		require.NoError(t, c.Update("p", throttle(limit("other", 1000))))
		require.NoError(t, c.Do(t.Context(), keyed("k"), ok))
		lull(t, c, 1)
		require.NoError(t, c.Update("p", throttle(limit("other", 1000), limit("day", 4))))
		require.NoError(t, c.Do(t.Context(), keyed("k"), ok), "a limit that was not there has counted nothing")
	}, declare(throttle(limit("day", 100))))
}

// Who knows more than its limits count stays awake.
func TestKeyThatKnowsMoreStaysAwake(t *testing.T) {
	for name, answer := range map[string]provider.Feedback{
		"paused": {Outcome: provider.RateLimited, Scope: provider.ScopeKey, RetryAfter: time.Hour},
		"spent":  {Outcome: provider.QuotaSpent, RetryAfter: time.Hour},
		"told":   {Budgets: []provider.Budget{{Name: "day", Remaining: 3, HasRemaining: true, Reset: time.Hour, HasReset: true}}},
		"sized":  {Budgets: []provider.Budget{{Name: "day", Limit: 7, HasLimit: true, Reset: time.Hour, HasReset: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				ls, err := c.Acquire(t.Context(), keyed("k"))
				require.NoError(t, err)
				ls.Report(answer)
				ls.Release()
				out, err := c.Acquire(t.Context(), keyed("out"))
				require.NoError(t, err)
				out.Report(provider.Feedback{})
				throttle := limits(provider.Limit{Name: "day", Max: 1000, Per: "24h", Scope: provider.ScopeKey})
				require.NoError(t, c.Update("p", throttle)) // routes are made anew
				lull(t, c, 2)
				assert.Zero(t, c.Asleep("p"), "nor does one sleep that a call is out with")
				out.Release()
				time.Sleep(2 * time.Hour)
				lull(t, c, 2)
				assert.Equal(t, 2, c.Asleep("p"))
			}, declare(limits(provider.Limit{Name: "day", Max: 1000, Per: "24h", Scope: provider.ScopeKey})))
		})
	}
}

// Of very many keys most sleep at once; they are forgotten when their window is over.
func TestVeryManyKeysSleep(t *testing.T) {
	const n = 20_000
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for i := range n {
			require.NoError(t, c.Do(t.Context(), keyed(fmt.Sprint(i)), ok))
		}
		assert.Greater(t, c.Asleep("p"), n/2)
		assert.Equal(t, n, state(t, c).KeyCount)
		for i := range n {
			assert.Equal(t, coordinator.ReasonTooLate, refusal(t, c.Do(t.Context(), keyed(fmt.Sprint(i)), ok)).Reason)
		}
		time.Sleep(24*time.Hour + 1)
		for range n {
			_ = c.Do(t.Context(), to, ok)
		}
		assert.Zero(t, c.Asleep("p"))
		assert.LessOrEqual(t, c.Parts("p"), 2)
	}, declare(provider.Throttle{MaxWait: time.Second, Limits: []provider.Limit{
		{Name: "day", Max: 1, Per: "24h", Scope: provider.ScopeKey},
	}}))
}

// Keys without limits of their own are remembered for a while, but not very many.
func TestVeryManyKeysWithoutLimitsAreForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for i := range 30_000 {
			require.NoError(t, c.Do(t.Context(), keyed(fmt.Sprint(i)), ok))
		}
		assert.Less(t, c.Parts("p"), 20_000)
		assert.Zero(t, c.Asleep("p"))
	}, declare(provider.Throttle{}))
}

// routes has a provider with two endpoints, a and b, and a limit for each of them and each
// key, besides one of all.
func routes(t *testing.T, all provider.Limit, f func(t *testing.T, c *coordinator.Coordinator, a coordinator.Call)) {
	p := declare(limits(provider.Limit{Name: "hour", Max: 1, Per: "1h", Scope: provider.ScopeKeyEndpoint}, all))
	p.Throttle.MaxWait = provider.Forever
	p.Throttle.ArrivalWithin = 2 * time.Hour
	p.Endpoints = []provider.Endpoint{{Name: "a"}, {Name: "b"}}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		f(t, c, coordinator.Call{Provider: "p", Endpoint: "a", Key: "k"})
	}, p)
}

// elsewhere uses the key and the endpoint of a call, but not both, after a minute in which
// nobody has.
func elsewhere(t *testing.T, c *coordinator.Coordinator, call coordinator.Call) {
	t.Helper()
	time.Sleep(time.Minute)
	key, endpoint := call, call
	key.Endpoint, endpoint.Key = "b", "other"
	for range 10 { // the first may go, the others may not wait: an hour that is not over keeps them awake
		for _, other := range []coordinator.Call{key, endpoint} {
			other.Wait = -1
			_ = c.Do(t.Context(), other, ok)
		}
	}
}

// A route at which somebody waits stays: who comes later knows of those before him.
func TestRouteOfWhoWaitsStays(t *testing.T) {
	routes(t, provider.Limit{Name: "all", Max: 3, Per: "1h"}, func(t *testing.T, c *coordinator.Coordinator, call coordinator.Call) {
		key, endpoint := call, call
		key.Endpoint, endpoint.Key = "b", "other"
		for _, x := range []coordinator.Call{key, endpoint, call, {Provider: "p", Endpoint: "a", Key: "k", Cost: map[string]int64{"requests": 1}}} {
			go func() { assert.NoError(t, c.Do(t.Context(), x, ok)) }() // the last one waits
		}
		synctest.Wait()
		elsewhere(t, c, call)
		call.Wait = 90 * time.Minute
		came := time.Now()
		assert.Equal(t, coordinator.ReasonTooLate, refusal(t, c.Do(t.Context(), call, ok)).Reason)
		assert.Zero(t, time.Since(came))
		time.Sleep(2 * time.Hour)
	})
}

// What may still arrive is held, and what is held does not sleep.
func TestWhatIsHeldStaysAwake(t *testing.T) {
	routes(t, provider.Limit{Name: "all", Max: 1000, Per: "1h"}, func(t *testing.T, c *coordinator.Coordinator, call coordinator.Call) {
		lost, err := c.Acquire(t.Context(), call)
		require.NoError(t, err)
		lost.Sent()
		lost.Release()
		elsewhere(t, c, call)
		assert.Zero(t, c.Asleep("p"))
		time.Sleep(2 * time.Hour)
		elsewhere(t, c, call)
		assert.Equal(t, 1, c.Asleep("p"), "it has arrived by now, and counts")
	})
}
