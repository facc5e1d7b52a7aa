package coordinator

import (
	"fmt"
	"sync"
	"time"

	"github.com/headgate/headgate/breaker"
	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/queue"
	"github.com/headgate/headgate/registry"
)

// lane is one provider in one coordinator: all its gates, its waiters, its timer.
//
// Every method but those that lock by themselves needs mu. Hooks and waiters'
// goroutines run after the unlock: what is to be told is kept in events until a
// caller's goroutine takes it along.
type lane struct {
	c         *Coordinator
	slug      string
	endpoints []provider.Endpoint
	adapter   provider.Adapter          // nil: declared only
	needs     map[string][]string       // what queries must give, by endpoint
	base      map[string]provider.Limit // limits as declared, without overrides

	mu      sync.Mutex
	clock   time.Time              // the reading of this critical section
	now     limit.Now              // the same on the rules' scales
	p       provider.Provider      // as in force
	t       provider.Throttle      // p.Throttle with its defaults
	b       provider.Retry         // p.Retry with its defaults
	limits  []provider.Limit       // t expanded
	fresh   map[string]*limit.Rule // an empty one of each: for one more key
	q       queue.Queue
	extra   int      // waiters in q beyond one a call: options of calls that may go with several keys
	keys    []string // the pool: aliases of which a call that pins none takes one; nil: none
	turn    int      // the next of keys to try first
	breaker *breaker.Breaker
	door    doorGate
	pause   pauseGate
	pools   []*poolGate           // of its category, of all
	general map[string]*limitGate // scope provider, by limit name
	parts   map[partKey]*part     // keys, endpoints, and both
	routes  map[routeKey]*route
	plain   *route   // of calls without key and endpoint
	keyed   []*route // those that may be forgotten
	sweep   int      // the next of keyed to look at
	later   []*later // heap: settlements to come
	trips   trips
	budget  budget
	counts  counts
	lately  *lately // nil: no call yet
	out     int     // leases not released
	oldest  *Lease  // of them
	newest  *Lease
	gone    chan struct{} // closed when out reaches 0; nil: nobody asks
	high    bool          // the queue is over its high-water mark
	down    bool
	skew    skew // of its clock
	tells   bool // its answers tell quotas
	aligned bool // a limit follows the wall clock
	events  []event
	timer   *time.Timer
	timerAt time.Duration // Never: not set
}

// newLane makes the lane of e; declared is its throttle where e has an override,
// else nil.
func newLane(c *Coordinator, e registry.Entry, declared *provider.Throttle, keys []string) (*lane, error) {
	p := e.Provider
	l := &lane{c: c, slug: p.Slug, endpoints: p.Endpoints, adapter: e.Adapter, keys: keys, timerAt: queue.Never, needs: make(map[string][]string)}
	for _, x := range p.Endpoints {
		l.needs[x.Name] = p.Needs(x)
	}
	l.counts.admitted = make([]int64, len(p.Endpoints)+1)
	if declared == nil {
		declared = &p.Throttle
	}
	l.base = make(map[string]provider.Limit)
	limits, _ := expand(*declared)
	for _, d := range limits {
		l.base[d.Name] = d
	}
	l.door.l = l
	l.door.Init(&l.door, false)
	l.pause.init(l, provider.ScopeProvider, "")
	l.pools = c.poolsOf(l, p)
	l.breaker = breaker.New(p.Slug, p.Breaker, p.Timeout)
	l.p, l.b = p, p.Retry.WithDefaults()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read()
	return l, l.declare(p.Throttle)
}

