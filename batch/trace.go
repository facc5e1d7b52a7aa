package batch

import (
	"context"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

var trace = coordinator.Trace{
	Waiting: func(ctx context.Context, _ coordinator.CallInfo, _ coordinator.QueueState) {
		if it, ok := ctx.Value(itemKey{}).(*item); ok {
			it.queued()
		}
	},
	Going: func(ctx context.Context, _ coordinator.CallInfo, _ time.Duration) {
		if it, ok := ctx.Value(itemKey{}).(*item); ok {
			it.going()
		}
	},
	Attempt: func(ctx context.Context, _ coordinator.CallInfo, _ provider.Feedback, took time.Duration) {
		if it, ok := ctx.Value(itemKey{}).(*item); ok {
			it.wasOut(took)
		}
	},
}

// Trace returns hooks for coordinator.Config.Traces, by which a Run sees when its
// queries wait, go and are asked again; calls of others are no concern of theirs.
//
// Without them a Run sees that of functions (Job.Do) only: of a Query it is known
// when it is given to the coordinator and when it is back. Its Result then tells
// less of it (see Result); queries hold up to three quarters of the places in their
// provider's queue, not 32 by endpoint, key, flow and priority; their order is that
// in which goroutines happen to run; a journal names those that waited among those
// that were interrupted, and if it fails, those that are out are cut off.
func Trace() *coordinator.Trace { return &trace }

// queued: the job waits in the coordinator's queue. So may calls of its function.
func (it *item) queued() {
	r := it.track.line.run
	r.mu.Lock()
	defer r.mu.Unlock()
	it.hooked, r.sees = true, true
	it.placed()
	r.pump(it.track.line)
}

// going: an attempt goes. Of a function's job that is seen as the function is
// called. Calls nested in an attempt are part of it.
func (it *item) going() {
	if it.job.Query == nil {
		return
	}
	r := it.track.line.run
	r.mu.Lock()
	it.hooked, r.sees = true, true
	it.depth++
	nested := it.depth > 1
	r.mu.Unlock()
	if !nested && !r.goes(it) && it.cancel != nil { // else its context is the run's, which has ended
		it.cancel()
	}
}

// wasOut: an attempt has ended.
func (it *item) wasOut(took time.Duration) {
	if it.job.Query == nil {
		return
	}
	r := it.track.line.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if it.depth--; it.depth == 0 {
		it.out += took
	}
}
