// Package limit is the arithmetic of limits: when may n more units go, given
// everything that went. It has no clock, no lock and no goroutine; time comes in
// as an argument, and its user guards it.
//
// A call looks and takes at one instant; from then on its units are held. They
// are settled when the answer is there, and count from that instant on: the
// provider has counted them no later, so a limit that is kept here is kept there,
// however long either way takes. Where a least of both ways is known they may be settled
// as of so much earlier. Limits that are counted: sent count from the
// instant of going instead; their bounds hold for what is granted.
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

// Now is one reading of the clock. Wall may be set while the program runs; Mono
// never goes back.
type Now struct {
	Mono time.Duration // since an origin that the owner chose: orders and measures
	Wall time.Duration // since the Unix epoch: names dates (aligned windows only)
}

// on translates an instant of the wall clock to the scale of Mono.
func (now Now) on(wall time.Duration) time.Duration {
	return add(now.Mono, sub(wall, now.Wall))
}

// Rule is the memory of one limit. It is not safe for concurrent use; two Rules
// never touch each other's state. Instants that it is told never precede those
// it was told before, but for the granted and settled instants of calls. Sums
// saturate, so that costs up to MaxInt64 are safe. The zero value is not usable:
// New, Fresh and Replace make Rules.
type Rule struct {
	spec  *spec
	algo  algorithm
	held  int64
	short // of spec: of thousands of rules none of their specs is in the processor's cache
}

// algorithm is one way to count. Instants and units that it is given are valid:
// n above 0, room and held not below.
type algorithm interface {
	// look is the first instant, not before now, at which no more than room
	// counts, if nothing else happens.
	look(s *spec, now Now, room int64) time.Duration
	// charge makes n units count from at on.
	charge(s *spec, at Now, n int64)
	// refund takes away n of the units that were charged at charged, as far as
	// they still count.
	refund(s *spec, charged Now, n int64)
	// when is Rule.When; held is to be taken as charged at now.
	when(s *spec, now Now, held, n int64) time.Duration
	// used is what counts at now.
	used(s *spec, now Now) int64
	// idle tells that nothing is left that a new algorithm would not have.
	idle(s *spec, now Now) bool
	// copy makes it equal to another of the same type, with which it shares nothing.
	copy(from algorithm)
	// adopt takes the history over from an algorithm of the same type.
	adopt(s *spec, from algorithm, old *spec, now Now)
}

// New returns an empty Rule for a limit that Throttle.Expand has returned; what
// that fills in may be missing (Algorithm, Counted, Burst), aliases are taken
// too. The error names the field that is wrong.
//
// Many Rules of one limit are cheaper by [Rule.Fresh].
func New(l provider.Limit) (*Rule, error) {
	s, err := newSpec(l)
	if err != nil {
		return nil, err
	}
	return newRule(s), nil
}

// Fresh returns an empty Rule for the same limit (and skew), without parsing
// anything again: the limit of one more key.
func (r *Rule) Fresh() *Rule {
	fresh := newRule(r.spec)
	if f, ok := r.algo.(*fixed); ok {
		fresh.SetSkew(f.skew)
	}
	return fresh
}

// Clone returns a Rule with the same history, which shares nothing with r that
// changes: to play forward what has not happened yet.
func (r *Rule) Clone() *Rule {
	c := newRule(r.spec)
	c.held = r.held
	c.algo.copy(r.algo)
	return c
}

// newRule puts Rule and algorithm into one allocation.
func newRule(s *spec) *Rule {
	switch s.algorithm {
	case provider.SlidingWindowCounter:
		return place[counter](s)
	case provider.FixedWindow:
		return place[fixed](s)
	case provider.TokenBucket:
		r := place[bucket](s)
		r.algo.(*bucket).full = math.MinInt64
		return r
	case provider.LeakyBucket:
		return place[leaky](s)
	case provider.InFlight:
		return place[flight](s)
	default:
		return place[window](s)
	}
}

func place[A any, P interface {
	*A
	algorithm
}](s *spec) *Rule {
	x := new(struct {
		rule Rule
		algo A
	})
	x.rule = Rule{spec: s, algo: P(&x.algo), short: s.short}
	return &x.rule
}

// Look tells when n more units may go: an instant at or before now.Mono means
// now; a later one is the first at which they may, provided that nothing else
// happens; Never means that only an event opens it. It changes nothing. No units
// may always go.
func (r *Rule) Look(now Now, n int64) time.Duration {
	if n <= 0 {
		return now.Mono
	}
	room := r.capacity - n
	if !r.sent {
		room = sub(room, r.held)
	}
	if room < 0 {
		return Never
	}
	switch a := r.algo.(type) { // the usual cases, without a call
	case *window:
		if a.total() <= uint64(room) {
			return now.Mono
		}
	case *flight:
		return now.Mono
	}
	return r.algo.look(r.spec, now, room)
}

// Take takes n units, which the last Look at the same now allowed: they are held
// (counted: answered) or charged (counted: sent).
func (r *Rule) Take(now Now, n int64) {
	if r.holds && n > 0 && n < math.MaxInt64-r.held {
		r.held += n
		return
	}
	r.take(now, n)
}