// declare puts a throttle in force: limits are matched by name and scope and keep
// their history. An invalid one changes nothing.
func (l *lane) declare(t provider.Throttle) error {
	limits, err := expand(t)
	if err != nil {
		return err
	}
	fresh := make(map[string]*limit.Rule, len(limits))
	for _, d := range limits { // so that nothing below can fail half-way
		if fresh[d.Name], err = limit.New(d); err != nil {
			return fmt.Errorf("limit %q: %w", d.Name, err)
		}
		for key := range d.Keys {
			if fresh[ruleName(d, key)], err = limit.New(d.OfKey(key)); err != nil {
				return fmt.Errorf("limit %q of key %s: %w", d.Name, key, err)
			}
		}
	}
	l.fresh = fresh
	l.p.Throttle, l.t, l.limits = t, t.WithDefaults(), limits
	l.renew()
	return nil
}

// expand writes a throttle out, with the budget of bad answers as a limit: each call
// that is out may bring one, so it is held like any unit, and charged for those.
func expand(t provider.Throttle) ([]provider.Limit, error) {
	limits, err := t.Expand()
	if bad := t.WithDefaults().BadAnswers; bad != nil {
		d := *bad
		d.Charges = []provider.Outcome{provider.Unauthorized, provider.RateLimited, provider.Banned}
		limits = append(limits, d)
	}
	return limits, err
}

// read reads the clock: once in each critical section, inside the lock.
func (l *lane) read() {
	l.clock = time.Now()
	l.now = limit.Now{Mono: l.clock.Sub(l.c.origin), Wall: time.Duration(l.clock.UnixNano())}
}

// lock opens a critical section: the clock is read, what is due by it is settled.
func (l *lane) lock() {
	l.mu.Lock()
	for _, g := range l.pools {
		g.p.mu.Lock()
	}
	l.read()
	if len(l.later) > 0 {
		l.settleDue()
	}
}

// unlock lets go who may go now, sets the timer and ends the critical section. It
// returns what happened, to be told by the caller.
//
// Of a pool it wakes the lane whose turn it is, which may wake another: one after
// the other, so that no two are ever locked at once.
func (l *lane) unlock() []event {
	l.hand()
	events := l.events
	l.events = nil
	wakeAll(l.leave())
	return events
}

// leave unlocks, and returns the lanes that are to be woken.
func (l *lane) leave() (wake []*lane) {
	for i := len(l.pools) - 1; i >= 0; i-- {
		g := l.pools[i]
		if next := g.settle(); next != nil {
			wake = append(wake, next)
		}
		g.p.mu.Unlock()
	}
	l.mu.Unlock()
	return wake
}

// wakeAll has lanes hand out what pools have for them. Each turn uses a slot, takes
// a lane out of a ring, or is one in vain, of which a pool allows so many as it has
// lanes: so it ends.
func wakeAll(lanes []*lane) {
	for len(lanes) > 0 {
		l := lanes[0]
		l.lock()
		l.hand()
		lanes = append(lanes[1:], l.leave()...)
	}
}

// hand refuses who is too late, lets go who may go, and sets the timer.
func (l *lane) hand() {
	for _, g := range l.pools { // others may have made it ours to go
		if g.p.used < g.p.size && g.turn() {
			l.q.Touch(&g.Gate)
		}
	}
	for moved := true; moved; moved = l.breakerMoved() { // an overdue probe fails in a look
		if l.q.Len() == 0 {
			continue
		}
		for w := l.q.Expired(l.now.Mono); w != nil; w = l.q.Expired(l.now.Mono) {
			ls := w.Owner.(*Lease)
			at, by := l.opensFor(ls, ls.wait.options)
			l.refuse(ls, l.tooLate(ls, at, by))
		}
		l.q.Hand(l.now.Mono, l.goes)
	}
	l.pressure()
	l.setTimer()
}

// goes is the turn of a call that waited: it takes everything, and is woken.
func (l *lane) goes(w *queue.Waiter) {
	ls := w.Owner.(*Lease)
	l.unline(ls, w)
	l.take(ls)
	ls.wait.ready <- struct{}{} // has room for the one message that it ever gets
}

