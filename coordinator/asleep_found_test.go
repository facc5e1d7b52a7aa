package coordinator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// A call that may go with any of several keys counts where it went, also where so many
// routes are awake that those without use sleep at once.
func TestKeysOfACallAreNotDroppedWhileItPicksOne(t *testing.T) {
	p := declare(limits(provider.Limit{Name: "hour", Max: 1, Per: "1h", Scope: provider.ScopeKeyEndpoint}))
	p.Auth = provider.Auth{Kind: "header", Name: "Key", Env: []string{"A", "B", "C"}}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var out []*coordinator.Lease
		for i := range 3000 { // as many calls that are out keep more routes awake than may be without use
			for range 3 {
				ls, err := c.Acquire(t.Context(), coordinator.Call{Provider: "p", Endpoint: fmt.Sprint(i), Wait: -1})
				require.NoError(t, err)
				out = append(out, ls)
			}
		}
		for _, ls := range out {
			ls.Report(provider.Feedback{})
			ls.Release()
		}
		for i := range 100 {
			went := map[string]int{}
			for range 9 {
				_ = c.Do(t.Context(), coordinator.Call{Provider: "p", Endpoint: fmt.Sprint("new", i), Wait: -1}, func(ctx context.Context) error {
					ls, _ := coordinator.LeaseFrom(ctx)
					went[ls.Key()]++
					return nil
				})
			}
			require.Equal(t, map[string]int{"A": 1, "B": 1, "C": 1}, went, i)
		}
	}, p)
}

// A limit that follows dates and counts calls of some endpoints only begins to count with
// the first of them, whenever that is.
func TestFirstCallOfAnAlignedLimitCounts(t *testing.T) {
	p := declare(limits(provider.Limit{Name: "minute", Max: 1, Per: "1m", Algorithm: provider.FixedWindow, Counted: provider.CountedSent, Endpoints: []string{"a"}}))
	p.Endpoints = []provider.Endpoint{{Name: "a"}, {Name: "b"}}
	p.Throttle.MaxWait = time.Second
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Endpoint: "b"}, ok))
		time.Sleep(10*time.Minute + 10*time.Second)
		a := coordinator.Call{Provider: "p", Endpoint: "a"}
		require.NoError(t, c.Do(t.Context(), a, ok))
		require.Error(t, c.Do(t.Context(), a, ok))
	}, p)
}

// The same where an Update comes while all that the limit counts sleeps: it counts by the
// clock when it wakes, and is forgotten when its window is over.
func TestAlignedLimitThatSleepsFollowsTheClock(t *testing.T) {
	p := declare(limits(provider.Limit{Name: "hour", Max: 2, Per: "1h", Algorithm: provider.FixedWindow, Scope: provider.ScopeKey, Endpoints: []string{"a"}}))
	p.Endpoints = []provider.Endpoint{{Name: "a"}, {Name: "b"}}
	p.Throttle.MaxWait = time.Second
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		k := coordinator.Call{Provider: "p", Endpoint: "a", Key: "k"}
		require.NoError(t, c.Do(t.Context(), k, ok))
		time.Sleep(time.Minute)
		for range 20 {
			require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Endpoint: "b", Key: "other"}, ok))
		}
		require.Equal(t, 1, c.Asleep("p"))
		require.NoError(t, c.Update("p", p.Throttle))
		require.Equal(t, 1, c.Asleep("p"))
		time.Sleep(3 * time.Hour)
		assert.Zero(t, max(0, used(t, c, "k")), "its window is over")
		for range 20 {
			require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Endpoint: "b"}, ok))
		}
		assert.Zero(t, c.Asleep("p"))
	}, p)
}

// A State shows no endpoint of which nothing is limited, whether it sleeps or not.
func TestNoEndpointWithoutLimits(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for i := range 10 {
			require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Endpoint: fmt.Sprint(i)}, ok))
		}
		time.Sleep(time.Minute)
		for range 20 {
			require.NoError(t, c.Do(t.Context(), to, ok))
		}
		require.Equal(t, 10, c.Asleep("p"))
		require.NoError(t, c.Update("p", limits()))
		assert.Empty(t, state(t, c).Endpoints)
	}, declare(limits(provider.Limit{Name: "day", Max: 50, Per: "24h", Scope: provider.ScopeEndpoint})))
}

// What an Update has no limit for any more is forgotten.
func TestPartsWithoutRoutesAreForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for i := range 100 {
			require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Endpoint: "e", Key: fmt.Sprint(i)}, ok))
		}
		require.NoError(t, c.Update("p", limits()))
		time.Sleep(48 * time.Hour)
		for range 1000 {
			require.NoError(t, c.Do(t.Context(), to, ok))
		}
		assert.LessOrEqual(t, c.Parts("p"), 2)
	}, declare(limits(provider.Limit{Name: "day", Max: 5, Per: "24h", Scope: provider.ScopeKeyEndpoint})))
}
