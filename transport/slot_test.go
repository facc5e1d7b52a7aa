package transport_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/transport"
)

var one = provider.Throttle{MaxInFlight: 1}

// plainAPI is the provider of plainSite.
func plainAPI(t provider.Throttle) provider.Provider {
	p := api(t)
	p.BaseURL = plainSite
	return p
}

func TestSlotIsHeldUntilTheBodyEnds(t *testing.T) {
	for name, end := range map[string]func(*http.Response) error{
		"closed": func(res *http.Response) error { return res.Body.Close() },
		"read to its end": func(res *http.Response) error {
			_, err := io.ReadAll(res.Body)
			return err
		},
		"closed twice, from two goroutines": func(res *http.Response) error {
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { _ = res.Body.Close() })
			}
			wg.Wait()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := over(t, always(200), api(one))
			res, err := tr.RoundTrip(get(t.Context(), t, site))
			require.NoError(t, err)
			_, err = res.Body.Read(make([]byte, 1))
			require.NoError(t, err)
			assert.Equal(t, 1, state(t, tr, "p").InFlight, "a body that nobody closes keeps the slot")
			now := transport.WithCall(t.Context(), coordinator.Call{Wait: -1})
			_, err = tr.RoundTrip(get(now, t, site))
			require.ErrorIs(t, err, coordinator.ErrRateLimited)
			require.NoError(t, end(res))
			assert.Zero(t, state(t, tr, "p").InFlight)
			next, err := tr.RoundTrip(get(now, t, site))
			require.NoError(t, err)
			done(t, next)
		})
	}
}

func TestBodyThatBreaksGivesItsSlotBack(t *testing.T) {
	served(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "short")
	}, func(t *testing.T, b *http.Transport) {
		tr := over(t, b, plainAPI(one))
		res, err := tr.RoundTrip(get(t.Context(), t, plainSite))
		require.NoError(t, err)
		_, err = io.ReadAll(res.Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.Zero(t, state(t, tr, "p").InFlight)
		require.NoError(t, res.Body.Close())
	})
}

func TestAnswersWithoutABodyHoldNothing(t *testing.T) {
	served(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"x"`)
		switch r.URL.Path {
		case "/v1/204":
			w.WriteHeader(http.StatusNoContent)
		case "/v1/304":
			w.WriteHeader(http.StatusNotModified)
		default:
			w.Header().Set("Content-Length", "2")
			_, _ = io.WriteString(w, "{}")
		}
	}, func(t *testing.T, b *http.Transport) {
		tr := over(t, b, plainAPI(one))
		for _, test := range []struct {
			method, path string
			status       int
			length       int64
		}{{"HEAD", "/x", 200, 2}, {"GET", "/204", 204, 0}, {"GET", "/304", 304, 0}} {
			res, err := tr.RoundTrip(request(t.Context(), t, test.method, plainSite+test.path, nil))
			require.NoError(t, err)
			assert.Equal(t, test.status, res.StatusCode)
			assert.Equal(t, test.length, res.ContentLength)
			assert.Zero(t, state(t, tr, "p").InFlight, "before its body is closed")
			assert.Empty(t, done(t, res))
		}
	})
}

func TestUpgradedConnectionWorksBothWaysAndHoldsItsSlot(t *testing.T) {
	served(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		_, _ = rw.WriteString(line)
		_ = rw.Flush()
	}, func(t *testing.T, b *http.Transport) {
		tr := over(t, b, plainAPI(one))
		r := get(t.Context(), t, plainSite)
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "echo")
		res, err := tr.RoundTrip(r)
		require.NoError(t, err)
		require.Equal(t, http.StatusSwitchingProtocols, res.StatusCode)
		conn, ok := res.Body.(io.ReadWriteCloser)
		require.True(t, ok)
		_, err = io.WriteString(conn, "hello\n")
		require.NoError(t, err)
		line, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, "hello\n", line)
		assert.ErrorIs(t, conn.(interface{ CloseWrite() error }).CloseWrite(), http.ErrNotSupported, "as net.Pipe itself")
		assert.Equal(t, 1, state(t, tr, "p").InFlight)
		require.NoError(t, conn.Close())
		assert.Zero(t, state(t, tr, "p").InFlight)
	})
}

// socket is a connection that can end one direction.
type socket struct {
	body
	io.Writer
	ended bool
}

func (s *socket) CloseWrite() error {
	s.ended = true
	return nil
}

func TestUpgradedConnectionCanEndOneDirection(t *testing.T) {
	var s socket
	tr := over(t, base(func(r *http.Request) (*http.Response, error) {
		res := answer(r, http.StatusSwitchingProtocols, "")
		res.Body = &s
		return res, nil
	}), api(one))
	res, err := tr.RoundTrip(get(t.Context(), t, site))
	require.NoError(t, err)
	require.NoError(t, res.Body.(interface{ CloseWrite() error }).CloseWrite())
	assert.True(t, s.ended)
	assert.Equal(t, 1, state(t, tr, "p").InFlight, "the other direction is open")
	require.NoError(t, res.Body.Close())
	assert.Zero(t, state(t, tr, "p").InFlight)
}

func TestStreamArrivesAsItIsWritten(t *testing.T) {
	served(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintln(w, i)
			w.(http.Flusher).Flush()
			time.Sleep(time.Minute)
		}
	}, func(t *testing.T, b *http.Transport) {
		p := plainAPI(one)
		p.Dialect.Signals = []provider.Signal{{Body: "slow down", Outcome: provider.RateLimited}}
		tr := over(t, b, p)
		start := time.Now()
		res, err := tr.RoundTrip(get(t.Context(), t, plainSite))
		require.NoError(t, err)
		lines := bufio.NewScanner(res.Body)
		for i := range 3 {
			require.True(t, lines.Scan())
			assert.Equal(t, fmt.Sprint(i), lines.Text())
			assert.Equal(t, time.Duration(i)*time.Minute, time.Since(start))
			assert.Equal(t, 1, state(t, tr, "p").InFlight)
		}
		done(t, res)
	})
}

func TestGzipIsUndoneAsWithoutUs(t *testing.T) {
	served(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "gzip", r.Header.Get("Accept-Encoding"))
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, `{"status":"fine"}`)
		_ = z.Close()
	}, func(t *testing.T, b *http.Transport) {
		tr := over(t, b, plainAPI(one))
		res, err := tr.RoundTrip(get(t.Context(), t, plainSite))
		require.NoError(t, err)
		assert.True(t, res.Uncompressed)
		assert.Equal(t, `{"status":"fine"}`, done(t, res))
		assert.Zero(t, state(t, tr, "p").InFlight)
	})
}
