package coordinator

import (
	"math"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/headgate/headgate/provider"
)

// retry is the back-off of one retrying call, made at its first retry.
type retry struct{ backoff.ExponentialBackOff }

// newRetry gives intervals of [d, 1.5 d], d = min(base × 2ⁿ, max): jitter only
// upwards, never before a told instant.
func newRetry(base, most time.Duration) *retry {
	r := &retry{backoff.ExponentialBackOff{
		InitialInterval:     base + base/4,
		RandomizationFactor: 0.2,
		Multiplier:          2,
		MaxInterval:         most + most/4,
		MaxElapsedTime:      0, // its default would end retries after 15 minutes
		Stop:                backoff.Stop,
		Clock:               backoff.SystemClock,
	}}
	r.Reset()
	return r
}

// again decides on an attempt that failed: nil where the call may be tried again
// (after its back-off), else the final error.
func (w *walk) again(ls *Lease, err error) *Error {
	l := w.l
	l.lock()
	pauses, may := l.mayRetry(w)
	other := !may && l.otherKey(w, ls)
	may = may || other
	var delay time.Duration
	if may && pauses {
		x := w.failing()
		if x.retry == nil {
			x.retry = newRetry(l.b.Base, l.b.Max)
		}
		delay = max(x.retry.NextBackOff(), w.answer().RetryAfter)
	}
	e := l.failure(w, ls, err, delay)
	if may {
		left, at := l.maxWait(w), after(l.now.Mono, delay)
		opens, by := l.opensAgain(w, ls)
		at = max(at, opens)
		if left < 0 && other && opens <= l.now.Mono {
			left = 0 // it need not wait for another key
		}
		if l.tooFar(opens, by) || left < 0 || delay > left || at > l.deadline(w, left) || delay > l.t.MaxRetryAfter {
			may = false
		}
	}
	if may {
		l.counts.retries++
		if other {
			w.failing().keysTried++
		} else {
			l.second().retried++
			w.counter().rarely().retried++
		}
	}
	var drop func()
	if ls.kept() {
		drop = ls.rare.drop
	}
	l.tell(l.unlock())
	if !may {
		return e
	}
	if drop != nil { // before the wait: nobody reads that answer
		drop()
		ls.Release()
	}
	if delay > 0 {
		return w.sleep(delay, e)
	}
	return nil
}

// mayRetry says whether an outcome is sent again, and whether after a back-off (a
// rate-limited call waits in its place, behind the pause). Calls nested in one
// another share one number of attempts.
func (l *lane) mayRetry(w *walk) (backoff, may bool) {
	switch w.answer().Outcome {
	case provider.RateLimited:
		may = true
	case provider.Overloaded:
		backoff, may = true, w.call.Replayable || w.answer().Before
	case provider.Failed:
		backoff, may = true, w.call.Replayable || w.last.unsent
	}
	may = may && !l.b.Off && w.counter().retried() < l.b.Attempts-1 && l.lately.allows(l.now.Mono, l.b.Budget)
	return backoff, may
}

// sleep waits a back-off out, without a slot. It returns e where the call ended.
func (w *walk) sleep(d time.Duration, e *Error) *Error {
	t := time.NewTimer(d)
	defer t.Stop()
	start := time.Now()
	select {
	case <-t.C:
		w.waited += time.Since(start)
		return nil
	case <-w.ctx.Done():
	case <-w.l.c.stopped:
	}
	w.at = time.Since(w.l.c.origin)
	return e
}

// final completes the refusal of a retry: it is what the provider said last that
// ends the call; when to come back is what the refusal knows.
func (w *walk) final(refusal *Error) *Error {
	if w.attempts == 0 {
		return refusal
	}
	refusal.Stage, refusal.Attempts, refusal.Answer = StageRetry, w.attempts, w.answer()
	if refusal.Reason == ReasonTooLate || refusal.Reason == ReasonRateLimited {
		refusal.Reason = reasonOf(w.answer().Outcome)
		refusal.Err = w.cause()
	} else if refusal.Err == nil {
		refusal.Err = w.cause()
	}
	return refusal
}

// Retries have a budget: a share of the calls of the last 10 s, at least 10.
const leastRetries = 10

func (x *lately) allows(now time.Duration, share float64) bool {
	used, whole := x.retries(now, share)
	return used < whole
}

// left is the share of the budget for retries that is not used.
func (x *lately) left(now time.Duration, share float64) float64 {
	used, whole := x.retries(now, share)
	return max(0, 1-float64(used)/float64(whole))
}

func (x *lately) retries(now time.Duration, share float64) (used, whole int) {
	sum, _ := x.last(now, 10)
	return int(sum.retried), max(leastRetries, int(math.Ceil(share*float64(sum.fresh))))
}
