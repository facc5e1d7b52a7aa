package coordinator

import (
	"time"

	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/queue"
)

// doorGate is the breaker as a gate. Its mirror is looked at; gobreaker is not
// asked before a call goes.
type doorGate struct {
	queue.Gate
	l *lane
}

func (g *doorGate) Look(now time.Duration, _ int64) time.Duration {
	if g.l.breaker.Closed() {
		return now
	}
	until, ok := g.l.breaker.Look(g.l.clock())
	switch {
	case ok:
		return now
	case until.IsZero(): // a probe is out: its answer opens it, or its time-out
		if until = g.l.breaker.Overdue(); until.IsZero() {
			return queue.Never
		}
	}
	return g.l.mono(until)
}

// limitGate is one limit (of one key or endpoint, where its scope says so) as a
// gate. A limit may be given a not-before, which may move both ways.
type limitGate struct {
	// What each call looks at and writes to comes first, and is near.
	l         *lane
	rule      *limit.Rule
	d         *provider.Limit // in force; shared with gates of other keys: nobody writes to it
	choosy    bool            // it charges some outcomes only
	declared  int64           // the largest cost under the declared size
	notBefore time.Duration   // told: a spent quota
	learned   int64           // the told size in force; 0: the declared one
	shared    *shared         // its part in the ledger; nil: none
	told      told            // what answers say is left

	queue.Gate
	key      string        // whose limit it is; "": no key's
	endpoint string        // the same
	spentAt  time.Duration // when it was told that it is spent
	trial    time.Duration // without a told reset: the last guess
	skew     time.Duration // of the provider's clock, where the rule follows dates
	maxUntil time.Duration // so long the told size is in force
}

// newLimitGate makes the gate of a limit, of an endpoint and a key as far as its scope
// names them. What it counts is in rule; nil: nothing yet.
func (l *lane) newLimitGate(d *provider.Limit, id partKey, rule *limit.Rule) *limitGate {
	g := new(limitGate)
	if rule == nil {
		rule = l.freshRule(d, id.key).Fresh()
	}
	l.initLimitGate(g, d, id, rule)
	return g
}

// initLimitGate is newLimitGate in memory that is there.
func (l *lane) initLimitGate(g *limitGate, d *provider.Limit, id partKey, rule *limit.Rule) {
	g.l, g.endpoint, g.key, g.rule = l, id.endpoint, id.key, rule
	g.declare(ofKey(d, id.key), rule.Heaviest())
	g.share()
	g.Init(g, g.answers())
}

// declare puts a limit in force, under whose declared size the largest cost is heaviest.
func (g *limitGate) declare(d *provider.Limit, heaviest int64) {
	g.d, g.declared, g.choosy = d, heaviest, len(d.Charges) > 0
}

// caps tells that the limit caps what is in flight.
func (g *limitGate) caps() bool { return g.rule.InFlight() }

// ofKey is the limit as it is for a key.
func ofKey(d *provider.Limit, key string) *provider.Limit {
	if _, own := d.Keys[key]; own {
		x := d.OfKey(key)
		return &x
	}
	return d
}

// freshRule is an empty rule of a limit, to be copied by Fresh.
func (l *lane) freshRule(d *provider.Limit, key string) *limit.Rule {
	if _, own := d.Keys[key]; own {
		return l.fresh[ruleName(d, key)]
	}
	return l.fresh[d.Name]
}

// ruleName names the rule of a limit for a key that has a size of its own.
func ruleName(d *provider.Limit, key string) string { return d.Name + "\x00" + key }

// answers tells that Never of this limit means: until an answer, which is near, as
// all calls need it.
func (g *limitGate) answers() bool {
	return g.shared != nil || g.d.Scope == provider.ScopeProvider && g.d.Counted != provider.CountedSent
}

// Look asks the rule at the lane's clock, of which now is a part.
func (g *limitGate) Look(now time.Duration, n int64) time.Duration {
	if g.learned == 0 && g.told.until == 0 && g.notBefore <= now && g.shared == nil {
		return g.rule.Look(g.l.now, n)
	}
	at := g.soonest(now, n, 0)
	if g.told.until != 0 {
		at = max(at, g.told.closed(now, n, g.rule.Held()))
	}
	if g.shared != nil && g.askedOut(now, n) {
		return queue.Never // until an answer of the ledger
	}
	return at
}

