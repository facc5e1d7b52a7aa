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

// terms are what a lease is about. The lane's lock guards them.
type terms struct {
	l        *lane
	walk     *walk
	route    *route
	cost     []int64 // by gate of route
	granted  time.Duration
	sent     time.Duration // 0: not known
	settled  time.Duration // from when its units count
	timeout  time.Duration // of the attempt; 0: none
	waited   time.Duration
	token    breaker.Token
	older    *Lease // of those that are out; the lane's list
	newer    *Lease
	f        *provider.Feedback // nil: none yet
	wait     *wait              // nil: it went at once
	rare     *rare              // nil: nothing of it
	ctx      *leaseContext      // of its function; nil: none yet
	state    leaseState
	early    bool // its requests have arrived by the time declared, before the answer
	all      bool // and all its units with them
	again    bool // a retry
	acquired bool // by Acquire: the hooks are told of its end when it is released
	running  bool // in a function of Do
	unsent   bool // that has forgotten it
	claimed  bool // a request was sent under it
	went     bool // it is out: what it takes has been granted everywhere
}

// rare is what few leases need, apart from what every call pays for.
type rare struct {
	arrived  time.Duration // from when its requests count, where early
	used     []int64       // what was charged by gate, where that is not the cost
	marks    []mark        // what it saw of the quotas as it went, at a provider that tells
	rides    *Lease        // the outer one whose slot it goes under; nil: its own
	riders   int           // calls that go under its slot
	nested   bool          // a call nested in it has waited
	borrowed *borrowed     // of limits that are shared; nil: none
	drop     func()        // of Hold; nil: the function's end releases
}

func (ls *Lease) rarely() *rare {
	if ls.rare == nil {
		ls.rare = new(rare)
	}
	return ls.rare
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

// wait is what a call needs only while it waits.
type wait struct {
	queue.Waiter
	options  []*option     // each of which waits, instead of the Waiter; nil: the call has one route
	ready    chan struct{} // one message: gone or refused
	deadline time.Duration // the last instant at which it may go
	refusal  *Error
	queue    QueueState // at entry
	since    time.Duration
}

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
			l.settleLater(&later{at: after(ls.sent, aw), ls: ls, early: true})
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
	tell := ls.acquired
	ls.acquired = false
	l.tell(l.unlock())
	if tell {
		ls.walk.last = ls
		l.c.traces.ended(ls.walk, ls)
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
