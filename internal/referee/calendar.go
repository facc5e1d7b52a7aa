package referee

import (
	"fmt"
	"slices"
	"time"

	"github.com/headgate/headgate/provider"
)

// calendar finds the windows of a calendar word. A day or month begins when the
// zone's clock first shows the anchor; a minute or hour whenever it does (an hour
// that the clock repeats is two). An anchor that the clock skips is the instant
// after the gap.
type calendar struct {
	word   provider.Period
	zone   *time.Location
	day    int           // of the month; a shorter month: its last
	offset time.Duration // into the minute, hour or day

	from, to int64                 // the window that was asked for last
	known    map[time.Time][]int64 // by reading
}

func newCalendar(l provider.Limit) (*calendar, error) {
	zone, err := time.LoadLocation(l.Zone)
	if err != nil || l.Zone == "Local" {
		return nil, fmt.Errorf("zone: %q, would have to be an IANA name", l.Zone)
	}
	day, offset, err := l.AnchorParts()
	if err != nil {
		return nil, fmt.Errorf("anchor: %w", err)
	}
	return &calendar{word: l.Per, zone: zone, day: day, offset: offset, known: map[time.Time][]int64{}}, nil
}

// start returns the start of the window that holds t.
func (c *calendar) start(t int64) int64 {
	if c.from <= t && t < c.to {
		return c.from
	}
	starts := c.around(t)
	i, found := slices.BinarySearch(starts, t)
	if !found {
		i--
	}
	c.from, c.to = starts[i], starts[i+1]
	return c.from
}

// around returns starts of windows in order: at least the last one up to t and
// the first one after it.
func (c *calendar) around(t int64) []int64 {
	var starts []int64
	for k := -2; k <= 2; k++ {
		switch c.word {
		case provider.Minute:
			starts = append(starts, c.shown(t+int64(k)*int64(time.Minute), time.Minute)...)
		case provider.Hour:
			starts = append(starts, c.shown(t+int64(k)*int64(time.Hour), time.Hour)...)
		case provider.Day:
			// By date, not by 24 hours: those can miss the day of 23.
			at := c.reading(t).AddDate(0, 0, k)
			starts = append(starts, c.begins(at.Year(), at.Month(), at.Day())[0])
		case provider.Month:
			at := c.reading(t)
			first := time.Date(at.Year(), at.Month()+time.Month(k), 1, 0, 0, 0, 0, time.UTC)
			last := first.AddDate(0, 1, -1).Day()
			starts = append(starts, c.begins(first.Year(), first.Month(), min(c.day, last))[0])
		}
	}
	slices.Sort(starts)
	return slices.Compact(starts)
}

// reading is what the zone's clock shows at t, written as if it were UTC.
func (c *calendar) reading(t int64) time.Time {
	at := time.Unix(0, t).In(c.zone)
	_, offset := at.Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// shown returns the instants of the anchor of the period that the clock is in at
// t, and of the next.
func (c *calendar) shown(t int64, period time.Duration) []int64 {
	// Truncate counts from the year 1, which began at a full minute and hour.
	anchor := c.reading(t).Add(-c.offset).Truncate(period).Add(c.offset)
	return slices.Concat(c.instants(anchor), c.instants(anchor.Add(period)))
}

func (c *calendar) begins(year int, month time.Month, day int) []int64 {
	return c.instants(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Add(c.offset))
}

// instants returns, in order, when the clock shows reading: one instant or two,
// or, if it is skipped, the one after the gap.
func (c *calendar) instants(reading time.Time) []int64 {
	if all := c.known[reading]; all != nil {
		return all
	}
	var all []int64
	var gap time.Time
	// Every offset that the zone has used within a day of it is tried.
	for h := -26; h <= 26; h++ {
		_, offset := reading.Add(time.Duration(h) * time.Hour).In(c.zone).Zone()
		at := reading.Add(-time.Duration(offset) * time.Second)
		if c.reading(at.UnixNano()).Equal(reading) {
			all = append(all, at.UnixNano())
		}
		// By the offset that the gap brings, the last one here, a skipped reading lies
		// before it: the gap is where the offset in force there ends.
		_, gap = at.In(c.zone).ZoneBounds()
	}
	if len(all) == 0 {
		all = append(all, gap.UnixNano())
	}
	slices.Sort(all)
	if len(c.known) > 1000 {
		clear(c.known)
	}
	c.known[reading] = slices.Compact(all)
	return c.known[reading]
}
