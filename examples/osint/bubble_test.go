package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main() // exits
	}
	// rueidis looks at its connections once more, a second after the last has gone.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// buffer is a bytes.Buffer for many goroutines; wrote, if any, is told of each
// write.
type buffer struct {
	mu    sync.Mutex
	b     bytes.Buffer
	wrote func() error
}

func (b *buffer) Write(p []byte) (int, error) {
	if b.wrote != nil {
		if err := b.wrote(); err != nil {
			return 0, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func records(t *testing.T, text string) (all []record) {
	t.Helper()
	for l := range strings.Lines(text) {
		var r record
		require.NoError(t, json.Unmarshal([]byte(l), &r), l)
		all = append(all, r)
	}
	return all
}

// fileRecords are those of a file.
func fileRecords(t *testing.T, name string) []record {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return records(t, string(text))
}

// quiet is a world without keys in which nothing is typed, and providers are played
// in memory.
func quiet(t *testing.T, stdout, stderr *buffer) *world {
	t.Helper()
	return &world{
		stdin: strings.NewReader(""), stdout: stdout, stderr: stderr,
		begin:    t.Context,
		getenv:   func(string) string { return "" },
		listen:   func() (net.Listener, error) { return referee.Listen(), nil },
		listenAt: func(addr string) (net.Listener, error) { return net.Listen("tcp", addr) },
	}
}

// today is when the bubbles play: in the year 2000 an epoch is too low to be one.
var today = time.Date(2026, 11, 30, 10, 20, 30, 0, time.UTC)

// bubble runs f in virtual time, today.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(today))
		f(t)
	})
}

// told is what a run left behind.
type told struct {
	code           int
	stdout, stderr string
}

// played runs the program with played providers.
func played(t *testing.T, stdin string, args ...string) told {
	t.Helper()
	var stdout, stderr buffer
	w := quiet(t, &stdout, &stderr)
	w.stdin = strings.NewReader(stdin)
	code := w.run(args)
	return told{code, stdout.String(), stderr.String()}
}

// oneWay is the delay of the network each way: a round trip is as long as a plan
// takes it to be.
var oneWay = referee.Delay{Min: plannedTrip / 2, Max: plannedTrip / 2}

// internet are real providers, as a referee plays them, for -live.
type internet struct {
	*referee.Referee
	hosts map[string]string // host to slug and base path
	keys  map[string]string
}

// connect plays providers of the catalogue; change, if any, is made to each play.
func connect(t *testing.T, change func(*referee.Play), slugs ...string) *internet {
	t.Helper()
	n := &internet{hosts: make(map[string]string), keys: make(map[string]string)}
	var plays []referee.Play
	for _, slug := range slugs {
		p := declared(t, slug)
		u, err := url.Parse(p.BaseURL)
		require.NoError(t, err)
		n.hosts[u.Host] = slug + " " + strings.TrimSuffix(u.Path, "/")
		for _, name := range p.Auth.Env {
			n.keys[name] = "s3cret-" + slug
		}
		x := referee.Play{Provider: taciturn(p), Go: oneWay, Back: oneWay, Speak: true, Answer: answerOf(p)}
		if change != nil {
			change(&x)
		}
		plays = append(plays, x)
	}
	var err error
	n.Referee, err = referee.New(1, plays...)
	require.NoError(t, err)
	t.Cleanup(n.Close)
	n.Serve(referee.Listen())
	return n
}

func declared(t *testing.T, slug string) provider.Provider {
	t.Helper()
	all, err := sources()
	require.NoError(t, err)
	for _, s := range all {
		if s.base.Slug == slug {
			return s.base.Clone()
		}
	}
	t.Fatalf("no provider %q", slug)
	return provider.Provider{}
}

// RoundTrip leads a request to the real provider to whom plays it.
func (n *internet) RoundTrip(req *http.Request) (*http.Response, error) {
	place, ok := n.hosts[req.URL.Host]
	if !ok {
		return nil, fmt.Errorf("nobody plays %s", req.URL.Host)
	}
	slug, base, _ := strings.Cut(place, " ")
	there, err := url.Parse(n.URL(slug))
	if err != nil {
		return nil, err
	}
	out := req.Clone(req.Context())
	out.URL.Scheme, out.URL.Host, out.Host = there.Scheme, there.Host, ""
	out.URL.Path = there.Path + strings.TrimPrefix(req.URL.Path, base)
	out.URL.RawPath = ""
	return n.Client().Transport.RoundTrip(out)
}

// world is one in which the real providers are these.
func (n *internet) world(t *testing.T, stdout, stderr *buffer) *world {
	t.Helper()
	w := quiet(t, stdout, stderr)
	w.client = &http.Client{Transport: n}
	w.getenv = func(name string) string { return n.keys[name] }
	return w
}

// run runs the program, live.
func (n *internet) run(t *testing.T, args ...string) told {
	t.Helper()
	return n.runUntil(t.Context(), t, args...)
}

func (n *internet) runUntil(ctx context.Context, t *testing.T, args ...string) told {
	t.Helper()
	var stdout, stderr buffer
	w := n.world(t, &stdout, &stderr)
	w.begin = func() context.Context { return ctx }
	code := w.run(append([]string{"-live"}, args...))
	return told{code, stdout.String(), stderr.String()}
}

// arrivals are the calls that all providers had.
func (n *internet) arrivals() (all int64) {
	for _, place := range n.hosts {
		slug, _, _ := strings.Cut(place, " ")
		all += n.Report(slug).Arrivals
	}
	return all
}

// list writes a list of so many addresses and returns its name.
func list(t *testing.T, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "10.0.%d.%d\n", i/250, i%250)
	}
	return file(t, "list.txt", b.String())
}

// file writes a file and returns its name.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
