package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// A stream begins with everything, then tells what has changed and nothing else, within
// the interval.
func TestStreamTellsWhatChanged(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		for _, slug := range []string{"a", "b", "c"} {
			require.NoError(t, w.call(coordinator.Call{Provider: slug}, ok))
		}
		time.Sleep(2 * time.Minute) // all is quiet
		c := w.follow("?open=b")
		defer c.end()
		m, _ := c.next()
		assert.Equal(t, []string{"a", "b", "c"}, m.Order)
		for _, id := range []string{"p-a", "p-b", "p-c", "summary", "filters", "pager"} {
			assert.Contains(t, m.Parts[id], `id="`+id+`"`)
		}
		assert.Contains(t, m.Parts["p-b"], "d-b")
		assert.NotContains(t, m.Parts["p-a"], "d-a")

		time.Sleep(time.Second) // the first sample of the history
		before := time.Now()
		require.NoError(t, w.Pause("c", time.Now().Add(time.Hour), "maintenance"))
		for !strings.Contains(m.Parts["p-c"], "maintenance") {
			m, _ = c.next()
		}
		assert.LessOrEqual(t, m.At.Sub(before), w.opt.Interval)
		assert.Equal(t, []string{"c", "a", "b"}, m.Order)
		assert.NotContains(t, m.Parts, "p-a")
		assert.NotContains(t, m.Parts, "pager")
		assert.Contains(t, m.Parts["summary"], "1\u00a0provider is paused")
		assert.Contains(t, m.Parts["filters"], "Paused")
	}, limited("a", provider.Limit{Name: "s", Max: 5, Per: "1s"}), limited("b", provider.Limit{Name: "s", Max: 5, Per: "1s"}), limited("c", provider.Limit{Name: "s", Max: 5, Per: "1s"}))
}

// What a page has put together from a stream is what it would have loaded.
func TestStreamAndPageAgree(t *testing.T) {
	var ps []provider.Provider
	for i := range 6 {
		ps = append(ps, provider.Provider{Slug: fmt.Sprint("p", i), Throttle: provider.Throttle{RPM: 5, MaxQueue: 3}})
	}
	bubble(t, Options{}, func(t *testing.T, w *world) {
		require.NoError(t, w.call(coordinator.Call{Provider: "p0"}, ok))
		c := w.follow("?open=p3,p5")
		defer c.cancel()
		parts, order := make(map[string]string), []string(nil)
		var mu sync.Mutex
		go func() {
			for m, more := c.next(); more; m, more = c.next() {
				mu.Lock()
				for id, html := range m.Parts {
					parts[id] = html
				}
				order = m.Order
				mu.Unlock()
			}
		}()
		outcomes := []provider.Outcome{provider.OK, provider.OK, provider.OK, provider.Failed, provider.RateLimited, provider.Banned}
		for i := range 50 {
			go func() {
				_ = w.call(coordinator.Call{Provider: fmt.Sprint("p", i*7%6), Flow: fmt.Sprint(i % 3)}, provider.Feedback{Outcome: outcomes[i%len(outcomes)]})
			}()
			time.Sleep(300 * time.Millisecond)
			synctest.Wait()
			k := w.latest.Load()
			want := w.whole(k, query{page: 1, per: perPage, open: []string{"p3", "p5"}})
			mu.Lock()
			require.Equal(t, want.Order, order)
			for id, html := range want.Parts {
				require.Equal(t, html, parts[id], id)
			}
			mu.Unlock()
		}
	}, ps...)
}

// There are no more streams than there may be; the next one is told to come back, and
// has a place when one has left. One look serves all of them.
func TestStreamsAreBounded(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		require.NoError(t, w.call(coordinator.Call{Provider: "acme"}, ok))
		var all []*client
		for range 64 {
			all = append(all, w.follow(""))
		}
		for _, c := range all {
			_, more := c.next()
			require.True(t, more)
		}
		for range 1000 - 64 {
			res := w.get("/events")
			require.Equal(t, http.StatusServiceUnavailable, res.Code)
			require.Equal(t, "10", res.Header().Get("Retry-After"))
		}
		assert.Equal(t, http.StatusOK, w.get("/rows").Code, "who has no stream can ask")
		all[7].end()
		synctest.Wait()
		c := w.follow("")
		_, more := c.next()
		assert.True(t, more)
		require.NoError(t, w.call(coordinator.Call{Provider: "acme"}, ok))
		all[7] = c
		go func() { _ = w.Close() }() // is waiting for those who read
		for _, c := range all {
			gone := false
			for m, more := c.next(); more; m, more = c.next() {
				gone = m.Gone
			}
			assert.True(t, gone, "it is told that nothing more will come")
		}
		assert.Equal(t, http.StatusServiceUnavailable, w.get("/events").Code)
	}, provider.Provider{Slug: "acme"})
}

