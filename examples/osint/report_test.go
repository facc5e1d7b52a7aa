package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

func jobs(n int) []job { return make([]job, n) }

// fixture is a run with something of everything.
func fixture(t *testing.T) *summary {
	sliding := func(max int64, per provider.Period) []provider.Limit {
		return expand(t, provider.Limit{Name: "l", Max: max, Per: per})
	}
	fast := named("fast", 3)
	slow := named("slow-provider", 101)
	slow.limits, slow.ideal = sliding(1, "100ms"), 10*time.Second
	spent := named("spent", 9)
	spent.limits, spent.ideal = sliding(4, "1m"), 2*time.Minute
	keyless := named("unkeyed", 9)
	keyless.missing = errors.New("no key: set\nKEY")
	var waits []time.Duration
	for i := range 100 {
		waits = append(waits, time.Duration(100-i)*100*time.Millisecond)
	}
	tomorrow := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	return &summary{
		judged: true, ideal: 10 * time.Second, elapsed: 13 * time.Second,
		rows: []row{
			{tally: tally{t: fast, answered: 3, waits: []time.Duration{0, 0, 0}, elapsed: 5400 * time.Microsecond}, arrivals: 3},
			{tally: tally{t: slow, answered: 101, empty: 7, suspicious: 1, waits: waits, elapsed: 12500 * time.Millisecond},
				reachable: 11 * time.Second, trip: 10 * time.Millisecond, arrivals: 103, violations: 2, limits: map[string]int64{"l": 2}},
			{tally: tally{t: spent, answered: 4, failed: 5, waits: waits[:5], elapsed: time.Second,
				refused: map[coordinator.Reason]int{"failed": 1, "too_late": 4},
				retryAt: map[coordinator.Reason]time.Time{"too_late": tomorrow}}, arrivals: 5},
			{tally: tally{t: keyless}},
		},
	}
}

func TestReport(t *testing.T) {
	var b strings.Builder
	fixture(t).write(&b)
	assert.Equal(t, `
provider       lookups  answered  no data  waited p50   p95  elapsed  ideal  used  violations  refused
fast                 3         3        0           0     0    5.4ms      0     –           0  –
slow-provider      101       101        7          5s  9.5s    12.5s    10s  80 %           2  –
spent                9         4        0        9.8s   10s       1s   2m0s     –           0  4 too_late, 1 failed

slow-provider: at most 90 % can be used, because a call counts until 100ms after its answer, and a round trip takes 10ms
slow-provider: 1 empty answer is suspicious: it has been seen to answer so when it was overloaded
slow-provider: the limit l was broken 2 times
spent: 4 too_late: ask again from 2026-12-01T00:00:00Z on
unkeyed: not available: no key: set; KEY

violations: 2 in 111 calls   answered: 108 of 113 lookups in 13s
`, b.String())
}

func TestReportOfRealProvidersClaimsNoViolations(t *testing.T) {
	s := fixture(t)
	s.judged = false
	var b strings.Builder
	s.write(&b)
	assert.Contains(t, b.String(), "violations: – (real providers do not tell)   answered")
	assert.NotContains(t, b.String(), "violations: 0")
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "fast ") {
			assert.Regexp(t, ` –  –$`, strings.TrimSpace(line))
		}
	}
}

func TestTotal(t *testing.T) {
	s := fixture(t)
	s.rows = s.rows[:2]
	s.rows[1].violations = 0
	assert.Equal(t, "violations: 0 in 106 calls   utilisation: 76 %   all answered: 104 lookups in 13s (ideal 10s)", s.total())
	s.rows[0].answered, s.rows[0].failed = 1, 1
	assert.Equal(t, "violations: 0 in 106 calls   answered: 102 of 104 lookups in 13s", s.total(), "one failed, one not even begun")
	s.stopped = true
	assert.Equal(t, "violations: 0 in 106 calls   stopped: 102 of 104 lookups answered, 1 refused, 1 given up in 13s", s.total())
}

// What an earlier run did, what was kept and what was not asked is told apart, in
// columns that are there when they are needed.
func TestReportTellsWhatWasNotAsked(t *testing.T) {
	x := named("p", 10)
	x.ideal = time.Second
	s := &summary{elapsed: time.Second, rows: []row{{tally: tally{t: x, answered: 5, cached: 2, before: 3, notAsked: 2, elapsed: time.Second}}}}
	var b strings.Builder
	s.write(&b)
	assert.Equal(t, `
provider  lookups  done before  answered  no data  cached  not asked  waited p50  p95  elapsed  ideal  used  violations  refused
p              10            3         5        0       2          2           0    0       1s     1s     –           –  –

p: 2 not asked: its calls of this run are spent (-max-calls)

violations: – (real providers do not tell)   answered: 5 of 10 lookups, 3 done before, 2 from the cache, 2 not asked in 1s
`, b.String())
}

// Nobody wants to read of a hundred keys that were never set.
func TestReportCountsWhoIsUnavailable(t *testing.T) {
	s := &summary{}
	for range fewUnavailable + 1 {
		x := named("p", 1)
		x.missing = errors.New("no key")
		s.rows = append(s.rows, row{tally: tally{t: x}})
	}
	assert.Equal(t, []string{"6 providers are not available (osint -list tells why)"}, s.notes())
	s.detailed = true
	assert.Len(t, s.notes(), 6)
}
