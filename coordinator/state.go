package coordinator

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/queue"
)

// shownKeys is how many keys a State lists: the busiest.
const shownKeys = 100

// LimitState is one limit as it stands.
type LimitState struct {
	Name    string          `json:"name"`
	Unit    string          `json:"unit"`
	Max     int64           `json:"max"`
	Used    int64           `json:"used"` // charged and still counting
	Held    int64           `json:"held"` // of calls that have no answer yet; none where they count as they are sent
	Per     provider.Period `json:"per,omitempty"`
	ResetAt time.Time       `json:"reset_at,omitzero"` // when units come back; zero: none is out
	Room    int64           `json:"room"`              // how many there are when none is out: Max, of a token bucket its burst
	Left    int64           `json:"left"`              // of those; 0 while the provider has said that none is
	Shared  bool            `json:"shared,omitempty"`  // with other processes: Left is what the ledger last said, Used and Held are this process's
	Origin  string          `json:"origin"`            // declared | overridden | learned | assumed | pacing (our courtesy)
}

// QueueState is the queue of a provider.
type QueueState struct {
	Length   int           `json:"length"`
	Capacity int           `json:"capacity"` // 0: no bound
	Wait     time.Duration `json:"wait"`     // estimated, for one who came now: a lower bound
}

// BreakerState is the breaker of a provider.
type BreakerState struct {
	State    string    `json:"state"` // closed | open | half-open | off
	Failures int       `json:"failures"`
	Until    time.Time `json:"until,omitzero"` // of open
}

// PauseState is one pause in force.
type PauseState struct {
	Scope string    `json:"scope"`
	Name  string    `json:"name,omitempty"` // the key's alias, or the endpoint
	Why   string    `json:"why"`
	Until time.Time `json:"until"`
	Trial bool      `json:"trial"` // it is over; one call has gone alone
}

// KeyState is one key, by its alias.
type KeyState struct {
	Key      string       `json:"key"`
	InFlight int          `json:"in_flight"`
	Limits   []LimitState `json:"limits,omitempty"`
	Pause    *PauseState  `json:"pause,omitempty"`
}

// State is one provider at one instant.
type State struct {
	Provider    string                     `json:"provider"`
	At          time.Time                  `json:"at"`
	Limits      []LimitState               `json:"limits"` // that all calls share, and of scope key those of calls that name none
	Endpoints   map[string][]LimitState    `json:"endpoints,omitempty"`
	Keys        []KeyState                 `json:"keys,omitempty"` // the 100 busiest; all of a pool
	KeyCount    int                        `json:"key_count"`
	Queue       QueueState                 `json:"queue"`
	Oldest      time.Duration              `json:"oldest"` // wait so far of the call that came first
	InFlight    int                        `json:"in_flight"`
	Pools       []PoolState                `json:"pools,omitempty"` // that the provider's calls share with others'
	OldestOut   time.Duration              `json:"oldest_out"`      // since the oldest of those went: a body that nobody closes
	Breaker     BreakerState               `json:"breaker"`
	Pauses      []PauseState               `json:"pauses,omitempty"`
	Ledger      *LedgerState               `json:"ledger,omitempty"`    // of the budget that is shared; nil: none
	RoundTrip   time.Duration              `json:"round_trip"`          // median of the last few
	Lately      Lately                     `json:"lately"`              // the last minute
	Decisions   []Decision                 `json:"decisions,omitempty"` // on each call once, since the beginning
	RetryBudget float64                    `json:"retry_budget"`        // what is left of it: 1 all, 0 nothing
	Granted     int64                      `json:"granted"`             // attempts that went
	Retries     int64                      `json:"retries"`
	Outcomes    map[provider.Outcome]int64 `json:"outcomes,omitempty"`
	Refused     map[Reason]int64           `json:"refused,omitempty"`
	Ignored     int64                      `json:"ignored"`   // units named by calls that no limit counts
	Lingering   int                        `json:"lingering"` // calls without an answer whose units are held still

	LeastRoundTrip        time.Duration `json:"least_round_trip,omitempty"`         // in force: the declared one, or the shortest that was seen; 0: none
	LeastRoundTripRefuted bool          `json:"least_round_trip_refuted,omitempty"` // an answer took less than was declared
}

// State returns the state of one provider. What a limit that is shared has left is the
// ledger's word also before the first call: the ledger is asked then, within its budget,
// and at most once a beat. States asks for all providers at once.
func (c *Coordinator) State(slug string) (State, error) {
	l, err := c.lane(slug)
	if err != nil {
		return State{}, err
	}
	c.peekStates(l)
	return l.state(), nil
}

