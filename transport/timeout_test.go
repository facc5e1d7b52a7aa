package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

func TestClientTimeoutCoversTheWaitTheAnswerAndTheBody(t *testing.T) {
	served(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/body" {
			w.(http.Flusher).Flush()
		}
		if r.URL.Path != "/v1/quick" {
			<-r.Context().Done()
		}
	}, func(t *testing.T, b *http.Transport) {
		for _, path := range []string{"/answer", "/body", "/wait"} {
			tr := over(t, b, plainAPI(provider.Throttle{RPM: 1}))
			client := http.Client{Transport: tr, Timeout: 10 * time.Second}
			if path == "/wait" {
				res, err := client.Do(get(t.Context(), t, plainSite+"/quick"))
				require.NoError(t, err)
				done(t, res)
			}
			start := time.Now()
			res, err := client.Do(get(t.Context(), t, plainSite+path))
			if path == "/body" {
				require.NoError(t, err)
				_, err = io.ReadAll(res.Body)
				_ = res.Body.Close()
			}
			var timeout interface{ Timeout() bool }
			if path == "/wait" { // its turn would come too late: it is not waited for
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Zero(t, time.Since(start))
			} else {
				require.ErrorAs(t, err, &timeout)
				assert.True(t, timeout.Timeout(), path)
				assert.Equal(t, 10*time.Second, time.Since(start), path)
			}
			synctest.Wait()
			assert.Zero(t, state(t, tr, "p").InFlight, path)
		}
	})
}

func TestDeclaredTimeoutBoundsTheAttemptAndTheBodyButDoesNotCutIt(t *testing.T) {
	served(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		time.Sleep(4 * time.Second)
		_, _ = io.WriteString(w, "late")
		if r.URL.Path != "/v1/quick" {
			<-r.Context().Done()
		}
	}, func(t *testing.T, b *http.Transport) {
		p := plainAPI(one)
		p.Timeout = 5 * time.Second
		tr := over(t, b, p)
		res, err := tr.RoundTrip(get(t.Context(), t, plainSite+"/quick"))
		require.NoError(t, err)
		assert.Equal(t, "late", done(t, res), "the Coordinator's context is over by now")
		start := time.Now()
		res, err = tr.RoundTrip(get(t.Context(), t, plainSite))
		require.NoError(t, err)
		_, err = io.ReadAll(res.Body)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, p.Timeout, time.Since(start))
		require.NoError(t, res.Body.Close())
		assert.Zero(t, state(t, tr, "p").InFlight)
		ctx, cancel := context.WithCancelCause(t.Context())
		mine := errors.New("mine")
		time.AfterFunc(time.Second, func() { cancel(mine) })
		res, err = tr.RoundTrip(get(ctx, t, plainSite))
		require.NoError(t, err)
		_, err = io.ReadAll(res.Body)
		require.ErrorIs(t, err, mine, "the caller's context reaches the body, too")
		require.NoError(t, res.Body.Close())
	})
}

func TestProviderThatTakesLongerThanItsTimeoutHasFailed(t *testing.T) {
	served(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(t *testing.T, b *http.Transport) {
		p := plainAPI(one)
		p.Timeout, p.Retry.Off = 100*time.Millisecond, true
		for i := range 20 { // two timers are due at one instant
			tr := over(t, b, p)
			_, err := tr.RoundTrip(get(t.Context(), t, plainSite))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			s := state(t, tr, "p")
			require.EqualValues(t, 1, s.Outcomes[provider.Failed], "%d: %v", i, s.Outcomes)
			assert.Equal(t, 1, s.Breaker.Failures)
			assert.Zero(t, s.InFlight)
		}
	})
}
