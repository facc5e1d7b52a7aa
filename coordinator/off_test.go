package coordinator_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// What is switched off is refused at once, those who wait included; the rest goes on.
func TestSwitchingOffLive(t *testing.T) {
	p := provider.Provider{Slug: "p", Endpoints: []provider.Endpoint{{Name: "a"}, {Name: "b"}},
		Throttle: limits(provider.Limit{Name: "s", Max: 1, Per: "1m", Scope: provider.ScopeEndpoint})}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		a, b := coordinator.Call{Provider: "p", Endpoint: "a"}, coordinator.Call{Provider: "p", Endpoint: "b"}
		require.NoError(t, c.Do(t.Context(), a, ok))
		require.NoError(t, c.Do(t.Context(), b, ok))
		var all sync.WaitGroup
		all.Go(func() { assert.NoError(t, c.Do(t.Context(), a, ok)) })
		all.Go(func() {
			e := refusal(t, c.Do(t.Context(), b, ok))
			assert.Equal(t, coordinator.ReasonInvalid, e.Reason)
			assert.ErrorContains(t, e, `endpoint "b" is switched off`)
		})
		synctest.Wait()
		th := p.Throttle
		th.Off = []string{"b"}
		require.NoError(t, c.Update("p", th))
		all.Wait()
		assert.ErrorContains(t, c.Do(t.Context(), b, never(t)), `endpoint "b" is switched off`)
		require.NoError(t, c.Do(t.Context(), to, ok), "calls that name none")
		th.Off = []string{provider.Everything}
		require.NoError(t, c.Update("p", th))
		assert.ErrorContains(t, c.Do(t.Context(), to, never(t)), "the provider is switched off")
		assert.ErrorContains(t, c.Do(t.Context(), a, never(t)), "switched off")
		require.NoError(t, c.Update("p", p.Throttle))
		require.NoError(t, c.Do(t.Context(), b, ok))
		assert.ErrorContains(t, c.Update("p", provider.Throttle{Off: []string{"c"}}), `throttle.off[0]: "c" is not declared`)
	}, p)
}

// Execute takes the first endpoint that can be asked.
func TestExecutePassesOverWhatCannotBeAsked(t *testing.T) {
	ip := []provider.Kind{provider.IP}
	reg := registryOf(t, &echo{p: provider.Provider{Slug: "echo", Endpoints: []provider.Endpoint{
		{Name: "paid", Kinds: ip}, {Name: "national", Path: "/{country}/{value}", Kinds: ip}, {Name: "free", Kinds: ip},
	}, Throttle: provider.Throttle{Off: []string{"paid"}}}})
	bubbleWith(t, coordinator.Config{Registry: reg}, func(t *testing.T, c *coordinator.Coordinator) {
		call := coordinator.Call{Provider: "echo"}
		at := func(q provider.Query) string {
			res, err := c.Execute(t.Context(), call, q)
			require.NoError(t, err)
			return string(res.Data)
		}
		assert.Contains(t, at(provider.Query{Kind: provider.IP}), "free")
		assert.Contains(t, at(provider.Query{Kind: provider.IP, Params: map[string]string{"country": "de"}}), "national")
		assert.Contains(t, at(provider.Query{Kind: provider.IP, Endpoint: "national"}), "national", "the adapter says what it lacks")
		_, err := c.Execute(t.Context(), call, provider.Query{Kind: provider.IP, Endpoint: "paid"})
		assert.ErrorContains(t, err, `endpoint "paid" is switched off`)
		require.NoError(t, c.Update("echo", provider.Throttle{Off: []string{"free"}}))
		assert.Contains(t, at(provider.Query{Kind: provider.IP}), "paid")
		require.NoError(t, c.Update("echo", provider.Throttle{Off: []string{"free", "paid"}}))
		_, err = c.Execute(t.Context(), call, provider.Query{Kind: provider.IP})
		assert.ErrorContains(t, err, `no endpoint takes the kind "ip"; endpoint "free" is switched off`)
	})
}
