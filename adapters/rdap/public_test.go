package rdap

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate/adapters/reach"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The transport that asks the real servers reaches nothing of ours, and no proxy,
// which would reach it in our place.
func TestTheTransportIsGuarded(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a host of ours was asked") }))
	defer srv.Close()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(srv.URL, "http://"))
	require.NoError(t, err)
	for _, base := range []string{srv.URL, "http://localhost:" + port} {
		a, err := New(Options{BaseURL: base})
		require.NoError(t, err)
		assert.Nil(t, a.transport.(*http.Transport).Proxy)
		_, err = a.Lookup(t.Context(), provider.Query{Kind: provider.Domain, Value: "example.test"})
		require.ErrorIs(t, err, reach.ErrPrivate)
		f, ok := provider.FeedbackOf(err)
		require.True(t, ok)
		assert.Equal(t, provider.Feedback{Outcome: provider.Rejected, Detail: "the server's address is private"}, f)
	}
}
