package coordinator

import (
	"slices"
	"time"

	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
)

// A key that nobody uses is forgotten when it is as good as new. Until then, which for a
// limit of a day is a day, it sleeps: of its gates only what its limits count is kept, a
// fraction of what a key takes that is awake. So do endpoints that nobody has declared.

// mostAwake is how many routes of keys may be awake without being used.
const mostAwake = 8192

// sleeper is what is left of a part that sleeps.
type sleeper struct {
	id    partKey
	rules []*limit.Rule // by limit, as declared; nil: nothing of it counts
	at    int           // place in lane.naps
}

// nap is how long a sleeper has to be kept, at least.
type nap struct {
	until time.Duration
	*sleeper
}

// quiet tells that nothing is known of a route that its limits do not count. What
// other routes know, too, stays with those.
func (l *lane) quiet(r *route) bool {
	if r.out+r.wait > 0 {
		return false
	}
	for _, pt := range r.parts {
		if pt.refs > 1 {
			continue
		}
		if pt.out+pt.wait > 0 || pt.pause != nil && !pt.pause.idle(l.now.Mono, l.now.Mono-max(r.used, pt.used)) {
			return false
		}
		for _, g := range pt.limits {
			if g != nil && !g.quiet(l.now.Mono) {
				return false
			}
		}
	}
	return true
}

// mayDrop tells that a route may be dropped: it is as good as new, or may sleep.
func (l *lane) mayDrop(r *route) bool {
	unused := l.now.Mono - r.used
	if r.section == l.section || len(l.keyed) <= mostAwake && unused < r.rest || !l.quiet(r) {
		return false
	}
	sleeps := len(l.keyed) > mostAwake || unused >= keepUnused
	for _, pt := range r.parts {
		for _, g := range pt.limits {
			if pt.refs == 1 && g != nil && !g.rule.Idle(l.now) && !(sleeps && g.maySleep()) {
				return false
			}
		}
	}
	return true
}

// sleep keeps what the limits of a part count.
func (l *lane) sleep(pt *part) {
	s := &sleeper{id: pt.id, rules: make([]*limit.Rule, len(pt.limits)), at: len(l.naps)}
	for i, g := range pt.limits {
		if g != nil {
			s.rules[i] = g.rule
		}
	}
	until := s.over(l.now)
	if until <= l.now.Mono {
		return // as good as new
	}
	if l.asleep == nil {
		l.asleep = make(map[partKey]*sleeper)
	}
	l.asleep[s.id] = s
	l.naps = append(l.naps, nap{until, s})
}

// over drops what counts no more, and tells until when the rest does.
func (s *sleeper) over(now limit.Now) time.Duration {
	until := now.Mono
	for i, r := range s.rules {
		switch {
		case r == nil:
		case r.Idle(now):
			s.rules[i] = nil
		default:
			until = max(until, r.Look(now, r.Heaviest()), now.Mono+1)
		}
	}
	return until
}

// rouse gives a part that was made anew what it counted as it fell asleep.
func (l *lane) rouse(pt *part) {
	if s := l.asleep[pt.id]; s != nil {
		pt.limits = l.gatesOf(s)
		l.leaves(s)
	}
}

// gatesOf are the gates of a sleeper.
func (l *lane) gatesOf(s *sleeper) []*limitGate {
	gates := make([]*limitGate, len(s.rules))
	for i, r := range s.rules {
		if r != nil {
			gates[i] = l.newLimitGate(&l.limits[i], s.id, r)
			gates[i].skew = unknownSkew
		}
	}
	return gates
}

// taken is the largest share of a limit that a sleeper has taken.
func (l *lane) taken(s *sleeper) (share float64) {
	for i, r := range s.rules {
		if r != nil {
			share = max(share, float64(r.Usage(l.now).Used)/float64(ofKey(&l.limits[i], s.id.key).Max))
		}
	}
	return share
}

// leaves takes a sleeper out.
func (l *lane) leaves(s *sleeper) {
	delete(l.asleep, s.id)
	last := len(l.naps) - 1
	l.naps[last].at = s.at
	l.naps[s.at], l.naps[last] = l.naps[last], nap{}
	l.naps = l.naps[:last]
	if last == 0 {
		l.asleep, l.naps = nil, nil // a map keeps the room of its best day
	}
}

// forgetSleepers looks at two sleepers and forgets those that are as good as new.
func (l *lane) forgetSleepers() {
	for range min(2, len(l.naps)) {
		l.nap %= len(l.naps)
		x := &l.naps[l.nap]
		if x.until <= l.now.Mono {
			if x.until = x.over(l.now); x.until <= l.now.Mono {
				l.leaves(x.sleeper)
				if l.naps == nil {
					return
				}
				continue
			}
		}
		l.nap++
	}
}

// renewSleepers puts new numbers into what sleeps, as renewLimits does.
func (l *lane) renewSleepers(old []provider.Limit) {
	for i := range l.naps {
		x := &l.naps[i]
		rules := x.rules
		x.rules = make([]*limit.Rule, len(l.limits))
		for i := range l.limits {
			d := &l.limits[i]
			j := slices.IndexFunc(old, func(o provider.Limit) bool { return o.Name == d.Name && o.Scope == d.Scope })
			if j >= 0 && rules[j] != nil && binds(d, x.id.endpoint) {
				x.rules[i], _ = limit.Replace(rules[j], d.OfKey(x.id.key), l.now) // declare has tried it
			}
		}
		x.until = l.now.Mono // to be looked at
	}
}
