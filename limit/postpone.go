package limit

import "time"

// Postpone has everything that is charged count as if it had been charged d later: the
// instants that the rule was told have turned out to be too early by as much. A charge
// that is corrected afterwards was made at its instant and d (to a slot, where a window
// counts in slots). Aligned windows, whose instants name dates, stay as they are; so
// does the spacing of a leaky bucket, which nobody but us has told. A d of 0 or below
// changes nothing.
func (r *Rule) Postpone(d time.Duration) {
	if d <= 0 {
		return
	}
	switch a := r.algo.(type) {
	case *window:
		a.postpone(r.spec, d)
	case *leaky:
		a.window.postpone(r.spec, d)
	case *bucket:
		a.full = add(a.full, d)
		for i := range a.past {
			a.past[i].at = add(a.past[i].at, d)
		}
	}
}

func (w *window) postpone(s *spec, d time.Duration) {
	if w.slotted {
		d = ceil(d, slotOf(s.per)) // so that what is in a slot lies at its end
	}
	for i := range int(w.size) {
		e := w.entry(i)
		e.at = add(e.at, d)
	}
}
