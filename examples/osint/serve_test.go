package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/console"
	"github.com/headgate/headgate/internal/referee"
)

// While a run goes on its page shows it, on a real socket, at a port that was free,
// which is told; afterwards nobody is there any more.
func TestServeOnLoopback(t *testing.T) {
	var stderr buffer
	var looks atomic.Int64
	c := scraper(nil)
	address := func() string {
		m := regexp.MustCompile(`status page: (http://127\.0\.0\.1:[1-9]\d*/)\n`).FindStringSubmatch(stderr.String())
		require.NotNil(t, m, stderr.String())
		return m[1]
	}
	stdout := buffer{wrote: func() error {
		if looks.Add(1) > 1 {
			return nil
		}
		status, page := get(t, c, address())
		assert.Equal(t, http.StatusOK, status)
		assert.Contains(t, page, "<title>osint</title>")
		status, text := get(t, c, address()+"api/state")
		assert.Equal(t, http.StatusOK, status)
		var s console.Status
		require.NoError(t, json.Unmarshal([]byte(text), &s))
		assert.NotEmpty(t, s.Conditions)
		return nil
	}}
	code := quiet(t, &stdout, &stderr).run([]string{"-serve", "127.0.0.1:0", "-metrics", "127.0.0.1:0", "-speed", "200", "-json", "1.1.1.1", "example.com"})
	assert.Equal(t, exitOK, code)
	assert.Positive(t, looks.Load())
	assert.NotContains(t, stderr.String(), "whoever reaches this machine")
	_, err := c.Get(address())
	require.ErrorContains(t, err, "connection refused")
}

// With -stay the page is there until the user ends it, with all that was done.
func TestServeStays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := referee.Listen()
		c := scraper(l)
		var stdout, stderr buffer
		w := quiet(t, &stdout, &stderr)
		w.listenAt = func(addr string) (net.Listener, error) {
			assert.Equal(t, ":8080", addr)
			return l, nil
		}
		var end time.Time
		w.begin = func() context.Context {
			ctx, ctrlC := context.WithCancel(t.Context())
			time.AfterFunc(time.Hour, func() {
				status, text := get(t, c, "http://host/api/state?state=idle")
				assert.Equal(t, http.StatusOK, status)
				assert.Contains(t, text, `"shodan"`)
				end = time.Now()
				ctrlC()
			})
			return ctx
		}
		begin := time.Now()
		assert.Equal(t, exitOK, w.run([]string{"-serve", ":8080", "-stay", "-speed", "1", "-providers", "shodan", "-json", "1.1.1.1"}))
		assert.Equal(t, time.Hour, end.Sub(begin))
		assert.LessOrEqual(t, time.Since(end), time.Second)
		assert.Contains(t, stderr.String(), "stays until Ctrl-C")
		assert.Contains(t, stderr.String(), "all answered: 1 lookups", "what was done is told before")
	})
}

// A page that somebody streams and does not read holds up neither the run nor its end.
func TestServeForWhoDoesNotRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := referee.Listen()
		var stderr buffer
		var conn net.Conn
		stdout := buffer{wrote: func() (err error) {
			if conn == nil {
				if conn, err = l.DialContext(t.Context(), "", ""); err == nil {
					_, err = conn.Write([]byte("GET /events HTTP/1.1\r\nHost: host\r\n\r\n"))
				}
			}
			return err
		}}
		w := quiet(t, &stdout, &stderr)
		w.listenAt = func(string) (net.Listener, error) { return l, nil }
		begin := time.Now()
		assert.Equal(t, exitOK, w.run([]string{"-serve", ":8080", "-speed", "1", "-providers", "shodan", "-json", "1.1.1.1"}))
		require.NotNil(t, conn)
		assert.LessOrEqual(t, time.Since(begin), 12*time.Second)
		conn.Close()
	})
}

// An address that is taken is told before anything is opened or sent.
func TestServeAddressThatIsTaken(t *testing.T) { testTaken(t, "-serve", "-metrics", "127.0.0.1:0") }

func TestServeOptions(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-serve", "127.0.0.1:8080", "-plan"}, "-serve shows a run"},
		{[]string{"-serve", "127.0.0.1:8080", "-list"}, "-serve shows a run"},
		{[]string{"-stay"}, "-stay keeps the page of -serve"},
		{[]string{"-serve", ""}, "want HOST:PORT"},
	} {
		var stdout, stderr buffer
		assert.Equal(t, exitUsage, quiet(t, &stdout, &stderr).run(c.args))
		assert.Contains(t, stderr.String(), c.want)
	}
}
