package transport_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/transport"
)

// twice is a cap of one and room for two a minute.
var twice = provider.Throttle{MaxInFlight: 1, RPM: 2}

func TestFirstRequestUnderALeaseTakesNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := over(t, always(200), api(twice))
		err := tr.Coordinator.Do(t.Context(), coordinator.Call{Provider: "p"}, func(ctx context.Context) error {
			for n := range 2 {
				res, err := tr.RoundTrip(get(ctx, t, site))
				require.NoError(t, err)
				assert.EqualValues(t, n+1, used(t, tr, "p", "rpm"), "the second takes a unit of its own, and no second slot")
				assert.Equal(t, n+1, state(t, tr, "p").InFlight)
				done(t, res)
			}
			assert.Equal(t, 1, state(t, tr, "p").InFlight)
			return nil
		})
		require.NoError(t, err)
		assert.Zero(t, state(t, tr, "p").InFlight)
	})
}

func TestEachAttemptsLeaseIsGoodForOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []func(*http.Request) (*http.Response, error){always(429, "Retry-After", "60"), always(200)}}
		tr := over(t, s, api(twice))
		attempts := 0
		err := tr.Coordinator.Do(t.Context(), coordinator.Call{Provider: "p"}, func(ctx context.Context) error {
			attempts++
			res, err := tr.RoundTrip(get(ctx, t, site))
			require.NoError(t, err)
			done(t, res)
			if res.StatusCode != 200 {
				return provider.Feedback{Outcome: provider.RateLimited}.Err(nil)
			}
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, 2, attempts)
		assert.Len(t, s.got, 2, "under a lease its holder tries again, not we")
		assert.GreaterOrEqual(t, s.at[1].Sub(s.at[0]), time.Minute, "what the answer said was reported")
		assert.EqualValues(t, 2, state(t, tr, "p").Granted)
	})
}

func TestLeaseOfAnotherProviderOrCoordinatorIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := provider.Provider{Slug: "q", BaseURL: "https://q.example"}
		tr, other := over(t, always(200), api(twice), q), over(t, always(200), api(twice))
		for _, test := range []struct {
			c    *coordinator.Coordinator
			slug string
		}{{tr.Coordinator, "q"}, {other.Coordinator, "p"}} {
			require.NoError(t, test.c.Do(t.Context(), coordinator.Call{Provider: test.slug}, func(ctx context.Context) error {
				before := state(t, tr, "p").Granted
				res, err := tr.RoundTrip(get(ctx, t, site))
				require.NoError(t, err)
				assert.Equal(t, before+1, state(t, tr, "p").Granted)
				done(t, res)
				return nil
			}))
		}
	})
}

func TestUnderALeaseTheRequestIsTracedAndForgottenToo(t *testing.T) {
	served(t, nil, func(t *testing.T, b *http.Transport) {
		b.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, errReset }
		tr := over(t, b, plainAPI(twice))
		p := coordinator.Call{Provider: "p"}
		err := tr.Coordinator.Do(t.Context(), p, func(ctx context.Context) error {
			_, err := tr.RoundTrip(request(ctx, t, http.MethodPost, plainSite, strings.NewReader("x")))
			return err
		})
		require.ErrorIs(t, err, errReset)
		assert.Zero(t, used(t, tr, "p", "rpm"))
		assert.Zero(t, state(t, tr, "p").Granted)
	})
}

// A context may outlive its function: what is sent with it then is not free.
func TestLeaseThatHasEndedIsNotUsed(t *testing.T) {
	tr := over(t, always(200), api(provider.Throttle{RPM: 2}))
	var late context.Context
	require.NoError(t, tr.Coordinator.Do(t.Context(), coordinator.Call{Provider: "p"}, func(ctx context.Context) error {
		late = ctx
		return nil
	}))
	res, err := tr.RoundTrip(get(late, t, site))
	require.NoError(t, err)
	assert.EqualValues(t, 2, used(t, tr, "p", "rpm"))
	done(t, res)
	_, err = tr.RoundTrip(get(transport.WithCall(late, coordinator.Call{Wait: -1}), t, site))
	require.ErrorIs(t, err, coordinator.ErrRateLimited)
}
