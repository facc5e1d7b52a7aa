package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/adapters/catalog"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

// The main job, small: every lookup that the kinds call for is answered once, each
// list gets its record, and the referee has seen no violation.
func TestEndToEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		name := file(t, "list.txt", "\ufeff1.1.1.1\r\n1.1.1[.]1\r\njunk!\r\nhxxp://example[.]com/\r\n44d88612fea8a8f36de82e1278abb02f\r\n")
		got := played(t, "8.8.8.8\n9.9.9.9\nexample.org\n1.1.1.1\n", "-json", "-f", name, "-", "2606:4700:4700::1111")
		assert.Equal(t, exitOK, got.code)
		var want, have []string
		for _, slug := range demo {
			for kind, values := range map[provider.Kind][]string{
				provider.IP:     {"1.1.1.1 " + name, "1.1.1.1 stdin", "8.8.8.8 stdin", "9.9.9.9 stdin", "2606:4700:4700::1111 arguments"},
				provider.Domain: {"example.com " + name, "example.org stdin"},
				provider.Hash:   {"44d88612fea8a8f36de82e1278abb02f " + name},
			} {
				if slices.Contains(kindsOf(declared(t, slug)), kind) {
					for _, v := range values {
						want = append(want, slug+" "+v)
					}
				}
			}
		}
		for _, r := range records(t, got.stdout) {
			assert.True(t, r.OK, r)
			assert.Nil(t, r.Error)
			have = append(have, r.Provider+" "+r.Indicator+" "+r.List)
		}
		assert.ElementsMatch(t, want, have)
		assert.Contains(t, got.stderr, name+`:3: "junk!": no IP address, domain, URL, hash or e-mail address: skipped`)
		assert.Contains(t, got.stderr, "7 indicators (4 ip, 2 domain, 1 hash), 1 duplicate done once, 1 in several lists asked once, 1 line skipped: 24 lookups at 5 providers")
		assert.Regexp(t, `violations: 0 in 24 calls .* all answered: 24 lookups`, got.stderr, "what two lists want is one call")
		assert.Regexp(t, `\d+\.\ds  .*virustotal 7/7`, got.stderr, "plain progress where there is no terminal")
	})
}

// On a real socket, in real time.
func TestOnLoopback(t *testing.T) {
	var stdout, stderr buffer
	w := quiet(t, &stdout, &stderr)
	w.listen = stage.Loopback
	assert.Equal(t, exitOK, w.run([]string{"-speed", "200", "1.1.1.1", "example.com"}))
	assert.Regexp(t, `violations: 0 in \d+ calls .* all answered: \d+ lookups`, stdout.String())
}

// The whole catalogue is played, each provider in its own dialect, with something
// of every kind.
func TestEveryProviderIsPlayed(t *testing.T) {
	values := map[provider.Kind][]string{
		"":               {"1.1.1.1", "2606:4700:4700::1111", "example.com", "http://example.com/x", "44d88612fea8a8f36de82e1278abb02f", "a@example.com"},
		provider.Text:    {"some words"},
		provider.Phone:   {"+49301234567"},
		provider.Company: {"Example Ltd"},
	}
	asked := make(map[string]bool)
	for as, list := range values {
		bubble(t, func(t *testing.T) {
			args := []string{"-speed", "1", "-providers", "all", "-wait", "2h", "-json"}
			if as != "" {
				args = append(args, "-as", string(as))
			}
			got := played(t, "", append(args, list...)...)
			require.Equal(t, exitOK, got.code)
			for _, r := range records(t, got.stdout) {
				assert.True(t, r.OK, r.Error)
				asked[r.Provider] = true
			}
			assert.Regexp(t, `violations: 0 in \d+ calls .* all answered`, got.stderr)
		})
	}
	all, err := catalog.All()
	require.NoError(t, err)
	for _, p := range all {
		assert.Equal(t, len(kindsOf(p)) > 0, asked[p.Slug], p.Slug)
	}
}

// The referee's zero means something only if it is not always zero: allow Headgate
// more than the real provider allows, and it must tell.
func TestRefereeTellsOfALie(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := connect(t, nil, "shodan")
		lie := file(t, "headgate.yaml", "providers: {shodan: {throttle: {limits: [{name: second, max: 100}]}}}")
		n.run(t, "-providers", "shodan", "-config", lie, "-cache", "off", "-json", "-f", list(t, 5))
		assert.Positive(t, n.Report("shodan").Violated)
	})
}

// Some answers have no data, told as the provider tells it, and none of them is an
// error.
func TestPlayedAnswers(t *testing.T) {
	for slug, status := range map[string]int{"virustotal": 404, "shodan": 404, "crt-sh": 0, "urlscan": 0} {
		answer := answerOf(declared(t, slug))
		told := make(map[int]int) // answers without data, by status
		for i := range 800 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://host/%d", i), nil)
			require.NoError(t, err)
			if a := answer(referee.Arrival{Request: req, N: i}); !strings.Contains(a.Body, "simulated") {
				told[a.Status]++
			}
		}
		assert.InDelta(t, 100, told[status], 40, slug)
		assert.Len(t, told, 1, slug)
	}
}

