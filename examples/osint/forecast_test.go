package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/internal/referee"
)

// agreement is a plan, and when the calls then arrived.
type agreement struct {
	slug, config string
	lookups      int
	start        time.Time
	late         bool // by up to a round trip
}

// What -plan says is what then happens, to the millisecond: for every algorithm,
// and for calendar quotas over both days on which the clocks change. The
// provider tells no Date: by how far its clock may be behind an aligned window opens
// later for us, and only a run can know that. And more jobs than max_queue have to
// wait for the first answers.
func TestPlanAgreesWithTheRun(t *testing.T) {
	limit := func(text string) string {
		return "providers: {virustotal: {throttle: {limits: [{name: minute, max: 9999999}, {name: day, max: 9999999}, {name: month, max: 9999999}, " + text + "]}}}"
	}
	spring := time.Date(2027, 3, 13, 23, 30, 0, 0, time.UTC)
	autumn := time.Date(2027, 11, 6, 23, 30, 0, 0, time.UTC)
	for name, a := range map[string]agreement{
		"as declared: virustotal": {"virustotal", "", 60, today, false},
		"as declared: shodan":     {"shodan", "", 40, today, false},
		"as declared: urlscan":    {"urlscan", "", 130, today, false},
		"as declared: crt-sh":     {"crt-sh", "", 30, today, false},
		"sliding":                 {"virustotal", limit(`{name: x, max: 7, per: 1h}`), 40, today, false},
		"sliding, in slots":       {"virustotal", limit(`{name: x, max: 1500, per: 1h}`), 3200, today, true},
		"counter":                 {"virustotal", limit(`{name: x, max: 20, per: 30m, algorithm: sliding_window_counter}`), 90, today, false},
		"fixed":                   {"virustotal", limit(`{name: x, max: 20, per: 30m, algorithm: fixed_window}`), 90, today, false},
		"token bucket":            {"virustotal", limit(`{name: x, max: 6, per: 1h, burst: 9, algorithm: token_bucket}`), 30, today, false},
		"leaky":                   {"virustotal", limit(`{name: x, max: 30, per: 10m, algorithm: leaky_bucket}`), 90, today, false},
		"in flight":               {"virustotal", limit(`{name: x, max: 3, algorithm: in_flight}`), 90, today, false},
		"sent":                    {"virustotal", limit(`{name: x, max: 5, per: 20m, counted: sent}`), 23, today, false},
		"two limits":              {"virustotal", limit(`{name: x, max: 2, per: 1m}, {name: y, max: 30, per: hour}`), 75, today, false},
		"day, spring":             {"virustotal", limit(`{name: x, max: 40, per: day, zone: America/New_York}`), 130, spring, false},
		"day, autumn":             {"virustotal", limit(`{name: x, max: 40, per: day, zone: America/New_York}`), 130, autumn, false},
		"hour, spring":            {"virustotal", limit(`{name: x, max: 40, per: hour, zone: America/New_York}`), 330, spring, false},
		"anchored, spring":        {"virustotal", limit(`{name: x, max: 40, per: day, zone: America/New_York, anchor: "02:30"}`), 130, spring, false},
		"month":                   {"virustotal", limit(`{name: x, max: 40, per: month}`), 90, today, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(a.start))
				a.check(t)
			})
		})
	}
}

// arrived notes when calls arrived.
type arrived struct {
	mu sync.Mutex
	at []time.Time
}

func (x *arrived) note(p *referee.Play) {
	answer := p.Answer
	p.Limits = nil
	p.Provider.Throttle.Limits = nil // the plan is judged, not the limits
	p.Answer = func(a referee.Arrival) referee.Answer {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.at = append(x.at, a.At)
		res := answer(a)
		if res.Header == nil {
			res.Header = http.Header{}
		}
		res.Header["Date"] = nil // net/http then tells none
		return res
	}
}

