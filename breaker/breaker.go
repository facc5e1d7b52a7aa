// Package breaker fits sony/gobreaker to a decision that is looked at before it
// is taken. It is guarded by its user.
package breaker

import (
	"time"

	"github.com/headgate/headgate/provider"
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
	Until    time.Time // of Open: when it will try again
}

// Breaker is a circuit breaker. The nil *Breaker is always closed.
type Breaker struct{}

// New returns a closed breaker, nil where d.Off. A probe that has not reported
// after timeout (1m where 0) has failed.
func New(slug string, d provider.Breaker, timeout time.Duration) *Breaker { return nil }

// Look tells whether a call may go at now. If not, until is when it may (zero:
// when a probe that is out has reported). It changes nothing but an overdue probe.
func (b *Breaker) Look(now time.Time) (until time.Time, ok bool) { return time.Time{}, true }

// Token is a call's claim on the breaker; the zero Token claims nothing.
type Token struct{}

// Probe tells that the call is a half-open probe.
func (t Token) Probe() bool { return false }

// Take lets a call go that Look has allowed.
func (b *Breaker) Take(now time.Time) Token { return Token{} }

// Done reports a call's result. Only the first report of a token counts, and
// only while the state it was taken in lasts.
func (b *Breaker) Done(t Token, now time.Time, r Result) {}

// State returns the state at now, and until when it is open.
func (b *Breaker) State(now time.Time) (s State, until time.Time) { return Closed, time.Time{} }

// Changes returns the transitions since the last call and forgets them.
func (b *Breaker) Changes() []Change { return nil }

// Configure changes the numbers and keeps the state.
func (b *Breaker) Configure(d provider.Breaker) {}