// Fewer places than jobs: each job is done all the same, in the order of the list.
func TestNoLookupIsLostToAFullQueue(t *testing.T) {
	for _, excess := range []string{"queue", "reject", "delay"} {
		bubble(t, func(t *testing.T) {
			config := file(t, "headgate.yaml", "excess: "+excess+"\nproviders: {shodan: {throttle: {max_queue: 4}}}")
			got := played(t, "", "-speed", "1", "-providers", "shodan", "-config", config, "-json", "-f", list(t, 40))
			assert.Equal(t, exitOK, got.code)
			assert.Regexp(t, `violations: 0 in 40 calls   utilisation: \d+ %   all answered: 40 lookups`, got.stderr, excess)
			var order []int // as the referee numbered them; answers without data tell none
			for _, r := range records(t, got.stdout) {
				var data struct{ Call int }
				if !r.Empty {
					require.NoError(t, json.Unmarshal(r.Data, &data))
					order = append(order, data.Call)
				}
			}
			assert.Greater(t, len(order), 20)
			assert.IsIncreasing(t, order)
		})
	}
}

// Ctrl-C is the end of the context: what is done stays, the rest is given up.
func TestInterrupt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var stderr buffer
		stdout := buffer{wrote: func() error { cancel(); return nil }}
		w := quiet(t, &stdout, &stderr)
		w.begin = func() context.Context { return ctx }
		assert.Equal(t, exitInterrupted, w.run([]string{"-json"}))
		done := 0
		for _, r := range records(t, stdout.String()) {
			if r.OK {
				done++
			} else {
				assert.Equal(t, coordinator.ReasonCanceled, r.Error.Reason)
				assert.Positive(t, r.Error.Attempts, "what was never asked is no result")
			}
		}
		assert.Positive(t, done)
		assert.NotContains(t, stderr.String(), "canceled", "who is given up was not refused")
		m := regexp.MustCompile(`stopped: (\d+) of (\d+) lookups answered`).FindStringSubmatch(stderr.String())
		require.NotNil(t, m, stderr.String())
		assert.NotEqual(t, m[1], m[2])
		assert.NotContains(t, stderr.String(), "all answered")
	})
}

// A Ctrl-C that comes when all is done has stopped nothing.
func TestInterruptAtTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var stderr buffer
		var written atomic.Int32
		stdout := buffer{wrote: func() error {
			if written.Add(1) == 2 {
				cancel()
			}
			return nil
		}}
		w := quiet(t, &stdout, &stderr)
		w.begin = func() context.Context { return ctx }
		assert.Equal(t, exitOK, w.run([]string{"-json", "44d88612fea8a8f36de82e1278abb02f"}))
		assert.Contains(t, stderr.String(), "all answered: 2 lookups")
	})
}

// What cannot go in time is refused at once, with its time; nobody waits for it.
func TestWaitBoundsTheRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		begin := time.Now()
		n := connect(t, nil, "virustotal")
		got := n.run(t, "-providers", "virustotal", "-cache", "off", "-wait", "10m", "-json", "-f", list(t, 100))
		assert.Equal(t, exitOK, got.code)
		refused := 0
		for _, r := range records(t, got.stdout) {
			if !r.OK {
				refused++
				assert.Equal(t, coordinator.ReasonTooLate, r.Error.Reason)
				assert.True(t, r.Error.RetryAt.After(begin.Add(10*time.Minute)), r.Error.RetryAt)
			}
		}
		assert.InDelta(t, 60, refused, 4, "four a minute")
		assert.Less(t, time.Since(begin), 11*time.Minute)
		assert.Regexp(t, `virustotal: \d+ too_late: ask again from 2026-11-30T10:3\d:`, got.stderr)
		assert.Contains(t, got.stderr, "violations: – (real providers do not tell)   answered: ")
	})
}

// Where the results cannot be kept no quota is spent on more of them.
func TestResultsThatCannotBeWrittenEndTheRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var stderr buffer
		stdout := buffer{wrote: func() error { return errors.New("no space left") }}
		assert.Equal(t, exitFailed, quiet(t, &stdout, &stderr).run([]string{"-json"}))
		assert.Contains(t, stderr.String(), "osint: the results cannot be written: no space left")
		assert.Contains(t, stderr.String(), "stopped: ")
		assert.NotContains(t, stderr.String(), "all answered")
	})
}

func TestResultsGoToAFile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		name := file(t, "out.jsonl", strings.Repeat("old\n", 100))
		got := played(t, "", "-o", name, "example.com")
		assert.Equal(t, exitOK, got.code)
		assert.NotEmpty(t, fileRecords(t, name))
		assert.Contains(t, got.stdout, "all answered", "the table is on the standard output")
		got = played(t, "", "-o", filepath.Join(t.TempDir(), "x.csv"), "-format", "jsonl", "example.com")
		assert.Equal(t, exitOK, got.code)
	})
}
