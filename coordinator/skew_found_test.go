package coordinator_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// A clock that turned out to be right makes no window's guard wider, also where that of a
// key was widened before it slept, or before an Update.
func TestGuardIsNarrowedAgain(t *testing.T) {
	throttle := provider.Throttle{Limits: []provider.Limit{
		{Name: "hour", Max: 10, Per: "1h", Algorithm: provider.FixedWindow, Scope: provider.ScopeKey},
	}}
	behind := func(d time.Duration) func(context.Context) error {
		return func(context.Context) error {
			return provider.Feedback{Outcome: provider.Rejected, Date: time.Now().Add(-d)}.Err(errors.New("answer"))
		}
	}
	for name, between := range map[string]func(t *testing.T, c *coordinator.Coordinator){
		"nothing": func(*testing.T, *coordinator.Coordinator) {},
		"sleep":   func(t *testing.T, c *coordinator.Coordinator) { lull(t, c, 2); require.Equal(t, 2, c.Asleep("p")) },
		"update":  func(t *testing.T, c *coordinator.Coordinator) { require.NoError(t, c.Update("p", throttle)) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				call := keyed("k")
				require.Error(t, c.Do(t.Context(), call, behind(10*time.Second)))
				require.Error(t, c.Do(t.Context(), keyed("other"), behind(0)))
				between(t, c)
				for range 9 {
					require.Error(t, c.Do(t.Context(), call, behind(0)))
				}
				time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + 2*time.Second)))
				call.Wait = -1
				assert.NoError(t, c.Do(t.Context(), call, ok), "a second after the hour")
			}, declare(throttle))
		})
	}
}
