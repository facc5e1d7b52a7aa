package coordinator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// A call that is given back opens no quota that is spent.
func TestSpentStaysSpentWhenACallIsGivenBack(t *testing.T) {
	p := provider.Provider{Slug: "p", Auth: provider.Auth{Kind: "header", Name: "Key", Env: []string{"A", "B"}}}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		pinned := coordinator.Call{Provider: "p", Key: "A"}
		x, err := c.Acquire(t.Context(), pinned)
		require.NoError(t, err)
		y, err := c.Acquire(t.Context(), pinned)
		require.NoError(t, err)
		x.Report(provider.Feedback{Outcome: provider.QuotaSpent, RetryAfter: time.Hour})
		x.Release()
		y.Forget()
		pinned.Wait = -1
		assert.ErrorIs(t, c.Do(t.Context(), pinned, never(t)), coordinator.ErrQuotaSpent)
	}, p)
}

// A unit that is given back is seen by who waits.
func TestGiveBackWakesWhoWaitsForAToldQuota(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		budget := []provider.Budget{{Remaining: 1, HasRemaining: true, Reset: time.Minute, HasReset: true}}
		require.Error(t, c.Do(t.Context(), to, func(context.Context) error {
			return provider.Feedback{Outcome: provider.Rejected, Budgets: budget}.Err(nil)
		}))
		y, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		start := time.Now()
		done := make(chan time.Duration, 1)
		go func() {
			_ = c.Do(t.Context(), to, func(context.Context) error { done <- time.Since(start); return nil })
		}()
		synctest.Wait()
		y.Forget()
		assert.Zero(t, <-done)
	}, provider.Provider{Slug: "p"})
}

// What is out may be given back, and then what was told to be left is there: nobody is
// refused for it who could go in time.
func TestToldQuotaRefusesNobodyForWhatIsOut(t *testing.T) {
	for name, b := range map[string]provider.Budget{"no limit's": {}, "a limit's": {Name: "m"}} {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			b.Remaining, b.HasRemaining, b.Reset, b.HasReset = 1, true, time.Minute, true
			require.Error(t, c.Do(t.Context(), to, func(context.Context) error {
				return provider.Feedback{Outcome: provider.Rejected, Budgets: []provider.Budget{b}}.Err(nil)
			}))
			y, err := c.Acquire(t.Context(), to)
			require.NoError(t, err)
			done := make(chan error, 1)
			go func() { done <- c.Do(t.Context(), coordinator.Call{Provider: "p", Wait: 30 * time.Second}, ok) }()
			synctest.Wait()
			y.Forget()
			assert.NoError(t, <-done, name)
		}, declare(limits(provider.Limit{Name: "m", Max: 100, Per: "1m"})))
	}
}
