package console_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/console"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/memory"
	"github.com/headgate/headgate/provider"
)

// A budget that other processes share is said to be so, and by how many.
func TestSharedBudget(t *testing.T) {
	led, err := ledger.Open(memory.New(), ledger.Settings{Budget: time.Minute, Lease: time.Hour})
	require.NoError(t, err)
	defer func() { require.NoError(t, led.Close(context.Background())) }()
	c, err := coordinator.New(coordinator.Config{Ledger: led, Providers: []provider.Provider{{Slug: "p", Throttle: provider.Throttle{
		Limits: []provider.Limit{{Name: "day", Max: 10, Per: "24h", Shared: true}}}}}})
	require.NoError(t, err)
	require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p"}, func(context.Context) error { return nil }))
	k := console.New(c, console.Options{})
	defer k.Close()
	for path, wants := range map[string][]string{
		"/":          {"shared by 1", `<span class="tag">shared</span>`},
		"/api/state": {`"shared_budget":{"mode":"shared","processes":1}`, `"shared":true`},
	} {
		w := httptest.NewRecorder()
		k.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		for _, want := range wants {
			assert.Contains(t, w.Body.String(), want, path)
		}
	}
}
