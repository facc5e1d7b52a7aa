package transport_test

import (
	"context"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/transport"
)

// moody is a server that fails in every way, as the path of a request asks.
func moody(w http.ResponseWriter, r *http.Request) {
	mood := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	if mood == "hang" || mood == "stalled" { // only then net/http notices that a client has gone
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
	}
	switch mood {
	case "refused":
		w.Header().Set("Retry-After", "0.001")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, "slow down")
	case "failed":
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, strings.Repeat("x", 20_000))
	case "reset":
		panic(http.ErrAbortHandler)
	case "hang":
		<-r.Context().Done()
	case "short":
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "short")
	case "stalled":
		_, _ = io.WriteString(w, "begin")
		w.(http.Flusher).Flush()
		if r.Method != http.MethodHead { // whose client is content, and uses the connection again
			<-r.Context().Done()
		}
	case "empty":
		w.WriteHeader(http.StatusNoContent)
	default:
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("y", 5_000))
	}
}

var moods = []string{"failed", "reset", "hang", "short", "stalled", "empty", "fine", "fine", "fine", "fine"}

// storm counts what its requests leave behind.
type storm struct {
	tr                *transport.Transport
	site              string
	made, closed      atomic.Int64 // request bodies
	responses, errors atomic.Int64
	impatience        time.Duration
}

type counted struct {
	io.Reader
	once *sync.Once
	s    *storm
}

func (c counted) Close() error {
	c.once.Do(func() { c.s.closed.Add(1) })
	return nil
}

func (s *storm) body() io.ReadCloser {
	s.made.Add(1)
	return counted{strings.NewReader(strings.Repeat("z", 3000)), new(sync.Once), s}
}

// one sends a request as chance has it and leaves its answer as chance has it.
func (s *storm) one(t *testing.T, rng *rand.Rand) {
	method := []string{"GET", "GET", "HEAD", "POST", "PUT"}[rng.IntN(5)]
	mood, patience := moods[rng.IntN(len(moods))], time.Minute
	if rng.IntN(200) == 0 { // more often, and everybody would wait for trials all the time
		mood = "refused"
	}
	if mood == "hang" || mood == "stalled" || rng.IntN(20) == 0 {
		patience = time.Duration(1 + rng.Int64N(int64(s.impatience)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.site+"/"+mood, nil)
	if !assert.NoError(t, err) {
		return
	}
	if method == "POST" || method == "PUT" {
		r.Body, r.ContentLength = s.body(), 3000
		if rng.IntN(2) == 0 {
			r.GetBody = func() (io.ReadCloser, error) { return s.body(), nil }
		}
	}
	if rng.IntN(20) == 0 {
		cancel()
	}
	res, err := s.tr.RoundTrip(r)
	if err != nil {
		s.errors.Add(1)
		return
	}
	s.responses.Add(1)
	switch rng.IntN(4) {
	case 0:
		_, _ = io.CopyN(io.Discard, res.Body, 1000)
	case 1:
		cancel()
	default:
		_, _ = io.Copy(io.Discard, res.Body)
		if rng.IntN(2) == 0 {
			return // read to its end, or broken: that is enough
		}
	}
	_ = res.Body.Close()
}

func (s *storm) blow(t *testing.T, requests int) {
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 7))
			for range requests / 50 {
				s.one(t, rng)
			}
		})
	}
	wg.Wait()
}

func (s *storm) check(t *testing.T, requests int) {
	assert.EqualValues(t, requests, s.responses.Load()+s.errors.Load())
	assert.Greater(t, s.responses.Load(), int64(requests/4))
	assert.Greater(t, s.errors.Load(), int64(requests/20))
	got := state(t, s.tr, "p")
	assert.Zero(t, got.InFlight)
	assert.Zero(t, got.Queue.Length)
	assert.Greater(t, got.Retries, int64(requests/50))
	t.Logf("%d responses, %d errors, %d retries, %d request bodies, outcomes %v", s.responses.Load(), s.errors.Load(), got.Retries, s.made.Load(), got.Outcomes)
}

// stormy is a provider under which everything is tried again, and often.
func stormy(site string) provider.Provider {
	return provider.Provider{
		Slug: "p", BaseURL: site, Breaker: provider.Breaker{Off: true}, Timeout: time.Minute,
		Throttle: provider.Throttle{MaxInFlight: 30, Penalty: time.Millisecond, MaxQueue: 1000},
		Retry:    provider.Retry{Base: time.Millisecond, Max: 2 * time.Millisecond, Budget: 1},
	}
}

// tracked counts a listener's or dialer's connections.
type tracked struct {
	net.Conn
	once sync.Once
	open *atomic.Int64
}

func (c *tracked) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

func track(dial func(context.Context, string, string) (net.Conn, error), open *atomic.Int64) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		return &tracked{Conn: c, open: open}, nil
	}
}

// requests are fewer where the race detector makes each ten times as slow.
func requests() int {
	if raceEnabled || testing.Short() {
		return 2000
	}
	return 10_000
}

// In memory, HTTP/1: the bubble sees to it that no goroutine is left.
func TestStormLeavesNothingBehind(t *testing.T) {
	served(t, moody, func(t *testing.T, b *http.Transport) {
		var open atomic.Int64
		b.DialContext = track(b.DialContext, &open)
		s := &storm{tr: over(t, b, stormy(plainSite)), site: plainSite, impatience: time.Second}
		s.blow(t, requests())
		synctest.Wait()
		s.tr.CloseIdleConnections()
		synctest.Wait()
		s.check(t, requests())
		assert.Equal(t, s.made.Load(), s.closed.Load(), "every request body is closed")
		assert.Zero(t, open.Load(), "every connection is closed, or was idle")
	})
}

// On loopback, HTTP/2.
func TestStormOverHTTP2LeavesNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, 2, r.ProtoMajor)
		moody(w, r)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	b, ok := server.Client().Transport.(*http.Transport)
	require.True(t, ok)
	var open atomic.Int64
	b.DialContext = track(new(net.Dialer).DialContext, &open)
	s := &storm{tr: over(t, b, stormy(server.URL)), site: server.URL, impatience: 20 * time.Millisecond}
	s.blow(t, requests())
	s.check(t, requests())
	eventually(t, func() bool { return s.made.Load() == s.closed.Load() }, "every request body is closed")
	eventually(t, func() bool {
		s.tr.CloseIdleConnections() // one on which a stream was just being reset was not idle then
		return open.Load() == 0
	}, "no connection is in use")
}

// eventually gives net/http's goroutines their time.
func eventually(t *testing.T, true func() bool, what string) {
	t.Helper()
	require.Eventually(t, true, time.Minute, time.Millisecond, what)
}
