package limit

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func calendarOf(t testing.TB, per provider.Period, zone, anchor string) *calendar {
	c, err := newCalendar(provider.Limit{Per: per, Zone: zone, Anchor: anchor})
	require.NoError(t, err)
	return c
}

// windowAt is the window that contains a date, shown in its zone.
func windowAt(t testing.TB, c *calendar, date string) [2]string {
	start, end := c.window(wall(t, date).Wall)
	show := func(at time.Duration) string { return time.Unix(0, int64(at)).In(c.zone).Format(time.RFC3339) }
	return [2]string{show(start), show(end)}
}

func TestCalendarWindows(t *testing.T) {
	for _, row := range []struct {
		per              provider.Period
		zone, anchor, at string
		want             [2]string
	}{
		{"day", "UTC", "", "2024-05-01T00:00:00Z", [2]string{"2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z"}},
		{"day", "UTC", "17:30", "2024-05-01T17:29:59Z", [2]string{"2024-04-30T17:30:00Z", "2024-05-01T17:30:00Z"}},
		// In Los Angeles 2:00 to 3:00 does not exist on 2024-03-10, 1:00 to 2:00 exists twice on 2024-11-03.
		{"day", "America/Los_Angeles", "", "2024-03-10T12:00:00-07:00", [2]string{"2024-03-10T00:00:00-08:00", "2024-03-11T00:00:00-07:00"}},
		{"day", "America/Los_Angeles", "", "2024-11-03T12:00:00-08:00", [2]string{"2024-11-03T00:00:00-07:00", "2024-11-04T00:00:00-08:00"}},
		{"day", "America/Los_Angeles", "02:30", "2024-03-10T12:00:00-07:00", [2]string{"2024-03-10T03:00:00-07:00", "2024-03-11T02:30:00-07:00"}},
		{"day", "America/Los_Angeles", "02:30", "2024-03-10T01:59:59-08:00", [2]string{"2024-03-09T02:30:00-08:00", "2024-03-10T03:00:00-07:00"}},
		{"day", "America/Los_Angeles", "01:30", "2024-11-03T01:15:00-08:00", [2]string{"2024-11-03T01:30:00-07:00", "2024-11-04T01:30:00-08:00"}},
		{"day", "America/Los_Angeles", "01:30", "2024-11-03T01:45:00-08:00", [2]string{"2024-11-03T01:30:00-07:00", "2024-11-04T01:30:00-08:00"}},
		// Midnight itself is skipped in Beirut, repeated in Havana.
		{"day", "Asia/Beirut", "", "2024-03-31T12:00:00+03:00", [2]string{"2024-03-31T01:00:00+03:00", "2024-04-01T00:00:00+03:00"}},
		{"day", "America/Havana", "", "2024-11-03T00:30:00-05:00", [2]string{"2024-11-03T00:00:00-04:00", "2024-11-04T00:00:00-05:00"}},
		// Samoa had no 30 December 2011.
		{"day", "Pacific/Apia", "", "2011-12-29T12:00:00-10:00", [2]string{"2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00"}},
		{"day", "Pacific/Apia", "12:00", "2011-12-31T06:00:00+14:00", [2]string{"2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"}},
		{"month", "UTC", "", "2024-02-29T23:59:59Z", [2]string{"2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"}},
		{"month", "UTC", "31", "2024-02-29T00:00:00Z", [2]string{"2024-02-29T00:00:00Z", "2024-03-31T00:00:00Z"}},
		{"month", "UTC", "31", "2023-02-27T23:59:59Z", [2]string{"2023-01-31T00:00:00Z", "2023-02-28T00:00:00Z"}},
		{"month", "UTC", "30 17:30", "2024-12-30T17:30:00Z", [2]string{"2024-12-30T17:30:00Z", "2025-01-30T17:30:00Z"}},
		{"month", "America/Los_Angeles", "10 02:30", "2024-03-10T03:00:00-07:00", [2]string{"2024-03-10T03:00:00-07:00", "2024-04-10T02:30:00-07:00"}},
		{"month", "Asia/Tokyo", "", "2024-01-31T15:00:00Z", [2]string{"2024-02-01T00:00:00+09:00", "2024-03-01T00:00:00+09:00"}},
		{"hour", "UTC", "15m", "2024-05-01T10:14:59Z", [2]string{"2024-05-01T09:15:00Z", "2024-05-01T10:15:00Z"}},
		{"hour", "Asia/Kolkata", "", "2024-05-01T10:14:00Z", [2]string{"2024-05-01T15:00:00+05:30", "2024-05-01T16:00:00+05:30"}},
		// The hour that a day repeats is an hour twice.
		{"hour", "America/Los_Angeles", "", "2024-11-03T01:30:00-07:00", [2]string{"2024-11-03T01:00:00-07:00", "2024-11-03T01:00:00-08:00"}},
		{"hour", "America/Los_Angeles", "", "2024-03-10T01:30:00-08:00", [2]string{"2024-03-10T01:00:00-08:00", "2024-03-10T03:00:00-07:00"}},
		{"hour", "America/Los_Angeles", "15m", "2024-03-10T03:14:00-07:00", [2]string{"2024-03-10T01:15:00-08:00", "2024-03-10T03:15:00-07:00"}},
		// Lord Howe moves by half an hour: two hours a year are 90 minutes long.
		{"hour", "Australia/Lord_Howe", "", "2024-04-07T01:45:00+10:30", [2]string{"2024-04-07T01:00:00+11:00", "2024-04-07T02:00:00+10:30"}},
		{"hour", "Australia/Lord_Howe", "", "2024-10-06T02:45:00+11:00", [2]string{"2024-10-06T01:00:00+10:30", "2024-10-06T03:00:00+11:00"}},
		{"hour", "Australia/Lord_Howe", "45m", "2024-10-06T02:40:00+11:00", [2]string{"2024-10-06T01:45:00+10:30", "2024-10-06T02:45:00+11:00"}},
		{"minute", "Europe/Berlin", "30s", "2024-05-01T10:14:29Z", [2]string{"2024-05-01T12:13:30+02:00", "2024-05-01T12:14:30+02:00"}},
	} {
		c := calendarOf(t, row.per, row.zone, row.anchor)
		require.Equal(t, row.want, windowAt(t, c, row.at), "%+v", row)
	}
}

