package console

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// client reads a stream.
type client struct {
	t      *testing.T
	lines  *bufio.Scanner
	cancel context.CancelFunc
}

// follow opens a stream over a pipe, in the bubble that it is called in.
func (w *world) follow(query string) *client {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	r, pipe := io.Pipe()
	res := &piped{header: make(http.Header), w: pipe}
	go func() {
		w.ServeHTTP(res, httptest.NewRequestWithContext(ctx, http.MethodGet, "/events"+query, http.NoBody))
		pipe.Close()
	}()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	return &client{w.t, lines, cancel}
}

// piped is a response that is read as it is written.
type piped struct {
	header http.Header
	w      *io.PipeWriter
}

func (p *piped) Header() http.Header              { return p.header }
func (p *piped) WriteHeader(int)                  {}
func (p *piped) Write(b []byte) (int, error)      { return p.w.Write(b) }
func (p *piped) Flush()                           {}
func (p *piped) SetReadDeadline(time.Time) error  { return nil }
func (p *piped) SetWriteDeadline(time.Time) error { return nil }

// next is the next message; false: the stream has ended.
func (c *client) next() (m message, more bool) {
	c.t.Helper()
	for c.lines.Scan() {
		if data, is := strings.CutPrefix(c.lines.Text(), "data: "); is {
			require.NoError(c.t, json.Unmarshal([]byte(data), &m))
			return m, true
		}
	}
	return m, false
}

func (c *client) end() {
	c.cancel()
	for _, more := c.next(); more; _, more = c.next() {
	}
}
