package coordinator

import (
	"context"
	"time"
)

// Priority orders calls of one provider: they weigh 1 : 4 : 16, so that the low
// ones always advance.
type Priority int

// The priorities.
const (
	Bulk        Priority = -1
	Normal      Priority = 0
	Interactive Priority = 1
)

// Call says what is asked of whom. Only Provider is required.
type Call struct {
	Provider string
	Endpoint string // as declared; "" where the provider has none
	Key      string // alias of the API key: limits of scope key count each apart
	Flow     string // who asks: flows share a provider equally
	Priority Priority
	Cost     map[string]int64 // by unit; nil: what the endpoint costs, else one request
	Wait     time.Duration    // longest wait in all; 0: the provider's max_wait; negative: do not wait
	// Replayable says that it may be sent twice: a failed attempt may have been
	// acted on.
	Replayable bool
}

// Do calls fn as soon as the provider will accept it, on this goroutine, with a
// context that carries the lease (see LeaseFrom). It calls fn again where the
// outcome may be retried. A refusal and a final failure are an *Error; nil means
// that fn returned nil.
//
// fn may call Do for the same provider: that call takes units of its own, and the
// in-flight slot that its caller has. A panic or runtime.Goexit in fn settles the
// call as canceled and goes on.
func (c *Coordinator) Do(ctx context.Context, call Call, fn func(context.Context) error) error {
	w := walk{ctx: ctx, call: call}
	err := w.begin(c)
	if err == nil && fn == nil {
		err = w.invalid("the function is nil")
	}
	if err != nil {
		return w.refusedBy(c, err)
	}
	for {
		ls := newLease()
		if refusal := w.admit(ls); refusal != nil {
			return w.refusedBy(c, w.final(refusal))
		}
		err := w.attempt(ls, fn)
		if err == nil {
			c.traces.end(&w, nil)
			ls.reuse()
			return nil
		}
		if refusal := w.again(ls, err); refusal != nil {
			c.traces.end(&w, refusal)
			return refusal
		}
	}
}

// Get is Do for a function with a result. It returns the zero value with an error.
func Get[T any](ctx context.Context, c *Coordinator, call Call, fn func(context.Context) (T, error)) (T, error) {
	var got T
	if fn == nil {
		return got, c.Do(ctx, call, nil)
	}
	err := c.Do(ctx, call, func(ctx context.Context) (err error) {
		got, err = fn(ctx)
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return got, nil
}

// Acquire returns a lease as soon as the provider will accept a call: for calls
// that are not a function. It is not retried; the caller reports and releases.
func (c *Coordinator) Acquire(ctx context.Context, call Call) (*Lease, error) {
	x := new(struct { // in one piece; its caller has it: never used again
		walk  walk
		lease Lease
		rare  rare
	})
	w, ls := &x.walk, &x.lease
	w.ctx, w.call, ls.rare = ctx, call, &x.rare
	if err := w.begin(c); err != nil {
		return nil, w.refusedBy(c, err)
	}
	if refusal := w.admit(ls); refusal != nil {
		return nil, w.refusedBy(c, refusal)
	}
	ls.rare.walk = w
	w.attempts = 1
	return ls, nil
}

func (w *walk) begin(c *Coordinator) *Error {
	l, err := c.lane(w.call.Provider)
	if err != nil {
		return err
	}
	w.l = l
	if len(c.traces) > 0 {
		c.traces.begin(w)
	}
	w.outer = l.outer(w.ctx)
	if len(l.pools) > 0 {
		w.sheltered = c.inside(w.ctx)
	}
	return nil
}

func (w *walk) invalid(detail string) *Error {
	return invalid(w.call.Provider, detail)
}

func invalid(slug, detail string) *Error {
	return &Error{Provider: slug, Reason: ReasonInvalid, Stage: StageEntry, detail: detail}
}

// refusedBy tells of a refusal and returns it as an error.
func (w *walk) refusedBy(c *Coordinator, e *Error) error {
	if w.l != nil {
		w.l.count(w, e.Reason)
	}
	c.traces.refused(w, e)
	return e
}

// abort ends a call whose function does not return.
func (w *walk) abort(ls *Lease) {
	ls.end(func(ls *Lease) {
		if ls.f == neverSent {
			ls.l.neverWent(ls, neverSent)
		}
		ls.l.release(ls)
	})
	w.last = ls
	ls.l.c.traces.ended(w, ls)
}

// attempt runs fn once and settles what it told. It returns fn's error.
func (w *walk) attempt(ls *Lease, fn func(context.Context) error) error {
	w.attempts++
	done := false
	defer func() {
		if !done { // a panic or Goexit goes on; nothing stays taken
			w.abort(ls)
		}
	}()
	ctx := w.ctx
	if traces := ls.l.c.traces; len(traces) > 0 {
		ctx = traces.try(w)
	}
	tried := ctx
	if w.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.timeout)
		defer cancel()
	}
	ls.ctx, ls.running = &leaseContext{ctx, ls, ls.number()}, true
	err := fn(ls.ctx)
	f := w.classify(ls, err)
	l := ls.l
	l.lock()
	switch {
	case ls.state == held:
		l.report(ls, f)
	case ls.f == neverSent:
		ls.unsent = true
		l.neverWent(ls, f)
	}
	w.last = ls
	if err != nil || w.failed != nil {
		w.failing().cause = err
	}
	took := l.now.Mono - ls.granted
	w.at = l.now.Mono
	if !ls.kept() {
		l.release(ls)
	}
	events := l.unlock()
	done = true
	l.tell(events)
	l.c.traces.attempt(tried, w, took)
	return err
}
