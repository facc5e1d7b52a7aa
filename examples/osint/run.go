package main

import (
	"cmp"
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
	broken   bool               // the run ended first

	placed chan struct{} // closed when it has its place in the order
	once   sync.Once
}

func (l *lookup) hasPlace() { l.once.Do(func() { close(l.placed) }) }

// lookupKey finds the lookup that a hook is told of in the call's context.
type lookupKey struct{}

// hooks notes how long each lookup waits, and when it has its place. Hooks run on
// the goroutine of the lookup, so that its fields need no lock.
var hooks = coordinator.Trace{
	Waiting: func(ctx context.Context, _ coordinator.CallInfo, _ coordinator.QueueState) {
		if l, ok := ctx.Value(lookupKey{}).(*lookup); ok {
			l.hasPlace()
		}
	},
	Going: func(ctx context.Context, _ coordinator.CallInfo, waited time.Duration) {
		if l, ok := ctx.Value(lookupKey{}).(*lookup); ok {
			l.waited, l.asked = waited, true
			l.hasPlace()
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
	return coordinator.New(coordinator.Config{Registry: r, Traces: []*coordinator.Trace{&hooks}})
}

// ask does the jobs of all targets and returns when all are done, or, once ctx has
// ended, as soon as what is out has come back. Of each target no more goroutines
// run than it may have pending, and they get their places in the order of the
// list. done is told of each lookup, from many goroutines.
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
				l := &lookup{job: j, provider: t.p.Slug, placed: make(chan struct{})}
				if ctx.Err() != nil {
					break
				}
				pending.Go(func() error {
					l.run(ctx, c)
					done(t, l)
					return nil
				})
				<-l.placed
			}
			_ = pending.Wait() // no lookup returns an error here: done has it
		})
	}
	all.Wait()
}

// run does the lookup.
func (l *lookup) run(ctx context.Context, c *coordinator.Coordinator) {
	defer l.hasPlace() // or it was refused as it came
	call := coordinator.Call{Provider: l.provider, Endpoint: l.endpoint, Flow: l.list}
	query := provider.Query{Kind: l.kind, Value: l.value, Endpoint: l.endpoint}
	result, err := c.Execute(context.WithValue(ctx, lookupKey{}, l), call, query)
	l.result = result
	if err != nil && !errors.As(err, &l.err) {
		// Execute promises an *Error. If it ever breaks that promise, the lookup must
		// not pass for answered.
		l.err = &coordinator.Error{Provider: l.provider, Reason: coordinator.ReasonUnknown, Err: err}
	}
	l.broken = err != nil && ctx.Err() != nil && l.err.Reason == coordinator.ReasonCanceled
}

// tally counts what became of the lookups of one target.
type tally struct {
	t                           *target
	answered, empty, suspicious int // the last two are part of the first
	failed                      int // refused, or gone and not answered
	refused                     map[coordinator.Reason]int
	retryAt                     map[coordinator.Reason]time.Time // the earliest told, by reason
	waits                       []time.Duration                  // of lookups that were asked, in order of their ends
	elapsed                     time.Duration                    // since the run began, at the last end
}

func (t *tally) done() int { return t.answered + t.failed }

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
	slices.SortFunc(b.tallies, func(x, y *tally) int { return cmp.Compare(x.t.p.Slug, y.t.p.Slug) })
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
	if l.broken {
		return // neither done nor failed
	}
	t.elapsed = elapsed
	if l.asked {
		t.waits = append(t.waits, l.waited)
	}
	if l.err != nil {
		t.failed++
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
