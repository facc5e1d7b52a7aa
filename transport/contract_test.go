package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
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

// The rules of http.RoundTripper, one by one.

func TestRequestIsNeverModified(t *testing.T) {
	for name, status := range map[string]int{"answered": 200, "sent again": 503, "refused": 429} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := over(t, always(status), api(provider.Throttle{}))
				r := request(t.Context(), t, http.MethodPut, site+"/x?key=secret", &body{Reader: strings.NewReader("text")})
				r.GetBody = func() (io.ReadCloser, error) { return &body{Reader: strings.NewReader("text")}, nil }
				r.Header.Set("X-A", "1")
				r.TransferEncoding = []string{"identity"}
				shallow, header, u := *r, r.Header.Clone(), *r.URL
				res, err := tr.RoundTrip(r)
				require.NoError(t, err)
				done(t, res)
				assert.Equal(t, header, r.Header)
				assert.Equal(t, u, *r.URL)
				assert.Equal(t, shallow.Context(), r.Context())
				assert.Same(t, shallow.URL, r.URL)
				assert.Same(t, shallow.Body, r.Body)
				assert.Equal(t, []any{shallow.Method, shallow.Host, shallow.ContentLength, shallow.TransferEncoding, shallow.Close},
					[]any{r.Method, r.Host, r.ContentLength, r.TransferEncoding, r.Close})
			})
		})
	}
}

func TestRequestBodyIsClosedOnEveryWayOut(t *testing.T) {
	now := func(c coordinator.Call) context.Context { return transport.WithCall(t.Context(), c) }
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, ctx := range map[string]context.Context{
		"answered": t.Context(), "refused: it may not wait": now(coordinator.Call{Wait: -1}),
		"refused: no such endpoint": now(coordinator.Call{Endpoint: "nowhere"}), "the context is over": gone,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := api(provider.Throttle{RPM: 1})
				tr := over(t, always(200), p)
				if strings.Contains(name, "wait") {
					res, err := tr.RoundTrip(get(t.Context(), t, site))
					require.NoError(t, err)
					done(t, res)
				}
				b := &body{Reader: strings.NewReader("text")}
				res, err := tr.RoundTrip(request(ctx, t, http.MethodPost, site+"/x", b))
				if err == nil {
					done(t, res)
				}
				assert.Equal(t, name == "answered", err == nil)
				assert.EqualValues(t, 1, b.closed.Load())
			})
		})
	}
}

func TestTransportThatCannotRouteClosesTheBodyAndSaysWhy(t *testing.T) {
	var late registry.Registry
	c, err := coordinator.New(coordinator.Config{Registry: &late, Providers: []provider.Provider{api(provider.Throttle{})}})
	require.NoError(t, err)
	require.NoError(t, late.Declare(provider.Provider{Slug: "q", BaseURL: "http://API.example.com:443/v1/"}))
	_, atNew := transport.New(c, nil)
	require.ErrorContains(t, atNew, `providers "p" and "q" both claim api.example.com/v1`)
	_, noCoordinator := transport.New(nil, nil)
	require.ErrorContains(t, noCoordinator, "Coordinator is nil")
	route := func(*http.Request) (coordinator.Call, bool) { return coordinator.Call{}, true }
	for tr, want := range map[*transport.Transport]error{
		{Coordinator: c, Base: always(200)}: atNew,
		{Base: always(200)}:                 noCoordinator,
		{Base: always(200), Route: route}:   noCoordinator,
	} {
		b := &body{Reader: strings.NewReader("")}
		res, err := tr.RoundTrip(request(t.Context(), t, http.MethodPost, site, b))
		if err == nil {
			done(t, res)
		}
		assert.EqualError(t, err, want.Error())
		assert.EqualValues(t, 1, b.closed.Load())
	}
}

func TestAnErrorStatusIsAResponse(t *testing.T) {
	for _, status := range []int{302, 400, 401, 402, 403, 404, 429, 500, 503, 529} {
		synctest.Test(t, func(t *testing.T) {
			tr := over(t, always(status, "X-Mine", "yes"), api(provider.Throttle{}))
			res, err := tr.RoundTrip(get(t.Context(), t, site))
			require.NoError(t, err, status)
			assert.Equal(t, status, res.StatusCode)
			assert.Equal(t, "yes", res.Header.Get("X-Mine"))
			assert.Equal(t, "{}", done(t, res), status)
			assert.Zero(t, state(t, tr, "p").InFlight)
		})
	}
}

type ownError struct{ error }

func TestBaseErrorIsReturnedAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine := &ownError{errors.New("broken")}
		tr := over(t, base(func(*http.Request) (*http.Response, error) { return nil, mine }), api(provider.Throttle{}))
		res, err := tr.RoundTrip(get(t.Context(), t, site))
		assert.Nil(t, res)
		assert.Same(t, mine, err)
		assert.Zero(t, state(t, tr, "p").InFlight)
	})
}

