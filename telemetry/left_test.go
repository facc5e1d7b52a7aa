package telemetry

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// What nothing may go of any more is shown so: an empty bucket, a quota told spent.
func TestNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := metered(t, nil, coordinator.Config{Providers: []provider.Provider{
			{Slug: "bucket", Throttle: provider.Throttle{RPM: 600, Burst: 50, Algorithm: provider.TokenBucket, Excess: provider.Reject}},
			{Slug: "deep", Throttle: provider.Throttle{RPS: 1, Burst: 10, Algorithm: provider.TokenBucket}},
			{Slug: "spent", Throttle: provider.Throttle{Limits: []provider.Limit{{Name: "daily", Max: 1000, Per: "24h"}}}},
		}})
		for range 60 {
			_ = c.Do(t.Context(), coordinator.Call{Provider: "bucket"}, ok)
		}
		for range 4 {
			require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "deep"}, ok))
		}
		require.Error(t, c.Do(t.Context(), coordinator.Call{Provider: "spent"}, answer(provider.QuotaSpent, 36*time.Hour)))
		left, busy := map[string]int64{}, map[string]float64{}
		for _, s := range c.States() {
			for _, l := range limitsOf(s, nil) {
				left[s.Provider], busy[s.Provider] = l.remaining, l.busiest
			}
		}
		assert.Equal(t, map[string]int64{"bucket": 0, "deep": 6, "spent": 0}, left)
		assert.Equal(t, map[string]float64{"bucket": 1, "deep": 0.4, "spent": 1}, busy)
	})
}
