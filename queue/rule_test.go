package queue

import (
	"slices"
	"time"
)

// ruler is a rule of the tests: simple enough to be seen to be right.
type ruler interface {
	Rule
	take(now time.Duration, n int64)
}

// window lets at most limit units through in any span of per.
type window struct {
	limit int64
	per   time.Duration
	log   []taken
}

type taken struct {
	at time.Duration
	n  int64
}

func (r *window) Look(now time.Duration, n int64) time.Duration {
	var used int64
	for _, x := range slices.Backward(r.log) {
		if x.at+r.per <= now || used+x.n+n > r.limit {
			if x.at+r.per > now {
				return x.at + r.per
			}
			break
		}
		used += x.n
	}
	if n > r.limit {
		return Never
	}
	return now
}

func (r *window) take(now time.Duration, n int64) {
	r.log = slices.DeleteFunc(r.log, func(x taken) bool { return x.at+r.per <= now })
	r.log = append(r.log, taken{now, n})
}

// spacing lets one call through each interval.
type spacing struct{ every, next time.Duration }

func (r *spacing) Look(now time.Duration, _ int64) time.Duration { return max(now, r.next) }
func (r *spacing) take(now time.Duration, _ int64)               { r.next = now + r.every }

// slots is a cap: full until an event.
type slots struct{ limit, out int64 }

func (r *slots) Look(now time.Duration, n int64) time.Duration {
	if r.out+n > r.limit {
		return Never
	}
	return now
}
func (r *slots) take(_ time.Duration, n int64) { r.out += n }

// pause is closed until an instant.
type pause struct{ until time.Duration }

func (r *pause) Look(now time.Duration, _ int64) time.Duration { return max(now, r.until) }
func (r *pause) take(time.Duration, int64)                     {}
