package limit

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/provider"
)

// calendar is where the periods of a word begin. Instants are durations since the
// Unix epoch; a local one is what a clock in the zone shows, as if it were UTC.
//
// Days and months begin when the local clock first shows the anchor, or with the
// instant after the gap that skips it. Hours and minutes begin whenever it shows
// it: an hour that the day repeats is an hour twice, and one that begins in a gap
// belongs to the one before.
type calendar struct {
	word   provider.Period
	zone   *time.Location
	day    int           // of the month, in a shorter one its last
	offset time.Duration // into the hour or minute; time of day
}

func newCalendar(l provider.Limit) (*calendar, error) {
	zone, err := time.LoadLocation(l.Zone)
	if err != nil {
		return nil, fmt.Errorf("zone: %w", err)
	}
	day, offset, err := l.AnchorParts()
	if err != nil {
		return nil, fmt.Errorf("anchor: %w", err)
	}
	return &calendar{word: l.Per, zone: zone, day: day, offset: offset}, nil
}

// window is the period that contains an instant.
func (c *calendar) window(at time.Duration) (start, end time.Duration) {
	if step := c.step(); step > 0 {
		return c.clock(at, step)
	}
	k := c.number(at)
	return c.begin(k), c.begin(k + 1)
}

// ahead is the nth period from the one that starts at start, which is the first.
func (c *calendar) ahead(start time.Duration, n int64) (time.Duration, time.Duration) {
	const centuries = 5 * 100 * 366 // in days: beyond what a Duration holds
	if step := c.step(); step > 0 {
		return c.clock(add(start, times(step, n-1)), step)
	}
	k := c.number(start) + min(n-1, centuries)
	return c.begin(k), c.begin(k + 1)
}

// step is the length of an hour or a minute; 0 for the others.
func (c *calendar) step() time.Duration {
	switch c.word {
	case provider.Minute:
		return time.Minute
	case provider.Hour:
		return time.Hour
	}
	return 0
}

// number is the number of the last day or month that has begun at an instant.
func (c *calendar) number(at time.Duration) int64 {
	y, m, d := time.Unix(0, int64(at)).In(c.zone).Date()
	k := int64(y)*12 + int64(m) - 1
	if c.word == provider.Day {
		k = time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400
	}
	for k++; c.begin(k) > at; {
		k--
	}
	return k
}

// begin is when day k since the epoch, or month k since year 0, begins.
func (c *calendar) begin(k int64) time.Duration {
	var midnight time.Time
	if c.word == provider.Day {
		midnight = time.Unix(k*86400, 0).UTC()
	} else {
		y, m := int(k/12), time.Month(k%12+1)
		last := time.Date(y, m+1, 0, 0, 0, 0, 0, time.UTC).Day()
		midnight = time.Date(y, m, min(c.day, last), 0, 0, 0, 0, time.UTC)
	}
	return c.first(add(epoch(midnight), c.offset))
}

// epoch is t on the scale of Now.Wall, at its ends beyond them.
func epoch(t time.Time) time.Duration { return t.Sub(time.Unix(0, 0)) }

// first is the first instant at which a clock in the zone shows local or, where
// it is put forward past it, the instant at which that happens.
func (c *calendar) first(local time.Duration) time.Duration {
	// No zone is a day away from UTC: the clock shows local in this period of the
	// zone or in a later one.
	t := time.Unix(0, int64(sub(local, 24*time.Hour)))
	for {
		from, to, offset := c.rules(t)
		switch at := sub(local, offset); {
		case at < from:
			return from
		case at < to || to == Never:
			return at
		}
		t = time.Unix(0, int64(to))
	}
}

// rules is a span of time around t in which the zone does not change, and its
// offset from UTC.
func (c *calendar) rules(t time.Time) (from, to, offset time.Duration) {
	t = t.In(c.zone)
	_, seconds := t.Zone()
	from, to = -Never, Never
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		from = epoch(start)
	}
	switch {
	case end.After(t):
		to = epoch(end)
	case !end.IsZero():
		// Go 1.26: on the last day of a leap year after 2037 ZoneBounds ends the
		// day before.
		to = epoch(t.Add(24 * time.Hour))
	}
	return from, to, time.Duration(seconds) * time.Second
}

// clock is the hour or minute that contains an instant.
func (c *calendar) clock(at, step time.Duration) (start, end time.Duration) {
	from, to, offset := c.rules(time.Unix(0, int64(at)))
	start = sub(at, mod(add(at, offset-c.offset), step))
	end = add(start, step)
	if start < from {
		start, _ = c.clock(from-1, step)
	}
	if end >= to && to < Never {
		_, _, offset = c.rules(time.Unix(0, int64(to)))
		end = ceil(to+offset-c.offset, step) - offset + c.offset
	}
	return start, end
}
