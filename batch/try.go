package batch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// try is the goroutine of a job that was started: until its result, or the refusal
// with which it goes back to its line.
func (r *run) try(it *item) {
	returned := false
	defer func() {
		if !returned {
			r.failed(recover())
		}
	}()
	res, err := r.ask(it)
	returned = true
	r.came(it, res, err)
}

// ask is one try.
func (r *run) ask(it *item) (provider.Result, error) {
	job := &it.job
	it.asked, it.before = false, it.result.Attempts
	if (job.Query == nil) == (job.Do == nil) {
		return provider.Result{}, fmt.Errorf("batch: job %q: give it either a Query or a function Do", job.Key)
	}
	if r.expired(time.Now()) {
		return provider.Result{}, it.unsent(context.DeadlineExceeded)
	}
	ctx, done := r.watched(it)
	defer done()
	call := job.Call
	call.Wait = r.longest(call.Wait)
	if job.Do != nil {
		return provider.Result{}, r.c.Do(ctx, call, func(ctx context.Context) error { return r.do(ctx, it) })
	}
	if !r.mayAsk(it) {
		return provider.Result{}, it.broken
	}
	it.asked = true
	return r.c.Execute(ctx, call, it.query())
}

// watched is the context of a try. With a journal each has an end of its own: if
// the journal fails, who waits is called back, who is out is not.
func (r *run) watched(it *item) (context.Context, func()) {
	ctx, done := r.ctx, func() {}
	if r.opt.Journal != nil {
		ctx, done = context.WithCancel(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	it.depth, it.handed = 0, time.Since(it.since)
	if r.opt.Journal != nil {
		it.cancel = done
		r.inside[it] = struct{}{}
		if r.over != nil {
			done()
		}
	}
	return itemContext{ctx, it}, done
}

// longest is the Wait of a call. Where the job names none it is the run's bound
// that counts, not the provider's max_wait: a place in the queue is kept.
func (r *run) longest(wait time.Duration) time.Duration {
	if wait == 0 {
		wait = provider.Forever
	}
	if until := r.opt.Until; !until.IsZero() && wait > 0 {
		wait = min(wait, max(time.Until(until), 1)) // 0 would be the provider's own
	}
	return wait
}

// do is the function of a job, as the coordinator calls it.
func (r *run) do(ctx context.Context, it *item) error {
	start := time.Now()
	if !r.goes(it) {
		if ls, ok := coordinator.LeaseFrom(ctx); ok {
			ls.Forget()
		}
		return provider.Feedback{Outcome: provider.Canceled}.Err(it.broken)
	}
	defer func() {
		took := time.Since(start)
		r.mu.Lock()
		it.out += took
		r.mu.Unlock()
	}()
	return it.job.Do(ctx)
}

// goes notes that an attempt is about to be sent; false: it must not be.
func (r *run) goes(it *item) bool {
	if !r.tells(it) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	it.went()
	it.result.Attempts++
	r.pump(it.track.line)
	return true
}

// mayAsk tells the journal of a query that perhaps nobody will see go.
func (r *run) mayAsk(it *item) bool {
	r.mu.Lock()
	sees := r.sees
	r.mu.Unlock()
	return sees || r.tells(it)
}

// tells tells the journal, once, that a job begins. A turn that came as the run
// ended is not taken: contexts end one after the other, and who was out makes room
// for who has not heard yet.
func (r *run) tells(it *item) bool {
	if err := r.ctx.Err(); err != nil {
		it.broken = it.unsent(err)
		return false
	}
	if it.began || r.opt.Journal == nil || it.job.Key == "" {
		return true
	}
	if err := r.opt.Journal.Began(it.job.Key); err != nil {
		it.broken = journalError(err)
		r.stop(it.broken)
		return false
	}
	it.began = true
	return true
}

// came takes in how a try ended.
func (r *run) came(it *item, res provider.Result, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	it.left()
	t, l := it.track, it.track.line
	l.tally.Out--
	it.keep(res, err)
	if it.asked && !it.hooked {
		r.unseen(it, err)
	}
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	it.unheard = ended && it.result.Attempts > it.before
	switch {
	case it.broken != nil:
		err = it.broken
	case it.called && err != nil && attempts(err) == 0:
		err = it.unsent(r.over)
	}
	defer r.pump(l)
	t.out--
	if refusal := curable(err); refusal != nil && r.over == nil {
		now := time.Now()
		if at := t.refused(refusal.RetryAt, now); !r.expired(at) {
			it.told = refusal
			t.back(it, at, now)
			return
		}
	}
	l.enlist(t)
	r.deliver(it, err)
}

// unseen counts the attempts of a query of which the hooks told nothing, and
// notices that they are not there.
func (r *run) unseen(it *item, err error) {
	n := attempts(err)
	it.result.Attempts += n
	if n > 0 {
		r.blind = true
		it.track.refusals = 0
	}
}

// attempts is how often a call asked, at least, by how it ended.
func attempts(err error) int {
	var e *coordinator.Error
	switch {
	case err == nil:
		return 1
	case errors.As(err, &e):
		return e.Attempts
	}
	return 0
}