// TestCase22_TheDayOfLosAngeles: a quota of the day there resets at 08:00 UTC in
// winter, 07:00 in summer, and at no other midnight.
func TestCase22_TheDayOfLosAngeles(t *testing.T) {
	for _, row := range []struct{ at, want string }{
		{"2024-01-15T20:00:00Z", "2024-01-16T08:00:01Z"},
		{"2024-07-15T20:00:00Z", "2024-07-16T07:00:01Z"},
		{"2024-07-15T23:59:59Z", "2024-07-16T07:00:01Z"}, // not at UTC's midnight
		{"2024-07-16T00:00:02Z", "2024-07-16T07:00:01Z"},
		{"2024-03-10T07:59:59Z", "2024-03-10T08:00:01Z"}, // forward: 23 h
		{"2024-03-10T08:00:02Z", "2024-03-11T07:00:01Z"},
		{"2024-11-03T06:59:59Z", "2024-11-03T07:00:01Z"}, // back: 25 h
		{"2024-11-03T07:00:02Z", "2024-11-04T08:00:01Z"},
	} {
		r, err := New(provider.Limit{Max: 5, Per: "day", Zone: "America/Los_Angeles", Algorithm: provider.FixedWindow})
		require.NoError(t, err)
		now := wall(t, row.at)
		spend(t, r, now, 5)
		free := r.Look(now, 1)
		require.Equal(t, row.want, show(t, now, free, "UTC"), row.at)
		for d := time.Minute; now.Mono+d < free; d += 7 * time.Minute {
			require.Equal(t, free, r.Look(now.after(d, 0), 1), "%s and %s", row.at, d)
		}
		spend(t, r, now.after(free-now.Mono, 0), 5)
	}
}

