package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/adapters/catalog"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

// The main job, small and fast, in real time over loopback: every lookup that the
// kinds call for is answered once, and the referee has seen no violation.
func TestEndToEnd(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list.txt")
	require.NoError(t, os.WriteFile(list, []byte("\ufeff1.1.1.1\r\n1.1.1[.]1\r\njunk!\r\nhxxp://example[.]com/\r\n44d88612fea8a8f36de82e1278abb02f\r\n"), 0o600))
	var stdout, stderr buffer
	stdin := strings.NewReader("8.8.8.8\n9.9.9.9\nexample.org\n1.1.1.1\n")
	code := run(t.Context, []string{"-speed", "200", "-json", "-f", list, "-", "2606:4700:4700::1111"}, stdin, &stdout, &stderr)
	assert.Equal(t, exitOK, code)

	declared, err := catalog.All()
	require.NoError(t, err)
	var want, got []string
	for _, p := range declared {
		for kind, values := range map[provider.Kind][]string{
			provider.IP:     {"1.1.1.1", "8.8.8.8", "9.9.9.9", "2606:4700:4700::1111"},
			provider.Domain: {"example.com", "example.org"},
			provider.Hash:   {"44d88612fea8a8f36de82e1278abb02f"},
		} {
			if slices.ContainsFunc(p.Endpoints, func(e provider.Endpoint) bool { return slices.Contains(e.Kinds, kind) }) {
				for _, v := range values {
					want = append(want, p.Slug+" "+v)
				}
			}
		}
	}
	for _, r := range records(t, stdout.String()) {
		assert.True(t, r.OK, r)
		assert.Nil(t, r.Error)
		got = append(got, r.Provider+" "+r.Indicator)
	}
	assert.ElementsMatch(t, want, got)

	told := stderr.String()
	assert.Contains(t, told, list+`:3: "junk!": no IP address, domain, URL or hash: skipped`)
	assert.Contains(t, told, "7 indicators (4 ip, 2 domain, 1 hash), 2 duplicates done once, 1 line skipped")
	assert.Regexp(t, `violations: 0 in \d+ calls .* all answered: \d+ lookups`, told)
	assert.Regexp(t, `\d+\.\ds  .*virustotal 7/7`, told, "plain progress where there is no terminal")
}

// started is a run on played providers, all but begun.
func started(t *testing.T, speed float64, text string) ([]*target, *referee.Referee) {
	t.Helper()
	var r reading
	require.NoError(t, r.read("l", strings.NewReader(text)))
	declared, err := catalog.All()
	require.NoError(t, err)
	targets, err := plan(declared, r.indicators)
	require.NoError(t, err)
	judge, err := play(targets, speed)
	require.NoError(t, err)
	t.Cleanup(judge.Close)
	return targets, judge
}

// The referee's zero means something only if it is not always zero: declare more
// to Headgate than the played providers allow, and it must tell.
func TestRefereeTellsOfALie(t *testing.T) {
	targets, judge := started(t, 200, strings.Join([]string{"1.1.1.1", "8.8.8.8", "9.9.9.9", "1.0.0.1", "8.8.4.4"}, "\n"))
	targets = slices.DeleteFunc(targets, func(x *target) bool { return x.p.Slug != "shodan" })
	lie := targets[0].p.Throttle
	lie.Limits = slices.Clone(lie.Limits)
	for i := range lie.Limits {
		lie.Limits[i].Max *= 100
	}
	c, err := coordinator.New(coordinator.Config{
		Registry: registryOf(t, targets), Overrides: map[string]provider.Throttle{"shodan": lie},
	})
	require.NoError(t, err)
	s, err := perform(t.Context(), c, judge, targets, nil, &buffer{})
	require.NoError(t, err)
	assert.Positive(t, s.rows[0].violations)
	assert.Equal(t, s.rows[0].violations, s.rows[0].limits["second"])
	assert.NotContains(t, s.total(), "violations: 0")
}

// Some answers have no data, told as the provider tells it, and none of them is an
// error.
func TestPlayedAnswers(t *testing.T) {
	declared, err := catalog.All()
	require.NoError(t, err)
	told := make(map[string]map[int]int) // by provider and status: answers without data
	for _, p := range declared {
		answer := answerOf(p)
		told[p.Slug] = make(map[int]int)
		for i := range 800 {
			req, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://host/%d", i), nil)
			require.NoError(t, err)
			a := answer(referee.Arrival{Request: req, N: i})
			if strings.Contains(a.Body, "simulated") {
				continue
			}
			told[p.Slug][a.Status]++
		}
	}
	for slug, status := range map[string]int{"virustotal": 404, "shodan": 404, "crt-sh": 0, "urlscan": 0} {
		assert.InDelta(t, 100, told[slug][status], 40, slug)
		assert.Len(t, told[slug], 1, slug)
	}
}

