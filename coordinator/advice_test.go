package coordinator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// A failure pauses nobody else, but its own retry keeps to what it advised.
func TestRetryOfAFailureKeepsToItsAdvice(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		again := to
		again.Replayable = true
		var went []time.Time
		require.NoError(t, c.Do(t.Context(), again, func(context.Context) error {
			if went = append(went, time.Now()); len(went) > 1 {
				return nil
			}
			return provider.Feedback{Outcome: provider.Failed, RetryAfter: 10 * second}.Err(nil)
		}))
		require.Len(t, went, 2)
		assert.Equal(t, 10*second, went[1].Sub(went[0]))
	}, provider.Provider{Slug: "p"})
}
