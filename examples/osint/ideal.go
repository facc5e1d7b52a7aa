package main

import (
	"math"
	"slices"
	"time"

	"github.com/headgate/headgate/provider"
)

// ideals returns when a provider's limits would admit a call to each of the given
// endpoints, since the first and in order of time, if a call took no time at all:
// the yardstick for what a run took. Where calls compete they go in the order
// given. Windows are empty at the beginning, fixed ones begin with it; in_flight
// does not bind calls that take no time. The last instant is the least time that
// so many calls need.
//
// It has its own small counters, so that a fault of Headgate's cannot hide in the
// yardstick.
func ideals(p provider.Provider, limits []provider.Limit, endpoints []string) []time.Duration {
	lines := linesOf(p, limits, endpoints)
	instants := make([]time.Duration, 0, len(endpoints))
	now := time.Duration(0)
	for range endpoints {
		var next *line
		var at time.Duration
		for _, l := range lines {
			if len(l.turns) == 0 {
				continue
			}
			t := now
			for _, n := range l.needs {
				t = max(t, n.counter.opens(now, n.units))
			}
			if next == nil || t < at || t == at && l.turns[0] < next.turns[0] {
				next, at = l, t
			}
		}
		if at == math.MaxInt64 {
			break // heavier than a limit can ever admit
		}
		now = at
		for _, n := range next.needs {
			n.counter.take(now, n.units)
		}
		next.turns = next.turns[1:]
		instants = append(instants, now)
	}
	return instants
}

// line is the calls to one endpoint: they all need the same.
type line struct {
	turns []int // their places in the order given
	needs []need
}

type need struct {
	counter counter
	units   int64
}

// counter is one limit whose calls take no time. Instants never run backwards.
type counter interface {
	opens(now time.Duration, n int64) time.Duration // the first instant from now on; MaxInt64: never
	take(now time.Duration, n int64)
}

func linesOf(p provider.Provider, limits []provider.Limit, endpoints []string) []*line {
	lines := make(map[string]*line)
	var ordered []*line
	shared := make(map[string]counter)
	for i, e := range endpoints {
		l := lines[e]
		if l == nil {
			l = &line{}
			lines[e] = l
			ordered = append(ordered, l)
			for _, limit := range limits {
				if n := units(p, limits, limit, e); n > 0 {
					id := limit.Name
					if limit.Scope == provider.ScopeEndpoint || limit.Scope == provider.ScopeKeyEndpoint {
						id += " " + e
					}
					if shared[id] == nil {
						shared[id] = newCounter(limit)
					}
					l.needs = append(l.needs, need{shared[id], n})
				}
			}
		}
		l.turns = append(l.turns, i)
	}
	return ordered
}

// units is what a call to an endpoint costs in a limit; 0: it does not match.
func units(p provider.Provider, limits []provider.Limit, l provider.Limit, endpoint string) int64 {
	instead := func(x provider.Limit) bool { return x.Instead && slices.Contains(x.Endpoints, endpoint) }
	switch {
	case l.Algorithm == provider.InFlight:
		return 0
	case len(l.Endpoints) > 0 && !slices.Contains(l.Endpoints, endpoint):
		return 0
	case len(l.Endpoints) == 0 && slices.ContainsFunc(limits, instead):
		return 0
	}
	for _, e := range p.Endpoints {
		if n, ok := e.Cost[l.Unit]; ok && e.Name == endpoint {
			return n
		}
	}
	if l.Unit == provider.Requests {
		return 1
	}
	return 0
}

// newCounter counts a limit that Expand has returned.
func newCounter(l provider.Limit) counter {
	per, _ := l.Per.Duration()
	switch l.Algorithm {
	case provider.FixedWindow:
		return &fixed{max: l.Max, per: per}
	case provider.SlidingWindowCounter:
		return &estimate{max: l.Max, per: per}
	case provider.TokenBucket:
		return &bucket{max: l.Max, burst: l.Burst, per: per}
	case provider.LeakyBucket:
		return &spaced{sliding: sliding{max: l.Max, per: per}}
	}
	return &sliding{max: l.Max, per: per}
}

