package transport_test

import (
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
	"github.com/headgate/headgate/transport"
)

// Nobody listens: nothing is sent, so nothing is charged, and still the provider has
// failed, five times in a row.
func TestProviderThatRefusesConnectionsOpensTheBreaker(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	url := "http://" + l.Addr().String()
	require.NoError(t, l.Close())
	c, err := coordinator.New(coordinator.Config{Registry: new(registry.Registry), Providers: []provider.Provider{{
		Slug: "p", BaseURL: url, Throttle: provider.Throttle{RPM: 100}, Retry: provider.Retry{Off: true},
	}}})
	require.NoError(t, err)
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: &transport.Transport{Coordinator: c, Base: base}}
	for range 5 {
		_, err := client.Get(url)
		require.Error(t, err)
		require.NotErrorIs(t, err, coordinator.ErrCircuitOpen)
	}
	_, err = client.Get(url)
	require.ErrorIs(t, err, coordinator.ErrCircuitOpen)
	s, err := c.State("p")
	require.NoError(t, err)
	assert.Zero(t, s.Limits[0].Used+s.Limits[0].Held)
}

// The Date of answers reaches the limits that follow dates.
func TestDateOfAnswersIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := 20 * time.Second
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			at := time.Now().Add(-behind).UTC().Format(http.TimeFormat)
			return &http.Response{StatusCode: 200, Header: http.Header{"Date": {at}}, Body: http.NoBody, Request: r}, nil
		})
		c, err := coordinator.New(coordinator.Config{Registry: new(registry.Registry), Providers: []provider.Provider{{
			Slug: "p", BaseURL: "http://p.test", Throttle: provider.Throttle{Limits: []provider.Limit{{Name: "hour", Max: 1, Per: provider.Hour}}},
		}}})
		require.NoError(t, err)
		client := &http.Client{Transport: &transport.Transport{Coordinator: c, Base: base}}
		res, err := client.Get("http://p.test/")
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		s, err := c.State("p")
		require.NoError(t, err)
		guard := s.Limits[0].ResetAt.Sub(s.At.Truncate(time.Hour).Add(time.Hour))
		assert.Greater(t, guard, behind, "a second and the skew")
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
