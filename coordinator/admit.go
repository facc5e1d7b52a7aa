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

// walk is one call on its way through admission, attempts and retries.
type walk struct {
	steps
	life  uint64 // of first: see reuse.go
	first Lease  // of the first attempt: most calls need no other
}

// steps are what has become of a call so far.
type steps struct {
	ctx       context.Context
	call      Call
	l         *lane
	outer     *Lease // of the same provider: this call is nested in it
	root      *walk  // of the outermost such call
	place     uint64 // in the order of arrival: a retry keeps it
	waited    time.Duration
	start     time.Duration // when it came, on the lane's clock
	at        time.Duration // when its last attempt, or its wait for another, ended
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
	retried   int // of a root: retries of all calls in it
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

func (w *walk) retries() int {
	if w.failed == nil {
		return 0
	}
	return w.failed.retried
}

// answer is what the last attempt told.
func (w *walk) answer() provider.Feedback {
	if w.last == nil || w.last.f == nil {
		return provider.Feedback{}
	}
	return *w.last.f
}

func (w *walk) flow() queue.Flow {
	weight := 4
	switch w.call.Priority {
	case Bulk:
		weight = 1
	case Interactive:
		weight = 16
	}
	return queue.Flow{Name: w.call.Flow, Weight: weight}
}

// admit returns when the call may go, with everything taken, or is refused.
func (w *walk) admit() (*Lease, *Error) {
	l := w.l
	if err := w.ctx.Err(); err != nil {
		return nil, w.gaveUp(err)
	}
	ls := &w.first
	if w.attempts > 0 {
		ls = new(Lease)
		ls.life.Store(w.life<<1 | lent)
	}
	ls.l, ls.walk = l, w
	l.lock()
	w.join(ls)
	refusal := l.enter(w, ls)
	events := l.unlock()
	if refusal != nil {
		l.tell(events)
		return nil, refusal
	}
	if len(l.c.traces) > 0 && len(events) > 0 {
		w.hooked(ls, func() { l.tell(events) })
	} else {
		l.pay()
	}
	for told := false; ; {
		if ls.wait != nil {
			if !told && len(l.c.traces) > 0 {
				told = true
				w.hooked(ls, func() { l.c.traces.waiting(w, ls.wait.queue) })
			}
			if refusal := w.await(ls); refusal != nil {
				return nil, refusal
			}
		}
		if ls.went {
			break
		}
		if again, refusal := w.second(ls); refusal != nil {
			return nil, refusal
		} else if !again {
			break
		}
	}
	ls.waited = w.waited
	if len(l.c.traces) > 0 {
		w.hooked(ls, func() {
			if ls.wait != nil { // the timer that let it go told nobody
				l.tellPending()
			}
			l.c.traces.going(w, ls)
		})
	}
	return ls, nil
}

// join gives an attempt its place: in the order of arrival, and in the calls that it
// is nested in, as far as they have not ended.
func (w *walk) join(ls *Lease) {
	if w.root == nil {
		w.place, w.start = w.l.q.Arrive(), w.l.now.Mono
		w.root = w
		switch {
		case w.outer == nil:
		case w.outer.slot() == nil:
			w.outer = nil
		default:
			w.root = w.outer.walk.root
		}
	}
	ls.again = w.attempts > 0 || w.outer != nil && w.outer.again
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
		return l.refusalOf(w, nil, ReasonInvalid, detail, 0)
	}
	ls.timeout = l.p.Timeout
	ls.route = l.route(w.call.Endpoint, w.call.Key)
	ls.cost = l.costFor(w, ls.route)
	if w.call.Cost != nil && w.attempts == 0 && !w.back {
		l.counts.ignored += ignored(ls.route, w.call.Cost)
	}
	if l.down {
		return l.refusalOf(w, ls, ReasonShutdown, "the coordinator is shut down", 0)
	}
	if !l.breaker.Closed() && ls.cost[0] != 0 {
		if s, until := l.breaker.State(l.clock()); s == breaker.Open {
			return l.refusalOf(w, ls, ReasonCircuitOpen, "the circuit is open", l.mono(until))
		}
	}
	if l.pooled(&w.call) {
		return l.enterPool(w, ls)
	}
	if g := ls.route.tooHeavy(ls.cost); g != nil {
		return l.tooHeavy(w, ls, g)
	}
	if l.q.Len() == 0 && l.open(ls) {
		l.take(ls)
		l.admitted(ls)
		return nil
	}
	flow := w.flow()
	g := l.q.Blocked(l.now.Mono, &ls.route.Route, flow, ls.cost)
	if g == nil {
		l.take(ls)
		l.q.Went(&ls.route.Route, flow, ls.cost)
		l.admitted(ls)
		return nil
	}
	var ahead []int64
	if w.attempts == 0 && !w.back { // a retry is before those who came after its first try
		ahead = l.q.Ahead(&ls.route.Route, flow, ls.cost)
	}
	ls.wait = new(wait)
	opens, by := l.opens(ls.route, ls.cost, ahead)
	if by == nil {
		by = g
	}
	return l.wait(w, ls, opens, by)
}

// open is the decision where nobody waits: what q.Blocked would find, by asking the
// route's gates as what they are.
func (l *lane) open(ls *Lease) bool {
	now, r, cost := l.now.Mono, ls.route, ls.cost
	if cost[0] != 0 && l.door.Look(now, 1) > now {
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
	ls.wait.ready = make(chan struct{}, 1)
	l.waitsInside(ls)
	ls.wait.deadline = deadline
	l.line(ls)
	ls.wait.since = l.now.Mono
	if len(l.c.traces) > 0 {
		ls.wait.queue = l.queueState()
		ls.wait.queue.Wait = max(ls.wait.queue.Wait, opens-l.now.Mono)
	}
	return nil
}

// await waits for the turn of a call that is in the queue.
func (w *walk) await(ls *Lease) *Error {
	select {
	case <-ls.wait.ready:
	case <-w.ctx.Done():
	}
	err := w.ctx.Err()
	l := w.l
	if err == nil && ls.wait.refusal == nil {
		w.waited += ls.granted - ls.wait.since
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
	w.waited += l.now.Mono - ls.wait.since
	refusal := ls.wait.refusal
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
	ls.wait.refusal = e
	ls.wait.ready <- struct{}{}
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
		if len(ls.wait.options) > 0 {
			if opens, by = l.opensFor(ls, ls.wait.options); opens <= ls.wait.deadline && !l.tooFar(opens, by) {
				continue
			}
		}
		l.refuse(ls, l.tooLate(ls, opens, by))
	}
}

// needs tells whether a gate counts for the lease.
func (ls *Lease) needs(g *queue.Gate) bool {
	if ls.wait != nil && len(ls.wait.options) > 0 {
		return slices.ContainsFunc(ls.wait.options, func(o *option) bool { return o.route.needs(g, o.cost) })
	}
	return ls.route.needs(g, ls.cost)
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
	e := l.refusalOf(w, ls, reason, detail, at)
	e.Err = err
	return e
}