// sliding never has more than max in any window of length per.
type sliding struct {
	max  int64
	per  time.Duration
	sum  int64
	went []taken // that count, oldest first
}

type taken struct {
	at time.Duration
	n  int64
}

func (s *sliding) opens(now time.Duration, n int64) time.Duration {
	if n > s.max {
		return math.MaxInt64
	}
	at, sum := now, s.sum
	for _, t := range s.went {
		if sum+n <= s.max && t.at+s.per > at {
			break
		}
		at, sum = max(at, t.at+s.per), sum-t.n
	}
	return at
}

func (s *sliding) take(now time.Duration, n int64) {
	for len(s.went) > 0 && s.went[0].at+s.per <= now {
		s.sum -= s.went[0].n
		s.went = s.went[1:]
	}
	s.went = append(s.went, taken{now, n})
	s.sum += n
}

// spaced is a sliding window whose calls also keep a distance: per/max for each
// unit of the call before.
type spaced struct {
	sliding
	next time.Duration
}

func (s *spaced) opens(now time.Duration, n int64) time.Duration {
	return max(s.next, s.sliding.opens(now, n))
}

func (s *spaced) take(now time.Duration, n int64) {
	s.sliding.take(now, n)
	s.next = now + time.Duration(float64(s.per)*float64(n)/float64(s.max))
}

// fixed has windows one after the other.
type fixed struct {
	max, used int64
	per       time.Duration
	window    time.Duration // the number of the one that used counts
}

func (f *fixed) opens(now time.Duration, n int64) time.Duration {
	switch {
	case n > f.max:
		return math.MaxInt64
	case now/f.per == f.window && f.used+n > f.max:
		return (f.window + 1) * f.per
	}
	return now
}

func (f *fixed) take(now time.Duration, n int64) {
	if w := now / f.per; w != f.window {
		f.window, f.used = w, 0
	}
	f.used += n
}

// estimate is the two-counter approximation of a sliding window.
type estimate struct {
	max, before, used int64
	per, window       time.Duration
}

func (e *estimate) opens(now time.Duration, n int64) time.Duration {
	if n > e.max {
		return math.MaxInt64
	}
	x := *e
	for at := now; ; at = (x.window + 1) * x.per {
		x.turn(at)
		if x.used+n > x.max {
			continue // not in this window
		}
		// before × (1 − elapsed) + used + n ≤ max
		elapsed := 0.0
		if x.before > 0 {
			elapsed = 1 - float64(x.max-x.used-n)/float64(x.before)
		}
		return max(at, x.window*x.per+time.Duration(math.Ceil(elapsed*float64(x.per))))
	}
}

func (e *estimate) take(now time.Duration, n int64) {
	e.turn(now)
	e.used += n
}

func (e *estimate) turn(now time.Duration) {
	switch w := now / e.per; w {
	case e.window:
	case e.window + 1:
		e.window, e.before, e.used = w, e.used, 0
	default:
		e.window, e.before, e.used = w, 0, 0
	}
}

// bucket holds up to burst and gains max in each per, evenly.
type bucket struct {
	max, burst int64
	per        time.Duration
	missing    float64 // units short of full, at the instant at
	at         time.Duration
}

func (b *bucket) opens(now time.Duration, n int64) time.Duration {
	if n > b.burst {
		return math.MaxInt64
	}
	short := b.missingAt(now) + float64(n-b.burst)
	if short <= 1e-9 { // what floating point leaves is no unit
		return now
	}
	return now + time.Duration(math.Ceil(short*float64(b.per)/float64(b.max)))
}

func (b *bucket) take(now time.Duration, n int64) {
	b.missing, b.at = b.missingAt(now)+float64(n), now
}

func (b *bucket) missingAt(now time.Duration) float64 {
	return max(0, b.missing-float64(now-b.at)/float64(b.per)*float64(b.max))
}
