package limit

import (
	"slices"
	"time"
)

// leaky is leaky_bucket: a sliding window whose grants are evenly spaced.
//
// A grant of n units is followed by the next n intervals (per/max) after it was
// scheduled, not after it went, so that being late costs no throughput; but never
// sooner than 0.9 of that after it went, and more than 10 intervals of lateness are
// forgiven, not caught up.
type leaky struct {
	window
	last, earlier grant // earlier is what was before last, or last
}

// grant is one call; without units: none yet.
type grant struct {
	at, scheduled time.Duration
	n             int64
}

const forgiven = 10 // intervals of lateness that are caught up

func interval(s *spec, n int64) time.Duration {
	return time.Duration(up(n, int64(s.per), s.max))
}

// gap is the least distance after n units.
func gap(s *spec, n int64) time.Duration {
	return time.Duration(up(int64(interval(s, n)), 9, 10))
}

// next is when a further grant is scheduled, going at t.
func (l *leaky) next(s *spec, t time.Duration) time.Duration {
	if l.last.n == 0 {
		return t
	}
	latest := time.Duration(down(forgiven, int64(s.per), s.max))
	return max(add(l.last.scheduled, interval(s, l.last.n)), sub(t, latest))
}

// spaced is the first instant, not before now, at which spacing allows a grant.
func (l *leaky) spaced(s *spec, now time.Duration) time.Duration {
	if l.last.n == 0 {
		return now
	}
	return max(now, add(l.last.at, gap(s, l.last.n)), add(l.last.scheduled, interval(s, l.last.n)))
}

func (l *leaky) look(s *spec, now Now, room int64) time.Duration {
	return max(l.spaced(s, now.Mono), l.window.look(s, now, room))
}

func (l *leaky) grant(s *spec, now time.Duration, n int64) {
	l.last, l.earlier = grant{at: now, scheduled: l.next(s, now), n: n}, l.last
}

// undo brings the schedule back that was before the grant at an instant, if that
// was the last.
func (l *leaky) undo(granted time.Duration) {
	if l.last.at == granted {
		l.last = l.earlier
	}
}

// when takes the latest of what the window says, what the schedule says, and what
// the distance from a few calls says that the window holds up: the first, the
// first that waits for a unit to leave, and the first that waits for what is held.
func (l *leaky) when(s *spec, now Now, held, n int64) time.Duration {
	first := max(l.spaced(s, now.Mono), l.window.when(s, now, held, 1))
	t := max(l.window.when(s, now, held, n), add(l.next(s, first), times(interval(s, 1), n-1)))
	t = max(t, add(first, span(s, n-1)))
	free := max(s.max-held, 0)
	for _, k := range [...]int64{max(free-l.used(s, now), 0) + 1, free + 1} {
		if k <= min(n, s.max) {
			t = max(t, add(l.window.when(s, now, held, k), span(s, n-k)))
		}
	}
	return t
}

// span is the least time from one call of one unit to the nth after it.
func span(s *spec, n int64) time.Duration {
	round, place := n/s.max, n%s.max
	near := max(times(gap(s, 1), place), times(interval(s, 1), max(0, place-forgiven)))
	return add(times(s.per+1, round), near)
}

func (l *leaky) idle(s *spec, now Now) bool {
	return l.spaced(s, now.Mono) == now.Mono && l.window.idle(s, now)
}

func (l *leaky) adopt(s *spec, from algorithm, _ *spec, now Now) {
	*l = *from.(*leaky)
	l.resize(s, now)
}

func (l *leaky) copy(from algorithm) {
	*l = *from.(*leaky)
	l.entries = slices.Clone(l.entries)
}
