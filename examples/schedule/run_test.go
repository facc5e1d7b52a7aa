package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/internal/referee"
)

// buffer is a bytes.Buffer for many goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A whole week of the shipped list: each source as often as its interval has room for,
// less what was missed, and no limit broken.
func TestAWeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := parse([]string{"-speed", "1", "-dir", t.TempDir()}, nil)
		require.NoError(t, err)
		o.listen = func() (net.Listener, error) { return referee.Listen(), nil }
		o.beat = seldom
		l, err := readList("")
		require.NoError(t, err)
		var stdout, stderr buffer
		begin := time.Now()
		require.NoError(t, o.run(t.Context(), l, &stdout, &stderr))
		assert.WithinDuration(t, begin.Add(week), time.Now(), time.Minute)
		got := stdout.String()
		assert.Regexp(t, `violations: 0 in 2\d\d calls   fetched sooner than its interval: 0 times`, got)
		assert.Contains(t, got, "stopped for 30h0m0s; then it goes on where it was")
		_, second, _ := strings.Cut(got, "stopped for")
		for name, want := range map[string]string{
			"urlhaus-recent": `1[23]\d +\d+ +(2[89]|30)`, "tor-exits": `6\d +[1-9]\d* +1[345]`, "spamhaus-drop": `1[12] +\d+ +[12]`, "cloudflare-v4": `1 +\d+ +0`,
		} {
			assert.Regexp(t, `(?m)^`+name+` .*h0m0s +`+want+` `, second, name)
		}
		assert.Regexp(t, `urlhaus-recent: fetched, \d\d bytes; due`, stderr.String())
		assert.Contains(t, stderr.String(), "tor-exits: overloaded; due ")
		files, err := os.ReadDir(filepath.Join(o.dir, "files"))
		require.NoError(t, err)
		assert.Len(t, files, 8, "one each, and no part of any")
	})
}

// The demo, short, on a real socket.
func TestOnLoopback(t *testing.T) {
	var stdout, stderr strings.Builder
	require.NoError(t, start(t.Context(), []string{"-for", "20h", "-speed", "40000"}, &stdout, &stderr))
	assert.Regexp(t, `violations: 0 in [3-9]\d calls   fetched sooner than its interval: 0 times`, stdout.String())
	assert.Regexp(t, `urlhaus-recent .* day 1 \d\d:\d\d`, stdout.String())
}

// feed is a list of one source at a server of the test's.
func feed(t *testing.T, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "providers: [{slug: acme, throttle: {rps: 100}}]\nsources: [{name: acme-feed, provider: acme, every: 24h, url: %q}]\n", url), 0o600))
	return path
}

// Killed during a fetch: that was none, and the next process does it; what was fetched
// is not fetched again.
func TestKilledDuringAFetch(t *testing.T) {
	var calls atomic.Int64
	asked := make(chan bool, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- true
		if calls.Add(1) == 1 {
			<-r.Context().Done() // until it is killed
			return
		}
		fmt.Fprint(w, "data")
	}))
	defer s.Close()
	dir := t.TempDir()
	args := []string{"-live", "-f", feed(t, s.URL), "-dir", dir}
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	require.NoError(t, cmd.Start())
	select {
	case <-asked:
	case <-time.After(time.Minute):
		t.Fatal("it never asked")
	}
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	assert.NoFileExists(t, filepath.Join(dir, "files", "acme-feed"))

	run := func(more ...string) (string, error) {
		var stdout, stderr strings.Builder
		err := start(t.Context(), append(args, more...), &stdout, &stderr)
		return stdout.String(), err
	}
	text, err := run("-list")
	require.NoError(t, err)
	assert.Regexp(t, `acme-feed +acme +24h0m0s +0 +0 +0 +– +now`, text)
	for range 2 {
		text, err = run("-once")
		require.NoError(t, err)
		assert.Regexp(t, `acme-feed +acme +24h0m0s +1 +0 +0 +\w+ \d+ [\d:]+ +\w+ \d+ [\d:]+ `, text)
	}
	assert.EqualValues(t, 2, calls.Load())
	data, err := os.ReadFile(filepath.Join(dir, "files", "acme-feed"))
	require.NoError(t, err)
	assert.Equal(t, "data", string(data))
}

