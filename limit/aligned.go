package limit

import "time"

// aligned counts what was charged in the current window of the wall clock and in
// the one before. The wall clock names the window; which count a charge is in is
// known by Mono, so that a step of the wall clock can neither lose it nor take it
// from the other.
//
// A clock that steps back into an earlier window takes both counts along: what was
// charged under the wrong date counts in the corrected one. A step back by less than
// a second (a hundredth of the window) at its start is none: the clock is about to
// come there again, and what was charged in the new window must not be lost to a
// second reset.
type aligned struct {
	start, end     time.Duration // of the current window, on the wall clock; the same: none yet
	since, earlier time.Duration // on Mono: cur counts from since on, old from earlier on
	last           time.Duration // the latest Mono of a charge
	cur, old       int64
	follows        bool // the current window follows at once on that of old
}

// charge counts n units at an instant and tells whether the window has changed.
func (a *aligned) charge(s *spec, at Now, n int64) bool {
	if at.Mono < a.last && a.start != a.end {
		switch {
		case at.Mono >= a.since || !a.follows:
			a.cur = add(a.cur, n)
		case at.Mono >= a.earlier:
			a.old = add(a.old, n)
		}
		return false
	}
	changed := a.outside(at.Wall)
	if changed {
		a.turn(s, at)
	}
	a.last = at.Mono
	a.cur = add(a.cur, n)
	return changed
}

// outside tells that the wall clock shows another window.
func (a *aligned) outside(wall time.Duration) bool {
	return wall >= a.end || wall < a.start && wall < a.start-min(time.Second, (a.end-a.start)/100)
}

// turn makes the window that contains now the current one.
func (a *aligned) turn(s *spec, now Now) {
	start, end := s.window(now.Wall)
	since := now.on(start)
	switch {
	case a.start == a.end:
		a.since, a.earlier = since, since
	case now.Wall >= a.end:
		a.follows = start == a.end
		a.cur, a.old = 0, a.cur
		a.since, a.earlier = max(since, a.last+1), a.since
	default: // stepped back
		a.follows = false
		a.cur, a.old = add(a.cur, a.old), 0
		a.since = a.earlier
	}
	a.start, a.end = start, end
}

func (a *aligned) take(charged Now, n int64) {
	switch {
	case charged.Mono >= a.since:
		a.cur = max(0, a.cur-n)
	case charged.Mono >= a.earlier:
		a.old = max(0, a.old-n)
	}
}

// view is a with the window that contains now as the current one, and old as 0
// unless it was the window before.
func (a aligned) view(s *spec, now Now) aligned {
	if a.outside(now.Wall) {
		a.turn(s, now)
	}
	if !a.follows {
		a.old = 0
	}
	return a
}

// regrid goes over to other windows than those of old. The current one takes what
// was charged in the current one of old, and in the one before as well if it
// reaches so far back.
func (a *aligned) regrid(s, old *spec, now Now) {
	if a.start == a.end || s.aligns(old) {
		return
	}
	*a = a.view(old, now)
	start, end := s.window(now.Wall)
	if start < a.start {
		a.cur, a.old = add(a.cur, a.old), 0
		a.since = a.earlier
	}
	a.start, a.end = start, end
	a.last = max(a.last, now.Mono)
}
