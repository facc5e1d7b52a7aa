package coordinator

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/breaker"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/queue"
)

// Lease is a call that may go: it holds its units until Report, and its in-flight
// slot until Release. Its methods are safe for concurrent use and harmless when
// called late or twice. Every Lease from Acquire must be released.
type Lease struct {
	life atomic.Uint64 // see reuse.go
	terms
}

// terms are what a lease is about. The lane's lock guards them. They are all the memory
// that a call takes as it waits: the rest of it is on its goroutine's stack (see walk).
type terms struct {
	l         *lane
	route     *route
	wait      queue.Waiter  // its place in the queue; its cost, by gate of route; the last instant at which it may go
	ready     chan struct{} // one message: gone or refused; nil: it need not wait
	flow      string
	named     map[string]int64 // the cost that the call names
	granted   time.Duration    // when it went; while it waits: since when
	sent      time.Duration    // 0: not known
	settled   time.Duration    // from when its units count
	waited    time.Duration
	token     breaker.Token
	f         *provider.Feedback // nil: none yet
	rare      *rare              // nil: nothing of it
	ctx       *leaseContext      // of its function; nil: none yet
	at        int32              // place in the lane's list of those that are out
	priority  int8
	state     leaseState
	sheltered bool // it goes under the slots that a call around it has in pools
	early     bool // its requests have arrived by the time declared, before the answer
	all       bool // and all its units with them
	retry     bool // not its call's first attempt
	again     bool // a retry, or within one
	running   bool // in a function of Do
	unsent    bool // that has forgotten it
	claimed   bool // a request was sent under it
	went      bool // it is out: what it takes has been granted everywhere
}

// rare is what few leases need, apart from what every call pays for.
type rare struct {
	outer    *Lease        // of the same provider: its call is nested in that one
	retried  int           // retries so far of its call, and of all that are nested in it
	options  []*option     // of a call that may go with several keys: each waits, instead of the lease
	refusal  *Error        // that ended its wait
	arrived  time.Duration // from when its requests count, where early
	counted  time.Duration // from when its units count where a least round trip is known; 0: from settled
	used     []int64       // what was charged by gate, where that is not the cost
	marks    []mark        // what it saw of the quotas as it went, at a provider that tells
	rides    *Lease        // the outer one whose slot it goes under; nil: its own
	riders   int           // calls that go under its slot
	nested   bool          // a call nested in it has waited
	borrowed *borrowed     // of limits that are shared; nil: none
	drop     func()        // of Hold; nil: the function's end releases
	walk     *walk         // of Acquire: its hooks are told when the lease is released
}

func (ls *Lease) rarely() *rare {
	if ls.rare == nil {
		ls.rare = new(rare)
	}
	return ls.rare
}

// outer is the lease of the same provider that its call is nested in; nil: none.
func (ls *Lease) outer() *Lease {
	if ls.rare == nil {
		return nil
	}
	return ls.rare.outer
}

// options are the keys that its call waits for; nil: it has one route.
func (ls *Lease) options() []*option {
	if ls.rare == nil {
		return nil
	}
	return ls.rare.options
}

// refusal is what ended its wait; nil: its turn did.
func (ls *Lease) refusal() *Error {
	if ls.rare == nil {
		return nil
	}
	return ls.rare.refusal
}

// retried is how often its call, or one nested in it, was tried again.
func (ls *Lease) retried() int {
	if ls == nil || ls.rare == nil {
		return 0
	}
	return ls.rare.retried
}

// of notes what others need to know of its call.
func (ls *Lease) of(call *Call) {
	ls.flow, ls.named, ls.priority = call.Flow, call.Cost, int8(call.Priority)
}

// flowOf is whose turn it takes.
func (ls *Lease) flowOf() queue.Flow {
	weight := 4
	switch Priority(ls.priority) {
	case Bulk:
		weight = 1
	case Interactive:
		weight = 16
	}
	return queue.Flow{Name: ls.flow, Weight: weight}
}

// kept tells that the slot is held beyond the function.
func (ls *Lease) kept() bool { return ls.rare != nil && ls.rare.drop != nil }

// leaseState goes forward only.
type leaseState uint8

const (
	waiting leaseState = iota
	refused
	held     // gone; no answer yet
	answered // its units are settled; the slot is held
	over     // released, or given back
)

// leaseContext carries a lease to the function that runs under it. It is never used
// again: what was derived from it may outlive the call.
type leaseContext struct {
	context.Context
	lease *Lease
	life  uint64 // of the lease, when it was this call's
}