func (a agreement) check(t *testing.T) {
	t.Helper()
	var calls arrived
	n := connect(t, calls.note, a.slug)
	args := []string{"-live", "-providers", a.slug, "-cache", "off", "-json", "-wait", "9000h"}
	if a.config != "" {
		args = append(args, "-config", file(t, "headgate.yaml", a.config))
	}
	var names strings.Builder
	for i := range a.lookups {
		if a.slug == "crt-sh" {
			fmt.Fprintf(&names, "x%d.example\n", i)
		} else {
			fmt.Fprintf(&names, "10.0.%d.%d\n", i/250, i%250)
		}
	}
	args = append(args, "-f", file(t, "l", names.String()))

	o, err := parse(args, nil)
	require.NoError(t, err)
	all, err := sources()
	require.NoError(t, err)
	chosen, err := o.choose(all)
	require.NoError(t, err)
	r, err := o.read(nil)
	require.NoError(t, err)
	targets, err := plan(chosen, r.indicators)
	require.NoError(t, err)
	require.NoError(t, live(targets, func(string) string { return "x" }, nil))
	c, err := newRehearsal(targets, nil)
	require.NoError(t, err)
	f, err := forecastOf(c, targets[0], targets[0].jobs, plannedTrip)
	require.NoError(t, err)

	got := n.runUntil(t.Context(), t, args[1:]...)
	require.Equal(t, exitOK, got.code, got.stderr)
	require.Len(t, calls.at, a.lookups)
	slices.SortFunc(calls.at, time.Time.Compare)
	exact := time.Millisecond
	if a.late {
		exact += plannedTrip
	}
	went := func(i int) time.Time { return calls.at[i].Add(-oneWay.Min) }
	sum := 0
	for _, p := range f.Portions {
		require.WithinDuration(t, p.From, went(sum), exact, "a portion of %d after %d calls", p.Calls, sum)
		sum += p.Calls
		require.WithinDuration(t, p.To, went(sum-1), exact, "the last of %d", sum)
	}
	require.Equal(t, a.lookups, sum)
	assert.WithinDuration(t, f.Done(), went(a.lookups-1), exact)
}

// -plan sends nothing, makes no file, and takes off what is done, kept or not to be
// asked.
func TestPlan(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := connect(t, nil, "virustotal", "shodan")
		name := list(t, 30)
		dir := t.TempDir()
		args := []string{"-providers", "shodan,virustotal,crt-sh", "-f", name, "-cache", filepath.Join(dir, "c"), "-max-calls", "20"}
		resume := []string{"-resume", filepath.Join(dir, "r"), "-o", filepath.Join(dir, "o")}
		got := n.run(t, append(append([]string{"-plan"}, args...), resume...)...)
		assert.Equal(t, exitOK, got.code)
		assert.Zero(t, n.arrivals())
		assert.NoFileExists(t, filepath.Join(dir, "r"))
		assert.NoFileExists(t, filepath.Join(dir, "o"))
		assert.Regexp(t, `(?m)^virustotal +30 +0 +0 +10 +20 +20 +10:24:\d\d  minute: 4 per 1m$`, got.stdout)
		assert.Regexp(t, `(?m)^shodan +30 +0 +0 +10 +20 +20 +10:20:5\d  second: 1 per 1s$`, got.stdout)
		assert.Contains(t, got.stdout, "40 lookups to ask, nothing was sent")

		// Five are done, and kept; the plan of a run that does not resume knows the latter.
		five := []string{"-providers", "virustotal", "-f", name, "-cache", filepath.Join(dir, "c"), "-max-calls", "5"}
		require.Equal(t, exitOK, n.run(t, append(five, resume...)...).code)
		require.EqualValues(t, 5, n.arrivals())
		plan := append([]string{"-plan"}, "-providers", "virustotal", "-f", name, "-cache", filepath.Join(dir, "c"), "-max-calls", "20")
		got = n.run(t, plan...)
		assert.Regexp(t, `(?m)^virustotal +30 +0 +5 +5 +20 `, got.stdout)
		got = n.run(t, append(plan, resume...)...)
		assert.Regexp(t, `(?m)^virustotal +30 +5 +0 +5 +20 `, got.stdout)
		assert.EqualValues(t, 5, n.arrivals())
		done, err := os.ReadFile(filepath.Join(dir, "o"))
		require.NoError(t, err)
		assert.Len(t, records(t, string(done)), 30, "a plan does not touch the results")
	})
}

func TestPlanTellsWhatComesLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := connect(t, nil, "virustotal")
		got := n.run(t, "-plan", "-providers", "virustotal", "-cache", "off", "-f", list(t, 600))
		assert.Regexp(t, `(?m)^virustotal +600 +0 +0 +0 +600 +500 +Dec 1 00:2\d  100 after Dec 1 00:00; day: 500 per day; want -wait 14h\d+m0s$`, got.stdout)
	})
	// Played, without a key; who cannot be played is told.
	var stdout, stderr buffer
	assert.Equal(t, exitOK, quiet(t, &stdout, &stderr).run([]string{"-plan"}))
	for _, slug := range demo {
		assert.Contains(t, stdout.String(), "\n"+slug+" ")
	}
	var none buffer
	assert.Equal(t, exitFailed, quiet(t, &none, &stderr).run([]string{"-plan", "-live", "-providers", "shodan", "-cache", "off", "1.1.1.1"}))
	assert.Contains(t, stderr.String(), "no provider can be asked")
}
