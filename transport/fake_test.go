package transport_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/transport"
)

const site = "https://api.example.com/v1"

// base is a Base made of a function. It closes the request's body, as it must.
type base func(*http.Request) (*http.Response, error)

func (f base) RoundTrip(r *http.Request) (*http.Response, error) {
	defer func() {
		if r.Body != nil {
			_ = r.Body.Close()
		}
	}()
	return f(r)
}

// always gives every request the same answer.
func always(status int, header ...string) base {
	return func(r *http.Request) (*http.Response, error) { return answer(r, status, "{}", header...), nil }
}

// answer is a response; header are names and values in turn.
func answer(r *http.Request, status int, text string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{
		StatusCode: status, Header: h, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: &body{Reader: strings.NewReader(text)}, ContentLength: int64(len(text)),
	}
}

// body counts how often it is closed.
type body struct {
	io.Reader
	closed   atomic.Int32
	closedAt time.Time
}

func (b *body) Close() error {
	if b.closed.Add(1) == 1 {
		b.closedAt = time.Now()
	}
	return nil
}

// api is a provider with all defaults: three attempts, from half a second apart.
func api(t provider.Throttle) provider.Provider {
	return provider.Provider{Slug: "p", BaseURL: site, Throttle: t, Endpoints: []provider.Endpoint{{Name: "host", Path: "/hosts/{value}"}}}
}

// over returns a transport for these providers.
func over(tb testing.TB, b http.RoundTripper, ps ...provider.Provider) *transport.Transport {
	tb.Helper()
	c, err := coordinator.New(coordinator.Config{Providers: ps})
	require.NoError(tb, err)
	t, err := transport.New(c, b)
	require.NoError(tb, err)
	return t
}

func get(ctx context.Context, tb testing.TB, url string) *http.Request {
	tb.Helper()
	return request(ctx, tb, http.MethodGet, url, nil)
}

func request(ctx context.Context, tb testing.TB, method, url string, b io.Reader) *http.Request {
	tb.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, b)
	require.NoError(tb, err)
	return r
}

// done reads a response to its end and closes it.
func done(tb testing.TB, res *http.Response) string {
	tb.Helper()
	text, err := io.ReadAll(res.Body)
	require.NoError(tb, err)
	require.NoError(tb, res.Body.Close())
	return string(text)
}

func state(tb testing.TB, t *transport.Transport, slug string) coordinator.State {
	tb.Helper()
	s, err := t.Coordinator.State(slug)
	require.NoError(tb, err)
	return s
}

// used is how many units of a limit count or are held.
func used(tb testing.TB, t *transport.Transport, slug, limit string) int64 {
	tb.Helper()
	for _, l := range state(tb, t, slug).Limits {
		if l.Name == limit {
			return l.Used + l.Held
		}
	}
	require.Fail(tb, "no limit "+limit)
	return 0
}

// served runs a test in a bubble beside a real server in memory. The http.Transport
// is its client.
func served(t *testing.T, h http.HandlerFunc, test func(*testing.T, *http.Transport)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := referee.Listen()
		s := &http.Server{Handler: h, ReadHeaderTimeout: time.Hour}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_ = s.Serve(l)
		}()
		tr := &http.Transport{DialContext: l.DialContext, MaxIdleConnsPerHost: 1000}
		defer func() {
			tr.CloseIdleConnections()
			_ = s.Close()
			<-gone
			time.Sleep(time.Hour) // handlers that sleep come to their end
		}()
		test(t, tr)
	})
}

const plainSite = "http://api.example.com/v1"
