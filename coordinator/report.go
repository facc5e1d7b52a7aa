package coordinator

import (
	"slices"
	"time"

	"github.com/headgate/headgate/breaker"
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
)

// The feedback of most calls, and of those that end without any. Nobody writes to
// them.
var (
	plainOK   = &provider.Feedback{Outcome: provider.OK}
	abandoned = &provider.Feedback{Outcome: provider.Canceled, Unanswered: true}
	neverSent = &provider.Feedback{Outcome: provider.Canceled, Detail: "it was never sent"}
)

// longestAdvice is what "for ever" comes to: an instant that can still be told.
const longestAdvice = 10 * 365 * 24 * time.Hour

// normal is f with an outcome that exists and advice that can be followed. What was
// canceled may still arrive.
func normal(f provider.Feedback) *provider.Feedback {
	switch {
	case f.Outcome == "":
		f.Outcome = provider.OK
	case !f.Outcome.Valid():
		f.Outcome = provider.Unknown
	}
	f.RetryAfter = min(max(f.RetryAfter, 0), longestAdvice)
	f.Unanswered = f.Unanswered || f.Outcome == provider.Canceled
	return &f
}

// report is the one reading of an attempt's answer: limits, breaker, pauses.
func (l *lane) report(ls *Lease, f *provider.Feedback) {
	ls.f = f
	l.counts.outcome(f.Outcome)
	l.answeredLately(f.Outcome, l.now.Mono-ls.granted)
	l.learn(ls, f)
	l.dated(ls, f.Date)
	ls.state = answered
	if x := ls.rare; x != nil && x.borrowed != nil && x.borrowed.alone && opensScope(f.Outcome) {
		x.borrowed.trial = ledger.Opens
	}
	if f.Unanswered {
		l.settleUnanswered(ls)
	} else {
		trip := l.trip(ls)
		l.trips.add(l.now.Mono, trip)
		l.refuted(trip, f.Outcome)
		l.settle(ls, l.now, f)
	}
	l.judge(ls, breakerResult(f.Outcome))
	l.pauses(ls, f)
	switch f.Outcome {
	case provider.QuotaSpent:
		if g := l.spentLimit(ls.route, f); g != nil {
			g.spent(ls, f.RetryAfter)
		} else {
			ls.route.keyed.spent(f.RetryAfter)
		}
	case provider.OK:
		if l.guessed {
			for _, g := range ls.route.limits {
				if g.trial != 0 && ls.granted > g.spentAt {
					g.trial = 0 // there is quota again: the next guess starts afresh
				}
			}
		}
	}
}

// judge tells the breaker what a call says of the provider.
func (l *lane) judge(ls *Lease, r breaker.Result) {
	if r != breaker.Failure && l.breaker.Closed() {
		l.breaker.Done(&ls.token, time.Time{}, r) // which needs no clock
		return
	}
	l.breaker.Done(&ls.token, l.clock(), r)
	l.q.Touch(&l.door.Gate)
	l.breakerMoved()
}

func breakerResult(o provider.Outcome) breaker.Result {
	switch o {
	case provider.OK, provider.Rejected:
		return breaker.Success
	case provider.Overloaded, provider.Failed:
		return breaker.Failure
	}
	return breaker.Neither
}

// pauses lets an answer open or extend the pauses of its scopes.
func (l *lane) pauses(ls *Lease, f *provider.Feedback) {
	var target *pauseGate
	var least time.Duration
	switch f.Outcome {
	case provider.RateLimited:
		target = ls.route.pauseOf(f.Scope)
	case provider.Banned:
		target, least = ls.route.pauseOf(l.bannedScope(f)), l.t.Penalty
	case provider.Overloaded:
		if p := ls.route.pauseOf(f.Scope); f.RetryAfter > 0 || p.trial == ls {
			target = p
		}
	}
	for _, p := range ls.route.pauses {
		if p == target {
			p.refusedBy(ls, f, least)
		} else {
			p.answered(ls, f.Outcome)
		}
	}
	ls.route.keyed.authorized(ls, f)
}

// settle ends the hold of a lease's units: they count from at on (earlier, where the
// least round trip tells more), as many as the answer told, and none in a limit that
// does not charge such an answer.
func (l *lane) settle(ls *Lease, at limit.Now, f *provider.Feedback) {
	ls.settled = at.Mono
	counted := instant(l.countedBy(ls, at.Mono, f))
	q := ls.route.keyed
	q.unsettled--
	if q.told.until != 0 {
		q.told.ended(ls, at.Mono, 1)
		l.q.Touch(&q.Gate)
	}
	for i, g := range ls.route.limits {
		gi := ls.route.skip + i
		n := ls.wait.Cost[gi]
		if n == 0 || g.caps() {
			continue
		}
		if g.told.until != 0 {
			g.told.ended(ls, at.Mono, n)
		}
		charged := n
		if f.Used != nil {
			if used, told := f.Used[g.d.Unit]; told {
				charged = max(used, 0)
			}
		}
		if g.choosy && (!f.Unanswered || l.isBad(g.d)) && !charges(g.d, f.Outcome) {
			charged = 0
		}
		if charged != n {
			ls.use(gi, charged)
		}
		switch {
		case ls.hasArrived(g):
			g.rule.Correct(ls.chargedAt(g), l.now, charged-n)
		case counted.Mono != at.Mono && g.early():
			g.rule.Settle(instant(ls.granted), counted, n, charged)
		default:
			g.rule.Settle(instant(ls.granted), at, n, charged)
		}
		if ls.rare != nil && (ls.state == over || g.d.Unit == provider.Requests) { // else a later part of the answer may tell the real use
			l.settleThere(ls, i, at.Mono, charged)
		}
		l.q.Touch(&g.Gate)
	}
}

