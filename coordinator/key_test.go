package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

func twoKeys(ls ...provider.Limit) provider.Provider {
	return provider.Provider{Slug: "p", Auth: provider.Auth{Kind: "header", Name: "Key", Env: []string{"A", "B"}}, Throttle: limits(ls...)}
}

// spread makes n calls at once and returns when the last one went, and how many
// went with each key.
func spread(t *testing.T, c *coordinator.Coordinator, n int, fn func(key string) error) (time.Duration, map[string]int) {
	t.Helper()
	start := time.Now()
	var mu sync.Mutex
	var last time.Time
	by := make(map[string]int)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			err := c.Do(t.Context(), coordinator.Call{Provider: "p", Wait: provider.Forever}, func(ctx context.Context) error {
				ls, _ := coordinator.LeaseFrom(ctx)
				if err := fn(ls.Key()); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				by[ls.Key()]++
				last = time.Now()
				return nil
			})
			assert.NoError(t, err)
		})
		synctest.Wait()
	}
	all.Wait()
	return last.Sub(start), by
}

func fine(string) error { return nil }

func minutes(n int) time.Duration { return time.Duration(n)*time.Minute + time.Duration(n) } // a unit is free strictly after its window

func TestKeysAddUp(t *testing.T) {
	minute := provider.Limit{Name: "minute", Max: 4, Per: "1m", Scope: provider.ScopeKey}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		took, by := spread(t, c, 80, fine)
		assert.Equal(t, minutes(9), took, "8 a minute")
		assert.Equal(t, map[string]int{"A": 40, "B": 40}, by)
	}, twoKeys(minute))
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		took, _ := spread(t, c, 60, fine)
		assert.Equal(t, minutes(9), took, "6 a minute, which they share")
	}, twoKeys(minute, provider.Limit{Name: "shared", Max: 6, Per: "1m"}))
	plan := minute
	plan.Keys = map[string]int64{"B": 30}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		took, by := spread(t, c, 340, fine)
		assert.Equal(t, minutes(9), took, "34 a minute")
		assert.Equal(t, map[string]int{"A": 40, "B": 300}, by)
	}, twoKeys(plan))
}

func TestKeysHaveAQuotaEach(t *testing.T) {
	minute := provider.Limit{Name: "minute", Max: 4, Per: "1m", Scope: provider.ScopeKey}
	day := provider.Limit{Name: "day", Max: 500, Per: provider.Day, Scope: provider.ScopeKey}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		p := coordinator.Demand{Call: to, Calls: 1200}
		f, err := c.ForecastAll(0, p)
		require.NoError(t, err)
		assert.Equal(t, 1000, f.Now, "1,000 a day")
		exact := c.Rehearse(0, p)
		sameTimes(t, f, exact, instants(t, c, 0, p), "two keys")
	}, func() provider.Provider { p := twoKeys(minute, day); p.Throttle.MaxQueue = 5000; return p }())
}

var errDead = errors.New("dead")

// Nine keys of ten are dead: the tenth goes on at once at its own rate, and no call
// fails for it.
func TestDeadKeysRest(t *testing.T) {
	for _, o := range []provider.Outcome{provider.Unauthorized, provider.Banned, provider.QuotaSpent} {
		p := twoKeys(provider.Limit{Name: "s", Max: 1, Per: "1s", Scope: provider.ScopeKey})
		p.Auth.Env = nil
		for i := range 10 {
			p.Auth.Env = append(p.Auth.Env, fmt.Sprint("K", i))
		}
		p.Throttle.Penalty = time.Hour
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			dead := 0
			took, by := spread(t, c, 30, func(key string) error {
				if key == "K7" {
					return nil
				}
				dead++
				return provider.Feedback{Outcome: o, RetryAfter: time.Hour}.Err(errDead)
			})
			assert.Equal(t, map[string]int{"K7": 30}, by)
			assert.Equal(t, 9, dead, "each was found dead once")
			assert.Equal(t, 29*(time.Second+1), took)
			s := state(t, c)
			assert.Len(t, s.Keys, 10)
		}, p)
	}
}

// When all are dead the one refusal says when the first comes back.
func TestAllKeysDead(t *testing.T) {
	p := twoKeys(provider.Limit{Name: "s", Max: 10, Per: "1s", Scope: provider.ScopeKey})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		rest := map[string]time.Duration{"A": 3 * time.Hour, "B": 2 * time.Hour}
		err := c.Do(t.Context(), to, func(ctx context.Context) error {
			ls, _ := coordinator.LeaseFrom(ctx)
			return provider.Feedback{Outcome: provider.Banned, RetryAfter: rest[ls.Key()]}.Err(errDead)
		})
		e := refusal(t, err)
		assert.Equal(t, coordinator.ReasonBanned, e.Reason)
		assert.Equal(t, 2, e.Attempts)
		assert.Equal(t, 2*time.Hour, time.Until(e.RetryAt))
		require.ErrorIs(t, c.Do(t.Context(), to, never(t)), coordinator.ErrTooLate, "at entry, too")
		e = refusal(t, c.Do(t.Context(), to, never(t)))
		assert.Equal(t, 2*time.Hour, time.Until(e.RetryAt))
		pinned := to
		pinned.Key = "A"
		e = refusal(t, c.Do(t.Context(), pinned, never(t)))
		assert.Equal(t, 3*time.Hour, time.Until(e.RetryAt))
	}, p)
}