// A client that does not read is dropped, and until then holds up neither the
// coordinator nor anybody else.
func TestStalledClient(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		require.NoError(t, w.call(coordinator.Call{Provider: "acme"}, ok))
		stalled := newStalled()
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.ServeHTTP(stalled, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/events", http.NoBody))
		}()
		c := w.follow("")
		defer c.end()
		begin := time.Now()
		seen := 0
		for range 10 {
			require.NoError(t, w.Do(t.Context(), coordinator.Call{Provider: "acme"}, func(context.Context) error { return nil }))
			_, more := c.next()
			require.True(t, more)
			seen++
			time.Sleep(w.opt.Interval)
		}
		assert.Equal(t, 10, seen)
		<-done
		assert.Equal(t, writeTime, time.Since(begin), "from its first message on")
	}, provider.Provider{Slug: "acme"})
}

// stalled is a response whose reader has stopped: a write ends at its deadline.
type stalled struct {
	piped
	deadline time.Time
}

func newStalled() *stalled {
	_, w := io.Pipe()
	return &stalled{piped: piped{make(http.Header), w}}
}

func (s *stalled) SetWriteDeadline(t time.Time) error {
	s.deadline = t
	return nil
}

func (s *stalled) Write([]byte) (int, error) {
	time.Sleep(time.Until(s.deadline))
	return 0, &net.OpError{Op: "write", Err: context.DeadlineExceeded}
}

// On real sockets: a thousand clients come at once, 64 of them have streams, some of
// which never read; the coordinator goes on, and Close ends all.
func TestThousandClients(t *testing.T) {
	w := newWorld(t, Options{}, provider.Provider{Slug: "acme", Throttle: provider.Throttle{MaxInFlight: 4}})
	server := httptest.NewServer(w)
	defer server.Close()
	defer w.Close()
	var mu sync.Mutex
	var conns []net.Conn
	codes := make(map[string]int)
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if !assert.NoError(t, err) {
				return
			}
			_, err = io.WriteString(conn, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
			assert.NoError(t, err)
			status, err := bufio.NewReaderSize(conn, 16).ReadString('\n') // and no more
			assert.NoError(t, err)
			mu.Lock()
			defer mu.Unlock()
			conns = append(conns, conn)
			codes[strings.TrimSpace(status)]++
		})
	}
	all.Wait()
	assert.Equal(t, map[string]int{"HTTP/1.1 200 OK": 64, "HTTP/1.1 503 Service Unavailable": 936}, codes)
	for range 1000 {
		require.NoError(t, w.Do(t.Context(), coordinator.Call{Provider: "acme"}, func(context.Context) error { return nil }))
	}
	require.NoError(t, w.Close())
	for _, conn := range conns {
		conn.Close()
	}
}

// A stream that has nothing to tell is heard from all the same, so that a proxy does
// not take it for dead, and ends when its client goes.
func TestHeartbeat(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		c := w.follow("")
		_, more := c.next()
		require.True(t, more)
		require.True(t, c.lines.Scan()) // the empty line behind it
		begin := time.Now()
		require.True(t, c.lines.Scan())
		assert.Equal(t, "event: beat", c.lines.Text())
		assert.Equal(t, beat, time.Since(begin))
		require.True(t, c.lines.Scan())
		assert.Equal(t, `data: {"at":"`+time.Now().UTC().Format(time.RFC3339)+`"}`, c.lines.Text(), "the page's clock")
		assert.True(t, w.streams.any())
		c.end()
		synctest.Wait()
		assert.False(t, w.streams.any())
	}, provider.Provider{Slug: "acme"})
}

// The coordinator's end is told at once, not with the next look.
func TestShutdownIsTold(t *testing.T) {
	bubble(t, Options{Actions: true}, func(t *testing.T, w *world) {
		require.NoError(t, w.call(coordinator.Call{Provider: "acme"}, ok))
		c := w.follow("?open=acme")
		defer c.end()
		m, _ := c.next()
		assert.Contains(t, m.Parts["p-acme"], "providers/acme/pause")
		begin := time.Now()
		require.NoError(t, w.Coordinator.Shutdown(t.Context()))
		for !strings.Contains(m.Parts["summary"], "Shut down") {
			m, _ = c.next()
		}
		assert.NotContains(t, w.get("/?open=acme").Body.String(), "providers/acme/pause")
		assert.Equal(t, begin, time.Now())
		var s Status
		w.read("/api/state", &s)
		assert.True(t, s.ShutDown)
		assert.Equal(t, http.StatusConflict, w.get("/providers/acme/pause").Code)
	}, provider.Provider{Slug: "acme"})
}

// Looks are no more often than so that they take a twentieth of the time.
func TestLooksAreBounded(t *testing.T) {
	bubble(t, Options{Interval: time.Millisecond}, func(t *testing.T, w *world) {
		require.NoError(t, w.call(coordinator.Call{Provider: "acme"}, ok))
		c := w.follow("")
		defer c.end()
		_, more := c.next()
		require.True(t, more)
		first := w.latest.Load()
		time.Sleep(time.Millisecond)
		synctest.Wait()
		assert.NotSame(t, first, w.latest.Load())
	}, provider.Provider{Slug: "acme"})
	assert.Equal(t, 20*time.Second, pace(time.Second, time.Millisecond))
	assert.Equal(t, time.Second, pace(time.Millisecond, time.Second))
}