// chargedAt is the instant from which the lease's units count in g.
func (ls *Lease) chargedAt(g *limitGate) limit.Now {
	switch {
	case g.rule.Sent():
		return instant(ls.granted)
	case ls.hasArrived(g):
		return instant(ls.rare.arrived)
	case ls.rare != nil && ls.rare.counted != 0 && g.early():
		return instant(ls.rare.counted)
	}
	return instant(ls.settled)
}

// instant names a charge to be taken back: rules find it by Mono.
func instant(at time.Duration) limit.Now { return limit.Now{Mono: at} }

func charges(d *provider.Limit, o provider.Outcome) bool {
	return len(d.Charges) == 0 || slices.Contains(d.Charges, o)
}

// use notes what was charged where that is not the cost.
func (ls *Lease) use(gate int, n int64) {
	x := ls.rarely()
	if x.used == nil {
		x.used = slices.Clone(ls.wait.Cost)
	}
	x.used[gate] = n
}

// correct charges what an answer's later part told.
func (l *lane) correct(ls *Lease, used map[string]int64) {
	if ls.f.Unanswered {
		return // charged by its estimate, at an instant to come
	}
	for i, g := range ls.route.limits {
		gi := ls.route.skip + i
		n, told := used[g.d.Unit]
		if !told || ls.wait.Cost[gi] == 0 || g.caps() || !charges(g.d, ls.f.Outcome) {
			continue
		}
		before := ls.charged(gi)
		n = max(n, 0)
		ls.use(gi, n)
		g.rule.Correct(ls.chargedAt(g), l.now, n-before)
		l.q.Touch(&g.Gate)
	}
}

// settleUnanswered settles a call that ended without an answer and may still be on
// its way: linger after it was sent (after now, where that is not known), and not
// before now.
func (l *lane) settleUnanswered(ls *Lease) {
	at := after(l.now.Mono, l.linger())
	if ls.sent != 0 {
		at = max(after(ls.sent, l.linger()), l.now.Mono)
	}
	if at == l.now.Mono {
		l.settle(ls, l.now, ls.f)
		return
	}
	l.settleLater(&later{at: at, ls: ls})
}

// release ends a lease: the slot is free, what was not reported was canceled.
func (l *lane) release(ls *Lease) {
	switch ls.state {
	case held:
		l.report(ls, abandoned)
	case answered:
	default:
		return
	}
	ls.state = over
	if x := ls.rare; x != nil && x.borrowed != nil && ls.settled != 0 {
		for _, i := range x.borrowed.limits {
			if !ls.route.limits[i].caps() {
				l.settleThere(ls, i, ls.settled, ls.charged(ls.route.skip+i))
			}
		}
	}
	l.freeSlots(ls)
	l.left(ls)
}

// charged is what a lease was charged at a gate.
func (ls *Lease) charged(gate int) int64 {
	if ls.rare != nil && ls.rare.used != nil {
		return ls.rare.used[gate]
	}
	return ls.wait.Cost[gate]
}

// neverWent is the end of a function that has forgotten its lease: nothing was sent,
// but a provider that cannot even be reached has failed.
func (l *lane) neverWent(ls *Lease, f *provider.Feedback) {
	ls.f = f
	result := breaker.Neither
	if f.Outcome == provider.Failed {
		result = breaker.Failure
		l.counts.outcome(f.Outcome)
	}
	l.judge(ls, result)
}

// freeSlots gives a lease's slots back, unless calls still go under them; then the
// last of those does.
func (l *lane) freeSlots(ls *Lease) {
	if x := ls.rare; x != nil {
		if r := x.rides; r != nil {
			if r.rare.riders--; r.rare.riders == 0 && r.state == over {
				l.freeSlots(r)
			}
			return
		}
		if x.riders > 0 {
			return
		}
	}
	for i, g := range l.pools {
		if ls.wait.Cost[ls.route.pool+i] != 0 {
			g.free()
		}
	}
	for i, g := range ls.route.limits {
		if n := ls.wait.Cost[ls.route.skip+i]; n != 0 && g.caps() {
			g.rule.Settle(instant(ls.granted), l.now, n, n)
			l.settleThere(ls, i, l.now.Mono, n)
			l.q.Touch(&g.Gate)
		}
	}
}

// giveBack undoes take: the call was never sent.
func (l *lane) giveBack(ls *Lease) {
	ls.state = over
	ls.f = neverSent
	if x := ls.rare; x != nil && x.borrowed != nil {
		ls.answered() // to nobody: its caller gave up as its turn came
		if x.borrowed.hold != 0 {
			l.owe(owed{settle: &ledger.Settlement{Hold: x.borrowed.hold, Back: true}})
		} else if ls.went {
			l.spend(ls, -1)
		}
		for k := range x.borrowed.settled {
			if !x.borrowed.settled[k] && x.borrowed.hold == 0 {
				l.chargeThere(x.borrowed, k, x.borrowed.told[k].at, -x.borrowed.told[k].n)
			}
			x.borrowed.settled[k] = true
		}
	}
	for i, g := range ls.route.limits {
		if n := ls.wait.Cost[ls.route.skip+i]; n != 0 && !g.caps() {
			g.rule.GiveBack(instant(ls.granted), l.now, n)
			g.told.went -= n
			l.q.Touch(&g.Gate)
		}
	}
	l.freeSlots(ls)
	for _, p := range ls.route.pauses {
		p.dropped(ls)
	}
	q := ls.route.keyed
	q.unsettled--
	q.told.went--
	l.q.Touch(&q.Gate)
	if !ls.running { // else the function's end says what became of it
		l.judge(ls, breaker.Neither)
	}
	if ls.went {
		l.counts.granted--
		ls.went = false
	}
	l.left(ls)
}
