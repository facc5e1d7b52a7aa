package main

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/examples/osint/internal/cache"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

// What was answered is kept for its time, and told as kept, with when it was true.
func TestCache(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := connect(t, nil, "shodan")
		args := []string{"-providers", "shodan", "-cache", filepath.Join(t.TempDir(), "new", "c"), "-ttl", "10h", "-json", "-f", list(t, 20)}
		first := n.run(t, args...)
		require.Equal(t, exitOK, first.code)
		require.EqualValues(t, 20, n.arrivals())
		then := make(map[string]record)
		empty := 0
		for _, r := range records(t, first.stdout) {
			assert.False(t, r.Cached)
			if r.Empty {
				empty++
			}
			then[r.Indicator] = r
		}
		assert.Positive(t, empty, "no data is an answer, and kept")

		time.Sleep(9 * time.Hour)
		again := n.run(t, args...)
		assert.Equal(t, exitOK, again.code)
		assert.EqualValues(t, 20, n.arrivals(), "nothing is asked")
		for _, r := range records(t, again.stdout) {
			was := then[r.Indicator]
			assert.True(t, r.Cached)
			assert.Equal(t, was.At, r.At, "of the answer")
			was.Cached, was.Waited = true, 0
			assert.Equal(t, was, r)
		}
		assert.Regexp(t, `(?m)^provider .* cached `, again.stderr)
		assert.Contains(t, again.stderr, "all answered: 20 lookups, 20 from the cache in 0")
		assert.NotContains(t, again.stderr, "utilisation")

		short := slices.Clone(args)
		short[5] = "1h"
		require.Equal(t, exitOK, n.run(t, short...).code)
		assert.EqualValues(t, 40, n.arrivals(), "too old for who wants it fresher")

		time.Sleep(11 * time.Hour)
		require.Equal(t, exitOK, n.run(t, args...).code)
		assert.EqualValues(t, 60, n.arrivals(), "expired")
	})
}

// What was not ok is never kept, nor an empty answer that may be a lie.
func TestCacheKeepsOnlyWhatIsSure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		status := http.StatusInternalServerError
		n := connect(t, func(p *referee.Play) {
			p.Answer = func(a referee.Arrival) referee.Answer {
				switch {
				case p.Provider.Slug == "crt-sh":
					return referee.Answer{Body: "[]"}
				default:
					return referee.Answer{Status: status, Body: "{}"}
				}
			}
		}, "crt-sh", "ip-api")
		args := []string{"-providers", "crt-sh,ip-api", "-cache", filepath.Join(t.TempDir(), "c"), "-json", "example.com", "1.1.1.1"}
		got := n.run(t, args...)
		for _, r := range records(t, got.stdout) {
			assert.Equal(t, r.Provider == "crt-sh", r.OK)
			assert.Equal(t, r.OK, r.Suspicious)
		}
		before := n.Report("crt-sh").Arrivals
		status = http.StatusOK
		time.Sleep(10 * time.Minute)
		got = n.run(t, args...)
		for _, r := range records(t, got.stdout) {
			assert.False(t, r.Cached, r.Provider)
			assert.True(t, r.OK)
		}
		assert.Equal(t, before+1, n.Report("crt-sh").Arrivals)
	})
}

// A cache that cannot be used is told, and the run goes on without it.
func TestCacheThatCannotBeUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		used := filepath.Join(dir, "used")
		c, err := cache.Open(used, time.Hour)
		require.NoError(t, err)
		defer c.Close()
		corrupt := file(t, "corrupt", string(make([]byte, 64<<10)))
		text := file(t, "text", "not a cache\n")
		for name, says := range map[string]string{
			used:                              "in use by another process",
			corrupt:                           "invalid database",
			text:                              "no cache",
			dir:                               "is a directory",
			filepath.Join(text, "under-file"): "not a directory",
		} {
			got := played(t, "", "-cache", name, "-providers", "ip-api", "-json", "1.1.1.1")
			assert.Equal(t, exitOK, got.code, says)
			assert.Contains(t, got.stderr, "osint: no cache: ", says)
			assert.Contains(t, got.stderr, says)
			assert.Contains(t, got.stderr, "the run goes on without it", says)
			assert.Len(t, records(t, got.stdout), 1, says)
		}
		kept, err := os.ReadFile(text)
		require.NoError(t, err)
		assert.Equal(t, "not a cache\n", string(kept), "what is no cache stays as it is")
	})
}

// One that fails on the way is told once, and not asked again.
func TestCacheThatFailsOnTheWay(t *testing.T) {
	c, err := cache.Open(filepath.Join(t.TempDir(), "c"), time.Hour)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	times := 0
	s := &store{mode: "live", c: c, tell: func(string, ...any) { times++ }}
	x := &target{source: source{base: provider.Provider{Slug: "p"}, p: provider.Provider{Slug: "p"}}}
	for range 3 {
		s.put(x, oneLookup())
		_, ok := s.get(x, &oneLookup().job)
		assert.False(t, ok)
	}
	assert.Equal(t, 1, times)
}

// What is played is no answer of the real provider's; another declaration asks
// another question; limits are no part of it.
func TestCacheKeys(t *testing.T) {
	c, err := cache.Open(filepath.Join(t.TempDir(), "c"), time.Hour)
	require.NoError(t, err)
	s := &store{mode: "live", c: c, tell: t.Logf}
	defer s.close()
	of := func(change func(*provider.Provider)) *target {
		p := declared(t, "shodan")
		change(&p)
		return &target{source: source{base: p, p: p}}
	}
	same := of(func(*provider.Provider) {})
	l := oneLookup()
	l.result = provider.Result{Data: []byte(`{"a":1}`), At: time.Now()}
	s.put(same, l)
	kept, ok := s.get(same, &l.job)
	require.True(t, ok)
	assert.JSONEq(t, `{"a":1}`, string(kept.Data))

	_, ok = s.get(of(func(p *provider.Provider) { p.Throttle.Limits = nil }), &l.job)
	assert.True(t, ok, "the question is the same")
	for name, change := range map[string]func(*provider.Provider){
		"path":    func(p *provider.Provider) { p.Endpoints[0].Path = "/v2/{value}" },
		"dialect": func(p *provider.Provider) { p.Dialect.Signals = nil },
		"place":   func(p *provider.Provider) { p.BaseURL = "https://shodan.example" },
		"slug":    func(p *provider.Provider) { p.Slug = "other" },
	} {
		_, ok = s.get(of(change), &l.job)
		assert.False(t, ok, name)
	}
	for name, change := range map[string]func(*job){
		"value":    func(j *job) { j.value = "x" },
		"kind":     func(j *job) { j.kind = "text" },
		"endpoint": func(j *job) { j.endpoint = "x" },
	} {
		j := l.job
		change(&j)
		_, ok = s.get(same, &j)
		assert.False(t, ok, name)
	}
	s.mode = "played"
	_, ok = s.get(same, &l.job)
	assert.False(t, ok, "played")
}

// The default place, with -live alone.
func TestCacheDefaultPlace(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("HOME", dir)
	where, err := os.UserCacheDir()
	require.NoError(t, err)
	bubble(t, func(t *testing.T) {
		require.Equal(t, exitOK, played(t, "", "-providers", "ip-api", "1.1.1.1").code)
		assert.NoFileExists(t, filepath.Join(where, "headgate", "osint.db"))
		n := connect(t, nil, "ip-api")
		require.Equal(t, exitOK, n.run(t, "-providers", "ip-api", "-json", "1.1.1.1").code)
		assert.FileExists(t, filepath.Join(where, "headgate", "osint.db"))
	})
}
