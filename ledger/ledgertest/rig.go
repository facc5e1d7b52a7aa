package ledgertest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// Plays count time in units: a window is five of them. In real time a unit is long
// enough for an exchange and for a busy machine's delays.
const (
	virtualUnit = 12 * time.Second
	realUnit    = 40 * time.Millisecond
	slowest     = 500 * time.Millisecond
)

// late is the panic of a play that the machine delayed by more than its slack: what
// the store answered says nothing.
type late struct{}

// rig is the stage of one play. Its time is what the play has passed, not what the
// machine needed: in virtual time they are the same; in real time each step has to
// end before half a unit is over, else all is played again, slower.
type rig struct {
	t     *testing.T
	b     Bench
	u     time.Duration // a unit
	start time.Time
	now   time.Duration // since start, as planned
}

func newRig(t *testing.T, b Bench, unit time.Duration) *rig {
	return &rig{t: t, b: b, u: unit, start: time.Now()}
}

// units is a length of time.
func (r *rig) units(n float64) time.Duration { return time.Duration(n * float64(r.u)) }

// at is an instant of the play.
func (r *rig) at(d time.Duration) time.Time { return r.start.Add(d) }

// slack is what the machine may be late by, and so by how much an instant may differ
// from the planned one.
func (r *rig) slack() time.Duration {
	if r.b.Virtual {
		return 0
	}
	return r.u / 2
}

// jitter is by how much the clocks of the store and of this process may be read apart,
// each of them right.
func (r *rig) jitter() time.Duration {
	if r.b.Virtual {
		return 0
	}
	return time.Millisecond
}

// pass lets time pass.
func (r *rig) pass(d time.Duration) {
	r.now += d
	<-time.After(time.Until(r.at(r.now)))
}

// until lets time pass up to an instant.
func (r *rig) until(d time.Duration) { r.pass(d - r.now) }

// align lets time pass until an aligned window of that length is into it.
func (r *rig) align(w, into time.Duration) {
	wall := time.Duration(r.at(r.now).UnixNano())
	r.pass(w - (wall-into)%w)
}

// onTime ends a play that is late, or during which somebody has set the machine's clock.
func (r *rig) onTime() {
	now := time.Now()
	set := now.Round(0).Sub(r.start.Round(0)) - now.Sub(r.start)
	if now.Sub(r.start)-r.now > r.slack() || set.Abs() > r.jitter() {
		panic(late{})
	}
}

// near asserts that a length of time is what the contract says: never less, and more
// only by the store's resolution (and by extra); in real time within the slack.
func (r *rig) near(want, got, extra time.Duration, what string) {
	r.t.Helper()
	if want == ledger.Event || got == ledger.Event {
		require.Equal(r.t, want, got, "%s: only an event opens it (%s), or time does", what, ledger.Event)
		return
	}
	require.GreaterOrEqual(r.t, got, want-r.slack(), "%s: too early by %s", what, want-got)
	require.LessOrEqual(r.t, got, want+r.slack()+r.b.Resolution+extra, "%s: too late by %s", what, got-want)
}

// shared is a limit as all processes declare it.
type shared struct {
	slug, endpoint, key string
	limit               provider.Limit
}

// n is a cost of so many units of it.
func (s *shared) n(n int64) cost { return cost{s, n} }

type cost struct {
	of *shared
	n  int64
}

// limit makes a limit over five units of time.
func (r *rig) limit(a provider.Algorithm, most int64) *shared {
	return &shared{slug: "acme", limit: provider.Limit{Name: "calls", Max: most, Per: r.period(5), Algorithm: a}}
}

func (r *rig) window(most int64) *shared { return r.limit(provider.SlidingWindow, most) }

func (r *rig) flight(most int64) *shared {
	return &shared{slug: "acme", limit: provider.Limit{Name: "flight", Max: most, Algorithm: provider.InFlight}}
}

func (r *rig) period(units float64) provider.Period { return provider.Period(r.units(units).String()) }

// per is the length of the limits' windows.
func (r *rig) per() time.Duration { return r.units(5) }

// called is the same limit under another name.
func (s shared) called(name string) *shared {
	s.limit.Name = name
	return &s
}

// sent is the same limit, counted as calls are sent.
func (s shared) sent() *shared {
	s.limit.Counted = provider.CountedSent
	return &s
}

// sized is the same limit with another max, as a process with another declaration
// would have it.
func (s shared) sized(most int64) *shared {
	s.limit.Max = most
	return &s
}

// of is the same limit of another provider.
func (s shared) of(slug string) *shared {
	s.slug = slug
	return &s
}

// scoped is the same limit, of one endpoint or key.
func (s shared) scoped(scope, endpoint, key string) *shared {
	s.limit.Scope, s.endpoint, s.key = scope, endpoint, key
	return &s
}

// used asserts what a counter stands at.
func (p *process) used(s *shared, used, held int64) {
	p.t.Helper()
	u := p.peek(s)
	assert.Equal(p.t, used, u.Used, "used")
	assert.Equal(p.t, held, u.Held, "held")
}
