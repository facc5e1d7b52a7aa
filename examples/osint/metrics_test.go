package main

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

// trouble has each provider do what providers do.
func trouble(p *referee.Play) {
	usual := p.Answer
	p.Answer = func(a referee.Arrival) referee.Answer {
		switch {
		case a.Provider == "urlscan" && a.N > 2: // ends with its breaker open
			return referee.Answer{Status: http.StatusInternalServerError, Body: "down", Outcome: provider.Failed}
		case a.Provider == "shodan" && a.N == 3:
			return referee.Answer{Status: http.StatusTooManyRequests, Body: `{"error":"slow down"}`, Outcome: provider.RateLimited}
		case a.Provider == "virustotal" && a.N == 4:
			return referee.Answer{Status: http.StatusTooManyRequests, Body: `{"error":{"code":"QuotaExceededError"}}`, Outcome: provider.QuotaSpent}
		}
		return usual(a)
	}
}

// inTrouble runs the program through all that. It scrapes each second, and at each
// result, of which it keeps the last.
func inTrouble(t *testing.T) (got told, scrapes []string, last string) {
	t.Helper()
	slugs := []string{"crt-sh", "shodan", "urlscan", "virustotal"}
	n := connect(t, trouble, slugs...)
	n.keys["VT_A"], n.keys["VT_B"] = "one", "two"
	config := file(t, "headgate.yaml", `
providers:
  virustotal: {keys: [VT_A, VT_B]}
  crt-sh: {throttle: {limits: [{name: search, max: 30, per: 1m, scope: endpoint, endpoints: [identity-search]}]}}
`)
	l := referee.Listen()
	c := scraper(l)
	scrape := func() string {
		status, text := get(t, c, "http://host/metrics")
		assert.Equal(t, http.StatusOK, status)
		return text
	}
	var stderr buffer
	stdout := buffer{wrote: func() error { last = scrape(); return nil }}
	w := in(t.TempDir(), n.world(t, &stdout, &stderr)) // with a ledger
	w.listenAt = func(addr string) (net.Listener, error) {
		assert.Equal(t, ":9464", addr)
		return l, nil
	}
	var ticks func()
	w.begin = func() context.Context {
		ticks = every(time.Second, func() { scrapes = append(scrapes, scrape()) })
		return t.Context()
	}
	got.code = w.run([]string{
		"-live", "-metrics", ":9464", "-at-once", "50", "-cache", "off", "-wait", "30s", "-json",
		"-providers", strings.Join(slugs, ","), "-config", config,
		"-f", list(t, 12), "-f", file(t, "domains.txt", "a.example\nb.example\nc.example\nd.example\ne.example"),
	})
	ticks()
	got.stdout, got.stderr = stdout.String(), stderr.String()
	return got, scrapes, last
}

// What is documented is what a scrape shows, under those names, of those kinds, with
// those labels, and nothing else; and the numbers are those of the run.
func TestMetricsShowEveryDocumentedOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got, scrapes, text := inTrouble(t)
		require.Equal(t, exitOK, got.code, got.stderr)
		require.NotContains(t, got.stdout+got.stderr+strings.Join(scrapes, "")+text, "s3cret")
		last, all := scraped(t, text)
		assert.Equal(t, metricOf{"gauge", []string{"service_name"}}, all["target_info"])
		delete(all, "target_info")
		want := documentedMetrics(t)
		assert.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(all)))

		// Pauses come and go, and take their labels with them.
		most := make(samples)
		for _, text := range scrapes {
			series, some := scraped(t, text)
			for s, value := range series {
				most[s] = max(most[s], value)
			}
			for name, m := range some {
				x := all[name]
				x.labels = append(x.labels, m.labels...)
				all[name] = x
			}
		}
		for name, m := range want {
			if slices.Equal(m.labels, []string{"headgate_pool"}) {
				m.labels = nil // the pool of all calls has no name
			}
			slices.Sort(all[name].labels)
			assert.Equal(t, metricOf{m.kind, slices.Compact(all[name].labels)}, m, name)
		}
		checkTotals(t, records(t, got.stdout), last)
		checkTrouble(t, most)
	})
}

// checkTotals compares the last scrape with the results.
func checkTotals(t *testing.T, all []record, last samples) {
	t.Helper()
	answered, late := 0.0, 0.0
	for _, r := range all {
		if r.OK {
			answered++
		} else if r.Error.Reason == coordinator.ReasonTooLate {
			late++
		}
	}
	assert.Positive(t, answered)
	assert.Positive(t, late)
	assert.Equal(t, answered, last.sum("headgate_attempt_outcomes_total", `headgate_outcome="ok"`))
	assert.Equal(t, late, last.sum("headgate_call_decisions_total", `headgate_reason="too_late"`))
	assert.Equal(t, last.sum("headgate_attempt_outcomes_total"), last.sum("headgate_attempt_duration_seconds_count"))
	assert.Equal(t, last.sum("headgate_call_decisions_total", `headgate_decision="admitted"`), last.sum("headgate_call_wait_seconds_count"))
	assert.Equal(t, 1.0, last.sum("headgate_retries_total", `headgate_provider="shodan"`))
	assert.Equal(t, 50.0, last.sum("headgate_pool_size"))
}

