package coordinator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// The lease of a call that has ended says nothing of when the next one's units count.
func TestReusedLeaseForgetsWhenItWasSettled(t *testing.T) {
	requests := sharedLimit(provider.Limit{Max: 10, Per: "1m"})
	teamed(t, 1, ledger.Settings{}, declare(limits(requests)), func(x *team) {
		t := x.t
		free := to
		free.Cost = map[string]int64{provider.Requests: 0} // of nothing that is shared
		for range 100 {
			require.NoError(t, x.cs[0].Do(t.Context(), free, ok))
		}
		time.Sleep(10 * time.Minute)
		for range 5 {
			ls, err := x.cs[0].Acquire(t.Context(), to)
			require.NoError(t, err)
			ls.Release() // without an answer: it may still be on its way
		}
		assert.EqualValues(t, 5, x.peek(requests).Held, "it may still be on its way")
		assert.Zero(t, x.peek(requests).Used)
		time.Sleep(300 * ms)
		assert.EqualValues(t, 5, x.peek(requests).Used)
	})
}

// What is done late with the context of a call that has ended is not done to the call
// around it.
func TestLateContextLeavesTheCallAroundAlone(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.NoError(t, c.Do(t.Context(), to, func(outer context.Context) error {
			var late context.Context
			require.NoError(t, c.Do(outer, coordinator.Call{Provider: "q"}, func(ctx context.Context) error { late = ctx; return nil }))
			if ls, found := coordinator.LeaseFrom(late); found { // as a goroutine that q's function has left behind
				ls.Report(provider.Feedback{Outcome: provider.Banned})
			}
			return nil
		}))
		s := state(t, c)
		assert.Empty(t, s.Pauses, "q's late report has banned p")
	}, declare(provider.Throttle{}), provider.Provider{Slug: "q"})
}
