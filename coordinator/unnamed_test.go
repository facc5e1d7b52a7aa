package coordinator_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// A limit of scope key counts calls that name no key as those of one: State shows it,
// unless all calls name keys.
func TestStateOfCallsWithoutKey(t *testing.T) {
	p := provider.Provider{Slug: "p", Throttle: provider.Throttle{Limits: []provider.Limit{{Name: "minute", Max: 4, Per: "1m", Scope: provider.ScopeKey}, {Name: "all", Max: 9, Per: "1m"}}}}
	names := func(limits []coordinator.LimitState) (names []string) {
		for _, l := range limits {
			names = append(names, l.Name)
		}
		return names
	}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p"}, takes(0)))
		s, err := c.State("p")
		require.NoError(t, err)
		assert.Equal(t, []string{"all", "minute"}, names(s.Limits))
		assert.Equal(t, int64(1), s.Limits[1].Used)
		assert.Zero(t, s.KeyCount)
		require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Key: "K"}, takes(0)))
		s, err = c.State("p")
		require.NoError(t, err)
		assert.Equal(t, []string{"all", "minute"}, names(s.Limits), "some name keys, some do not")
		assert.Equal(t, 1, s.KeyCount)
	}, p)
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Key: "K"}, takes(0)))
		s, err := c.State("p")
		require.NoError(t, err)
		assert.Equal(t, []string{"all"}, names(s.Limits))
		assert.Equal(t, []string{"minute"}, names(s.Keys[0].Limits))
	}, p)
}
