package coordinator

import (
	"time"

	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/queue"
)

// maxWait is how long the call may still wait: below 0 not at all.
func (l *lane) maxWait(w *walk) time.Duration {
	left := l.t.MaxWait
	if w.call.Wait != 0 {
		left = w.call.Wait
	}
	if left == provider.Forever {
		return left
	}
	if left > 0 {
		return max(left-w.waited, 0)
	}
	return left
}

// deadline is the last instant at which the call may go.
func (l *lane) deadline(w *walk, left time.Duration) time.Duration {
	at := queue.Never
	if left != provider.Forever {
		at = after(l.now.Mono, left)
	}
	if d, ok := w.ctx.Deadline(); ok {
		at = min(at, l.told(d))
	}
	return at
}

// tooFar tells that an instant which the provider told is not waited for by
// anybody.
func (l *lane) tooFar(at time.Duration, g *queue.Gate) bool {
	if g == nil || at-l.now.Mono <= l.t.MaxRetryAfter {
		return false
	}
	return l.toldBy(g)
}

// noPlace refuses a call that finds no place in the queue. A retry has one.
func (l *lane) noPlace(w *walk, ls *Lease, opens time.Duration, by *queue.Gate) *Error {
	if w.attempts > 0 || w.back && l.t.Excess != provider.Reject {
		return nil
	}
	switch places := l.places(ls.route); {
	case l.t.Excess == provider.Delay || l.waiting() < places:
		return nil
	case l.t.Excess == provider.Reject:
		return l.noWait(ls, opens, by)
	default:
		return l.refusal(ls, ReasonQueueFull, "every place in the queue is taken", l.soon(min(l.q.Opens(), opens)))
	}
}

// places is how many may wait.
func (l *lane) places(r *route) int {
	if l.t.Excess != provider.Reject {
		return l.t.MaxQueue
	}
	var most int64
	for _, g := range r.limits {
		if g.d.Algorithm == provider.LeakyBucket {
			most = max(most, g.d.Burst)
		}
	}
	return int(most)
}
