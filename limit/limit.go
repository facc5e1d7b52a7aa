// Package limit is the arithmetic of limits: when may n more units go, given
// everything that went. It has no clock, no lock and no goroutine; time comes in
// as an argument, and its user guards it.
//
// Not in it: who waits (package queue), what is asked together (package
// coordinator).
package limit

import (
	"math"
	"time"

	"github.com/headgate/headgate/provider"
)

// Never is the instant of a Rule that only an event can open: a settlement, a
// give-back, a change of its numbers.
const Never = time.Duration(math.MaxInt64)

// Now is one reading of the clock.
type Now struct {
	Mono time.Duration // since an origin that the owner chose: orders and measures
	Wall time.Duration // since the Unix epoch: names dates (aligned windows only)
}

// Rule is the memory of one limit. It is not safe for concurrent use. Instants
// that it is told never precede those it was told before, but for the granted
// and settled instants of calls.
type Rule struct{}

// New returns an empty Rule for a limit that Throttle.Expand has returned.
func New(l provider.Limit) (*Rule, error) { return nil, nil }

// Look tells when n more units may go: an instant at or before now.Mono means
// now; a later one means not before that instant, provided that nothing else
// happens; Never means that only an event opens it. It changes nothing.
func (r *Rule) Look(now Now, n int64) time.Duration { return 0 }

// Take takes n units, which the last Look at the same now allowed: they are held
// (counted: answered) or charged (counted: sent).
func (r *Rule) Take(now Now, n int64) {}

// Settle ends the hold of taken units that went at granted; charged of them (0
// to any number: an estimate may have been too low) count from at on.
func (r *Rule) Settle(granted, at Now, taken, charged int64) {}

// GiveBack undoes a Take whose call was never sent: exactly what was taken,
// never more, spacing included.
func (r *Rule) GiveBack(granted, now Now, n int64) {}

// Correct adds delta units (below 0: takes away) to what a call settled at
// settled was charged.
func (r *Rule) Correct(settled, now Now, delta int64) {}

// When is a lower bound on the instant at which the last of n more units could
// go, in calls as light as possible, each settled at once.
func (r *Rule) When(now Now, n int64) time.Duration { return 0 }

// Usage is what a Rule shows of itself.
type Usage struct {
	Used, Held int64         // charged and still counting; taken and not settled
	ResetAt    time.Duration // on the scale of Now.Mono, when the next unit comes back; 0 where none is out
}

// Usage returns the state at now.
func (r *Rule) Usage(now Now) Usage { return Usage{} }

// Idle tells that the rule is as good as new: nothing held, nothing counting.
func (r *Rule) Idle(now Now) bool { return false }

// Heaviest is the largest cost that the rule can ever admit.
func (r *Rule) Heaviest() int64 { return 0 }

// Aligned tells that the rule's windows follow the wall clock.
func (r *Rule) Aligned() bool { return false }

// Replace returns a Rule for l that goes on with old's history: what is held and
// charged stays so, under the new numbers.
func Replace(old *Rule, l provider.Limit, now Now) (*Rule, error) { return nil, nil }
