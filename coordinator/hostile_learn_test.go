package coordinator_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// tells is an ok answer that tells a quota.
func tells(b provider.Budget) func(context.Context) error {
	return func(ctx context.Context) error {
		ls, _ := coordinator.LeaseFrom(ctx)
		ls.Report(provider.Feedback{Budgets: []provider.Budget{b}})
		return nil
	}
}

// What an answer tells of a quota may be nonsense: it must neither open what is
// declared nor shut it without an instant.
func TestToldNonsenseChangesNothing(t *testing.T) {
	for name, b := range map[string]provider.Budget{
		"less than nothing left": {Name: "rpm", HasRemaining: true, Remaining: math.MinInt64, HasReset: true, Reset: time.Hour},
		"reset in the past":      {Name: "rpm", HasRemaining: true, HasReset: true, Reset: -time.Hour},
		"reset never":            {Name: "rpm", HasRemaining: true, HasReset: true, Reset: math.MaxInt64},
		"no name, reset never":   {HasRemaining: true, HasReset: true, Reset: math.MaxInt64},
		"endless left":           {Name: "rpm", HasRemaining: true, Remaining: math.MaxInt64, HasReset: true, Reset: time.Hour},
		"size below 0":           {Name: "rpm", HasLimit: true, Limit: -5, HasReset: true, Reset: time.Hour},
		"size 0":                 {Name: "rpm", HasLimit: true, HasReset: true, Reset: time.Hour},
		"endless size":           {Name: "rpm", HasLimit: true, Limit: math.MaxInt64},
		"negative window":        {HasLimit: true, Limit: 10, HasRemaining: true, Remaining: 5, Window: -time.Hour, HasReset: true, Reset: time.Minute},
		"a unit of its own":      {Unit: "bananas", HasRemaining: true, HasReset: true, Reset: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				require.NoError(t, c.Do(t.Context(), to, tells(b)))
				assert.LessOrEqual(t, room(t, c, to), 9, "ten are declared, one has gone")
				now := to
				now.Wait = -1
				for range 10 {
					if err := c.Do(t.Context(), now, ok); err != nil {
						e := refusal(t, err)
						assert.Positive(t, e.RetryAfter)
						assert.False(t, e.RetryAt.IsZero(), "in %s", e.RetryAfter)
					}
				}
				require.NoError(t, c.Resume("p"))
			}, once(provider.Throttle{RPM: 10}))
		})
	}
}

// A limit that is told to be smaller until its reset is as large as declared after
// it: a call that only then has room waits for it, and is woken though nothing else
// happens.
func TestToldSizeIsOverAtItsReset(t *testing.T) {
	heavy := coordinator.Call{Provider: "p", Cost: map[string]int64{provider.Requests: 8}}
	smaller := tells(provider.Budget{Name: "rpm", HasLimit: true, Limit: 5, HasReset: true, Reset: 2 * time.Minute})
	t.Run("comes later", func(t *testing.T) {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			start := time.Now()
			require.NoError(t, c.Do(t.Context(), to, smaller))
			assert.Equal(t, 4, room(t, c, to))
			require.NoError(t, c.Do(t.Context(), heavy, ok))
			assert.Equal(t, 2*time.Minute, time.Since(start))
		}, once(provider.Throttle{RPM: 10}))
	})
	t.Run("waits already", func(t *testing.T) {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			start := time.Now()
			ls, err := c.Acquire(t.Context(), coordinator.Call{Provider: "p", Cost: map[string]int64{provider.Requests: 3}})
			require.NoError(t, err)
			done := make(chan error, 1)
			go func() { done <- c.Do(t.Context(), heavy, ok) }()
			synctest.Wait()
			ls.Report(provider.Feedback{Budgets: []provider.Budget{{Name: "rpm", HasLimit: true, Limit: 5, HasReset: true, Reset: 2 * time.Minute}}})
			ls.Release()
			require.NoError(t, <-done)
			assert.Equal(t, 2*time.Minute, time.Since(start))
		}, once(provider.Throttle{RPM: 10}))
	})
}

// The rate that is searched for holds below one a second, too: calls are as far apart
// as it says.
func TestAdaptiveRateBelowOneASecond(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for range 20 { // one in two seconds
			require.NoError(t, c.Do(t.Context(), to, ok))
			time.Sleep(2 * second)
		}
		require.Error(t, c.Do(t.Context(), to, answers(provider.RateLimited, second)))
		var last time.Time
		for i := range 10 {
			require.NoError(t, c.Do(t.Context(), to, ok))
			if i > 0 {
				assert.GreaterOrEqual(t, time.Since(last), 2500*ms, "a quarter of one a second, growing a little")
			}
			last = time.Now()
		}
	}, once(provider.Throttle{Adaptive: true}))
}