// checkTrouble looks for all that went wrong, in the most that each series showed.
func checkTrouble(t *testing.T, most samples) {
	t.Helper()
	for _, series := range [][]string{
		{"headgate_queue_length", `"shodan"`},
		{"headgate_queue_oldest_seconds", `"shodan"`},
		{"headgate_keys", `"virustotal"`},
		{"headgate_calls_in_flight", `"shodan"`},
		{"headgate_pool_in_flight"},
		{"headgate_limit_max", `"virustotal"`, `headgate_limit="minute"`, `headgate_scope="key"`},
		{"headgate_limit_max", `"crt-sh"`, `headgate_endpoint="identity-search"`, `headgate_scope="endpoint"`},
		{"headgate_breaker_state", `"urlscan"`, `headgate_breaker_state="open"`},
		{"headgate_pauses", `"shodan"`, `headgate_reason="rate_limited"`},
		{"headgate_pause_remaining_seconds", `"shodan"`, `headgate_reason="rate_limited"`},
		{"headgate_attempt_outcomes_total", `"virustotal"`, `headgate_outcome="quota_spent"`},
	} {
		assert.Positive(t, most.sum(series[0], series[1:]...), series)
	}
}

// On a real socket, at a port that was free, which is told; only there, and only as
// long as the run goes on.
func TestMetricsOnLoopback(t *testing.T) {
	var stderr buffer
	var scrapes atomic.Int64
	c := scraper(nil)
	address := func() string {
		m := regexp.MustCompile(`metrics for Prometheus: (http://127\.0\.0\.1:[1-9]\d*)/metrics\n`).FindStringSubmatch(stderr.String())
		require.NotNil(t, m, stderr.String())
		return m[1]
	}
	stdout := buffer{wrote: func() error {
		if scrapes.Add(1) > 1 {
			return nil
		}
		status, text := get(t, c, address()+"/metrics")
		assert.Equal(t, http.StatusOK, status)
		_, all := scraped(t, text)
		assert.Contains(t, all, "headgate_call_decisions_total")
		assert.NotContains(t, all, "headgate_pool_size", "without -at-once there is no pool")
		status, _ = get(t, c, address()+"/")
		assert.Equal(t, http.StatusNotFound, status)
		return nil
	}}
	assert.Equal(t, exitOK, quiet(t, &stdout, &stderr).run([]string{"-metrics", "127.0.0.1:0", "-speed", "200", "-json", "1.1.1.1", "example.com"}))
	assert.Positive(t, scrapes.Load())
	_, err := c.Get(address() + "/metrics")
	require.ErrorContains(t, err, "connection refused")
}

// An address that is taken is told before anything is opened or sent.
func TestMetricsAddressThatIsTaken(t *testing.T) { testTaken(t, "-metrics") }

// testTaken gives a flag, and others, an address that is taken.
func testTaken(t *testing.T, flag string, others ...string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var stdout, stderr buffer
	w := quiet(t, &stdout, &stderr)
	w.listen = func() (net.Listener, error) {
		assert.Fail(t, "somebody is about to be asked")
		return referee.Listen(), nil
	}
	dir := t.TempDir()
	args := append([]string{flag, l.Addr().String(), "-o", filepath.Join(dir, "out"), "-resume", filepath.Join(dir, "run")}, others...)
	assert.Equal(t, exitUsage, w.run(append(args, "1.1.1.1")))
	assert.Contains(t, stderr.String(), "osint: "+flag+": listen tcp "+l.Addr().String()+": ")
	assert.Contains(t, stderr.String(), "address already in use; want a free HOST:PORT")
	assert.Empty(t, stdout.String())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left, "nothing was overwritten or begun")
}

// Who scrapes and does not read holds up neither the run nor its end.
func TestMetricsForWhoDoesNotRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		begin := time.Now()
		l := referee.Listen()
		var stderr buffer
		var conn net.Conn
		stdout := buffer{wrote: func() (err error) {
			if conn == nil {
				if conn, err = l.DialContext(t.Context(), "", ""); err == nil {
					_, err = io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: host\r\n\r\n")
				}
			}
			return err
		}}
		w := quiet(t, &stdout, &stderr)
		w.listenAt = func(string) (net.Listener, error) { return l, nil }
		assert.Equal(t, exitOK, w.run([]string{"-metrics", ":9464", "-speed", "1", "-providers", "shodan", "-json", "1.1.1.1"}))
		require.NotNil(t, conn)
		assert.LessOrEqual(t, time.Since(begin), lastMoment+time.Second)
		end := time.Now()
		_, err := io.Copy(io.Discard, conn)
		require.NoError(t, err)
		assert.Equal(t, end, time.Now(), "the connection was cut off")
		conn.Close()
	})
}