// Fewer pending than jobs, and fewer places than jobs: each job is done all the
// same, in the order of the list.
func TestNoLookupIsLostToAFullQueue(t *testing.T) {
	var list strings.Builder
	for i := range 40 {
		fmt.Fprintf(&list, "10.0.0.%d\n", i)
	}
	targets, judge := started(t, 2000, list.String())
	targets = slices.DeleteFunc(targets, func(x *target) bool { return x.p.Slug != "shodan" })
	targets[0].pending = 4
	c, err := coordinator.New(coordinator.Config{
		Registry: registryOf(t, targets),
		Overrides: map[string]provider.Throttle{"shodan": func() provider.Throttle {
			th := targets[0].p.Throttle
			th.MaxQueue = 4
			return th
		}()},
		Traces: []*coordinator.Trace{&hooks},
	})
	require.NoError(t, err)
	var out buffer
	s, err := perform(t.Context(), c, judge, targets, newResults(&out), &buffer{})
	require.NoError(t, err)
	assert.Equal(t, 40, s.rows[0].answered, s.rows[0].refused)
	assert.Zero(t, s.rows[0].violations)
	assert.Len(t, s.rows[0].waits, 40)

	arrival := make(map[string]int) // as the referee numbered them; answers without data tell none
	for _, r := range records(t, out.String()) {
		var data struct{ Call int }
		if !r.Empty {
			require.NoError(t, json.Unmarshal(r.Data, &data))
			arrival[r.Indicator] = data.Call
		}
	}
	var order []int
	for i := range 40 {
		if n := arrival[fmt.Sprintf("10.0.0.%d", i)]; n > 0 {
			order = append(order, n)
		}
	}
	assert.Greater(t, len(order), 20)
	assert.IsIncreasing(t, order)
}

// Ctrl-C is the end of the context: what is done stays, the rest is given up.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stderr buffer
	stdout := buffer{wrote: func() error { cancel(); return nil }}
	code := run(func() context.Context { return ctx }, []string{"-json"}, nil, &stdout, &stderr)
	assert.Equal(t, exitInterrupted, code)
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
}

// A Ctrl-C that comes when all is done has stopped nothing.
func TestInterruptAtTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stderr buffer
	declared, err := catalog.All()
	require.NoError(t, err)
	targets, err := plan(declared, []indicator{{kind: provider.Hash}})
	require.NoError(t, err)
	left := int32(len(targets))
	stdout := buffer{wrote: func() error {
		if atomic.AddInt32(&left, -1) == 0 {
			cancel()
		}
		return nil
	}}
	code := run(func() context.Context { return ctx }, []string{"-json", "-speed", "200", "44d88612fea8a8f36de82e1278abb02f"}, nil, &stdout, &stderr)
	assert.Equal(t, exitOK, code)
	assert.Contains(t, stderr.String(), fmt.Sprintf("all answered: %d lookups", len(targets)))
}

// What an adapter could not even send is a refusal, whatever it is called: nothing
// was given up while the run went on.
func TestUnsentIsARefusal(t *testing.T) {
	targets, _ := started(t, 200, "1.1.1.1")
	targets = slices.DeleteFunc(targets, func(x *target) bool { return x.p.Slug != "shodan" })
	noKey, err := adapters.New(targets[0].p, adapters.Options{Getenv: func(string) string { return "" }})
	require.NoError(t, err)
	targets[0].adapter = noKey
	c, err := newCoordinator(targets)
	require.NoError(t, err)
	var out buffer
	s, err := perform(t.Context(), c, nil, targets, newResults(&out), &buffer{})
	require.NoError(t, err)
	assert.Len(t, s.rows[0].refused, 1)
	assert.Equal(t, 1, s.rows[0].failed)
	assert.Zero(t, s.givenUp())
	assert.False(t, s.stopped)
	assert.False(t, records(t, out.String())[0].OK)
}

// Where the results cannot be kept no quota is spent on more of them.
func TestResultsThatCannotBeWrittenEndTheRun(t *testing.T) {
	var stderr buffer
	stdout := buffer{wrote: func() error { return errors.New("no space left") }}
	code := run(t.Context, []string{"-json"}, nil, &stdout, &stderr)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr.String(), "osint: the results cannot be written: no space left")
	assert.Contains(t, stderr.String(), "stopped: ")
	assert.NotContains(t, stderr.String(), "all answered")
}

func TestResultsGoToAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out.jsonl")
	require.NoError(t, os.WriteFile(name, []byte(strings.Repeat("old\n", 100)), 0o600))
	var stdout, stderr buffer
	assert.Equal(t, exitOK, run(t.Context, []string{"-speed", "100", "-o", name, "example.com"}, nil, &stdout, &stderr))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.NotEmpty(t, records(t, string(text)))
	assert.Contains(t, stdout.String(), "all answered", "the table is on the standard output")
}
