package catalog_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// burst is how many lookups of each provider are made, all at once. The race detector
// makes them ten times as slow: under it they are fewer, and all of them come once
// more without it.
var burst = map[bool]int{false: 200, true: 40}[raceEnabled]

const (
	patience = 5 * 365 * 24 * time.Hour // of each
	pages    = 3                        // of a lookup that has pages: two with items, and the end
)

// Every file of the catalogue, played by the referee in its own dialect: days and
// months pass, and no call comes too early.
func TestEachProviderIsPlayedWithoutAViolation(t *testing.T) {
	for _, p := range files(t) {
		t.Run(p.Slug, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { playedWithoutAViolation(t, inFull(p)) })
		})
	}
}

// notPlayed are the registered providers whose adapter is written by hand, and why
// the referee cannot answer it.
var notPlayed = map[string]string{
	"rdap":         "a lookup goes on at other hosts: its own package plays them",
	"whois-port43": "WHOIS is no HTTP: its own package plays its servers",
}

func TestEveryRegisteredProviderIsPlayed(t *testing.T) {
	played := map[string]bool{}
	for _, p := range files(t) {
		played[p.Slug] = true
	}
	for e := range registry.Default.All() {
		slug := e.Provider.Slug
		assert.NotEqual(t, played[slug], notPlayed[slug] != "", "%s is played, or it is said why not", slug)
	}
}

func playedWithoutAViolation(t *testing.T, p provider.Provider) {
	t.Helper()
	var arrived counted
	s := newStage(t, referee.Play{Provider: p, Speak: true, Closed: true, Answer: func(a referee.Arrival) referee.Answer {
		arrived.add(a.Endpoint)
		return referee.Answer{}
	}}, p)
	begin := time.Now()
	sum := s.play(t, burst)
	took := time.Since(begin)

	report := s.referee.Report(p.Slug)
	assert.Zero(t, report.Violated, report.Violations)
	assert.Empty(t, sum.failed)
	assert.Equal(t, burst, sum.answered, "%d of them were told to come back, at first", len(sum.refused))
	if p.Throttle.Excess != provider.Reject {
		assert.Empty(t, sum.refused)
	}
	assert.Equal(t, callsOf(p), arrived.n, "each call at its own endpoint, none twice")
	assert.Equal(t, report.Arrivals, report.Answered)

	state := s.state(t)
	assert.Equal(t, []int{0, 0, 0}, []int{state.InFlight, state.Lingering, state.Queue.Length})
	assert.Equal(t, map[provider.Outcome]int64{provider.OK: report.Arrivals}, state.Outcomes)
	assert.LessOrEqual(t, took, 5*time.Second+least(t, p)*5/2, "told budgets are in whole seconds; more is a stall")
	require.NoError(t, s.gate.Shutdown(t.Context()))
}

// tally is what became of the lookups.
type tally struct {
	mu       sync.Mutex
	answered int
	refused  map[int]int // how often a lookup was told to come back, and when
	failed   []error
}

// play makes n lookups at once and waits for all of them. Who is refused because
// that is the policy comes back when he is told to.
func (s *stage) play(t *testing.T, n int) *tally {
	t.Helper()
	sum := tally{refused: map[int]int{}}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			call, q := lookupOf(s.p, i)
			if len(s.p.Slug)%2 == 0 { // of half of them each call may go with either key
				call.Key = ""
			}
			for {
				res, err := s.gate.Execute(t.Context(), call, q)
				at, again := sum.count(s.p, i, res, err)
				if !again {
					return
				}
				time.Sleep(time.Until(at))
			}
		})
	}
	wg.Wait()
	return &sum
}

// count tells whether, and when, to come back.
func (sum *tally) count(p provider.Provider, i int, res provider.Result, err error) (at time.Time, again bool) {
	sum.mu.Lock()
	defer sum.mu.Unlock()
	var e *coordinator.Error
	switch {
	case err == nil && res.Provider == p.Slug && !res.Empty:
		sum.answered++
	case err == nil:
		sum.failed = append(sum.failed, fmt.Errorf("a result of provider %q, empty: %t", res.Provider, res.Empty))
	case p.Throttle.Excess == provider.Reject && errors.As(err, &e) && e.Reason == coordinator.ReasonRateLimited && e.Attempts == 0 && e.RetryAt.After(time.Now()):
		sum.refused[i]++
		return e.RetryAt, true
	default:
		sum.failed = append(sum.failed, err)
	}
	return time.Time{}, false
}

// callsOf is how many calls the lookups make at each endpoint.
func callsOf(p provider.Provider) map[string]int {
	all := map[string]int{}
	for i := range burst {
		e := p.Endpoints[i%len(p.Endpoints)]
		all[e.Name] += pagesOf(e)
	}
	return all
}

func pagesOf(e provider.Endpoint) int {
	if e.Paging == nil {
		return 1
	}
	return min(e.Paging.WithDefaults().Max, pages)
}

// least is how long the lookups take at least, one limit after the other: what two
// limits allow together is not always what the slower of them does.
func least(t *testing.T, p provider.Provider) (sum time.Duration) {
	t.Helper()
	limits, err := p.Throttle.Expand()
	require.NoError(t, err)
	for _, l := range limits {
		sum += leastBy(p, l)
	}
	return sum
}

// leastBy is how long they take by one limit.
func leastBy(p provider.Provider, l provider.Limit) time.Duration {
	l = l.WithDefaults()
	units := map[[2]string]int64{}
	for i := range burst {
		call, _ := lookupOf(p, i)
		e := p.Endpoints[i%len(p.Endpoints)]
		if len(l.Endpoints) > 0 && !slices.Contains(l.Endpoints, e.Name) {
			continue
		}
		cost, named := e.Cost[l.Unit]
		if !named && l.Unit == provider.Requests {
			cost = 1
		}
		var who [2]string
		if strings.Contains(l.Scope, provider.ScopeKey) {
			who[0] = call.Key
		}
		if strings.Contains(l.Scope, provider.ScopeEndpoint) {
			who[1] = e.Name
		}
		units[who] += cost * int64(pagesOf(e))
	}
	if len(units) == 0 {
		return 0
	}
	most := slices.Max(slices.Collect(maps.Values(units)))
	if l.Algorithm == provider.InFlight {
		return time.Duration(most) * (network.Min + network.Max) / time.Duration(l.Max)
	}
	w, _ := l.Per.Duration()
	return time.Duration((most-1)/l.Max) * w
}
