package coordinator

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/headgate/headgate/breaker"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/queue"
)

// walk is one call on its way through admission, attempts and retries. It lives on its
// goroutine's stack: what others need of the call is in the lease of each attempt.
type walk struct {
	ctx       context.Context
	call      Call
	l         *lane
	outer     *Lease // of the same provider: this call is nested in it
	root      *Lease // of the outermost such call; nil: this is it
	place     uint64 // in the order of arrival: a retry keeps it
	waited    time.Duration
	start     time.Duration // when it came, on the lane's clock
	since     time.Duration // when it last began to wait for its turn
	queue     QueueState    // as that was, for hooks
	at        time.Duration // when its last attempt, or its wait for another, ended
	timeout   time.Duration // of the attempt; 0: none
	last      *Lease        // of the last attempt
	failed    *failed       // nil: no attempt has failed, nothing to be remembered of one
	attempts  int
	sheltered bool // it goes under the slots that a call around it has in pools
	back      bool // the ledger has refused it once: it keeps its place
}

// failed is what a call needs once an attempt has failed.
type failed struct {
	cause     error // what the last attempt returned
	retry     *retry
	keysTried int // attempts with a key that turned out to be dead
}

func (w *walk) failing() *failed {
	if w.failed == nil {
		w.failed = new(failed)
	}
	return w.failed
}

// cause is what the last attempt returned.
func (w *walk) cause() error {
	if w.failed == nil {
		return nil
	}
	return w.failed.cause
}

// counter is the lease that counts the retries of the call, and of all that share its
// number of attempts: that of the outermost one.
func (w *walk) counter() *Lease {
	if w.root != nil {
		return w.root
	}
	return w.last
}

// answer is what the last attempt told.
func (w *walk) answer() provider.Feedback {
	if w.last == nil || w.last.f == nil {
		return provider.Feedback{}
	}
	return *w.last.f
}

// admit returns when the call may go under ls, with everything taken, or is refused.
func (w *walk) admit(ls *Lease) *Error {
	l := w.l
	if err := w.ctx.Err(); err != nil {
		return w.gaveUp(err)
	}
	ls.l = l
	ls.of(&w.call)
	ls.retry, ls.sheltered = w.attempts > 0, w.sheltered
	l.lock()
	w.join(ls)
	refusal := l.enter(w, ls)
	events := l.unlock()
	if refusal != nil {
		l.tell(events)
		return refusal
	}
	if len(l.c.traces) > 0 && len(events) > 0 {
		w.hooked(ls, func() { l.tell(events) })
	} else {
		l.pay()
	}
	for told := false; ; {
		if ls.ready != nil {
			if !told && len(l.c.traces) > 0 {
				told = true
				w.hooked(ls, func() { l.c.traces.waiting(w, w.queue) })
			}
			if refusal := w.await(ls); refusal != nil {
				return refusal
			}
		}
		if ls.went {
			break
		}
		if again, refusal := w.second(ls); refusal != nil {
			return refusal
		} else if !again {
			break
		}
	}
	ls.waited = w.waited
	if len(l.c.traces) > 0 {
		w.hooked(ls, func() {
			if ls.ready != nil { // the timer that let it go told nobody
				l.tellPending()
			}
			l.c.traces.going(w, ls)
		})
	}
	return nil
}

// join gives an attempt its place: in the order of arrival, and in the calls that it
// is nested in, as far as they have not ended.
func (w *walk) join(ls *Lease) {
	if w.place == 0 {
		w.place, w.start = w.l.q.Arrive(), w.l.now.Mono
		if w.outer.slot() == nil {
			w.outer = nil
		}
		for x := w.outer; x != nil; x = x.outer() {
			w.root = x
		}
	}
	ls.wait.Keep(w.place)
	ls.again = ls.retry
	if w.outer != nil {
		ls.rarely().outer = w.outer
		ls.again = ls.again || w.outer.again
	}
	if n := w.last.retried(); n > 0 {
		ls.rarely().retried = n
	}
}

// hooked runs hooks while a call waits or is out: one that ends the goroutine takes
// nothing along.
func (w *walk) hooked(ls *Lease, hooks func()) {
	done := false
	defer func() {
		if !done {
			w.l.lock()
			w.l.abandon(ls)
			w.l.unlock() // what there is to tell is lost: a hook has just failed
		}
	}()
	hooks()
	done = true
}

// abandon takes a call out that is not to go (any more).
func (l *lane) abandon(ls *Lease) {
	switch ls.state {
	case held:
		l.giveBack(ls)
	case waiting:
		l.unline(ls, nil)
		ls.state = refused
	}
}

// enter is the decision at entry: the lease is gone, waits, or is refused.
func (l *lane) enter(w *walk, ls *Lease) *Error {
	if detail := l.check(&w.call); detail != "" {
		return l.refusal(nil, ReasonInvalid, detail, 0)
	}
	w.timeout = l.timeout
	ls.route = l.route(w.call.Endpoint, w.call.Key)
	ls.wait.Cost = l.costFor(ls, ls.route)
	if w.call.Cost != nil && w.attempts == 0 && !w.back {
		l.counts.ignored += ignored(ls.route, w.call.Cost)
	}
	if l.down {
		return l.refusal(ls, ReasonShutdown, "the coordinator is shut down", 0)
	}
	if !l.breaker.Closed() && ls.wait.Cost[0] != 0 {
		if s, until := l.breaker.State(l.clock()); s == breaker.Open {
			return l.refusal(ls, ReasonCircuitOpen, "the circuit is open", l.mono(until))
		}
	}
	if l.pooled(&w.call) {
		return l.enterPool(w, ls)
	}
	if g := ls.route.tooHeavy(ls.wait.Cost); g != nil {
		return l.tooHeavy(ls, g)
	}
	if l.q.Len() == 0 && l.open(ls) {
		l.take(ls)
		l.admitted(ls)
		return nil
	}
	flow, cost := ls.flowOf(), ls.wait.Cost
	g := l.q.Blocked(l.now.Mono, &ls.route.Route, flow, cost)
	if g == nil {
		l.take(ls)
		l.q.Went(&ls.route.Route, flow, cost)
		l.admitted(ls)
		return nil
	}
	var ahead []int64
	if w.attempts == 0 && !w.back { // a retry is before those who came after its first try
		ahead = l.q.Ahead(&ls.route.Route, flow, cost)
	}
	opens, by := l.opens(ls.route, cost, ahead)
	if by == nil {
		by = g
	}
	return l.wait(w, ls, opens, by)
}

