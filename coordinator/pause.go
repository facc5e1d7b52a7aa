package coordinator

import (
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/queue"
)

const (
	maxFloor     = 5 * time.Minute
	floorDecay   = time.Minute // without a refusal: the floor halves
	trialTimeout = time.Minute // of a provider that declares none
	warmupFrom   = 0.1         // of the rate
	strikes      = 3           // unauthorized answers in a row that pause a key; one, where there are others
)

// pauseGate is the provider's own refusal of a scope: nothing goes before until;
// then one call goes alone, and its answer opens the scope or pauses it again. It
// is only ever extended, except by Resume.
type pauseGate struct {
	// What each call looks at and writes to comes first, and is near.
	l            *lane
	on           bool          // paused, or on trial
	warm         time.Duration // start of the warm-up; 0: none
	there        time.Duration // not before, by the ledger
	unsettled    int64         // calls of the scope without an answer
	trial        *Lease        // the call that went alone
	unauthorized int           // answers in a row
	told         told          // a quota that no limit declares
	pace         adaptive

	queue.Gate
	scope, name string

	until  time.Duration // nothing goes before; the end of the last pause
	began  time.Duration // of the last pause: what was sent before knows nothing of it
	why    provider.Outcome
	detail string

	floor   time.Duration // next pause without advice; 0: the penalty
	refused time.Duration // last refusal

	last time.Duration // instant at which the last call went in the warm-up
}

func (p *pauseGate) init(l *lane, scope, name string) {
	p.l, p.scope, p.name = l, scope, name
	p.Init(p, false)
}

func (p *pauseGate) Look(now time.Duration, n int64) time.Duration {
	if !p.on && p.warm == 0 && p.told.until == 0 && p.pace.rate == 0 && p.there == 0 {
		return now
	}
	if p.there > now {
		return p.there
	}
	p.there = 0
	if at := p.told.closed(now, n, p.unsettled); at > now {
		return at
	}
	if at := p.pace.look(now); at > now {
		return at
	}
	switch {
	case p.warm != 0:
		return p.paced(now)
	case !p.on:
		return now
	case now < p.until:
		return p.until
	case p.trial == nil:
		return now
	}
	return max(now, p.overdue()) // a trial that hangs does not keep the scope for ever
}

// overdue is the instant at which a trial without an answer has told nothing.
func (p *pauseGate) overdue() time.Duration {
	timeout := p.l.p.Timeout
	if timeout == 0 {
		timeout = trialTimeout
	}
	return p.trial.granted + timeout
}

func (p *pauseGate) take(ls *Lease) {
	if p.warm != 0 {
		p.last = p.l.now.Mono
	}
	p.pace.went(p.l.now.Mono)
	if p.on {
		p.trial = ls
	}
}

// paced spaces calls after a pause: at a tenth of the rate, rising linearly to all
// of it. The rate is that of the limit with the shortest window.
func (p *pauseGate) paced(now time.Duration) time.Duration {
	whole := p.l.t.Warmup
	done := now - p.warm
	if done >= whole {
		p.warm = 0
		return now
	}
	share := warmupFrom + (1-warmupFrom)*float64(done)/float64(whole)
	at := p.last + time.Duration(float64(p.l.interval())/share)
	if at <= now {
		return now
	}
	return min(at, now+max(whole/100, 1)) // the rate rises meanwhile: look again
}

// interval is the spacing of requests at the full rate.
func (l *lane) interval() time.Duration {
	var shortest, interval time.Duration
	for _, d := range l.limits {
		w, _ := d.Per.Duration()
		if d.Unit != provider.Requests || d.Algorithm == provider.InFlight || shortest != 0 && w >= shortest {
			continue
		}
		shortest, interval = w, w/time.Duration(d.Max)
	}
	return interval
}

// refusedBy pauses the scope on an answer to ls. advice 0: none; least: no shorter
// than that. An answer to a call that was sent before the pause began neither
// ends it nor grows its floor; it may extend it by explicit advice.
func (p *pauseGate) refusedBy(ls *Lease, f *provider.Feedback, least time.Duration) {
	now := p.l.now.Mono
	news := p.trial == ls || !p.on && ls.granted > p.began
	if !news {
		if f.RetryAfter > 0 {
			p.extend(after(now, f.RetryAfter), f.Outcome, f.Detail)
		}
		return
	}
	wait := f.RetryAfter
	if wait == 0 {
		wait = p.grow(now)
	}
	p.refused = now
	p.began = now
	if l := p.l; l.t.Adaptive && f.Outcome == provider.RateLimited {
		var declared float64
		if every := l.interval(); every > 0 {
			declared = float64(time.Second) / float64(every)
		}
		p.pace.cut(now, l.lately.rate(now), declared)
	}
	p.extend(after(now, max(wait, least)), f.Outcome, f.Detail)
}