// TestCalendarAgainstTheClocksHands compares with a search in steps of five minutes: a day
// begins when the hands first are at or past the anchor on a later date, an hour
// whenever they are at it.
func TestCalendarAgainstTheClocksHands(t *testing.T) {
	for _, zone := range []string{"America/Los_Angeles", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns", "Asia/Beirut", "America/Havana", "Africa/Casablanca"} {
		loc, err := time.LoadLocation(zone)
		require.NoError(t, err)
		for _, at := range changes(loc, 2024) {
			for _, anchor := range []string{"00:00", "00:30", "01:00", "01:45", "02:00", "02:30", "03:00", "23:30"} {
				daysByHand(t, calendarOf(t, "day", zone, anchor), at)
			}
			for _, anchor := range []string{"0s", "15m", "30m", "45m"} {
				hoursByHand(t, calendarOf(t, "hour", zone, anchor), at)
			}
		}
	}
}

// changes are the instants of a year at which a zone changes.
func changes(loc *time.Location, year int) (at []time.Time) {
	t := time.Date(year, 1, 1, 0, 0, 0, 0, loc)
	for {
		_, end := t.ZoneBounds()
		if end.IsZero() || end.Year() > year {
			return at
		}
		at, t = append(at, end), end
	}
}

func daysByHand(t *testing.T, c *calendar, change time.Time) {
	hands := func(at time.Time) time.Duration {
		y, m, d := at.In(c.zone).Date()
		h, min, s := at.In(c.zone).Clock()
		return epoch(time.Date(y, m, d, h, min, s, 0, time.UTC))
	}
	const day = 24 * time.Hour
	var begun, latest time.Duration // the start of the day, the furthest that the hands have been
	for at := change.Add(-3 * day); at.Before(change.Add(3 * day)); at = at.Add(5 * time.Minute) {
		if now := hands(at); now > latest {
			if floor(now-c.offset, day) > floor(latest-c.offset, day) {
				begun = epoch(at)
			}
			latest = now
		}
		if at.Before(change.Add(-day)) {
			continue
		}
		if start, end := c.window(epoch(at)); start != begun || end <= epoch(at) {
			require.Equal(t, begun, start, "%s in %s from %s", at, c.zone, c.offset)
			require.Greater(t, end, epoch(at))
		}
	}
}

func hoursByHand(t *testing.T, c *calendar, change time.Time) {
	var begun time.Duration
	for at := change.Add(-6 * time.Hour); at.Before(change.Add(6 * time.Hour)); at = at.Add(5 * time.Minute) {
		_, offset := at.In(c.zone).Zone()
		now := epoch(at) + time.Duration(offset)*time.Second - c.offset
		if mod(now, time.Hour) == 0 {
			begun = epoch(at)
		}
		if at.Before(change.Add(-3 * time.Hour)) {
			continue
		}
		start, end := c.window(epoch(at))
		next, _ := c.window(end)
		before, until := c.window(end - 1)
		want, got := [4]time.Duration{begun, end, begun, end}, [4]time.Duration{start, next, before, until}
		if want != got {
			require.Equal(t, want, got, "%s in %s from %s", at, c.zone, c.offset)
		}
	}
}

// TestCalendarAhead: the nth window from one on is what going from end to end gives
// or, across half-hour changes, a little before it.
func TestCalendarAhead(t *testing.T) {
	for _, c := range []*calendar{
		calendarOf(t, "day", "America/Los_Angeles", "02:30"),
		calendarOf(t, "month", "Europe/Berlin", "31 02:30"),
		calendarOf(t, "hour", "America/Los_Angeles", "15m"),
		calendarOf(t, "hour", "Australia/Lord_Howe", ""),
		calendarOf(t, "day", "Pacific/Apia", ""),
	} {
		start, end := c.window(wall(t, "2011-03-01T12:00:00Z").Wall)
		for n := int64(1); n < 3000; n++ {
			gotStart, gotEnd := c.ahead(start, 1)
			require.Equal(t, [2]time.Duration{start, end}, [2]time.Duration{gotStart, gotEnd})
			if n%97 == 1 {
				origin, _ := c.window(wall(t, "2011-03-01T12:00:00Z").Wall)
				got, _ := c.ahead(origin, n)
				require.LessOrEqual(t, got, start)
				require.GreaterOrEqual(t, got, start-(end-start)*2)
			}
			start, end = c.window(end)
		}
	}
}
