package coordinator

import (
	"fmt"
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
	// What each call looks at and writes to comes first, and is near: of thousands of
	// lanes none is in the processor's cache.
	c       *Coordinator
	mu      crowd
	now     limit.Now // the instant of this critical section; Wall only where aligned
	section uint64    // its number
	plain   *route    // of calls without key and endpoint
	keyed   []*route  // those that may be dropped
	naps    []nap     // of parts that sleep
	pools   []*poolGate
	keys    []string // the pool: aliases of which a call that pins none takes one; nil: none
	breaker *breaker.Breaker
	timeout time.Duration // of an attempt; 0: none
	timerAt time.Duration // Never: not set
	later   []*later      // heap: settlements to come
	out     []*Lease      // not released, in no order
	events  []event
	off     bool // it, or an endpoint of it, is switched off
	high    bool // the queue is over its high-water mark
	down    bool
	tells   bool // its answers tell quotas
	guessed bool // a limit was spent without a told reset
	aligned bool // a limit follows the wall clock
	paying  bool // somebody is telling the ledger
	apart   bool // the ledger does not answer
	q       queue.Queue
	counts  counts
	lately  lately
	trips   trips
	least   leastTrip
	pause   pauseGate
	door    doorGate
	few     [4]*Lease   // where out begins
	route1  route       // what plain is until the first Update
	near    [4]nearGate // where the gates of general limits begin
	seen    int64       // what ahead has read: else the compiler would leave that out

	slug      string
	endpoints []provider.Endpoint
	adapter   provider.Adapter          // nil: declared only
	needs     map[string][]string       // what queries must give, by endpoint
	base      map[string]provider.Limit // limits as declared, without overrides
	p         provider.Provider         // as in force
	t         provider.Throttle         // p.Throttle with its defaults
	b         provider.Retry            // p.Retry with its defaults
	limits    []provider.Limit          // t expanded
	fresh     map[string]*limit.Rule    // an empty one of each: for one more key
	general   []*limitGate              // of scope provider, by limit; nil: another scope
	parts     map[partKey]*part         // keys, endpoints, and both
	routes    map[routeKey]*route
	sweep     int // the next of keyed to look at
	asleep    map[partKey]*sleeper
	nap       int           // the next of naps to look at
	turn      int           // the next of keys to try first
	extra     int           // waiters in q beyond one a call: options of calls that may go with several keys
	wallTime  time.Time     // see wall
	wallAt    time.Duration // the instant at which that was read
	gone      chan struct{} // closed when nothing is out any more; nil: nobody asks
	skew      skew          // of its clock
	owed      []owed        // to the ledger, to be told after the unlock
	timer     *time.Timer
}

// newLane makes the lane of e; declared is its throttle where e has an override,
// else nil.
func newLane(c *Coordinator, e registry.Entry, declared *provider.Throttle, keys []string) (*lane, error) {
	p := e.Provider
	l := &lane{c: c, slug: p.Slug, endpoints: p.Endpoints, adapter: e.Adapter, keys: keys, timerAt: queue.Never, needs: make(map[string][]string)}
	for _, x := range p.Endpoints {
		l.needs[x.Name] = p.Needs(x)
	}
	l.counts.admitted = make([]int64, len(p.Endpoints))
	if declared == nil {
		declared = &p.Throttle
	}
	l.base = make(map[string]provider.Limit)
	limits, _ := expand(*declared)
	for _, d := range limits {
		l.base[d.Name] = d
	}
	l.out = l.few[:0]
	l.door.l = l
	l.door.Init(&l.door, false)
	l.pause.init(l, provider.ScopeProvider, "")
	l.pools = c.poolsOf(l, p)
	l.breaker = breaker.New(p.Slug, p.Breaker, p.Timeout)
	l.p, l.b, l.timeout = p, p.Retry.WithDefaults(), p.Timeout
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read()
	l.apart = c.ledger != nil && !c.ledger.Status().Up
	return l, l.declare(p.Throttle)
}

// declare puts a throttle in force: limits are matched by name and scope and keep
// their history. An invalid one changes nothing.
func (l *lane) declare(t provider.Throttle) error {
	limits, err := expand(t)
	if err != nil {
		return err
	}
	l.now.Wall = time.Duration(l.wall().UnixNano()) // a limit may begin to follow the calendar
	fresh := make(map[string]*limit.Rule, len(limits))
	for _, d := range limits { // so that nothing below can fail half-way
		if fresh[d.Name], err = limit.New(d); err != nil {
			return fmt.Errorf("limit %q: %w", d.Name, err)
		}
		for key := range d.Keys {
			if fresh[ruleName(&d, key)], err = limit.New(d.OfKey(key)); err != nil {
				return fmt.Errorf("limit %q of key %s: %w", d.Name, key, err)
			}
		}
	}
	l.fresh, l.aligned = fresh, false
	for _, r := range fresh { // also before anything counts in it: its first call has a date
		l.aligned = l.aligned || r.Aligned()
	}
	old := l.limits
	l.p.Throttle, l.t, l.limits, l.off = t, t.WithDefaults(), limits, len(t.Off) > 0
	l.least = leastTrip{declared: t.LeastRoundTrip, holds: t.LeastRoundTrip}
	l.renew(old)
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
		if len(l.out) == 0 {
			close(l.gone)
		}
	}
	return l.gone
}

// left counts a released lease out. Calls that wait under it do so no more.
func (l *lane) left(ls *Lease) {
	ls.route.goes(-1)
	last := len(l.out) - 1
	l.out[last].at = ls.at
	l.out[ls.at], l.out[last] = l.out[last], nil
	l.out = l.out[:last]
	if last == 0 && l.gone != nil {
		select {
		case <-l.gone:
		default:
			close(l.gone)
		}
	}
	if ls.rare != nil && ls.rare.nested {
		l.orphan(ls)
	}
}