// open is the decision where nobody waits: what q.Blocked would find, by asking the
// route's gates as what they are.
func (l *lane) open(ls *Lease) bool {
	now, r, cost := l.now.Mono, ls.route, ls.wait.Cost
	if cost[0] != 0 && !l.breaker.Closed() && l.door.Look(now, 1) > now {
		return false
	}
	for i, p := range r.pauses {
		if cost[1+i] != 0 && p.Look(now, 1) > now {
			return false
		}
	}
	for i, g := range l.pools {
		if cost[r.pool+i] != 0 && g.Look(now, 1) > now {
			return false
		}
	}
	for i, g := range r.limits {
		if n := cost[r.skip+i]; n != 0 && g.Look(now, n) > now {
			return false
		}
	}
	return true
}

// wait makes a call wait that cannot go before opens, because of the gate by, or
// refuses it.
func (l *lane) wait(w *walk, ls *Lease, opens time.Duration, by *queue.Gate) *Error {
	left := l.maxWait(w)
	if left < 0 {
		return l.noWait(ls, opens, by)
	}
	if e := l.noPlace(w, ls, opens, by); e != nil {
		return e
	}
	deadline := l.deadline(w, left)
	if opens > deadline || l.tooFar(opens, by) {
		return l.tooLate(ls, opens, by)
	}
	ls.ready = make(chan struct{}, 1)
	l.waitsInside(ls)
	ls.wait.Deadline = deadline
	l.line(ls)
	w.since, ls.granted = l.now.Mono, l.now.Mono
	if len(l.c.traces) > 0 {
		w.queue = l.queueState()
		w.queue.Wait = max(w.queue.Wait, opens-l.now.Mono)
	}
	return nil
}

// await waits for the turn of a call that is in the queue.
func (w *walk) await(ls *Lease) *Error {
	select {
	case <-ls.ready:
	case <-w.ctx.Done():
	}
	err := w.ctx.Err()
	l := w.l
	if err == nil && ls.refusal() == nil {
		w.waited += ls.granted - w.since
		if ls.went {
			l.mu.Lock()
			l.admitted(ls)
			l.mu.Unlock()
		}
		return nil
	}
	// The turn, a refusal and the end of the context may have met: the lock says
	// which came first. A turn that nobody uses any more is given back whole, or
	// its units would be lost until their windows are over.
	l.lock()
	w.waited += l.now.Mono - w.since
	refusal := ls.refusal()
	l.abandon(ls)
	if refusal == nil {
		refusal = w.gaveUpLocked(ls, err)
	}
	l.tell(l.unlock())
	return refusal
}

// refuse ends the wait of a call in the queue.
func (l *lane) refuse(ls *Lease, e *Error) {
	if ls.state != waiting {
		return
	}
	l.unline(ls, nil)
	ls.state = refused
	ls.rarely().refusal = e
	ls.ready <- struct{}{}
}

// refuseLate refuses who waits for g and cannot go before their deadline, now that
// g stays closed until then; everybody where that is too far away to be waited for.
// Who may go with another key is refused only where none opens in time.
func (l *lane) refuseLate(g *queue.Gate, until time.Duration) {
	late := l.q.Before(until)
	if l.tooFar(until, g) {
		late = l.q.All()
	}
	for _, ls := range leasesOf(late) {
		if !ls.needs(g) {
			continue
		}
		opens, by := until, g
		if all := ls.options(); len(all) > 0 {
			if opens, by = l.opensFor(ls, all); opens <= ls.wait.Deadline && !l.tooFar(opens, by) {
				continue
			}
		}
		l.refuse(ls, l.tooLate(ls, opens, by))
	}
}

// needs tells whether a gate counts for the lease.
func (ls *Lease) needs(g *queue.Gate) bool {
	if all := ls.options(); len(all) > 0 {
		return slices.ContainsFunc(all, func(o *option) bool { return o.route.needs(g, o.Cost) })
	}
	return ls.route.needs(g, ls.wait.Cost)
}

func (r *route) needs(g *queue.Gate, cost []int64) bool {
	i := slices.Index(r.Gates, g)
	return i >= 0 && cost[i] != 0
}

// gaveUp is the refusal of a call whose context has ended before it could go.
func (w *walk) gaveUp(err error) *Error {
	w.l.lock()
	e := w.gaveUpLocked(nil, err)
	w.l.tell(w.l.unlock())
	return e
}

func (w *walk) gaveUpLocked(ls *Lease, err error) *Error {
	l := w.l
	reason, detail := ReasonCanceled, "the caller gave up"
	var at time.Duration
	if errors.Is(err, context.DeadlineExceeded) {
		reason, detail = ReasonTooLate, "the caller's deadline came first"
		if ls != nil && ls.route != nil {
			at, _ = l.opensAgain(w, ls)
			at = l.soon(at)
		}
	}
	e := l.refusal(ls, reason, detail, at)
	e.Err = err
	return e
}
