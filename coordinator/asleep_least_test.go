package coordinator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// What a quick answer refutes, it refutes of keys that sleep, too: what counts in them
// counts longer.
func TestRefutedOfKeysThatSleep(t *testing.T) {
	const least, quick = time.Minute, 10 * time.Second
	day := provider.Limit{Name: "day", Max: 1, Per: "24h", Scope: provider.ScopeKey}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		require.NoError(t, c.Do(t.Context(), keyed("k"), takes(least)))
		lull(t, c, 1)
		require.Equal(t, 1, c.Asleep("p"))
		require.NoError(t, c.Do(t.Context(), keyed("other"), takes(quick)))
		require.Equal(t, 1, c.Asleep("p"))
		require.NoError(t, c.Do(t.Context(), keyed("k"), ok))
		assert.Equal(t, 24*time.Hour+least-quick+1, time.Since(start), "it counts from its answer less what is known now")
	}, declare(provider.Throttle{Limits: []provider.Limit{day}, MaxWait: provider.Forever, LeastRoundTrip: least}))
}
