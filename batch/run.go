package batch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/headgate/headgate/coordinator"
)

// maxUnread is how many results may wait for the loop while jobs are started.
const maxUnread = 64

// errLeft is why nothing is started any more when the loop has ended.
var errLeft = errors.New("batch: the loop over the results was left")

// run is one run. Foreign functions (the coordinator, jobs, the journal) are
// called without mu.
type run struct {
	c       *coordinator.Coordinator
	opt     Options
	ctx     context.Context // of the jobs: ends with the caller's, or with the loop
	cancel  context.CancelFunc
	unwatch func() bool    // of the caller's context
	busy    sync.WaitGroup // the sequence and the jobs that are started
	news    chan struct{}  // tells the loop that there may be something to take
	room    chan struct{}  // tells the sequence that the line which it waits for may have room

	mu     sync.Mutex
	lines  map[string]*line // by provider
	unread list             // have a result
	seq    uint64
	live   int   // jobs that were pulled and have no result
	pulled bool  // the sequence has ended
	wants  *line // the sequence waits for it
	held   bool  // jobs were not started because the loop is slow
	over   error // why nothing is started any more; nil: jobs are
	fault  *fault
	sees   bool               // the hooks of Trace are told of jobs
	blind  bool               // they are not
	inside map[*item]struct{} // started, and not known to have gone; only with a journal
}

func begin(ctx context.Context, c *coordinator.Coordinator, jobs iter.Seq[Job], opt Options) *run {
	r := &run{c: c, opt: opt, news: make(chan struct{}, 1), room: make(chan struct{}, 1),
		lines: make(map[string]*line), inside: make(map[*item]struct{})}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.unwatch = context.AfterFunc(ctx, func() { r.stop(ctx.Err()) })
	if err := ctx.Err(); err != nil {
		r.stop(err) // before the sequence is asked for anything
	}
	opt.Progress.follow(r)
	r.busy.Go(func() { r.pull(jobs) })
	return r
}

// next waits for a result; nil: there are no more.
func (r *run) next() *item {
	for {
		r.mu.Lock()
		var it *item
		ended := r.fault != nil
		if !ended {
			it = r.unread.pop()
			ended = it == nil && r.pulled && r.live == 0
		}
		if it != nil {
			r.taken(it)
		}
		r.mu.Unlock()
		if it != nil || ended {
			return it
		}
		<-r.news
	}
}

// taken counts a result that the loop takes, and goes on with what waited for that.
func (r *run) taken(it *item) {
	l := it.track.line
	l.tally.Unread--
	l.tally.count(it.result.Err)
	l.pulled--
	if r.wants == l {
		tell(r.room)
	}
	if r.held && r.unread.n <= maxUnread/2 {
		r.held = false
		for _, l := range r.lines {
			r.pump(l)
		}
	}
}

// note tells the journal of a result that the loop has seen.
func (r *run) note(it *item) {
	j, err := r.opt.Journal, error(nil)
	switch {
	case j == nil || it.job.Key == "":
		return
	case it.result.Err == nil:
		err = j.Finished(it.job.Key)
	case it.began && !it.unheard:
		err = j.Failed(it.job.Key)
	}
	if err != nil {
		r.stop(journalError(err))
	}
}

func journalError(err error) error { return fmt.Errorf("batch: journal: %w", err) }

// stop ends pulling and starting. Jobs that wait in their lines come out with the
// reason. Those in the coordinator's hands end with their context, or by themselves
// where it was the journal that failed: quota was spent on what is out, but what is
// not to go yet is called back.
func (r *run) stop(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopLocked(why)
}

func (r *run) stopLocked(why error) {
	if r.over != nil {
		return
	}
	r.over = why
	for _, l := range r.lines {
		for _, t := range l.tracks {
			r.clear(t)
		}
	}
	if r.ctx.Err() == nil {
		for it := range r.inside {
			it.called = true
			it.cancel()
		}
	}
	tell(r.room)
	tell(r.news)
}

// clear has the jobs of a track come out unsent.
func (r *run) clear(t *track) {
	if t.timer != nil {
		t.timer.Stop()
	}
	for it := t.jobs.pop(); it != nil; it = t.jobs.pop() {
		t.line.tally.Waiting--
		r.deliver(it, it.unsent(r.over))
	}
}

// deliver gives a job its result.
func (r *run) deliver(it *item, err error) {
	it.result.Err = err
	it.result.Waited = it.waited()
	it.track.line.tally.Unread++
	it.track.forget()
	r.live--
	r.unread.push(it)
	tell(r.news)
}

// end ends the run and waits until nothing of it runs any more.
func (r *run) end() {
	r.stop(errLeft)
	r.cancel()
	r.busy.Wait()
	r.unwatch()
	r.mu.Lock()
	defer r.mu.Unlock()
	for it := r.unread.pop(); it != nil; it = r.unread.pop() {
		it.track.line.tally.Unread--
		it.track.line.tally.Dropped++
	}
}

// tell leaves a message that there is news; one is enough.
func tell(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// expired tells that an instant lies after the run's bounds.
func (r *run) expired(at time.Time) bool {
	if until := r.opt.Until; !until.IsZero() && at.After(until) {
		return true
	}
	d, ok := r.ctx.Deadline()
	return ok && at.After(d)
}
