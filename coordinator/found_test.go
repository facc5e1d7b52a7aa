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

// What calls that name no key or no endpoint have used of a limit of such a scope is
// known to a forecast.
func TestForecastKnowsWhatCallsWithoutKeyUsed(t *testing.T) {
	for _, scope := range []string{provider.ScopeProvider, provider.ScopeKey, provider.ScopeEndpoint, provider.ScopeKeyEndpoint} {
		t.Run(scope, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				for range 10 {
					require.NoError(t, c.Do(t.Context(), to, ok))
				}
				f, err := c.Forecast(to, 1)
				require.NoError(t, err)
				require.Len(t, f.Portions, 1)
				assert.Equal(t, time.Hour+1, f.Portions[0].From.Sub(f.At))
			}, declare(limits(provider.Limit{Name: "l", Max: 10, Per: "1h", Scope: scope})))
		})
	}
}

// While a call waits for its next attempt, what its last one left behind is settled by
// the timer of those who wait: the two do not read and write the same without the lock.
// The race detector is the judge.
func TestSettlingMeetsTheBackOffOfItsCall(t *testing.T) {
	th := provider.Throttle{RPM: 1, BadAnswers: &provider.Limit{Max: 5, Per: "1m"}}
	p := provider.Provider{Slug: "p", Throttle: th, Retry: provider.Retry{Base: 10 * second}}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		again := to
		again.Replayable = true
		go func() {
			first := true
			assert.NoError(t, c.Do(t.Context(), again, func(context.Context) error {
				if !first {
					return nil
				}
				first = false
				return provider.Feedback{Outcome: provider.Failed, Unanswered: true}.Err(errors.New("cut off"))
			}))
		}()
		time.Sleep(ms) // not synctest.Wait, which would order what must be in order by itself
		go func() { assert.NoError(t, c.Do(t.Context(), to, ok)) }()
		time.Sleep(10 * time.Minute)
		assert.Zero(t, state(t, c).Queue.Length)
	}, p)
}