func TestBodyThatBaseLeftNilIsNotLeftNil(t *testing.T) {
	for _, test := range []struct {
		method string
		status int
		length int64
		want   error
	}{
		{http.MethodGet, 200, 0, nil}, {http.MethodGet, 200, -1, nil}, {http.MethodHead, 200, 10, nil},
		{http.MethodGet, 304, 10, nil}, {http.MethodGet, 204, 0, nil}, {http.MethodGet, 200, 10, io.ErrUnexpectedEOF},
	} {
		tr := over(t, base(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: test.status, ContentLength: test.length}, nil
		}), api(provider.Throttle{}))
		res, err := tr.RoundTrip(request(t.Context(), t, test.method, site, nil))
		require.NoError(t, err)
		require.NotNil(t, res.Body)
		_, err = io.ReadAll(res.Body)
		assert.Equal(t, test.want, err, "%+v", test)
		assert.NoError(t, res.Body.Close())
		assert.Zero(t, state(t, tr, "p").InFlight)
	}
}

func TestResponseBesideAnErrorIsClosedAndTheErrorCounts(t *testing.T) {
	mine := errors.New("mine")
	var lost *http.Response
	tr := over(t, base(func(r *http.Request) (*http.Response, error) {
		lost = answer(r, 200, "{}")
		return lost, mine
	}), api(provider.Throttle{}))
	res, err := tr.RoundTrip(get(t.Context(), t, site))
	assert.Nil(t, res)
	assert.Equal(t, mine, err)
	assert.EqualValues(t, 1, lost.Body.(*body).closed.Load())
	assert.Zero(t, state(t, tr, "p").InFlight)
}

func TestNeitherResponseNorErrorIsAnError(t *testing.T) {
	tr := over(t, base(func(*http.Request) (*http.Response, error) { return nil, nil }), api(provider.Throttle{}))
	res, err := tr.RoundTrip(get(t.Context(), t, site))
	assert.Nil(t, res)
	assert.EqualError(t, err, "transport: Base returned neither a response nor an error")
	assert.Zero(t, state(t, tr, "p").InFlight)
}

func TestResponseNamesTheCallersRequest(t *testing.T) {
	tr := over(t, always(200), api(provider.Throttle{}))
	r := get(t.Context(), t, site)
	res, err := tr.RoundTrip(r)
	require.NoError(t, err)
	assert.Same(t, r, res.Request)
	done(t, res)
}

func TestWhatNobodyClaimsPassesUntouched(t *testing.T) {
	var seen *http.Request
	sent := answer(nil, 200, "")
	tr := over(t, base(func(r *http.Request) (*http.Response, error) {
		seen = r
		return sent, nil
	}), api(provider.Throttle{}))
	r := get(t.Context(), t, "https://elsewhere.example/v1")
	res, err := tr.RoundTrip(r)
	require.NoError(t, err)
	assert.Same(t, r, seen)
	assert.Same(t, sent.Body, res.Body)
	done(t, res)
	_, err = tr.RoundTrip(&http.Request{Header: http.Header{}})
	require.NoError(t, err, "a request without a URL is Base's to refuse")
}

// idler has idle connections to close.
type idler struct {
	base
	closed int
}

func (i *idler) CloseIdleConnections() { i.closed++ }

func TestClientCanCloseIdleConnections(t *testing.T) {
	b := &idler{base: always(200)}
	client := http.Client{Transport: over(t, b, api(provider.Throttle{}))}
	client.CloseIdleConnections()
	assert.Equal(t, 1, b.closed)
	client.Transport = over(t, always(200), api(provider.Throttle{}))
	client.CloseIdleConnections() // nothing to close is nothing to fail at
}

func TestKeyInTheURLIsInNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := &url.Error{Op: "Get", URL: site + "?key=hush", Err: errors.New("reset")}
		tr := over(t, base(func(*http.Request) (*http.Response, error) { return nil, broken }), api(provider.Throttle{RPM: 1}))
		_, err := tr.RoundTrip(get(t.Context(), t, site+"?key=hush"))
		require.ErrorIs(t, err, broken, "Base's own error is Base's own")
		for _, call := range []coordinator.Call{{Wait: -1}, {Endpoint: "nowhere"}, {Cost: map[string]int64{"requests": 9}}} {
			_, err = tr.RoundTrip(get(transport.WithCall(t.Context(), call), t, site+"?key=hush"))
			var e *coordinator.Error
			require.ErrorAs(t, err, &e)
			assert.NotContains(t, err.Error(), "hush")
			assert.NotContains(t, err.Error(), "example.com")
		}
	})
}

func TestContextEndsTheWaitForATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := over(t, always(200), api(provider.Throttle{RPM: 1}))
		res, err := tr.RoundTrip(get(t.Context(), t, site))
		require.NoError(t, err)
		done(t, res)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err = tr.RoundTrip(get(ctx, t, site))
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, time.Second, time.Since(start))
	})
}
