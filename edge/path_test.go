package edge_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/edge"
	"github.com/headgate/headgate/provider"
)

// A path in another form is the same route: what serves it may clean it, too.
func TestRouteInOtherForms(t *testing.T) {
	e, err := edge.New(edge.Config{Service: provider.Provider{Endpoints: []provider.Endpoint{{Name: "search", Path: "/search"}},
		Throttle: provider.Throttle{Limits: []provider.Limit{{Name: "s", Max: 1, Per: "1m", Endpoints: []string{"search"}}}}}})
	require.NoError(t, err)
	h := e.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	ask := func(path string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		return w.Code
	}
	assert.Equal(t, http.StatusOK, ask("/search"))
	for _, path := range []string{"/search", "//search", "/./search", "/x/../search", "/%73earch"} {
		assert.Equal(t, http.StatusTooManyRequests, ask(path), path)
	}
	assert.Equal(t, http.StatusOK, ask("/other"))
}
