package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/headgate/headgate/batch"
	"github.com/headgate/headgate/batch/journal"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/ledger"
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
	attempts int                // 0: it was never sent
	cached   bool
	broken   bool // the run ended first
}

// newCoordinator makes the one coordinator of the run, on a registry of its own:
// the targets that can be asked, atOnce calls (0: any number) at a time, and the ledger
// (nil: none). What the user's file changes is an override, so that the state tells where
// each number comes from.
func newCoordinator(targets []*target, atOnce int, l *ledger.Client, more ...*coordinator.Trace) (*coordinator.Coordinator, error) {
	r := new(registry.Registry)
	over := make(map[string]provider.Throttle)
	for _, t := range targets {
		if t.missing != nil {
			continue
		}
		if err := r.Register(t.adapter); err != nil {
			return nil, err
		}
		if t.overridden {
			over[t.p.Slug] = t.p.Throttle
		}
	}
	cfg := coordinator.Config{Registry: r, Overrides: over, Traces: append(more, batch.Trace())}
	if l != nil {
		cfg.Ledger = l
	}
	if atOnce > 0 {
		cfg.Pools = map[string]int{"": atOnce}
	}
	return coordinator.New(cfg)
}

// asking is a run: the targets, and where their answers go.
type asking struct {
	c       *coordinator.Coordinator
	targets []*target
	board   *board
	out     *results
	store   *store
	journal *journal.Journal      // nil: none
	until   time.Time             // the last instant at which a call may go
	end     func(cause error)     // ends the run
	before  map[string][]standing // what earlier runs have spent, by provider
	pending map[string]pending    // by key

	mu sync.Mutex // guards pending
}

// pending is a job that was handed over.
type pending struct {
	t *target
	j job
}

// ask does the jobs of all targets and returns when all are done, or, once ctx has
// ended, as soon as what is out has come back. Each target has a batch of its own,
// so that none waits for another.
func (a *asking) ask(ctx context.Context) {
	a.pending = make(map[string]pending)
	var all sync.WaitGroup
	for _, t := range a.targets {
		if t.missing != nil {
			continue
		}
		opt := batch.Options{Until: a.until}
		if a.journal != nil {
			opt.Journal = notes{a}
		}
		if t.paged() {
			// One after the other: else the first pages of many lookups take the quota
			// that the further pages of a few would need, and none has an answer.
			opt.Ahead = 1
		}
		all.Go(func() {
			for job, res := range batch.Run(ctx, a.c, a.jobs(ctx, t), opt) {
				a.came(ctx, job, res)
			}
		})
	}
	all.Wait()
}

// jobs is the sequence of what is left to ask a target. What is done, kept or not
// to be asked is dealt with on the way.
func (a *asking) jobs(ctx context.Context, t *target) iter.Seq[batch.Job] {
	return func(yield func(batch.Job) bool) {
		for _, j := range t.jobs {
			if ctx.Err() != nil {
				return
			}
			key := j.key(t.p.Slug)
			if a.journal != nil && a.journal.Done(key) {
				a.board.before(t)
				continue
			}
			if kept, ok := a.store.get(t, &j); ok {
				a.deliver(t, &lookup{job: j, provider: t.p.Slug, result: kept, cached: true})
				a.finished(ctx, key)
				continue
			}
			if !t.budget.reserve() {
				a.deliver(t, t.unasked(j))
				continue
			}
			a.mu.Lock()
			a.pending[key] = pending{t, j}
			a.mu.Unlock()
			ask := batch.Job{
				Key:   key,
				Call:  coordinator.Call{Provider: t.p.Slug, Endpoint: j.endpoint, Flow: j.lists[0]},
				Query: &provider.Query{Kind: j.kind, Value: j.value, Endpoint: j.endpoint},
			}
			if !yield(ask) {
				return
			}
		}
	}
}

// came takes in what became of a job that was handed over. When it returns, the
// answer is where it belongs: only then is it noted as done.
func (a *asking) came(ctx context.Context, job batch.Job, res batch.Result) {
	a.mu.Lock()
	p := a.pending[job.Key]
	delete(a.pending, job.Key)
	a.mu.Unlock()
	l := &lookup{job: p.j, provider: p.t.p.Slug, result: res.Result, waited: res.Waited, attempts: res.Attempts}
	if res.Err != nil {
		l.fail(res.Err)
		l.broken = ctx.Err() != nil && l.err.Reason == coordinator.ReasonCanceled
	}
	a.store.put(p.t, l)
	a.deliver(p.t, l)
}

// fail notes why there is no answer.
func (l *lookup) fail(err error) {
	switch {
	case errors.Is(err, errMaxCalls):
		l.err = &coordinator.Error{Provider: l.provider, Reason: reasonMaxCalls, Stage: coordinator.StageEntry, Err: errMaxCalls}
		if l.attempts--; l.attempts > 0 { // the last was none
			l.err.Stage, l.err.Attempts = coordinator.StageRetry, l.attempts
		}
	case !errors.As(err, &l.err):
		// A batch promises an *Error, unless its journal fails. It must not pass for
		// answered.
		l.err = &coordinator.Error{Provider: l.provider, Reason: coordinator.ReasonUnknown, Err: err}
	}
}

// deliver counts a lookup and writes it.
func (a *asking) deliver(t *target, l *lookup) {
	a.board.done(t, l)
	if err := a.out.write(l); err != nil {
		a.end(fmt.Errorf("the results cannot be written: %w", err)) // no quota is spent on what is lost
	}
}

// finished notes that a job is done without the batch, unless its answer was lost.
func (a *asking) finished(ctx context.Context, key string) {
	if a.journal != nil && ctx.Err() == nil {
		_ = notes{a}.Finished(key) // it ends the run by itself
	}
}

// notes is the journal as a batch sees it: one that cannot be written ends the run,
// and what the results could not take is not done.
type notes struct{ a *asking }

var _ batch.Journal = notes{}

// Done tells that the job was finished.
func (n notes) Done(key string) bool { return n.a.journal.Done(key) }

// Began notes that a job is about to be sent.
func (n notes) Began(key string) error { return n.check(n.a.journal.Began(key)) }

// Failed notes that a job is not done and not in flight.
func (n notes) Failed(key string) error { return n.check(n.a.journal.Failed(key)) }

// Finished notes that a job is done.
func (n notes) Finished(key string) error {
	if err := n.a.out.failed(); err != nil {
		return err
	}
	return n.check(n.a.journal.Finished(key))
}

func (n notes) check(err error) error {
	if err != nil {
		n.a.end(fmt.Errorf("the resume file cannot be written: %w", err))
	}
	return err
}