// States returns the state of every provider that was used, sorted by slug.
func (c *Coordinator) States() []State {
	lanes := *c.lanes.Load()
	c.peekStates(slices.Collect(maps.Values(lanes))...)
	states := make([]State, 0, len(lanes))
	for _, slug := range slices.Sorted(maps.Keys(lanes)) {
		states = append(states, lanes[slug].state())
	}
	return states
}

func (l *lane) state() State {
	l.lock()
	defer func() { l.tell(l.unlock()) }()
	s := State{
		Provider: l.slug, At: l.wall(), Ledger: l.c.ledgerState(), Queue: l.queueState(), InFlight: len(l.out), RoundTrip: l.trips.median(),
		Granted: l.counts.granted, Retries: l.counts.retries, Ignored: l.counts.ignored, Lingering: l.lingering(),
		Outcomes: l.counts.byOutcome(), Refused: maps.Clone(l.counts.refusals),
		Lately: l.lastMinute(), Decisions: l.decisions(), RetryBudget: l.lately.left(l.now.Mono, l.b.Budget),
	}
	for _, ls := range l.out {
		s.OldestOut = max(s.OldestOut, l.now.Mono-ls.granted)
	}
	if w := l.q.Oldest(); w != nil {
		s.Oldest = l.now.Mono - w.Owner.(*Lease).granted
	}
	s.LeastRoundTrip, s.LeastRoundTripRefuted = l.least.holds, l.least.holds < l.least.declared
	bs, until := l.breaker.State(l.clock())
	s.Breaker = BreakerState{State: string(bs), Failures: l.breaker.Failures(), Until: until}
	if l.breaker == nil {
		s.Breaker.State = "off"
	}
	s.Limits = statesOf(l.general)
	if p := l.pause.state(); p != nil {
		s.Pauses = append(s.Pauses, *p)
	}
	for _, g := range l.pools {
		s.Pools = append(s.Pools, g.state())
	}
	l.partStates(&s)
	return s
}

// partStates fills in endpoints and keys. Of keys there may be very many, and calls
// wait meanwhile: only those that are shown are told in full.
func (l *lane) partStates(s *State) {
	var busy busyKeys
	for id, pt := range l.parts {
		if pt.pause != nil {
			if p := pt.pause.state(); p != nil {
				s.Pauses = append(s.Pauses, *p)
			}
		}
		switch {
		case id.key == "" && id.endpoint != "":
			if limits := statesOf(pt.limits); len(limits) > 0 {
				s.endpoint(id.endpoint, limits)
			}
		case id.endpoint == "" && id.key != "":
			busy.add(busyKey{alias: id.key, part: pt, share: pt.busy()})
		}
	}
	for _, x := range l.naps {
		switch id := x.id; {
		case id.key == "":
			if limits := statesOf(l.gatesOf(x.sleeper)); len(limits) > 0 {
				s.endpoint(id.endpoint, limits)
			}
		case id.endpoint == "":
			busy.add(busyKey{alias: id.key, asleep: x.sleeper, share: l.taken(x.sleeper)})
		}
	}
	for _, alias := range l.keys { // whichever was used or not
		if id := (partKey{key: alias}); l.parts[id] == nil && l.asleep[id] == nil {
			busy.add(busyKey{alias: alias})
		}
	}
	s.Limits = append(s.Limits, l.unnamed(busy.n > 0)...)
	s.KeyCount = busy.n
	for _, b := range busy.most() {
		k := KeyState{Key: b.alias}
		switch {
		case b.part != nil:
			k.InFlight, k.Limits = b.part.out, statesOf(b.part.limits)
			if b.part.pause != nil {
				k.Pause = b.part.pause.state()
			}
		case b.asleep != nil:
			k.Limits = statesOf(l.gatesOf(b.asleep))
		default:
			k.Limits = l.unused(b.alias)
		}
		s.Keys = append(s.Keys, k)
	}
	slices.SortFunc(s.Pauses, func(a, b PauseState) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Name, b.Name))
	})
}

// statesOf are the limits that there are, in the order of declaration.
func statesOf(gates []*limitGate) (limits []LimitState) {
	for _, g := range gates {
		if g != nil {
			limits = append(limits, *g.state())
		}
	}
	return limits
}

func (s *State) endpoint(name string, limits []LimitState) {
	if s.Endpoints == nil {
		s.Endpoints = make(map[string][]LimitState)
	}
	s.Endpoints[name] = limits
}

// busyKey is a key by what is taken of it. It is awake, asleep, or unused.
type busyKey struct {
	alias  string
	part   *part
	asleep *sleeper
	share  float64
}

// busyKeys are those of very many keys that are shown.
type busyKeys struct {
	n   int // of all
	all []busyKey
}

