package batch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// item is one job that was pulled. The run's mu guards it, but for what only the
// goroutine of its try uses.
type item struct {
	job    Job
	seq    uint64 // order in the sequence
	track  *track
	next   *item     // of its list
	since  time.Time // pulled
	result Result

	page   string             // of the query, to go on with; "": as asked
	told   *coordinator.Error // the last refusal
	cancel context.CancelFunc // of its try, where there is a journal

	waits  bool // counted in line.waiting
	turns  bool // counted in track.waiting
	began  bool // the journal was told
	before int  // attempts before this try
	asked  bool // this try is by Execute
	hooked bool // the hooks told of it
	depth  int  // attempts that the hooks say are out: its own, and those nested in it
	out    time.Duration
	handed time.Duration // since it was pulled, as it was given to the coordinator last
	broken error         // why it must not go though its turn has come
	called bool          // back, by stop

	unheard bool // the last attempt may have arrived, though nobody heard the answer
}

// itemContext leads the hooks from a call to its job.
type itemContext struct {
	context.Context
	it *item
}

type itemKey struct{}

func (c itemContext) Value(key any) any {
	if key == (itemKey{}) {
		return c.it
	}
	return c.Context.Value(key)
}

// waited is how long it was not out.
func (it *item) waited() time.Duration {
	if it.job.Query != nil && it.result.Attempts > 0 && !it.hooked {
		return it.handed
	}
	return time.Since(it.since) - it.out
}

// query is what to ask: from the page on that was reached.
func (it *item) query() provider.Query {
	q := *it.job.Query
	if it.page != "" {
		q.Page = it.page
	}
	return q
}

// keep joins what a try brought: an answer, or with an error the pages before it.
func (it *item) keep(res provider.Result, err error) {
	if err != nil && res.Next == "" {
		return
	}
	if it.page != "" {
		res = it.result.Result.Join(res)
	}
	it.result.Result, it.page = res, res.Next
}

// unsent is the error of a job that does not go (again), because the run is over
// or its time is.
func (it *item) unsent(why error) error {
	e := &coordinator.Error{Provider: it.job.Call.Provider, Reason: coordinator.ReasonCanceled, Stage: coordinator.StageEntry,
		Attempts: it.result.Attempts, Err: why}
	if errors.Is(why, context.DeadlineExceeded) {
		e.Reason = coordinator.ReasonTooLate
	}
	if e.Attempts > 0 {
		e.Stage = coordinator.StageRetry
	}
	if was := it.told; was != nil {
		e.Answer, e.Limit = was.Answer, was.Limit
		if left := time.Until(was.RetryAt); left > 0 {
			e.RetryAt, e.RetryAfter = was.RetryAt, left
		}
	}
	if e.Reason == coordinator.ReasonCanceled && !errors.Is(why, context.Canceled) {
		return fmt.Errorf("%w; so it was not sent: %w", why, e) // e does not show its cause's text
	}
	return fmt.Errorf("batch: not sent: %w", e)
}

// curable returns the refusal that waiting would cure, nil where err is none. It
// is the coordinator's word on this call that counts: a refusal that the job's
// function met elsewhere is a failure of a function that may have done something.
func curable(err error) *coordinator.Error {
	var e *coordinator.Error
	if errors.As(err, &e) && e.Is(coordinator.ErrThrottled) {
		return e
	}
	return nil
}

// list is items in a row, linked by themselves.
type list struct {
	head, tail *item
	n          int
}

func (q *list) push(it *item) {
	if q.tail == nil {
		q.head = it
	} else {
		q.tail.next = it
	}
	q.tail = it
	q.n++
}

func (q *list) pop() *item {
	it := q.head
	if it == nil {
		return nil
	}
	q.head, it.next = it.next, nil
	if q.head == nil {
		q.tail = nil
	}
	q.n--
	return it
}

// insert puts it in by its order in the sequence: near the head.
func (q *list) insert(it *item) {
	at := &q.head
	for *at != nil && (*at).seq < it.seq {
		at = &(*at).next
	}
	it.next, *at = *at, it
	if it.next == nil {
		q.tail = it
	}
	q.n++
}
