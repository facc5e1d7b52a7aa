package coordinator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// What answers said of a key is kept while the key is used, with whatever endpoint.
func TestStrikesOfAKeyInUseAreKept(t *testing.T) {
	p := declare(limits(provider.Limit{Name: "second", Max: 5, Per: "1s", Scope: provider.ScopeKeyEndpoint}))
	p.Endpoints = []provider.Endpoint{{Name: "a"}, {Name: "b"}}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		a := coordinator.Call{Provider: "p", Endpoint: "a", Key: "k"}
		b := coordinator.Call{Provider: "p", Endpoint: "b", Key: "k"}
		others := func() {
			time.Sleep(2 * time.Second)
			for range 5 {
				require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Endpoint: "a", Key: "other"}, ok))
			}
		}
		for range 2 {
			require.Error(t, c.Do(t.Context(), a, answers(provider.Unauthorized, 0)))
		}
		time.Sleep(4*time.Minute + 30*time.Second)
		require.Error(t, c.Do(t.Context(), b, answers(provider.Unknown, 0)))
		others()
		time.Sleep(time.Minute)
		others()
		require.Error(t, c.Do(t.Context(), a, answers(provider.Unauthorized, 0)))
		assert.NotEmpty(t, state(t, c).Pauses, "the third in a row")
	}, p)
}