// grow returns the floor and doubles it for the next time: once a pause. It has
// halved with each minute in which calls could go and none was refused.
func (p *pauseGate) grow(now time.Duration) time.Duration {
	floor := max(p.floor, p.l.t.Penalty)
	for quiet := now - max(p.refused, p.until); quiet >= floorDecay && floor > p.l.t.Penalty; quiet -= floorDecay {
		floor = max(floor/2, p.l.t.Penalty)
	}
	p.floor = min(2*floor, max(maxFloor, p.l.t.Penalty))
	return floor
}

// extend pauses until an instant, never for less than before, and tells other processes.
func (p *pauseGate) extend(until time.Duration, why provider.Outcome, detail string) {
	if l := p.l; p.prolong(until, why, detail) {
		l.owe(owed{news: &ledger.News{Pause: &ledger.Pause{Provider: l.slug, Scope: p.scope, Name: p.name,
			Until: l.c.origin.Add(until), Why: string(why), Detail: detail}}})
	}
}

// prolong is extend without telling; it tells whether there is anything new.
func (p *pauseGate) prolong(until time.Duration, why provider.Outcome, detail string) bool {
	l := p.l
	if p.on && until <= p.until {
		return false
	}
	p.on, p.until, p.trial, p.warm, p.why, p.detail = true, until, nil, 0, why, detail
	l.q.Touch(&p.Gate)
	l.event(event{pause: &PauseChange{Provider: l.slug, Scope: p.scope, Name: p.name, Why: string(why), Until: l.date(until)}})
	l.refuseLate(&p.Gate, until)
	return true
}

// answered sees what the answer to a trial says of its pause.
func (p *pauseGate) answered(ls *Lease, o provider.Outcome) {
	if p.trial != ls {
		return
	}
	if opensScope(o) {
		p.open()
	} else { // it tells nothing of this scope: the next one goes alone
		p.dropped(ls)
	}
}

// opensScope tells that such an answer ends the pause of the scope in which it went
// alone.
func opensScope(o provider.Outcome) bool {
	switch o {
	case provider.OK, provider.Rejected, provider.Unauthorized, provider.QuotaSpent:
		return true
	}
	return false
}

// open ends the pause, and tells other processes.
func (p *pauseGate) open() {
	if p.end() {
		p.l.owe(owed{news: &ledger.News{Resume: &ledger.Pause{Provider: p.l.slug, Scope: p.scope, Name: p.name}}})
	}
}

// end is open without telling; it tells whether there was one.
func (p *pauseGate) end() bool {
	if !p.on {
		return false
	}
	p.on, p.until, p.trial = false, min(p.until, p.l.now.Mono), nil
	if p.l.t.Warmup > 0 && p.l.interval() > 0 {
		p.warm, p.last = p.l.now.Mono, p.l.now.Mono
	}
	p.l.q.Touch(&p.Gate)
	p.l.event(event{pause: &PauseChange{Provider: p.l.slug, Scope: p.scope, Name: p.name, Why: string(p.why)}})
	return true
}

// dropped gives the place of a trial that never was back.
func (p *pauseGate) dropped(ls *Lease) {
	if p.trial == ls {
		p.trial = nil
		p.l.q.Touch(&p.Gate)
	}
}

// authorized keeps count of unauthorized answers in a row.
func (p *pauseGate) authorized(ls *Lease, f *provider.Feedback) {
	switch f.Outcome {
	case provider.OK, provider.Rejected:
		p.unauthorized = 0
	case provider.Unauthorized:
		if p.unauthorized++; p.unauthorized >= strikes || len(p.l.keys) > 0 {
			p.refusedBy(ls, &provider.Feedback{Outcome: f.Outcome, Detail: f.Detail}, 0)
		}
	}
}

// idle tells that nothing is known any more that a new pause would not know. What
// answers said is forgotten when its scope was unused for so long that the highest
// floor would be over.
func (p *pauseGate) idle(now, unused time.Duration) bool {
	switch {
	case p.Waiting() || p.unsettled > 0 || now < p.told.until || p.on && (now < p.until || p.trial != nil):
		return false
	case !p.on && p.warm == 0 && p.pace.rate == 0 && p.unauthorized == 0 && p.floor == 0:
		return true
	}
	return unused > maxFloor && now-p.until > maxFloor
}
