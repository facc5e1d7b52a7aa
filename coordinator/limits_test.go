package coordinator_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// A lease tells the limits that its call counts in, those of its key and endpoint
// only, as they stand when it is asked.
func TestLeaseLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{
			Slug: "limits-test", Endpoints: []provider.Endpoint{{Name: "a"}, {Name: "b"}},
			Throttle: provider.Throttle{RPM: 10, MaxInFlight: 3, Limits: []provider.Limit{
				{Name: "own", Max: 5, Per: "1h", Scope: provider.ScopeKey, Counted: provider.CountedSent},
				{Name: "other", Max: 5, Per: "1h", Endpoints: []string{"b"}},
				{Name: "words", Max: 5, Per: "1h", Unit: provider.Tokens},
			}},
		}}})
		require.NoError(t, err)
		var last *coordinator.Lease
		for _, key := range []string{"x", "y", "x"} {
			last, err = c.Acquire(t.Context(), coordinator.Call{Provider: "limits-test", Endpoint: "a", Key: key})
			require.NoError(t, err)
		}
		got := last.Limits()
		var names []string
		for _, l := range got {
			names = append(names, l.Name)
		}
		assert.Equal(t, []string{"rpm", "max_in_flight", "own"}, names)
		assert.EqualValues(t, 3, got[0].Held)
		assert.EqualValues(t, 2, got[2].Used)
		time.Sleep(time.Hour + 1)
		assert.Zero(t, last.Limits()[2].Used) // the other two are in a bubble of their own, which ends with the test
	})
}
