// Package breaker fits sony/gobreaker to a decision that is looked at before it
// is taken: closed, open for a cooldown, half-open while probes are out.
// gobreaker keeps the states and counts the failures; this package adds what a
// decision needs besides: a look without a side effect, the instant at which an
// open breaker tries again, probes that give their place back or time out, and
// tokens that report once.
//
// Not in it: what counts as a failure (the outcomes of package provider), who
// waits for it (package queue), telling others of a change (its owner).
package breaker

import (
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/headgate/headgate/provider"
)

// The numbers that stand where a declaration leaves them out.
const (
	DefaultFailures = 5                // in a row: exactly so many open it
	DefaultCooldown = 30 * time.Second // open for so long
	DefaultProbes   = 1                // successes that close it again
	DefaultTimeout  = time.Minute      // a probe without a report for longer has failed
)

// State is closed, open or half-open.
type State string

// The states.
const (
	Closed   State = "closed"
	Open     State = "open"
	HalfOpen State = "half-open"
)

// Result is what a call says about the provider.
type Result int

// The results. Neither says nothing: a refusal of ours, a cancelled call.
const (
	Neither Result = iota
	Success
	Failure
)

// Change is one transition, for the owner to tell on after its unlock.
type Change struct {
	From, To State
	Until    time.Time // of Open: when it will try again; else zero
}

// Breaker is a circuit breaker. The nil *Breaker is always closed; any other is
// made by [New].
//
// It has no lock of its own: its owner's mutex guards it. Each now is a reading
// of the clock by time.Now under that mutex, because gobreaker reads the clock
// too; instants never go back.
//
// Look, Take and Done of a closed breaker allocate nothing, and of one that is Closed
// Take, and Done of anything but a Failure, use no clock: now may be zero.
type Breaker struct {
	// The mirror of gobreaker's state. gobreaker's own State is not a look: it
	// moves an open breaker on.
	state   State
	number  uint64 // of the state: tokens of another one are void
	off     bool
	failing bool // gobreaker has counted a failure since the last success
	changes []Change
	until   time.Time // of Open: the first instant of a probe
	passed  int       // probes that succeeded in this half-open state
	out     probes    // of this half-open state
	now     time.Time // of the call that runs, for moved

	cb       *gobreaker.CircuitBreaker[struct{}]
	slug     string
	timeout  time.Duration
	failures uint32
	cooldown time.Duration
	probes   int
}

// New returns a closed breaker, nil where d.Off. Numbers of d that are 0 or less
// mean the defaults. A probe that has not reported after timeout ([DefaultTimeout]
// where 0 or less) has failed.
func New(slug string, d provider.Breaker, timeout time.Duration) *Breaker {
	if d.Off {
		return nil
	}
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	b := &Breaker{slug: slug, timeout: timeout}
	b.Configure(d)
	b.restart()
	return b
}

// Configure changes the numbers and keeps the state: what is open stays open
// until the instant already told. With d.Off it closes, and stays closed until
// a Configure without.
func (b *Breaker) Configure(d provider.Breaker) {
	if b == nil {
		return
	}
	b.failures, b.cooldown, b.probes = DefaultFailures, DefaultCooldown, DefaultProbes
	if d.Failures > 0 {
		b.failures = uint32(min(int64(d.Failures), 1<<31))
	}
	if d.Cooldown > 0 {
		b.cooldown = d.Cooldown
	}
	if d.Probes > 0 {
		b.probes = d.Probes
	}
	if b.off = d.Off; b.off {
		b.enter(Closed)
		b.restart()
	}
}

// restart puts a fresh, closed gobreaker in the place of the one in use.
//
// It is given neither the cooldown nor the number of probes, since it could not
// be given others later: its half-open state hears one result for all probes,
// and its open state ends as soon as it is asked, which is not before until.
func (b *Breaker) restart() {
	b.state, b.failing = Closed, false
	b.begin()
	b.cb = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Name:          b.slug,
		MaxRequests:   1,
		Timeout:       1,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= b.failures },
		OnStateChange: b.moved,
	})
}

// moved runs under gobreaker's lock: it only writes what is ours.
func (b *Breaker) moved(_ string, _, to gobreaker.State) {
	switch to {
	case gobreaker.StateOpen:
		b.enter(Open)
	case gobreaker.StateHalfOpen:
		b.enter(HalfOpen)
	default:
		b.enter(Closed)
	}
}

