// Package conformance plays providers that count exactly, networks that delay, and
// programs that call, and tells how many calls each peer gets refused, how many it
// gets through, and how long they wait.
//
// The judge is internal/referee: it counts a call as it arrives, by code that shares
// nothing with Headgate's. Everything is played in virtual time, so that a day takes a
// moment and a slow machine changes nothing; see the package's test, which is also
// how the program runs it.
package conformance

import (
	"time"

	"github.com/headgate/headgate/bench/peer"
)

// Set is what a provider declares, and the demand that fits it.
type Set struct {
	Name   string
	Limits []peer.Limit
	Window time.Duration // what warm-up and horizon are counted in

	Callers int           // of steady demand: more than can ever go at once
	Burst   int           // calls at once, every BurstEvery
	Every   time.Duration // of bursts
	On, Off time.Duration // of on-off demand: a call every Gap, then none
	Gap     time.Duration
}

// simple is one limit: bursts of three windows' worth every five windows; a fifth too
// much for five windows, then nothing for five. Both are 60 % of the limit.
func simple(name string, n int, per time.Duration) Set {
	return Set{
		Name: name, Limits: []peer.Limit{{N: n, Per: per}}, Window: per,
		Callers: 2*n + 8, Burst: 3 * n, Every: 5 * per, On: 5 * per, Off: 5 * per, Gap: per * 5 / time.Duration(6*n),
	}
}

// Sets are the declared limits.
func Sets() []Set {
	return []Set{
		simple("50 per 1 s", 50, time.Second),
		simple("4 per 60 s", 4, time.Minute),
		simple("1 per 1 s", 1, time.Second),
		{
			Name: "2 per 1 s, 30 per 60 s and 1,000 per 24 h", Window: 24 * time.Hour,
			Limits:  []peer.Limit{{N: 2, Per: time.Second}, {N: 30, Per: time.Minute}, {N: 1000, Per: 24 * time.Hour}},
			Callers: 8, Burst: 25, Every: time.Hour, On: 8 * time.Hour, Off: 16 * time.Hour, Gap: 48 * time.Second,
		},
	}
}

// day tells that the windows of s are long: fewer of them are played.
func (s Set) day() bool { return s.Window > time.Hour }

// Network delays each request, and each answer, by a time drawn evenly.
type Network struct {
	Name     string
	Min, Max time.Duration
}

// Networks are the delays, each way.
func Networks() []Network {
	return []Network{
		{"no delay", 0, 0},
		{"10–100 ms", 10 * time.Millisecond, 100 * time.Millisecond},
		{"20–300 ms", 20 * time.Millisecond, 300 * time.Millisecond},
	}
}

// RoundTrip is the mean.
func (n Network) RoundTrip() time.Duration { return n.Min + n.Max }

// Demand is how calls come.
type Demand string

// The demands.
const (
	Steady Demand = "steady" // there is always one more
	Bursty Demand = "bursty"
	OnOff  Demand = "on-off"
)

// Kinds, Demands and Peers are what is combined with each other.
var (
	Kinds   = []peer.Kind{peer.Window, peer.Fixed, peer.Bucket}
	Demands = []Demand{Steady, Bursty, OnOff}
	Peers   = []peer.Peer{peer.Headgate, peer.Informed, peer.ByHand, peer.Failsafe, peer.Spaced, peer.Burst, peer.Slowed,
		peer.Uber, peer.Discovery, peer.Throttled, peer.GoLimiter, peer.Retryable}
)

// Cell is one combination.
type Cell struct {
	Peer    peer.Peer
	Set     Set
	Kind    peer.Kind
	Network Network
	Demand  Demand
	// Strict: a call that the provider refuses counts against the limit, too.
	Strict bool
}

// Result is what a cell came to. Rates are per second; waits are seconds from when a
// call comes to when the attempt is sent that is admitted, those of calls that never
// were at least as long as it was played.
type Result struct {
	Peer, Set, Network string
	Kind               peer.Kind
	Demand             Demand
	Strict             bool

	Arrived, Refused     int64   // requests
	Goodput, Utilisation float64 // admitted calls; of what the limit allows
	Bound                float64 // steady: W/(W + mean round trip), of the same
	P50, P99             float64
}

// Cells are all combinations that make sense; few: those of one set, two networks and
// short horizons will do for a look.
func Cells(few bool) []Cell {
	sets, networks := Sets(), Networks()
	if few {
		sets, networks = sets[2:], networks[1:2]
	}
	var all []Cell
	for _, strict := range []bool{false, true} {
		for _, s := range sets {
			for _, k := range Kinds {
				for _, n := range networks {
					for _, d := range Demands {
						for _, p := range Peers {
							all = append(all, Cell{p, s, k, n, d, strict})
						}
					}
				}
			}
		}
	}
	return all
}

// Skip tells why a cell is not played; "": it is.
func (c Cell) Skip() string {
	if c.Peer.Blind && c.Set.Window > time.Second {
		return "the peer does not know virtual time, and the windows are too long to wait for"
	}
	return ""
}

// plan is how long a cell is played, counted in its windows, and how often.
type plan struct{ warm, windows, times int }

// plan plays fixed windows in several phases, a part of the time each: a program that
// calls at regular intervals is lucky with most of them.
func (c Cell) plan(quick bool) plan {
	p := plan{warm: 5, windows: 40, times: 1}
	if c.Demand == Steady {
		p.windows = 80 // a whole window more or less is the error
	}
	if c.Set.Limits[0].N < 10 {
		p.windows *= 4 // few calls a window: it costs nothing
	}
	if c.Kind == peer.Fixed {
		p.times = 12
		if c.Demand != Steady || c.Peer.Limitless { // else a window more or less would be the error, again
			p.windows /= 4
		}
	}
	switch {
	case c.Set.day():
		p = plan{1, 2, min(p.times, 3)}
	case c.Peer.Blind:
		p.windows = 15
	case quick:
		p.windows = min(p.windows, 40)
		if p.times > 1 {
			p.windows = 10
		}
	}
	if c.Peer.Limitless && !c.Set.day() { // its refusals grow with the square of the time
		p.windows /= 4
	}
	return p
}

// phase is where the i-th of so many times finds the windows of its provider, against
// the peer's first call: one from each stretch of equal length, so that no luck is left.
func (c Cell) phase(i, times int) time.Duration {
	const within = 0.37
	return time.Duration((float64(i) + within) / float64(times) * float64(c.Set.Window))
}
