package transport_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
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

// The instant of sending: with arrival_within a request counts from then on, and
// its unit comes back while the answer is still awaited.
func TestRequestCountsFromTheInstantOfSending(t *testing.T) {
	served(t, func(http.ResponseWriter, *http.Request) { time.Sleep(time.Minute) }, func(t *testing.T, b *http.Transport) {
		dial := b.DialContext
		b.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(time.Second) // the request is not on its way before
			return dial(ctx, network, addr)
		}
		p := plainAPI(provider.Throttle{ArrivalWithin: 2 * time.Second, Limits: []provider.Limit{{Name: "l", Max: 1, Per: "5s"}}})
		tr := over(t, b, p)
		r := get(t.Context(), t, plainSite)
		go func() {
			res, err := tr.RoundTrip(r)
			if assert.NoError(t, err) {
				assert.NoError(t, res.Body.Close())
			}
		}()
		for _, at := range []time.Duration{0, 7900 * time.Millisecond} { // 1 s to dial, 2 s to arrive, 5 s in its window
			time.Sleep(at)
			synctest.Wait()
			assert.EqualValues(t, 1, used(t, tr, "p", "l"), at)
		}
		time.Sleep(200 * time.Millisecond)
		assert.Zero(t, used(t, tr, "p", "l"))
		assert.Equal(t, 1, state(t, tr, "p").InFlight)
		time.Sleep(time.Hour)
	})
}

func TestRequestThatWasNeverWrittenCostsNothing(t *testing.T) {
	served(t, nil, func(t *testing.T, b *http.Transport) {
		b.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Second):
				return nil, errReset
			}
		}
		p := plainAPI(provider.Throttle{RPM: 1})
		p.Retry.Off = true
		tr := over(t, b, p)
		res, err := tr.RoundTrip(request(t.Context(), t, http.MethodPost, plainSite, strings.NewReader("text")))
		require.ErrorIs(t, err, errReset)
		assert.Nil(t, res)
		assert.Zero(t, used(t, tr, "p", "rpm"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = tr.RoundTrip(get(ctx, t, plainSite))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Zero(t, used(t, tr, "p", "rpm"))
		s := state(t, tr, "p")
		assert.Zero(t, s.InFlight)
		assert.Zero(t, s.Granted)
	})
}

// Whoever does not say whether it wrote may have.
func TestRequestThatMayHaveBeenWrittenIsCharged(t *testing.T) {
	for name, b := range map[string]func(*http.Transport) http.RoundTripper{
		"lost after it was written": func(b *http.Transport) http.RoundTripper { return b },
		"a Base that does not trace": func(*http.Transport) http.RoundTripper {
			return base(func(*http.Request) (*http.Response, error) { return nil, errors.New("boom") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
			served(t, abort, func(t *testing.T, h *http.Transport) {
				tr := over(t, b(h), plainAPI(provider.Throttle{RPM: 1}))
				_, err := tr.RoundTrip(request(t.Context(), t, http.MethodPost, plainSite, strings.NewReader("text")))
				require.Error(t, err)
				assert.EqualValues(t, 1, used(t, tr, "p", "rpm"))
				assert.EqualValues(t, 1, state(t, tr, "p").Granted)
			})
		})
	}
}

// net/http has no type for a connection that broke: it is the network's fault all
// the same, and opens the breaker.
func TestBrokenAnswerIsAFailureOfTheProvider(t *testing.T) {
	garbage := func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = rw.WriteString("no HTTP at all\r\n\r\n")
		_ = rw.Flush()
		_ = conn.Close()
	}
	served(t, garbage, func(t *testing.T, b *http.Transport) {
		p := plainAPI(provider.Throttle{})
		p.Retry.Off = true
		tr := over(t, b, p)
		for range 5 {
			_, err := tr.RoundTrip(get(t.Context(), t, plainSite))
			require.ErrorContains(t, err, "transport connection broken")
		}
		assert.EqualValues(t, 5, state(t, tr, "p").Outcomes[provider.Failed])
		_, err := tr.RoundTrip(get(t.Context(), t, plainSite))
		require.ErrorIs(t, err, coordinator.ErrCircuitOpen)
	})
}

func TestTraceInTheContextKeepsWorking(t *testing.T) {
	served(t, func(http.ResponseWriter, *http.Request) {}, func(t *testing.T, b *http.Transport) {
		var seen []string
		note := func(what string) { seen = append(seen, what) }
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GetConn:              func(string) { note("get") },
			GotConn:              func(httptrace.GotConnInfo) { note("got") },
			WroteHeaders:         func() { note("headers") },
			WroteRequest:         func(httptrace.WroteRequestInfo) { note("wrote") },
			GotFirstResponseByte: func() { note("first byte") },
		})
		tr := over(t, b, plainAPI(provider.Throttle{ArrivalWithin: time.Second, RPM: 5}))
		res, err := tr.RoundTrip(get(ctx, t, plainSite))
		require.NoError(t, err)
		done(t, res)
		assert.Equal(t, []string{"get", "got", "headers", "wrote", "first byte"}, seen)
	})
}

// A request's body that fails is the caller's fault: the breaker learns nothing.
func TestRequestBodyThatFailsIsNotTheProvidersFault(t *testing.T) {
	served(t, func(http.ResponseWriter, *http.Request) {}, func(t *testing.T, b *http.Transport) {
		p := plainAPI(provider.Throttle{})
		tr := over(t, b, p)
		mine := errors.New("mine")
		for name, r := range map[string]*http.Request{
			"fails":     request(t.Context(), t, http.MethodPut, plainSite, &body{Reader: failingReader{mine}}),
			"too short": request(t.Context(), t, http.MethodPut, plainSite, &body{Reader: strings.NewReader("x")}),
		} {
			r.ContentLength = 10
			_, err := tr.RoundTrip(r)
			require.Error(t, err)
			if name == "fails" {
				require.ErrorIs(t, err, mine)
			}
			synctest.Wait()
			assert.EqualValues(t, 1, r.Body.(*body).closed.Load(), name)
		}
		s := state(t, tr, "p")
		assert.Zero(t, s.Breaker.Failures)
		assert.EqualValues(t, 2, s.Outcomes[provider.Unknown], s.Outcomes)
	})
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

func TestWaitIsCarried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := over(t, always(200), api(provider.Throttle{RPM: 1}))
		for _, wait := range []time.Duration{0, 2 * time.Minute} {
			ctx := transport.WithCall(t.Context(), coordinator.Call{Wait: wait})
			res, err := tr.RoundTrip(get(ctx, t, site))
			require.NoError(t, err)
			done(t, res)
		}
		ctx := transport.WithCall(t.Context(), coordinator.Call{Wait: time.Second})
		_, err := tr.RoundTrip(get(ctx, t, site))
		require.ErrorIs(t, err, coordinator.ErrTooLate)
	})
}