type leaseKey struct{}

var leaseOf any = leaseKey{} // made once: a conversion would allocate

func (c *leaseContext) Value(key any) any {
	if key == leaseOf {
		return c
	}
	return c.Context.Value(key)
}

// LeaseFrom returns the lease that the function of Do, Get or Execute runs under. When
// that function has returned there may be none any more; never is it that of a call
// around it.
func LeaseFrom(ctx context.Context) (*Lease, bool) {
	c, ok := ctx.Value(leaseOf).(*leaseContext)
	if !ok || !c.lease.lend(c.life) {
		return nil, false
	}
	return c.lease, true
}

// around returns the nearest lease that ctx runs under, of those that are still there,
// and the context around it; nil: there is none.
func around(ctx context.Context) (*Lease, context.Context) {
	for {
		c, ok := ctx.Value(leaseOf).(*leaseContext)
		if !ok {
			return nil, nil
		}
		if ctx = c.Context; c.lease.lend(c.life) {
			return c.lease, ctx
		}
	}
}

// outer returns the nearest lease of the same provider that ctx runs under and
// that has not been released.
func (l *lane) outer(ctx context.Context) *Lease {
	for ls, ctx := around(ctx); ls != nil; ls, ctx = around(ctx) {
		if ls.l == l {
			return ls
		}
	}
	return nil
}

// Key is the key that the call goes with.
func (ls *Lease) Key() string { return ls.route.key }

// Waited is how long the call waited before it went.
func (ls *Lease) Waited() time.Duration { return ls.waited }

// Sent says that the request is on its way now. It matters where the provider
// declares arrival_within, and for a call that ends without an answer.
func (ls *Lease) Sent() {
	l := ls.l
	l.lock()
	if ls.state == held && ls.sent == 0 {
		ls.sent = l.now.Mono
		if aw := l.t.ArrivalWithin; aw > 0 {
			l.settleLater(&later{at: after(l.now.Mono, aw), ls: ls, early: true})
		}
	}
	l.tell(l.unlock())
}

// Report tells what the answer said, as soon as it is known: units are settled,
// and limits, breaker and pauses learn from it. Until Release it may be called
// again, with the real use of a unit (Used) as far as it is known by then: the
// last amount told for a unit counts. An outcome that does not exist is Unknown.
// After Release it does nothing.
func (ls *Lease) Report(f provider.Feedback) {
	l := ls.l
	l.lock()
	switch ls.state {
	case held:
		l.report(ls, normal(f))
	case answered:
		l.correct(ls, f.Used)
	}
	l.tell(l.unlock())
}

// Release gives the in-flight slot back. A lease without a Report has been
// canceled: its units count as if its request had arrived.
func (ls *Lease) Release() { ls.end(ls.l.release) }

// Forget says that the request was never sent: everything is given back. After
// Sent or Report it is a Release.
func (ls *Lease) Forget() {
	ls.end(func(ls *Lease) {
		if ls.state == held && ls.sent == 0 {
			ls.l.giveBack(ls)
		} else {
			ls.l.release(ls)
		}
	})
}

func (ls *Lease) end(how func(*Lease)) {
	l := ls.l
	l.lock()
	how(ls)
	var w *walk
	if x := ls.rare; x != nil {
		w, x.walk = x.walk, nil
	}
	l.tell(l.unlock())
	if w != nil {
		w.last = ls
		l.c.traces.ended(w, ls)
	}
}

// Hold keeps the slot beyond the end of the function that runs under the lease,
// until Release: for an answer whose body is still to be read. Where the call is
// tried again instead, drop is called (to close that body) and the slot is free.
// It has no effect on a lease of Acquire.
func (ls *Lease) Hold(drop func()) {
	ls.l.mu.Lock()
	defer ls.l.mu.Unlock()
	if drop == nil {
		drop = func() {}
	}
	ls.rarely().drop = drop
}

// Provider is the slug of the provider that the call is to.
func (ls *Lease) Provider() string { return ls.l.slug }

// Claim tells whether the lease is c's, for that provider, and still without a
// request of its own; it has one from then on. It is for transports: the first
// request under a lease is the one that it was granted for.
func (ls *Lease) Claim(c *Coordinator, slug string) bool {
	if ls.l.c != c || ls.l.slug != slug {
		return false
	}
	ls.l.mu.Lock()
	defer ls.l.mu.Unlock()
	first := !ls.claimed && ls.state == held
	ls.claimed = true
	return first
}
