package limit

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/headgate/headgate/provider"
)

// spec is what a limit says, ready for arithmetic. Rules of one limit share it;
// it never changes.
type spec struct {
	short
	algorithm provider.Algorithm
	max       int64     // N
	calendar  *calendar // nil: aligned to the Unix epoch
}

// short is what every call asks of a spec.
type short struct {
	capacity int64         // the most that may count at once: N, or B of a bucket
	per      time.Duration // W; of a calendar's month the longest; 0 for in_flight
	sent     bool
	holds    bool // to take is to hold, no more
}

// longestFill bounds the time that an empty bucket takes to fill, so that what it
// misses does not overflow: 73 years.
const longestFill = math.MaxInt64 / 4

func newSpec(l provider.Limit) (*spec, error) {
	l.Name = cmp.Or(l.Name, "unnamed") // the name is for people
	if err := l.Validate(); err != nil {
		return nil, fmt.Errorf("limit %q: %w", l.Name, err)
	}
	l = l.WithDefaults()
	s := &spec{short: short{capacity: l.Max}, algorithm: l.Algorithm, max: l.Max}
	if s.algorithm == provider.InFlight {
		s.holds = true
		return s, nil
	}
	s.sent = l.Counted == provider.CountedSent
	s.holds = !s.sent && s.algorithm != provider.LeakyBucket
	per, word := l.Per.Duration()
	s.per = per
	if word {
		var err error
		if s.calendar, err = newCalendar(l); err != nil {
			return nil, fmt.Errorf("limit %q: %w", l.Name, err)
		}
	}
	if s.algorithm == provider.TokenBucket {
		s.capacity = min(l.Burst, max(1, down(longestFill, s.max, int64(s.per))))
	}
	return s, nil
}

// window is the aligned window that contains an instant of the wall clock.
func (s *spec) window(wall time.Duration) (start, end time.Duration) {
	if s.calendar != nil {
		return s.calendar.window(wall)
	}
	start = floor(wall, s.per)
	return start, add(start, s.per)
}

// ahead is the nth window from the one that starts at start, which is the first.
// For hours in a zone that is put forward or back by a part of one it may be one
// earlier for each year.
func (s *spec) ahead(start time.Duration, n int64) (time.Duration, time.Duration) {
	if s.calendar != nil {
		return s.calendar.ahead(start, n)
	}
	start = add(start, times(s.per, n-1))
	return start, add(start, s.per)
}

// aligns tells that the aligned windows of both are the same.
func (s *spec) aligns(with *spec) bool {
	if s.calendar == nil || with.calendar == nil {
		return s.per == with.per && s.calendar == with.calendar
	}
	a, b := *s.calendar, *with.calendar
	same := a.zone.String() == b.zone.String()
	a.zone, b.zone = nil, nil
	return same && a == b
}
