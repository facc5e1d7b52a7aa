package coordinator

import (
	"context"
	"time"

	"github.com/headgate/headgate/breaker"
	"github.com/headgate/headgate/provider"
)

// CallInfo names a call to hooks.
type CallInfo struct {
	Provider, Endpoint, Key, Flow string
	Priority                      Priority
	Attempt                       int // the first is 1; 0: none yet
}

// Trace is told what happens. Each hook may be nil. Hooks run on callers'
// goroutines, never under a lock and never on the timer; those of one lane's
// state (Breaker, Paused, Pressure) on that of some caller of that lane, soon
// after, so in no certain order: what is true now, State and Pressure say. A slow hook
// delays the call that runs it, and those that wait for what that call holds meanwhile
// (a slot, units); what Waiting, Going and Try take is part of its round trip. One that
// panics breaks no call: it is told once (see Panicked), and asked again the next time.
type Trace struct {
	// Begin: a call has come. What it returns takes the place of the call's context,
	// for hooks and for the function; nil: it stays. Pages of one Execute are calls.
	Begin func(ctx context.Context, call CallInfo) context.Context
	// Try: an attempt begins, after Going. What it returns is the function's context,
	// and that of the hook Attempt; nil: it stays. Not of Acquire, which has no
	// function.
	Try func(ctx context.Context, call CallInfo) context.Context
	// Waiting: the call waits for its turn.
	Waiting func(ctx context.Context, call CallInfo, queue QueueState)
	// Going: the call goes now; waited is its whole wait so far.
	Going func(ctx context.Context, call CallInfo, waited time.Duration)
	// Attempt: one attempt has ended and been classified.
	Attempt func(ctx context.Context, call CallInfo, f provider.Feedback, took time.Duration)
	// End: a call that went has ended; err is nil or an *Error.
	End func(ctx context.Context, call CallInfo, err error, took time.Duration)
	// Refused: a call was refused, by us: it did not go (again).
	Refused func(ctx context.Context, call CallInfo, err *Error)
	// Breaker: the breaker changed its state.
	Breaker func(BreakerChange)
	// Paused: a scope is paused, longer than before, or open again.
	Paused func(PauseChange)
	// Pressure: the queue has filled to 80 %, or emptied to 50 %, of its places.
	Pressure func(PressureChange)
	// Ledger: the budget that is shared with other processes has begun or ceased to
	// answer.
	Ledger func(LedgerChange)
	// Panicked: the named hook of this Trace has panicked with value, for the first
	// time. nil: a line on the standard error says which, and where.
	Panicked func(hook string, value any)
}

// BreakerChange is one transition: closed, open, half-open.
type BreakerChange struct {
	Provider, From, To string
	Until              time.Time // of open
}

// PauseChange is the beginning, the extension (Until) or the end (zero Until) of a
// pause.
type PauseChange struct {
	Provider, Scope, Name string // Name: the key's alias, or the endpoint
	Why                   string // an outcome, or what the caller of Pause said
	Until                 time.Time
}

// PressureChange tells producers to slow down (High), or that they may go on.
type PressureChange struct {
	Provider string
	High     bool
	Queue    QueueState
}

// traces are the hooks of a coordinator; nil where there are none.
type traces []*hooks

func tracesOf(given []*Trace) (ts traces) {
	for _, t := range given {
		if t != nil {
			ts = append(ts, &hooks{Trace: *t})
		}
	}
	return ts
}

func (w *walk) info() CallInfo {
	c := &w.call
	key := c.Key
	if w.last != nil {
		key = w.last.Key() // that was picked
	}
	return CallInfo{c.Provider, c.Endpoint, key, c.Flow, c.Priority, w.attempts}
}

// ended tells of the only attempt and the end of a call that did not end by its
// function's return.
func (ts traces) ended(w *walk, ls *Lease) {
	if len(ts) == 0 {
		return
	}
	w.at = time.Since(w.l.c.origin)
	ctx := w.ctx
	if ls.ctx != nil {
		ctx = ls.ctx.Context // of the attempt
	}
	ts.attempt(ctx, w, w.at-ls.granted)
	if o := ls.f.Outcome; o == provider.OK {
		ts.end(w, nil)
	} else {
		ts.end(w, &Error{Provider: w.l.slug, Reason: reasonOf(o), Stage: StageAttempt, Attempts: w.attempts, Answer: *ls.f})
	}
}

// event is a change of a lane that is told after the unlock: one of these.
type event struct {
	breaker  *BreakerChange
	pause    *PauseChange
	pressure *PressureChange
}

// event notes what is to be told.
func (l *lane) event(e event) {
	if len(l.c.traces) > 0 {
		l.events = append(l.events, e)
	}
}

// tell runs hooks. It needs the lock not to be held.
func (l *lane) tell(events []event) {
	l.pay()
	for _, e := range events {
		for _, t := range l.c.traces {
			t.tell(e)
		}
	}
}

func (t *hooks) tell(e event) {
	switch {
	case e.breaker != nil && t.Breaker != nil:
		defer t.guard("Breaker")
		t.Breaker(*e.breaker)
	case e.pause != nil && t.Paused != nil:
		defer t.guard("Paused")
		t.Paused(*e.pause)
	case e.pressure != nil && t.Pressure != nil:
		defer t.guard("Pressure")
		t.Pressure(*e.pressure)
	}
}

func (t *hooks) ledger(x LedgerChange) {
	if t.Ledger == nil {
		return
	}
	defer t.guard("Ledger")
	t.Ledger(x)
}

// tellPending tells what the timer left to be told.
func (l *lane) tellPending() {
	if len(l.c.traces) == 0 {
		return
	}
	l.mu.Lock()
	events := l.events
	l.events = nil
	l.mu.Unlock()
	l.tell(events)
}

// breakerMoved tells of the breaker's changes; an open one refuses all who wait.
func (l *lane) breakerMoved() bool {
	changes := l.breaker.Changes()
	for _, c := range changes {
		l.event(event{breaker: &BreakerChange{l.slug, string(c.From), string(c.To), c.Until}})
		l.q.Touch(&l.door.Gate)
		if c.To != breaker.Open {
			continue
		}
		for _, ls := range l.waiters() {
			if ls.needs(&l.door.Gate) {
				l.refuse(ls, l.refusal(ls, ReasonCircuitOpen, "the circuit has opened", l.mono(c.Until)))
			}
		}
	}
	return len(changes) > 0
}

// Pressure tells whether a provider's queue is over its mark: filled to 80 % of its
// places and not yet down to 50 % again. A producer that has the time should wait
// while it is High. It is cheap, and safe to be asked before each call.
func (c *Coordinator) Pressure(slug string) (PressureChange, error) {
	l, err := c.lane(slug)
	if err != nil {
		return PressureChange{}, err
	}
	l.lock()
	p := PressureChange{l.slug, l.high, l.queueState()}
	l.tell(l.unlock())
	return p, nil
}

// pressure tells producers when the queue crosses its marks.
func (l *lane) pressure() {
	n := l.waiting()
	if n == 0 && !l.high {
		return
	}
	places := l.places(l.plain)
	bound := places > 0 && l.t.Excess != provider.Delay
	switch {
	case !l.high && bound && n*5 >= places*4:
		l.high = true
	case l.high && (!bound || n*2 <= places): // an update may have taken the bound away
		l.high = false
	default:
		return
	}
	l.event(event{pressure: &PressureChange{l.slug, l.high, l.queueState()}})
}