func (r *Rule) take(now Now, n int64) {
	if n <= 0 {
		return
	}
	r.held = add(r.held, n)
	if l, ok := r.algo.(*leaky); ok {
		l.grant(r.spec, now.Mono, n)
	}
	if r.sent {
		r.algo.charge(r.spec, now, n)
	}
}

// Settle ends the hold of taken units that went at granted; charged of them (0
// to any number: an estimate may have been too low) count from at on. at may lie
// before instants that the Rule has seen. Under counted: sent only the difference
// is corrected: what is too little counts from at on, what is too much comes back
// as far as it still counts. The spacing of a leaky bucket holds in any case.
func (r *Rule) Settle(granted, at Now, taken, charged int64) {
	taken, charged = max(taken, 0), max(charged, 0)
	r.held = max(0, r.held-taken)
	switch {
	case !r.sent:
		if w, ok := r.algo.(*window); ok && charged > 0 {
			w.count(r.per, at, charged)
		} else if charged > 0 {
			r.algo.charge(r.spec, at, charged)
		}
	case charged > taken:
		r.algo.charge(r.spec, at, charged-taken)
	case charged < taken:
		r.algo.refund(r.spec, granted, taken-charged)
	}
}

// GiveBack undoes a Take whose call was never sent: exactly what was taken,
// never more, spacing included (where another grant has followed there is none
// to give back).
func (r *Rule) GiveBack(granted, now Now, n int64) {
	if n <= 0 {
		return
	}
	r.held = max(0, r.held-n)
	if l, ok := r.algo.(*leaky); ok {
		l.undo(granted.Mono)
	}
	if r.sent {
		r.algo.refund(r.spec, granted, n)
	}
}

// Correct adds delta units, which count from now on, to what a call was charged
// at settled; below 0 it takes away as much of that as still counts. Under
// counted: sent a call is charged when it goes: settled is then the instant of
// its grant (see [Rule.Sent]).
func (r *Rule) Correct(settled, now Now, delta int64) {
	switch {
	case delta > 0:
		r.algo.charge(r.spec, now, delta)
	case delta < 0:
		r.algo.refund(r.spec, settled, -max(delta, -math.MaxInt64))
	}
}

// When is a lower bound on the instant at which the last of n more units could
// go, in calls of one unit, each settled at once, and with everything that is
// held settled now. It saturates at Never. Its cost does not depend on n.
//
// For windows and buckets it is that instant (at most 1 ns a unit early), and a
// heavier call is not sooner. For a leaky bucket ask for the units before the
// last call and one: a heavy call goes at once, and keeps its distance
// afterwards.
func (r *Rule) When(now Now, n int64) time.Duration {
	if n <= 0 {
		return now.Mono
	}
	held := r.held
	if r.sent {
		held = 0
	}
	return max(now.Mono, r.algo.when(r.spec, now, held, n))
}

// Usage is what a Rule shows of itself.
type Usage struct {
	Used, Held int64         // charged and still counting; taken and not settled
	ResetAt    time.Duration // on the scale of Now.Mono, when the next unit comes back; 0 where none is out
}

// Usage returns the state at now. Parts of a unit count as one.
func (r *Rule) Usage(now Now) Usage {
	u := Usage{Used: r.algo.used(r.spec, now), Held: r.held}
	if u.Used > 0 {
		w := r.algo
		if l, ok := w.(*leaky); ok {
			w = &l.window
		}
		u.ResetAt = w.look(r.spec, now, u.Used-1)
	}
	return u
}

// Idle tells that the rule is as good as new: nothing held, nothing counting. A
// leaky bucket that is idle has at most a lateness that it could still catch up.
func (r *Rule) Idle(now Now) bool {
	return r.held == 0 && r.algo.idle(r.spec, now)
}

// Heaviest is the largest cost that the rule can ever admit: max, or the burst of
// a token bucket (or what it would fill in 73 years, if that is less).
func (r *Rule) Heaviest() int64 { return r.capacity }

// Aligned tells that the rule's windows follow the wall clock.
func (r *Rule) Aligned() bool {
	return r.spec.algorithm == provider.FixedWindow || r.spec.algorithm == provider.SlidingWindowCounter
}

// Sent tells that the rule charges at the instant of going (counted: sent).
func (r *Rule) Sent() bool { return r.sent }

// InFlight tells that the rule caps what is held at once: nothing counts afterwards.
func (r *Rule) InFlight() bool {
	_, ok := r.algo.(*flight)
	return ok
}

// SetSkew tells a rule of fixed windows by how much, at most, the provider's
// clock differs from ours, either way. It widens the guard after each window's
// start to 1 s + d, at most a hundredth of the window. Other rules ignore it.
func (r *Rule) SetSkew(d time.Duration) {
	if f, ok := r.algo.(*fixed); ok {
		f.skew = max(d, sub(0, d))
		f.measure(r.spec)
	}
}
