package coordinator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// What the ledger said was left says nothing of the next window, in which nobody has
// called yet.
func TestRoomIsOverWithItsWindow(t *testing.T) {
	for name, d := range map[string]provider.Limit{
		"day":     {Max: 10, Per: provider.Day},
		"sliding": {Max: 10, Per: "24h"},
	} {
		t.Run(name, func(t *testing.T) {
			p := declare(limits(sharedLimit(d)))
			teamed(t, 2, ledger.Settings{}, p, func(team *team) {
				t := team.t
				for _, c := range []*coordinator.Coordinator{team.cs[1], team.cs[1], team.cs[1], team.cs[0]} {
					require.NoError(t, c.Do(t.Context(), to, ok))
				}
				assert.Equal(t, int64(6), state(t, team.cs[0]).Limits[0].Left)
				f, err := team.cs[0].Forecast(to, 20)
				require.NoError(t, err)
				assert.Equal(t, 6, f.Now)

				time.Sleep(25 * time.Hour)
				assert.Equal(t, int64(10), state(t, team.cs[0]).Limits[0].Left)
				f, err = team.cs[0].Forecast(to, 20)
				require.NoError(t, err)
				assert.Equal(t, 10, f.Now)
			})
		})
	}
}