// What was spent is in the ledger, whatever becomes of the rest.
func TestSpentIsKnownWithoutTheBook(t *testing.T) {
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer s.Close()
	dir := t.TempDir()
	name := feed(t, s.URL)
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, bytes.Replace(text, []byte("rps: 100"), []byte("rph: 1"), 1), 0o600))
	once := func(more ...string) error {
		return start(t.Context(), append([]string{"-live", "-once", "-f", name, "-dir", dir}, more...), new(buffer), new(buffer))
	}
	require.NoError(t, once())
	require.NoError(t, os.Remove(filepath.Join(dir, "schedule.db")))
	require.ErrorContains(t, once(), "1 sources that were due could not be fetched")
	assert.EqualValues(t, 1, calls.Load(), "one an hour")
	require.NoError(t, os.Remove(filepath.Join(dir, "schedule.db")))
	require.NoError(t, once("-ledger", "none"))
	assert.EqualValues(t, 2, calls.Load())
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// An answer that breaks off, or is none, leaves the file as it was, and -once tells.
func TestOnlyWholeFilesAreKept(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"broken off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "half of")
		},
		"long, broken off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "200000")
			fmt.Fprint(w, strings.Repeat("x", 100_000))
		},
		"refused": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		"failed":  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) },
	} {
		s := httptest.NewServer(h)
		dir := t.TempDir()
		kept := filepath.Join(dir, "files", "acme-feed")
		require.NoError(t, os.MkdirAll(filepath.Dir(kept), 0o700))
		require.NoError(t, os.WriteFile(kept, []byte("old"), 0o600))
		var stdout, stderr strings.Builder
		err := start(t.Context(), []string{"-live", "-once", "-f", feed(t, s.URL+"/?key=s3cret"), "-dir", dir}, &stdout, &stderr)
		require.ErrorContains(t, err, "1 sources that were due could not be fetched", name)
		assert.NotContains(t, err.Error()+stdout.String()+stderr.String(), "s3cret", name)
		data, err := os.ReadFile(kept)
		require.NoError(t, err)
		assert.Equal(t, "old", string(data), name)
		files, err := os.ReadDir(filepath.Dir(kept))
		require.NoError(t, err)
		assert.Len(t, files, 1, name)
		s.Close()
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestBadLists(t *testing.T) {
	const one = "sources: [{name: a, provider: p, every: 1h, url: https://h/x}]"
	const p = "providers: [{slug: p}]\n"
	read := func(text string) error {
		path := filepath.Join(t.TempDir(), "list.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := readList(path)
		return err
	}
	require.NoError(t, read(p+one))
	require.NoError(t, read(strings.Replace(one, "p,", "shodan,", 1)), "a provider of the catalogue")
	for text, says := range map[string]string{
		"": "sources: want one at least",
		"sources: [{name: a, provider: p, every: 59m, url: https://h/x}]":     "sources[0] (a): every: 59m0s: want 1h to 168h",
		"sources: [{name: a, provider: p, every: 169h, url: https://h/x}]":    "want 1h to 168h",
		"sources: [{name: a, provider: p, every: daily, url: https://h/x}]":   "daily",
		"sources: [{name: a, provider: p, every: 1h, url: ftp://s3cret@h}]":   "sources[0] (a): url: want http://",
		"sources: [{name: a, provider: p, every: 1h}]":                        "url: want http://",
		"sources: [{name: ../a, provider: p, every: 1h, url: https://h/x}]":   `name "../a": want letters`,
		"sources: [{name: a, provider: nobody, every: 1h, url: https://h/x}]": `provider "nobody": declare it`,
		"sources: [{name: a, provider: p, evry: 1h, url: https://h/x}]":       "evry",
		"sources: [":                       "list.yaml: ",
		one + "\nsorces: []":               "sorces",
		one + "\nproviders: [{slug: A b}]": "slug",
		one + "\nproviders: [{slug: x, throttle: {rps: -1}}]":                                    "rps",
		one + "\nproviders: [{slug: x}, {slug: x}]":                                              "providers[1]: x is declared twice",
		strings.Replace(one, "[{", "[{name: a, provider: p, every: 1h, url: https://h/x}, {", 1): "sources[1] (a): the name is there twice",
	} {
		if !strings.Contains(text, "providers:") {
			text = p + text
		}
		err := read(text)
		require.Error(t, err, text)
		assert.Contains(t, err.Error(), says, text)
		assert.NotContains(t, err.Error(), "s3cret", text)
	}
	_, err := readList("nowhere.yaml")
	require.ErrorContains(t, err, "-f: open nowhere.yaml")
}

func TestBadFlags(t *testing.T) {
	for args, says := range map[string]string{
		"-once -list":                  "-once and -list: want one",
		"-once":                        "add -live or -dir",
		"-live -speed 2":               "are for played providers",
		"-live -for 2h":                "are for played providers",
		"-speed 0":                     "-speed 0: want a number above 0",
		"-for -1h":                     "-for -1h0m0s: want",
		"-at-once 0":                   "-at-once 0: want",
		"-ledger redis://u:s3cret@h:x": "-ledger: the URL cannot be read",
		"-f nowhere":                   "-f: open nowhere",
		"more":                         "more: want flags only",
		"-x":                           "-x",
	} {
		var stdout, stderr strings.Builder
		require.ErrorIs(t, start(t.Context(), strings.Fields(args), &stdout, &stderr), stage.ErrUsage, args)
		assert.Contains(t, stderr.String(), says, args)
		assert.NotContains(t, stderr.String(), "s3cret")
	}
	var stdout, stderr strings.Builder
	require.ErrorIs(t, start(t.Context(), []string{"-h"}, &stdout, &stderr), flag.ErrHelp)
	assert.Contains(t, stderr.String(), "usage: schedule")

	// Where nothing is named it is the user's state folder, and what is in use is told.
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	b, err := openBook(filepath.Join(os.Getenv("XDG_STATE_HOME"), "headgate", "schedule"))
	require.NoError(t, err)
	defer b.close()
	err = start(t.Context(), []string{"-live", "-list"}, &stdout, &stderr)
	require.ErrorContains(t, err, "another schedule")
}

// Ctrl-C ends it at once, and cleanly.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr buffer
	ended := make(chan error)
	go func() { ended <- start(ctx, []string{"-speed", "20000"}, &stdout, &stderr) }()
	cancel()
	err := <-ended
	require.ErrorIs(t, err, context.Canceled)
	assert.Regexp(t, `(?m)^urlhaus-recent `, stdout.String())
}
