package catalog_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

// refusing are the outcomes as which a refusal may be read.
var refusing = []provider.Outcome{provider.RateLimited, provider.QuotaSpent, provider.Banned, provider.Overloaded}

// The judge judges: a caller who believes in twice as much as a provider allows,
// and is deaf to its budgets, is caught, whatever the algorithm. He reads every
// refusal as one.
func TestWhoBelievesInTwiceTheLimitIsCaught(t *testing.T) {
	played := map[provider.Algorithm]int{}
	for _, p := range files(t) {
		i, longest := 0, time.Duration(0)
		for j, l := range p.Throttle.Limits { // the one that binds
			if d := leastBy(p, l); d > longest {
				i, longest = j, d
			}
		}
		if longest == 0 {
			continue
		}
		algorithm := p.Throttle.Limits[i].WithDefaults().Algorithm
		if played[algorithm]++; played[algorithm] > 2 {
			continue
		}
		t.Run(fmt.Sprint(algorithm, " ", p.Slug), func(t *testing.T) {
			told := p.Clone()
			told.Dialect.Budgets, told.Dialect.Only = nil, true
			told.Throttle.Limits[i].Max *= 2
			if told.Throttle.Limits[i].Burst > 0 {
				told.Throttle.Limits[i].Burst *= 2
			}
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, referee.Play{Provider: p, Speak: true}, told)
				s.play(t, burst)
				report := s.referee.Report(p.Slug)
				require.Positive(t, report.Violated)
				assert.Equal(t, p.Throttle.Limits[i].Name, report.Violations[0].Limit)
				var read int64
				for _, o := range refusing {
					read += s.state(t).Outcomes[o]
				}
				assert.Equal(t, report.Refused, read)
				require.NoError(t, s.gate.Shutdown(t.Context()))
			})
		})
	}
	assert.GreaterOrEqual(t, len(played), 3, "algorithms: %v", played)
}

// Under reject nobody waits: who cannot go at once is told when he could, comes
// back then, and is answered in the end.
func TestWhoIsRejectedIsToldWhenToComeBack(t *testing.T) {
	for _, slug := range []string{"crt-sh", "ip-api", "shodan", "urlscan", "virustotal"} {
		t.Run(slug, func(t *testing.T) {
			p := fileOf(t, slug)
			p.Throttle.Excess = provider.Reject
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, referee.Play{Provider: p, Speak: true}, p)
				const few = 60 // all who are told one instant come back at it, and all but one are told another
				sum := s.play(t, few)
				report := s.referee.Report(slug)
				assert.Zero(t, report.Violated, report.Violations)
				assert.Empty(t, sum.failed)
				assert.Equal(t, few, sum.answered)
				assert.NotEmpty(t, sum.refused)
				assert.EqualValues(t, few, report.Arrivals, "a refusal of ours sends nothing")
				require.NoError(t, s.gate.Shutdown(t.Context()))
			})
		})
	}
}

// Each refusal of each limit in the provider's own dialect: read as a refusal, and
// with a wait that is long enough and not much longer.
func TestEachRefusalIsReadAsItIsMeant(t *testing.T) {
	for _, p := range files(t) {
		t.Run(p.Slug, func(t *testing.T) {
			t.Parallel()
			for _, l := range p.Throttle.Limits {
				synctest.Test(t, func(t *testing.T) { refusedBy(t, p, l.WithDefaults()) })
			}
		})
	}
}

// refusedBy breaks one limit, several times: a dialect may have several words for
// that.
func refusedBy(t *testing.T, p provider.Provider, l provider.Limit) {
	t.Helper()
	q, cost := spender(p, l)
	tight := p.Clone().Throttle.Limits // l admits one call, and nothing else is in the way
	for i := range tight {
		x := &tight[i]
		x.Max, x.Burst, x.Charges = 1<<40, 0, nil
		if x.Name == l.Name {
			x.Max = cost
		}
	}
	s := newStage(t, referee.Play{Provider: p, Limits: tight, Speak: true, Answer: func(a referee.Arrival) referee.Answer {
		if l.Algorithm == provider.InFlight {
			return referee.Answer{Delay: time.Minute} // the house is full so long
		}
		return referee.Answer{}
	}}, p)
	var wg sync.WaitGroup
	defer wg.Wait()
	first := func() {
		_, err := s.adapter.Lookup(t.Context(), q)
		assert.NoError(t, err, "%s: %s", p.Slug, l.Name)
	}
	if l.Algorithm == provider.InFlight {
		wg.Go(first)
		time.Sleep(time.Second)
	} else {
		first()
	}
	w, _ := l.Per.Duration()
	for range 4 {
		_, err := s.adapter.Lookup(t.Context(), q)
		f, ok := provider.FeedbackOf(err)
		require.True(t, ok, "%s: %s: %v", p.Slug, l.Name, err)
		assert.Contains(t, refusing, f.Outcome, "%s: %s: %v", p.Slug, l.Name, err)
		if l.Algorithm == provider.InFlight {
			continue // when a place is free nobody knows
		}
		assert.Positive(t, f.RetryAfter, "%s: %s: %v", p.Slug, l.Name, err)
		assert.LessOrEqual(t, f.RetryAfter, w+time.Minute, "%s: %s", p.Slug, l.Name)
		for _, b := range f.Budgets {
			if b.Name == l.Name {
				assert.Zero(t, b.Remaining, "%s: %s", p.Slug, l.Name)
				assert.LessOrEqual(t, b.Reset, w+time.Minute, "%s: %s", p.Slug, l.Name)
			}
		}
		time.Sleep(f.RetryAfter)
		_, err = s.adapter.Lookup(t.Context(), q)
		require.NoError(t, err, "%s: %s: it was told to come back now", p.Slug, l.Name)
	}
}

// spender is a lookup that spends l, and how much of it.
func spender(p provider.Provider, l provider.Limit) (provider.Query, int64) {
	for i := range p.Endpoints {
		e := p.Endpoints[i]
		cost, named := e.Cost[l.Unit]
		if !named && l.Unit == provider.Requests {
			cost = 1
		}
		if cost > 0 && (len(l.Endpoints) == 0 || slices.Contains(l.Endpoints, e.Name)) {
			_, q := lookupOf(p, i)
			return q, cost
		}
	}
	return provider.Query{}, 0
}
