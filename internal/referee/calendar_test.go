package referee

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

func at(t *testing.T, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, s)
	require.NoError(t, err)
	return v
}

func TestCalendarWindows(t *testing.T) {
	const la, berlin = "America/Los_Angeles", "Europe/Berlin"
	for _, c := range []struct {
		name      string
		limit     provider.Limit
		t         string
		from, end string
	}{
		{"day, UTC", provider.Limit{Per: "day"}, "2026-03-01T23:59:59.999999999Z", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"},
		{"day begins", provider.Limit{Per: "day"}, "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"},
		{"winter in Los Angeles", provider.Limit{Per: "day", Zone: la}, "2026-01-10T07:59:59Z", "2026-01-09T08:00:00Z", "2026-01-10T08:00:00Z"},
		{"summer in Los Angeles", provider.Limit{Per: "day", Zone: la}, "2026-07-10T07:00:00Z", "2026-07-10T07:00:00Z", "2026-07-11T07:00:00Z"},
		{"the day of 23 hours", provider.Limit{Per: "day", Zone: la}, "2026-03-08T12:00:00Z", "2026-03-08T08:00:00Z", "2026-03-09T07:00:00Z"},
		{"the day of 25 hours", provider.Limit{Per: "day", Zone: la}, "2026-11-02T07:59:59Z", "2026-11-01T07:00:00Z", "2026-11-02T08:00:00Z"},
		{"an anchor that the day skips", provider.Limit{Per: "day", Zone: berlin, Anchor: "02:30"}, "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		{"and just before it", provider.Limit{Per: "day", Zone: berlin, Anchor: "02:30"}, "2026-03-29T00:59:59Z", "2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z"},
		{"an anchor that the day repeats", provider.Limit{Per: "day", Zone: berlin, Anchor: "02:30"}, "2026-10-25T01:45:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		{"anchor with seconds", provider.Limit{Per: "day", Anchor: "17:30:05"}, "2026-05-05T17:30:04Z", "2026-05-04T17:30:05Z", "2026-05-05T17:30:05Z"},
		{"month", provider.Limit{Per: "month"}, "2024-02-29T12:00:00Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
		{"month over the year", provider.Limit{Per: "month", Anchor: "15 17:30"}, "2026-01-15T17:29:59Z", "2025-12-15T17:30:00Z", "2026-01-15T17:30:00Z"},
		{"the 31st of a shorter month", provider.Limit{Per: "month", Anchor: "31"}, "2026-03-01T00:00:00Z", "2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"},
		{"hour", provider.Limit{Per: "hour", Anchor: "15m"}, "2026-05-05T17:14:00Z", "2026-05-05T16:15:00Z", "2026-05-05T17:15:00Z"},
		{"hour of half an hour's zone", provider.Limit{Per: "hour", Zone: "Asia/Kolkata"}, "2026-05-05T17:00:00Z", "2026-05-05T16:30:00Z", "2026-05-05T17:30:00Z"},
		{"a repeated hour is two", provider.Limit{Per: "hour", Zone: berlin}, "2026-10-25T01:10:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"},
		{"minute", provider.Limit{Per: "minute", Anchor: "30s"}, "2026-05-05T17:14:29Z", "2026-05-05T17:13:30Z", "2026-05-05T17:14:30Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cal, err := newCalendar(c.limit)
			require.NoError(t, err)
			assert.Equal(t, at(t, c.from), time.Unix(0, cal.start(at(t, c.t).UnixNano())).UTC())
			assert.Equal(t, at(t, c.end), time.Unix(0, cal.to).UTC())
		})
	}
}

// begun is the definition, step by step backwards: the clock shows the anchor, for
// the first time or for any, or has just jumped over it.
func begun(l provider.Limit, zone *time.Location, offset time.Duration, t time.Time) time.Time {
	step := time.Minute
	if l.Per == provider.Minute {
		step = time.Second
	}
	wall := func(u time.Time) time.Time {
		_, s := u.In(zone).Zone()
		return u.UTC().Add(time.Duration(s) * time.Second)
	}
	anchor := func(r time.Time) bool { // does a clock that shows r show the anchor?
		period, _ := l.Per.Duration()
		return r.Sub(r.Truncate(period)) == offset
	}
	shownBefore := func(u time.Time) bool {
		for v := u.Add(-step); v.After(u.Add(-24 * time.Hour)); v = v.Add(-step) {
			if wall(v).Equal(wall(u)) {
				return true
			}
		}
		return false
	}
	for u := t.Truncate(step); ; u = u.Add(-step) {
		if anchor(wall(u)) && (l.Per != provider.Day || !shownBefore(u)) {
			return u
		}
		for r := wall(u.Add(-step)).Add(step); r.Before(wall(u)); r = r.Add(step) {
			if anchor(r) {
				return u
			}
		}
	}
}

func TestCalendarAgainstAClockReadStepByStep(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 0))
	changes := map[string][]string{ // near the days on which the clock changes
		"UTC":                 {"2026-02-28T12:00:00Z"},
		"America/Los_Angeles": {"2026-03-08T10:00:00Z", "2026-11-01T09:00:00Z"},
		"Australia/Lord_Howe": {"2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z"}, // half an hour
		"Africa/Cairo":        {"2024-04-25T22:00:00Z", "2024-10-31T21:00:00Z"}, // at midnight
		"America/St_Johns":    {"2007-03-11T03:31:00Z", "2007-11-04T02:31:00Z"}, // at 00:01
		"Pacific/Apia":        {"2011-12-30T10:00:00Z"},                         // skips a whole day
		"Asia/Kathmandu":      {"2026-05-01T00:00:00Z"},                         // 5:45
	}
	anchors := map[provider.Period][]string{
		provider.Minute: {"", "30s"}, provider.Hour: {"", "15m", "45m"},
		provider.Day: {"", "00:01", "02:15", "23:30", "12:00"},
	}
	for name, days := range changes {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		for word, list := range anchors {
			for _, anchor := range list {
				l := provider.Limit{Per: word, Zone: name, Anchor: anchor}
				cal, err := newCalendar(l)
				require.NoError(t, err)
				_, offset, err := l.AnchorParts()
				require.NoError(t, err)
				for _, d := range days {
					for _, reach := range []time.Duration{0, time.Minute, time.Hour, 3 * time.Hour, 30 * time.Hour} {
						x := at(t, d).Add(time.Duration(rng.Int64N(2*int64(reach)+1)) - reach).Truncate(time.Second)
						want := begun(l, zone, offset, x)
						got := time.Unix(0, cal.start(x.UnixNano()))
						require.Equal(t, want.UTC(), got.UTC(), "%+v at %v", l, x)
						require.Equal(t, want.UTC(), begun(l, zone, offset, time.Unix(0, cal.to-1)).UTC(), "the end of %+v at %v", l, x)
						require.NotEqual(t, want.UTC(), begun(l, zone, offset, time.Unix(0, cal.to)).UTC(), "the end of %+v at %v", l, x)
					}
				}
			}
		}
	}
}

func TestMonthsBeginWithOneOfTheirDays(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 0))
	for _, name := range []string{"UTC", "America/Los_Angeles", "Africa/Cairo", "Australia/Lord_Howe"} {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		for day, clock := range map[int]string{1: "00:00", 8: "02:30", 26: "00:15", 30: "23:45", 31: "12:00"} {
			days, err := newCalendar(provider.Limit{Per: "day", Zone: name, Anchor: clock})
			require.NoError(t, err)
			months, err := newCalendar(provider.Limit{Per: "month", Zone: name, Anchor: fmt.Sprint(day, " ", clock)})
			require.NoError(t, err)
			for range 20 {
				x := at(t, "2024-01-01T00:00:00Z").Add(time.Duration(rng.Int64N(int64(2 * 365 * 24 * time.Hour)))).UnixNano()
				want := days.start(x)
				for {
					d := time.Unix(0, want).In(zone)
					last := d.AddDate(0, 0, 1).Month() != d.Month()
					if d.Day() == day || last && d.Day() < day {
						break
					}
					want = days.start(want - 1)
				}
				require.Equal(t, want, months.start(x), "day %d %s in %s at %v", day, clock, name, time.Unix(0, x).UTC())
				require.Equal(t, want, months.start(months.to-1))
				require.Equal(t, months.to, days.start(months.to))
				require.NotEqual(t, want, months.start(months.to))
			}
		}
	}
}

func TestDailyQuotaOverAYear(t *testing.T) {
	// In March and November, no matter how the hours run, 500 a local day.
	l := provider.Limit{Max: 500, Per: "day", Zone: "America/Los_Angeles"}
	now := at(t, "2026-01-01T08:00:00Z")
	j, err := newJudge(Play{Provider: named, Limits: one(l)}, func() time.Time { return now })
	require.NoError(t, err)
	admitted := map[string]int{}
	zone, err := time.LoadLocation(l.Zone)
	require.NoError(t, err)
	for now.Before(at(t, "2027-01-01T08:00:00Z")) {
		c := &call{Arrival: Arrival{Cost: requests(100)}}
		if j.arrive(c); c.ok {
			admitted[now.In(zone).Format(time.DateOnly)] += 100
		}
		now = now.Add(2 * time.Hour)
	}
	assert.Len(t, admitted, 365)
	for day, n := range admitted {
		assert.Equal(t, 500, n, day)
	}
}