// What the provider says of all of them is no reason to try another.
func TestABanOfAllIsNotTriedWithEachKey(t *testing.T) {
	for _, f := range []provider.Feedback{
		{Outcome: provider.Banned, Scope: provider.ScopeProvider},
		{Outcome: provider.QuotaSpent, Limit: "shared"},
		{Outcome: provider.Rejected},
	} {
		p := twoKeys(provider.Limit{Name: "shared", Max: 100, Per: "1h"})
		p.Throttle.Penalty = time.Hour
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			calls := 0
			require.Error(t, c.Do(t.Context(), to, func(context.Context) error { calls++; return f.Err(errDead) }))
			assert.Equal(t, 1, calls, f.Outcome)
		}, p)
	}
}

func TestPinnedKeys(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		call := to
		call.Key = "B"
		for range 3 {
			require.NoError(t, c.Do(t.Context(), call, func(ctx context.Context) error {
				ls, _ := coordinator.LeaseFrom(ctx)
				assert.Equal(t, "B", ls.Key())
				return nil
			}))
		}
		call.Key = "sk-secret-value"
		e := refusal(t, c.Do(t.Context(), call, never(t)))
		assert.Equal(t, coordinator.ReasonInvalid, e.Reason)
		assert.ErrorContains(t, e, "no such key; declared are A, B")
		assert.NotContains(t, e.Error(), "secret")
	}, twoKeys(provider.Limit{Name: "s", Max: 1, Per: "1s", Scope: provider.ScopeKey}))
}

// Calls that pin a key and calls that do not wait in one order: a free one is passed
// by none, a pinned one by those alone that go with the other key.
func TestPinnedAndFreeCallsKeepTheirOrder(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var went [12]time.Time
		var all sync.WaitGroup
		for i := range went {
			call := coordinator.Call{Provider: "p"}
			if i%3 == 2 {
				call.Key = "A"
			}
			all.Go(func() {
				assert.NoError(t, c.Do(t.Context(), call, func(context.Context) error {
					went[i] = time.Now()
					return nil
				}))
			})
			synctest.Wait()
		}
		all.Wait()
		// Two a second; where both keys open at one instant a free call may take the one
		// for which another is pinned, which then comes a second later.
		assert.LessOrEqual(t, went[11].Sub(went[0]), 6*(time.Second+1))
		for i := range went {
			for j := i + 1; j < len(went); j++ {
				if i%3 != 2 || j%3 == 2 {
					assert.False(t, went[j].Before(went[i]), "%d went before %d", j, i)
				}
			}
		}
	}, twoKeys(provider.Limit{Name: "s", Max: 1, Per: "1s", Scope: provider.ScopeKey}))
}

// A call that waits for several keys has one place, and leaves all of them.
func TestOptionsTakeOnePlaceAndLeaveNothing(t *testing.T) {
	p := twoKeys(provider.Limit{Name: "s", Max: 1, Per: "1s", Scope: provider.ScopeKey})
	p.Throttle.MaxQueue = 3
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 2 {
			require.NoError(t, c.Do(t.Context(), to, ok))
		}
		for range 3 {
			all.Go(func() { assert.ErrorIs(t, c.Do(ctx, to, never(t)), context.Canceled) })
		}
		synctest.Wait()
		assert.Equal(t, 3, state(t, c).Queue.Length)
		require.ErrorIs(t, c.Do(t.Context(), to, never(t)), coordinator.ErrQueueFull)
		cancel()
		all.Wait()
		assert.Zero(t, state(t, c).Queue.Length)
		took, _ := spread(t, c, 2, fine)
		assert.Equal(t, time.Second+1, took, "nothing was lost with those who left")
	}, p)
}

// An update in the middle keeps who waits waiting, on the keys as they are then.
func TestUpdateWithOptions(t *testing.T) {
	p := twoKeys(provider.Limit{Name: "s", Max: 1, Per: "1h", Scope: provider.ScopeKey})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for range 2 {
			require.NoError(t, c.Do(t.Context(), to, ok))
		}
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Wait: provider.Forever}, ok))
			})
		}
		synctest.Wait()
		require.NoError(t, c.Update("p", limits(provider.Limit{Name: "s", Max: 2, Per: "1h", Scope: provider.ScopeKey, Keys: map[string]int64{"B": 4}})))
		synctest.Wait()
		assert.Equal(t, 2, state(t, c).Queue.Length, "one more of A, three more of B")
		all.Wait()
	}, p)
}

