package coordinator

import (
	"time"

	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
)

// leastTrip is the declared least round trip, as far as answers bear it out.
//
// Let every request take out or longer to the provider, and every answer back or
// longer from where the call was counted, with F no more than out + back. A call that
// went at g and was answered at a was counted between g + out and a − back, which is
// between g and a − F on a clock that is out behind the provider's. A window, or the
// filling of a bucket, is the same on both clocks, so what holds for calls that count
// from their answers on (docs/design.md, 3.2) holds for calls that count from a − F on.
// Until the answer they are held all the same: nobody knows a before.
//
// It does not hold where both clocks have to be one: windows that are aligned to dates
// begin out later for us than for the provider, and how F is divided into out and back
// nobody knows; and processes that share a limit each have an out of their own: the least
// way there of one and the least way back of another come to no round trip of anybody.
type leastTrip struct {
	declared time.Duration
	holds    time.Duration // declared, or the shortest that was seen since
}

// refuted looks at the round trip of an answer. A shorter one than declared refutes the
// declaration: the shortest that was seen holds from then on, and what counts already
// from too early an instant counts longer by what that was too much. What failed, or was
// an error that nobody knows, may never have been on its way: it refutes nothing, and is
// settled as if nothing were known.
func (l *lane) refuted(trip time.Duration, o provider.Outcome) {
	if trip >= l.least.holds || o == provider.Failed || o == provider.Unknown {
		return
	}
	much := l.least.holds - trip
	l.least.holds = trip
	l.eachLimit(func(g *limitGate) { // however many: each time it happens it is less likely to happen again
		if g.early() {
			g.rule.Postpone(much)
			l.q.Touch(&g.Gate)
		}
	})
	for i := range l.naps {
		x := &l.naps[i]
		for _, r := range x.rules {
			if r != nil && countsEarly(r) {
				r.Postpone(much)
			}
		}
		x.until = l.now.Mono // to be looked at
	}
	for _, ls := range l.out {
		if ls.rare != nil && ls.rare.counted != 0 {
			ls.rare.counted += much
		}
	}
}

// trip is the round trip of a call that is answered now: its way there begins when it
// is sent, where that is known.
func (l *lane) trip(ls *Lease) time.Duration { return l.now.Mono - max(ls.granted, ls.sent) }

// countedBy is when the provider had counted a call that is settled at an instant, on a
// clock as leastTrip has it: that instant, unless an answer tells more. It is never
// before the call went.
func (l *lane) countedBy(ls *Lease, at time.Duration, f *provider.Feedback) time.Duration {
	if f.Unanswered || l.least.holds == 0 || l.trip(ls) < l.least.holds {
		return at
	}
	at -= l.least.holds
	if f != plainOK || ls.rare != nil { // else nobody has the lease who could correct what was charged
		ls.rarely().counted = at
	}
	return at
}

// early tells that units count in g from before the answer on, where that is known.
func (g *limitGate) early() bool { return g.shared == nil && countsEarly(g.rule) }

func countsEarly(r *limit.Rule) bool { return !r.InFlight() && !r.Sent() && !r.Aligned() }

// sooner is by how much earlier what is held in g may turn out to be settled than now:
// the rule's word on when there is room is no lower bound by so much.
func (g *limitGate) sooner() time.Duration {
	if g.l.least.holds == 0 || g.rule.Held() == 0 || !g.early() {
		return 0
	}
	return g.l.least.holds
}
