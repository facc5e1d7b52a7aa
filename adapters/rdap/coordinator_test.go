package rdap_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/adapters/rdap"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gate is a coordinator over these servers; at is when each was asked.
func gate(t *testing.T, s *servers, at *[]time.Duration) *coordinator.Coordinator {
	t.Helper()
	start := time.Now()
	a, err := rdap.New(rdap.Options{Transport: tripper(func(r *http.Request) (*http.Response, error) {
		*at = append(*at, time.Since(start).Truncate(time.Millisecond))
		return s.RoundTrip(r)
	})})
	require.NoError(t, err)
	var r registry.Registry
	require.NoError(t, r.Register(a))
	c, err := coordinator.New(coordinator.Config{Registry: &r})
	require.NoError(t, err)
	return c
}

// A redirect is not a second request in the shadow of the first: it is paced, too.
func TestEachRequestIsACallOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &servers{answers: map[string]answer{
			"rdap.org":       redirect("https://rdap.arin.test/ip/192.0.2.1"),
			"rdap.arin.test": redirect("https://rdap.ripe.test/ip/192.0.2.1"),
			"rdap.ripe.test": {status: 200, body: domain},
		}}
		var at []time.Duration
		c := gate(t, s, &at)
		call, q := coordinator.Call{Provider: "rdap"}, provider.Query{Kind: provider.IP, Value: "192.0.2.1"}
		r, err := c.Execute(t.Context(), call, q)
		require.NoError(t, err)
		assert.Equal(t, "["+domain+"]", string(r.Data))
		assert.False(t, r.Empty)
		assert.Empty(t, r.Next)
		assert.Equal(t, []time.Duration{0, 2 * time.Second, 4 * time.Second}, at)

		s.answers["rdap.ripe.test"] = answer{status: 404}
		r, err = c.Execute(t.Context(), call, q)
		require.NoError(t, err)
		assert.True(t, r.Empty, "no data")
		assert.Equal(t, "[]", string(r.Data))
		assert.Len(t, at, 6)

		s.answers["rdap.ripe.test"] = redirect("https://rdap.lacnic.test/ip/192.0.2.1")
		s.answers["rdap.lacnic.test"] = redirect("https://rdap.registro.test/ip/192.0.2.1")
		_, err = c.Execute(t.Context(), call, q)
		assert.Equal(t, provider.Rejected, feedbackOf(t, err).Outcome, "never an empty answer of a lookup that came to no end")
		assert.Len(t, at, 10)
		require.NoError(t, c.Shutdown(t.Context()))
	})
}

func feedbackOf(t *testing.T, err error) provider.Feedback {
	t.Helper()
	f, ok := provider.FeedbackOf(err)
	require.True(t, ok, "%v", err)
	return f
}

// A registry that has enough is left alone for as long as it says, and then asked
// again; the others' questions go on meanwhile. rdap.org's own word stops all.
func TestWhoseRefusalStopsWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &servers{answers: map[string]answer{
			"rdap.org":      redirect("https://rdap.nic.test/x"),
			"rdap.nic.test": {status: 429, header: []string{"Retry-After", "600"}},
		}}
		var at []time.Duration
		c := gate(t, s, &at)
		call := coordinator.Call{Provider: "rdap", Wait: time.Minute}
		r, err := c.Execute(t.Context(), call, example)
		require.ErrorIs(t, err, coordinator.ErrRateLimited)
		assert.Equal(t, "1 https://rdap.nic.test/x", r.Next, "where to go on")
		var e *coordinator.Error
		require.ErrorAs(t, err, &e)
		assert.InDelta(t, 600, e.RetryAfter.Seconds(), 1)
		assert.Equal(t, []time.Duration{0, 2 * time.Second}, at)

		s.answers["rdap.nic.test"] = answer{status: 200, body: domain}
		_, err = c.Execute(t.Context(), call, example)
		require.ErrorIs(t, err, coordinator.ErrRateLimited)
		assert.Len(t, at, 2, "nothing is sent while it rests")
		_, err = c.Execute(t.Context(), call, provider.Query{Kind: provider.IP, Value: "192.0.2.1"})
		require.NoError(t, err, "it is not the server of addresses")
		assert.Len(t, at, 4)

		call.Wait = time.Hour
		q := example
		q.Page = r.Next
		r, err = c.Execute(t.Context(), call, q)
		require.NoError(t, err)
		assert.False(t, r.Empty)
		assert.GreaterOrEqual(t, at[4], 602*time.Second)

		s.answers["rdap.org"] = answer{status: 403}
		call.Wait = -1
		time.Sleep(time.Minute)
		_, err = c.Execute(t.Context(), call, example)
		require.ErrorIs(t, err, coordinator.ErrBanned)
		n := len(at)
		time.Sleep(50 * time.Second)
		for _, q := range []provider.Query{example, {Kind: provider.IP, Value: "192.0.2.1"}, {Kind: provider.Text, Value: "AS64500"}} {
			_, err = c.Execute(t.Context(), call, q)
			require.ErrorIs(t, err, coordinator.ErrThrottled)
		}
		assert.Len(t, at, n, "nothing is sent to who has blocked us")
		require.NoError(t, c.Shutdown(t.Context()))
	})
}