// Calls take the keys in turn, so that no quota is gone before the others'.
func TestKeysAreUsedAlike(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var keys []string
		for range 6 {
			require.NoError(t, c.Do(t.Context(), to, func(ctx context.Context) error {
				ls, _ := coordinator.LeaseFrom(ctx)
				keys = append(keys, ls.Key())
				return nil
			}))
		}
		assert.Equal(t, []string{"A", "B", "A", "B", "A", "B"}, keys)
	}, twoKeys(provider.Limit{Name: "s", Max: 100, Per: "1s", Scope: provider.ScopeKey}))
}

// Who waits for two keys is not refused when one of them is gone for the day.
func TestOneKeyThatIsGoneRefusesNobodyWhoMayGoWithAnother(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		pinned := coordinator.Call{Provider: "p", Key: "A"}
		var all sync.WaitGroup
		all.Go(func() {
			require.Error(t, c.Do(t.Context(), pinned, func(ctx context.Context) error {
				time.Sleep(time.Second)
				return provider.Feedback{Outcome: provider.QuotaSpent, RetryAfter: 8 * time.Hour}.Err(nil)
			}))
		})
		synctest.Wait()
		require.NoError(t, c.Do(t.Context(), to, ok)) // B
		for range 3 {
			all.Go(func() { assert.NoError(t, c.Do(t.Context(), to, ok)) })
		}
		all.Go(func() {
			e := refusal(t, c.Do(t.Context(), pinned, never(t)))
			assert.Equal(t, 8*time.Hour, time.Until(e.RetryAt))
		})
		all.Wait()
	}, twoKeys(provider.Limit{Name: "m", Max: 1, Per: "1m", Scope: provider.ScopeKey}))
}

// A retry keeps its place at every key.
func TestARetryKeepsItsPlaceAtAllKeys(t *testing.T) {
	p := twoKeys(provider.Limit{Name: "m", Max: 1, Per: "1m", Scope: provider.ScopeKey})
	p.Retry = provider.Retry{Base: time.Second, Max: time.Second}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var order []string
		var all sync.WaitGroup
		tries := 0
		all.Go(func() {
			call := to
			call.Replayable = true
			assert.NoError(t, c.Do(t.Context(), call, func(context.Context) error {
				if tries++; tries == 1 {
					return provider.Feedback{Outcome: provider.Failed}.Err(nil)
				}
				order = append(order, "retry")
				return nil
			}))
		})
		synctest.Wait()
		for i := range 4 {
			all.Go(func() {
				assert.NoError(t, c.Do(t.Context(), to, func(context.Context) error {
					order = append(order, fmt.Sprint(i))
					time.Sleep(time.Millisecond)
					return nil
				}))
			})
			synctest.Wait()
		}
		all.Wait()
		assert.Equal(t, []string{"0", "retry"}, order[:2], "one went while it backed off")
	}, p)
}

// Whoever pins a key is not refused for those ahead who may go with another.
func TestThoseAheadMayGoWithAnotherKey(t *testing.T) {
	p := twoKeys(provider.Limit{Name: "m", Max: 1, Per: "1m", Scope: provider.ScopeKey, Keys: map[string]int64{"B": 100}})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var all sync.WaitGroup
		for range 101 {
			all.Go(func() { assert.NoError(t, c.Do(t.Context(), to, ok)) })
		}
		synctest.Wait()
		for range 40 { // wait for A and B, and go with B
			all.Go(func() { assert.NoError(t, c.Do(t.Context(), to, ok)) })
		}
		synctest.Wait()
		all.Go(func() {
			assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Key: "A", Wait: 2*time.Minute + time.Second}, ok))
		})
		all.Wait()
	}, p)
}

// Who may not wait goes on with another key that is open now.
func TestNoWaitGoesOnWithAnotherKey(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		call := to
		call.Wait = -1
		var keys []string
		require.NoError(t, c.Do(t.Context(), call, func(ctx context.Context) error {
			ls, _ := coordinator.LeaseFrom(ctx)
			if keys = append(keys, ls.Key()); ls.Key() == "A" {
				return provider.Feedback{Outcome: provider.Unauthorized}.Err(errDead)
			}
			return nil
		}))
		assert.Equal(t, []string{"A", "B"}, keys)
	}, twoKeys(provider.Limit{Name: "s", Max: 100, Per: "1s", Scope: provider.ScopeKey}))
}