// take is the instant of going.
func (l *lane) take(ls *Lease) {
	ls.granted = l.now
	ls.state = held
	ls.token = l.breaker.Take(l.clock)
	for i, p := range ls.route.pauses {
		if ls.cost[i+1] != 0 {
			p.take(ls)
		}
	}
	for i, g := range l.pools {
		if ls.cost[ls.route.pool+i] != 0 {
			g.take()
		}
	}
	for i, g := range ls.route.limits {
		if n := ls.cost[ls.route.skip+i]; n != 0 {
			g.rule.Take(l.now, n)
			g.told.went += n
		}
	}
	quota := ls.route.keyed
	quota.told.went++
	quota.unsettled++
	if l.tells {
		l.marks(ls)
	}
	if ls.rides = ls.parent.slot(); ls.rides != nil {
		ls.rides.riders++
	}
	ls.route.goes(1)
	if len(l.keys) > 0 {
		l.used(ls.route.key)
	}
	l.out++
	if ls.older = l.newest; ls.older == nil {
		l.oldest = ls
	} else {
		ls.older.newer = ls
	}
	l.newest = ls
	l.counts.granted++
	s := l.second()
	s.went++
	if ls.walk.attempts == 0 {
		s.came++
		l.counts.admitted[ls.route.place]++
	}
	if !ls.again {
		l.budget.called(l.now.Mono)
	}
}

// setTimer has the lane looked at when the next gate may open, the next waiter is
// too late or the next settlement is due; never while nobody waits.
func (l *lane) setTimer() {
	at := queue.Never
	if l.q.Len() > 0 {
		at = l.q.Next()
		if len(l.later) > 0 {
			at = min(at, l.later[0].at)
		}
		if l.aligned { // dates follow the corrected clock; a timer does not
			at = min(at, l.now.Mono+time.Minute)
		}
	}
	if at == l.timerAt {
		return
	}
	l.timerAt = at
	switch {
	case l.timer == nil && at != queue.Never:
		l.timer = time.AfterFunc(max(at-l.now.Mono, 0), l.wake)
	case at != queue.Never:
		l.timer.Reset(max(at-l.now.Mono, 0))
	case l.timer != nil:
		l.timer.Stop()
	}
}

// wake is the timer. What happens in it is told by a caller's goroutine: that of
// whom it woke, else the next.
func (l *lane) wake() {
	l.lock()
	l.woke()
	wakeAll(l.leave())
}

// woke has a look at everything that time may have opened. Limits that follow dates
// told their instants by a clock that may have been set meanwhile.
func (l *lane) woke() {
	l.timerAt = queue.Never
	if l.aligned {
		l.eachLimit(func(g *limitGate) {
			if g.rule.Aligned() {
				l.q.Touch(&g.Gate)
			}
		})
	}
	l.hand()
}

func (l *lane) provider() provider.Provider {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.p.Clone()
}

// shut refuses all who wait and all who come.
func (l *lane) shut() {
	l.lock()
	l.down = true
	for _, ls := range l.waiters() {
		l.refuse(ls, l.refusal(ls, ReasonShutdown, "the coordinator is shut down", 0))
	}
	l.tell(l.unlock())
}

// empty returns a channel that is closed when nothing is in flight.
func (l *lane) empty() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone == nil {
		l.gone = make(chan struct{})
		if l.out == 0 {
			close(l.gone)
		}
	}
	return l.gone
}

// left counts a released lease out. Calls that wait under it do so no more.
func (l *lane) left(ls *Lease) {
	ls.route.goes(-1)
	l.out--
	if ls.older == nil {
		l.oldest = ls.newer
	} else {
		ls.older.newer = ls.newer
	}
	if ls.newer == nil {
		l.newest = ls.older
	} else {
		ls.newer.older = ls.older
	}
	ls.older, ls.newer = nil, nil
	if l.out == 0 && l.gone != nil {
		select {
		case <-l.gone:
		default:
			close(l.gone)
		}
	}
	if ls.nested {
		l.orphan(ls)
	}
}
