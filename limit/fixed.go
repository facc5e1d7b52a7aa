package limit

import "time"

// fixed is fixed_window: never more than max in one aligned window.
//
// The provider's clock may be behind ours. For a guard after a window's start the
// window before is therefore still in force: what goes then must fit into both.
type fixed struct {
	aligned
	skew   time.Duration
	opened time.Duration // on the wall clock, when the current window alone came into force
	opens  time.Duration // when the next one does
}

// guard is how long after its start a window of that length opens for us.
func (f *fixed) guard(start, end time.Duration) time.Duration {
	return min(add(time.Second, f.skew), sub(end, start)/100)
}

func (f *fixed) measure(s *spec) {
	f.opened = -Never
	if f.follows {
		f.opened = add(f.start, f.guard(f.start, f.end))
	}
	if f.start != f.end {
		f.opens = add(f.end, f.guard(s.window(f.end)))
	}
}

func (f *fixed) look(s *spec, now Now, room int64) time.Duration {
	switch {
	case now.Wall >= f.opens:
		return now.Mono
	case now.Wall >= f.end:
		if f.cur <= room {
			return now.Mono
		}
		return now.on(f.opens)
	case f.outside(now.Wall):
		v := f.view(s, now)
		return v.look(s, now, room)
	case f.cur > room:
		return now.on(f.opens)
	case now.Wall < f.opened && add(f.cur, f.old) > room:
		return now.on(f.opened)
	}
	return now.Mono
}

// view is f with the window that contains now as the current one.
func (f *fixed) view(s *spec, now Now) fixed {
	v := *f
	v.aligned = f.aligned.view(s, now)
	if v.end != f.end {
		v.measure(s)
	}
	return v
}

func (f *fixed) charge(s *spec, at Now, n int64) {
	if f.aligned.charge(s, at, n) {
		f.measure(s)
	}
}

func (f *fixed) refund(_ *spec, charged Now, n int64) { f.take(charged, n) }

func (f *fixed) when(s *spec, now Now, held, n int64) time.Duration {
	v := f.view(s, now)
	v.cur = add(v.cur, held)
	if now.Wall >= v.opened {
		v.old = 0
	}
	switch {
	case n <= sub(s.max, add(v.cur, v.old)):
		return now.Mono
	case n <= sub(s.max, v.cur):
		return now.on(v.opened)
	}
	n -= max(0, s.max-v.cur)
	start, end := s.ahead(v.end, (n-1)/s.max+1)
	return now.on(add(start, v.guard(start, end)))
}

func (f *fixed) used(s *spec, now Now) int64 {
	if now.Wall >= f.opens { // cheaper: the sweep for idle keys asks often
		return 0
	}
	v := f.view(s, now)
	if now.Wall < v.opened {
		return add(v.cur, v.old)
	}
	return v.cur
}

func (f *fixed) idle(s *spec, now Now) bool { return f.used(s, now) == 0 }

// adopt: where the new windows are others, the current one takes what was charged
// in the old one, and in the one before that too if it reaches so far back.
func (f *fixed) adopt(s *spec, from algorithm, old *spec, now Now) {
	*f = *from.(*fixed)
	f.regrid(s, old, now)
	f.measure(s)
}

func (f *fixed) copy(from algorithm) { *f = *from.(*fixed) }
