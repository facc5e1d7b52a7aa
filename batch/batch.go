// Package batch does bursts of any size over a Coordinator: a sequence of jobs
// goes in, results come out as they come, and memory stays bounded however long
// the sequence is.
//
// The coordinator decides when a call goes. The batch decides how many jobs are
// pulled ahead of that, and has patience: a job that meets a refusal which waiting
// would cure goes back to its provider's line and is tried again at the instant
// that the refusal names.
//
// Not in it: limits, order and retries (package coordinator), a file that survives
// a crash (package batch/journal), where results go (the loop over Run).
package batch

import (
	"context"
	"iter"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// Job is one thing to do: a Query, which Coordinator.Execute answers, or a
// function, which Coordinator.Do calls. A job with neither, or both, comes out with
// an error and costs nothing.
type Job struct {
	// Key names the job in Options.Done and Options.Journal. "" is asked of nobody,
	// told to nobody and never skipped. A run does not look for keys that come
	// twice: those of a million jobs are not kept. The second is skipped where Done
	// or the journal knows by then that the first is done, else both are done.
	Key string
	// Call is what the coordinator is asked for. Its Wait bounds one try, not the
	// job: 0 means as long as Options.Until and the context allow, below 0 that the
	// job waits here for the instant at which it can go at once, and takes no place
	// in the coordinator's queue.
	Call coordinator.Call
	// Query is not changed.
	Query *provider.Query
	// Do is called as in Coordinator.Do: again where its outcome may be retried, or
	// is one that waiting would cure.
	Do func(context.Context) error
}

// Options are the bounds and the bookkeeping of a Run. The zero value works.
type Options struct {
	// Until is the last instant at which a job may go. A job whose turn would come
	// later comes out refused as soon as that is known; one that is out then may
	// end. Zero: only the context's deadline bounds the run. A provider that refuses
	// for good, such as one that bans at each try, is then asked for good.
	Until time.Time
	// Done tells that a job was done before: it is skipped. It runs on the
	// sequence's goroutine. nil: none was.
	Done func(key string) bool
	// Ahead is how many jobs of one provider are pulled before their results are
	// taken, the one that the sequence has in hand among them. Default and maximum: the
	// provider's max_queue, as in force when the run meets it first; at least 2.
	Ahead int
	// Journal is asked what was done and told what is; see Journal. nil: none.
	Journal Journal
	// Progress counts what the run does, by provider. nil: nobody looks.
	Progress *Progress
}

// Journal remembers jobs by their keys, so that the next run does not do again what
// this one did; package batch/journal has one in a file. Its methods are called
// from many goroutines. An error of any of them ends the run before more is sent:
// what is out comes back and comes out, the other jobs that were pulled come out
// with that error.
type Journal interface {
	// Done tells that the job was finished.
	Done(key string) bool
	// Began: the job is about to be sent for the first time in this run. If it
	// returns an error nothing is sent.
	Began(key string) error
	// Finished: the job was done, and the loop has come back for the next result.
	// One that the loop is left with is not finished: the next run does it again.
	Finished(key string) error
	// Failed: a job that had begun came out with an error. It is not told of a job
	// that ended without an answer: that may have arrived.
	Failed(key string) error
}

// Result is what became of a job.
type Result struct {
	// Result is the answer to a Query. With an Err it is what was told before, page
	// by page, if anything was: its Next says where to go on.
	Result provider.Result
	// Err is nil where the job was done; else the coordinator's error, or that of the
	// journal, or what is wrong with the job. For one that was never sent because
	// Until or the context came first it wraps a coordinator.Error, too, which says
	// so and, where it is known, when the job could have gone.
	Err error
	// Attempts is how often the provider was asked; each page counts. Without Trace
	// it is of a Query what is known: at least so often.
	Attempts int
	// Waited is how long the job waited since it was pulled: in its line, for its
	// turn, for a retry; not the time in which it was out. Without Trace it is of a
	// Query the time in its line only.
	Waited time.Duration
}

// Run does the jobs and gives their results as they come. Ranging over what it
// returns begins a run; ranging again begins another.
//
// Order. Jobs of one provider with the same endpoint, key, flow and priority go
// first in, first out; between those the coordinator decides, as among all of its
// calls. One that comes back from a refusal goes before those behind it, and these
// wait for it.
//
// Patience. What coordinator.ErrThrottled matches (a limit, a spent quota, a ban,
// a full queue, an open breaker) is waited for: the job comes out refused only
// where Options.Until or the context's deadline lies before its time. Every other
// error comes out at once.
//
// Memory. At most Options.Ahead jobs of each provider are pulled and not yet given
// to the loop, which bounds goroutines, too; few of them hold a place in the
// coordinator's queue, so that other callers find one. No job is started while 64
// results wait for the loop. A sequence has one order: where its next job is for a
// provider that has so many, that one job waits, and all behind it. So interleave
// providers, or run a batch for each.
//
// End. When ctx ends nothing more is pulled or started; what is out is waited for
// and comes out as it ended, and each job that was pulled and never sent comes out
// with an error: every job that was pulled comes out once. Leaving the loop cancels
// what is out and waits for it; nothing more comes out. That the coordinator was shut
// down is noticed by a job's next try: end the run's context first.
//
// jobs runs on a goroutine of its own and is waited for: one that blocks must end
// with a context, and leaving the loop waits until it does. A panic in it, in a job
// or in what Options holds ends the run like leaving the loop, and goes on on the
// goroutine of the loop, as a *PanicError; so does runtime.Goexit.
func Run(ctx context.Context, c *coordinator.Coordinator, jobs iter.Seq[Job], opt Options) iter.Seq2[Job, Result] {
	return func(yield func(Job, Result) bool) {
		r := begin(ctx, c, jobs, opt)
		defer r.end() // also where the loop is left by a panic
		for it := r.next(); it != nil; it = r.next() {
			if !yield(it.job, it.result) {
				break
			}
			r.note(it)
		}
		r.end()
		r.fault.goOn()
	}
}