// soonest is Look as a lower bound: what is out may be given back, and then what an
// answer said is left holds no more; and it may be settled as of some time before now.
func (g *limitGate) soonest(now time.Duration, n int64, before time.Duration) time.Duration {
	g.unlearn(now)
	at := g.rule.Look(g.l.now, n)
	if before > 0 && at != queue.Never {
		at = max(at-before, now)
	}
	if g.learned != 0 && at > g.maxUntil {
		at = max(g.maxUntil, now) // its declared size is back by then
	}
	at = max(at, g.notBefore)
	if g.told.until != 0 {
		at = max(at, g.told.surely(now, n, g.rule.Held()))
	}
	if g.shared != nil {
		at = max(at, g.opensThere(now, n))
	}
	return at
}

// unlearn puts the declared size back when the told one is over.
func (g *limitGate) unlearn(now time.Duration) {
	if g.learned != 0 && now >= g.maxUntil {
		g.resize(g.d.Max)
	}
}

// spent closes the limit: until the told reset, else until the next boundary of
// its calendar, else for a hundredth of its window, doubling, at most all of it.
func (g *limitGate) spent(ls *Lease, advice time.Duration) {
	l := g.l
	switch boundary, dated := g.rule.Boundary(l.now); {
	case advice > 0:
		g.notBefore = after(l.now.Mono, advice)
	case dated:
		g.notBefore = max(g.notBefore, boundary)
	default:
		if ls.granted <= g.spentAt && g.notBefore > l.now.Mono {
			return // sent before we knew: tells nothing new
		}
		w, _ := g.d.Per.Duration()
		g.trial, l.guessed = min(max(2*g.trial, w/100), w), true
		g.notBefore = max(g.notBefore, l.now.Mono+g.trial)
	}
	g.spentAt = l.now.Mono
	g.tellLearned()
	l.q.Touch(&g.Gate)
	l.refuseLate(&g.Gate, g.notBefore)
}

// over is the end of the window in which something was said: the boundary of the limit's
// calendar that came next, else a window after it.
func (g *limitGate) over(said time.Duration) time.Duration {
	if at, dated := g.rule.Boundary(g.l.then(said)); dated {
		return at
	}
	w, _ := g.d.Per.Duration()
	return after(said, w+1)
}

// quiet tells that nothing is known of the limit that its rule does not count.
func (g *limitGate) quiet(now time.Duration) bool {
	if x := g.shared; x != nil && (x.asked > 0 || x.before > now || x.share.until > now) {
		return false
	}
	g.unlearn(now)
	return g.notBefore <= now && g.told.until <= now && g.learned == 0 && !g.Waiting()
}

// maySleep tells that the rule is all that a quiet gate would be missed for.
func (g *limitGate) maySleep() bool { return g.shared == nil && g.trial == 0 && g.rule.Held() == 0 }

// pauseOf is the pause of a scope: the provider's where the call has no such part.
func (r *route) pauseOf(scope string) *pauseGate {
	for _, p := range r.pauses[1:] {
		if p.scope == scope {
			return p
		}
	}
	return r.pauses[0]
}

// spentLimit is the limit that an answer calls spent: the named one, else that of
// the longest window; of several keys each has its own quota, unless it says that
// the provider's is meant.
func (l *lane) spentLimit(r *route, f *provider.Feedback) *limitGate {
	var longest *limitGate
	var length time.Duration
	own := len(l.keys) > 0 && r.key != "" && f.Scope != provider.ScopeProvider
	for _, g := range r.limits {
		if g.d.Name == f.Limit {
			return g
		}
		if own && g.key == "" {
			continue
		}
		if w, _ := g.d.Per.Duration(); !g.caps() && w > length {
			longest, length = g, w
		}
	}
	return longest
}

// after is now+d without overflow; Never is not an instant.
func after(now, d time.Duration) time.Duration {
	if d >= queue.Never-1-now {
		return queue.Never - 1
	}
	return now + d
}

// mono is an instant of this lane's clock on the rules' scale.
func (l *lane) mono(t time.Time) time.Duration { return l.now.Mono + t.Sub(l.clock()) }

// told is an instant that others tell, who may know no more than the calendar.
func (l *lane) told(t time.Time) time.Duration { return l.now.Mono + t.Sub(l.wall()) }

// date is the reverse, for people.
func (l *lane) date(at time.Duration) time.Time {
	if at >= queue.Never-1 {
		return time.Time{}
	}
	return l.wall().Add(at - l.now.Mono)
}