// enter begins a state: tokens of the one before are void from here on.
func (b *Breaker) enter(s State) {
	if s == b.state {
		return
	}
	c := Change{From: b.state, To: s}
	if s == Open {
		// A nanosecond more, because gobreaker's expiry is strict: at exactly
		// the end of its timeout it is still open.
		c.Until = b.now.Add(b.cooldown).Add(1)
	}
	b.state, b.until, b.passed = s, c.Until, 0
	b.begin()
	b.changes = append(b.changes, c)
}

// begin voids all tokens that are out.
func (b *Breaker) begin() { b.number, b.out = b.number+1, nil }

// Closed tells that any call may go: what Look and State would find, without a clock.
func (b *Breaker) Closed() bool { return b == nil || b.state == Closed }

// Look tells whether a call may go at now. If not, until is when it may (zero:
// when a probe that is out has reported, see [Breaker.Overdue]). It changes
// nothing but an overdue probe, which has failed.
func (b *Breaker) Look(now time.Time) (until time.Time, ok bool) {
	if b == nil {
		return time.Time{}, true
	}
	b.expire(now)
	switch b.state {
	case Open:
		if now.Before(b.until) {
			return b.until, false
		}
		return time.Time{}, true
	case HalfOpen:
		// With nothing out there is always room: a Configure to fewer probes than
		// have passed must not leave it half-open for good.
		n, _ := b.out.out()
		return time.Time{}, n == 0 || n+b.passed < b.probes
	default:
		return time.Time{}, true
	}
}

// Take lets a call go that Look at the same now has allowed. The first Take of
// an open breaker makes it half-open.
func (b *Breaker) Take(now time.Time) Token {
	if b == nil || b.off {
		return Token{}
	}
	b.now = now
	if b.state == Open {
		b.cb.State()
	}
	t := Token{state: b.number}
	if b.state == HalfOpen {
		t.probe = b.out.add(now)
	}
	return t
}

// Done reports a call's result. Only the first report of a token counts, and
// only while the state it was taken in lasts. Neither, of a probe, gives its
// place back. A probe that reports later than its timeout has failed, whatever
// it says.
func (b *Breaker) Done(t *Token, now time.Time, r Result) {
	if b == nil {
		return
	}
	b.expire(now)
	if t.state != b.number {
		return
	}
	if t.state = 0; t.probe != 0 {
		b.out.drop(t.probe)
	}
	switch {
	case r == Failure:
		b.tell(now, failed)
	case r != Success:
	case b.state == HalfOpen:
		if b.passed++; b.passed >= b.probes {
			b.tell(now, succeeded)
		}
	case b.failing: // else a success changes nothing, at ten times the price
		b.tell(now, succeeded)
	}
}

// expire fails a half-open breaker whose oldest probe is overdue.
func (b *Breaker) expire(now time.Time) {
	if b.state != HalfOpen {
		return
	}
	if n, oldest := b.out.out(); n > 0 && now.After(oldest.Add(b.timeout)) {
		b.tell(now, failed)
	}
}

var errFailed = errors.New("failed")

func succeeded() (struct{}, error) { return struct{}{}, nil }
func failed() (struct{}, error)    { return struct{}{}, errFailed }

// tell gives gobreaker one result. It never refuses: a closed one takes any, and
// a half-open one changes its state with the first.
func (b *Breaker) tell(now time.Time, result func() (struct{}, error)) {
	b.now = now
	_, err := b.cb.Execute(result)
	b.failing = err != nil
}

// State returns the state at now, and until when it is open. An open breaker
// whose cooldown is over is half-open, though nobody has probed yet.
func (b *Breaker) State(now time.Time) (s State, until time.Time) {
	if b == nil {
		return Closed, time.Time{}
	}
	b.expire(now)
	if b.state == Open && !now.Before(b.until) {
		return HalfOpen, time.Time{}
	}
	return b.state, b.until
}

// Overdue returns the instant at which Look will find that the oldest probe has
// failed for want of a report: the owner's timer, while calls wait for a probe.
// It is zero where no probe is out.
func (b *Breaker) Overdue() time.Time {
	if b == nil || b.state != HalfOpen {
		return time.Time{}
	}
	n, oldest := b.out.out()
	if n == 0 {
		return time.Time{}
	}
	return oldest.Add(b.timeout).Add(1)
}

// Failures returns how many failures in a row a closed breaker has counted; 0 in
// any other state.
func (b *Breaker) Failures() int {
	if b == nil {
		return 0
	}
	return int(b.cb.Counts().ConsecutiveFailures)
}

// Changes returns the transitions since the last call and forgets them. The
// owner asks before each unlock and tells them on after it.
func (b *Breaker) Changes() []Change {
	if b == nil {
		return nil
	}
	c := b.changes
	b.changes = nil
	return c
}
