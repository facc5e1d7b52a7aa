package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// lookup is one job and what became of it.
type lookup struct {
	job
	provider string
	result   provider.Result
	err      *coordinator.Error // nil: it was answered
	waited   time.Duration      // for its turn
	asked    bool               // it went at least once
}

// lookupKey finds the lookup that a hook is told of in the call's context.
type lookupKey struct{}

// timing is the hook that notes how long each lookup waited. It runs on the
// goroutine of the lookup, so that nothing needs a lock.
var timing = coordinator.Trace{
	Going: func(ctx context.Context, _ coordinator.CallInfo, waited time.Duration) {
		if l, ok := ctx.Value(lookupKey{}).(*lookup); ok {
			l.waited, l.asked = waited, true
		}
	},
}

// newCoordinator makes the one coordinator of the run, on a registry of its own:
// the targets that can be asked.
func newCoordinator(targets []*target) (*coordinator.Coordinator, error) {
	r := new(registry.Registry)
	for _, t := range targets {
		if t.missing != nil {
			continue
		}
		if err := r.Register(t.adapter); err != nil {
			return nil, err
		}
	}
	return coordinator.New(coordinator.Config{Registry: r, Traces: []*coordinator.Trace{&timing}})
}

// ask does the jobs of all targets and returns when all are done, or, once ctx has
// ended, as soon as what is out has come back. Of each target no more goroutines
// run than it may have pending. done is told of each lookup, from many goroutines.
func ask(ctx context.Context, c *coordinator.Coordinator, targets []*target, done func(*target, *lookup)) {
	var all sync.WaitGroup
	for _, t := range targets {
		if t.missing != nil {
			continue
		}
		all.Go(func() {
			var pending errgroup.Group
			pending.SetLimit(t.pending)
			for _, j := range t.jobs {
				if ctx.Err() != nil {
					break
				}
				pending.Go(func() error {
					done(t, one(ctx, c, t, j))
					return nil
				})
			}
			_ = pending.Wait() // no lookup returns an error here: done has it
		})
	}
	all.Wait()
}

// one does one lookup.
func one(ctx context.Context, c *coordinator.Coordinator, t *target, j job) *lookup {
	l := &lookup{job: j, provider: t.p.Slug}
	call := coordinator.Call{Provider: t.p.Slug, Endpoint: j.endpoint, Flow: j.list}
	query := provider.Query{Kind: j.kind, Value: j.value, Endpoint: j.endpoint}
	result, err := c.Execute(context.WithValue(ctx, lookupKey{}, l), call, query)
	l.result = result
	if err != nil && !errors.As(err, &l.err) {
		// Execute promises an *Error. If it ever breaks that promise, the lookup must
		// not pass for answered.
		l.err = &coordinator.Error{Provider: t.p.Slug, Reason: coordinator.ReasonUnknown, Err: err}
	}
	return l
}

// tally counts what became of the lookups of one target.
type tally struct {
	t                           *target
	done                        int
	answered, empty, suspicious int
	refused                     map[coordinator.Reason]int
	retryAt                     map[coordinator.Reason]time.Time // the earliest told, by reason
	waits                       []time.Duration                  // of lookups that were asked, in order of their ends
	elapsed                     time.Duration                    // since the run began, at the last end
}

// failures is how many lookups were not answered.
func (t *tally) failures() int { return t.done - t.answered }

// board holds the tallies of a run. It is safe for concurrent use.
type board struct {
	begin time.Time

	mu      sync.Mutex
	tallies []*tally // by slug
}

// newBoard begins the run's clock.
func newBoard(targets []*target) *board {
	b := &board{begin: time.Now()}
	for _, t := range targets {
		b.tallies = append(b.tallies, &tally{
			t: t, refused: make(map[coordinator.Reason]int), retryAt: make(map[coordinator.Reason]time.Time),
		})
	}
	slices.SortFunc(b.tallies, func(x, y *tally) int {
		if x.t.p.Slug < y.t.p.Slug {
			return -1
		}
		return 1
	})
	return b
}

// done takes in one lookup.
func (b *board) done(t *target, l *lookup) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.tallies {
		if x.t == t {
			x.add(l, time.Since(b.begin))
		}
	}
}

func (t *tally) add(l *lookup, elapsed time.Duration) {
	t.done++
	t.elapsed = elapsed
	if l.asked {
		t.waits = append(t.waits, l.waited)
	}
	if l.err != nil {
		t.refused[l.err.Reason]++
		at, known := t.retryAt[l.err.Reason]
		if !l.err.RetryAt.IsZero() && (!known || l.err.RetryAt.Before(at)) {
			t.retryAt[l.err.Reason] = l.err.RetryAt
		}
		return
	}
	t.answered++
	if l.result.Empty {
		t.empty++
	}
	if l.result.Suspicious {
		t.suspicious++
	}
}

// counts is a glance at one target while the run goes on.
type counts struct {
	slug                  string
	total, done, failures int
}

func (b *board) counts() []counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []counts
	for _, x := range b.tallies {
		if x.t.missing == nil {
			all = append(all, counts{x.t.p.Slug, len(x.t.jobs), x.done, x.failures()})
		}
	}
	return all
}
