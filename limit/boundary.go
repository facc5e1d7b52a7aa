package limit

import "time"

// Boundary is when the next window of a fixed_window rule opens for us, its guard
// included; false for other rules: they have no boundary.
func (r *Rule) Boundary(now Now) (time.Duration, bool) {
	f, ok := r.algo.(*fixed)
	if !ok {
		return 0, false
	}
	v := f.view(r.spec, now)
	v.measure(r.spec)
	return now.on(v.opens), true
}

// Held is what is taken and not settled.
func (r *Rule) Held() int64 { return r.held }
