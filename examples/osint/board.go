package main

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate/coordinator"
)

// tally counts what became of the lookups of one target.
type tally struct {
	t                           *target
	answered, empty, suspicious int // the last two are part of the first
	cached                      int // likewise: answered before this run
	before                      int // done in the run that this one goes on with: not asked, not written
	failed                      int // refused, or gone and not answered
	notAsked                    int // by -max-calls
	refused                     map[coordinator.Reason]int
	retryAt                     map[coordinator.Reason]time.Time // the earliest told, by reason
	waits                       []time.Duration                  // of lookups that were asked, in order of their ends
	elapsed                     time.Duration                    // since the run began, at the last end
}

func (t *tally) done() int { return t.answered + t.before + t.failed + t.notAsked }

// asked is how many lookups were left to the provider.
func (t *tally) asked() int { return t.done() - t.before - t.cached - t.notAsked }

// board holds the tallies of a run. It is safe for concurrent use.
type board struct {
	begin time.Time

	mu      sync.Mutex
	tallies []*tally // by slug
	of      map[*target]*tally
}

// newBoard begins the run's clock.
func newBoard(targets []*target) *board {
	b := &board{begin: time.Now(), of: make(map[*target]*tally)}
	for _, t := range targets {
		x := &tally{t: t, refused: make(map[coordinator.Reason]int), retryAt: make(map[coordinator.Reason]time.Time)}
		b.of[t] = x
		b.tallies = append(b.tallies, x)
	}
	slices.SortFunc(b.tallies, func(x, y *tally) int { return cmp.Compare(x.t.p.Slug, y.t.p.Slug) })
	return b
}

// done takes in one lookup.
func (b *board) done(t *target, l *lookup) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of[t].add(l, time.Since(b.begin))
}

// before takes in one that an earlier run has done.
func (b *board) before(t *target) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of[t].before++
}

func (t *tally) add(l *lookup, elapsed time.Duration) {
	if l.broken {
		return // neither done nor failed
	}
	t.elapsed = elapsed
	if l.attempts > 0 {
		t.waits = append(t.waits, l.waited)
	}
	switch {
	case l.err == nil:
		t.answer(l)
	case l.err.Reason == reasonMaxCalls:
		t.notAsked++
	default:
		t.failed++
		t.refused[l.err.Reason]++
		at, known := t.retryAt[l.err.Reason]
		if !l.err.RetryAt.IsZero() && (!known || l.err.RetryAt.Before(at)) {
			t.retryAt[l.err.Reason] = l.err.RetryAt
		}
	}
}

func (t *tally) answer(l *lookup) {
	t.answered++
	if l.cached {
		t.cached++
	}
	if l.result.Empty {
		t.empty++
	}
	if l.result.Suspicious {
		t.suspicious++
	}
}

// counts is a glance at one target while the run goes on.
type counts struct {
	slug                string
	total, done, failed int
	left                time.Duration // a lower bound
}

func (b *board) counts() []counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	elapsed := time.Since(b.begin)
	var all []counts
	for _, x := range b.tallies {
		if x.t.missing == nil {
			all = append(all, counts{x.t.p.Slug, len(x.t.jobs), x.done(), x.failed, x.t.left(x.done(), elapsed)})
		}
	}
	return all
}