func (b *busyKeys) add(k busyKey) {
	b.n++
	if b.all = append(b.all, k); len(b.all) == 4*shownKeys {
		b.all = b.most()
	}
}

// most are the busiest.
func (b *busyKeys) most() []busyKey {
	slices.SortFunc(b.all, func(a, b busyKey) int {
		return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(a.alias, b.alias))
	})
	return b.all[:min(len(b.all), shownKeys)]
}

// busy is the largest share taken of a limit, and what is out.
func (pt *part) busy() (share float64) {
	for _, g := range pt.limits {
		if g == nil {
			continue
		}
		u, size := g.usage(), g.maxNow()
		taken := u.Used + u.Held
		if g.notBefore <= g.l.now.Mono && g.learned == 0 && g.told.until > g.l.now.Mono {
			taken = max(taken, size-g.told.rest(u.Held)) // as state shows it
		}
		share = max(share, float64(taken)/float64(size))
	}
	return share + float64(pt.out)
}

// unused are the limits of a key that nobody has used, or for long.
func (l *lane) unused(alias string) (limits []LimitState) {
	for i := range l.limits {
		if d := &l.limits[i]; d.Scope == provider.ScopeKey {
			limits = append(limits, *l.newLimitGate(d, partKey{key: alias}, nil).state())
		}
	}
	return limits
}

// usage is what counts and what is held: none where calls count as they are sent.
func (g *limitGate) usage() limit.Usage {
	u := g.rule.Usage(g.l.now)
	if g.rule.Sent() {
		u.Held = 0 // used already
	}
	return u
}

func (g *limitGate) state() *LimitState {
	u := g.usage()
	s := &LimitState{Name: g.d.Name, Unit: g.d.Unit, Max: g.maxNow(), Used: u.Used, Held: u.Held, Per: g.d.Per, Origin: "declared"}
	s.Room = s.Max
	if g.d.Algorithm == provider.TokenBucket {
		s.Room = g.d.Burst
	}
	s.Left = max(0, s.Room-u.Used-u.Held)
	switch {
	case g.notBefore > g.l.now.Mono:
		s.Origin, s.Left = "learned", 0
		u.ResetAt = max(u.ResetAt, g.notBefore)
	case g.learned != 0:
		s.Origin = "learned"
	case g.told.until > g.l.now.Mono && g.told.rest(u.Held) < g.d.Max-u.Used-u.Held:
		s.Origin = "learned"
		s.Used = max(s.Used, s.Max-s.Held-g.told.rest(u.Held))
		s.Left = max(0, min(s.Left, g.told.rest(u.Held)))
		u.ResetAt = max(u.ResetAt, g.told.until)
	case g.overridden():
		s.Origin = "overridden"
	case g.d.Basis == provider.BasisPacing:
		s.Origin = "pacing"
	case g.d.Basis == provider.BasisAssumed:
		s.Origin = "assumed"
	}
	if x := g.shared; x != nil {
		s.Shared = true
		if x.room >= 0 && g.l.now.Mono < g.over(x.roomAt) {
			s.Left = min(s.Left, x.room)
		}
		u.ResetAt = x.resets(u.ResetAt, g.l.now.Mono)
	}
	if u.ResetAt > g.l.now.Mono {
		s.ResetAt = g.l.date(u.ResetAt)
	}
	return s
}

// overridden tells that the limit in force is not the declared one.
func (g *limitGate) overridden() bool {
	base, declared := g.l.base[g.d.Name]
	return !declared || !reflect.DeepEqual(base.OfKey(g.key), *g.d)
}

func (p *pauseGate) state() *PauseState {
	if !p.on {
		return nil
	}
	return &PauseState{Scope: p.scope, Name: p.name, Why: string(p.why), Until: p.l.date(p.until), Trial: p.trial != nil}
}

// queueState is the queue now; the wait is that of one who needs what all need.
func (l *lane) queueState() QueueState {
	s := QueueState{Length: l.waiting(), Capacity: l.places(l.plain)}
	if l.t.Excess == provider.Delay {
		s.Capacity = 0
	}
	if s.Length == 0 {
		return s
	}
	var at time.Duration
	for i, g := range l.plain.limits {
		if n := l.plain.cost[l.plain.skip+i]; n > 0 && g.d.Scope == provider.ScopeProvider {
			if t := g.rule.When(l.now, int64(s.Length+1)*n); t != limit.Never {
				at = max(at, t-g.sooner())
			}
		}
	}
	if opens := l.q.Opens(); opens != queue.Never {
		at = max(at, opens)
	}
	s.Wait = max(at-l.now.Mono, 0)
	return s
}

func (l *lane) lingering() (n int) {
	for _, s := range l.later {
		if !s.early {
			n++
		}
	}
	return n
}
