package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

var calendarPlays = []play{
	{name: "calendar/minute", run: calendarPlay(provider.Minute, "UTC")},
	{name: "calendar/hour in a zone of quarters", run: calendarPlay(provider.Hour, "Asia/Kathmandu")},
	{name: "calendar/day in a zone", run: calendarPlay(provider.Day, "Asia/Tokyo")},
	{name: "calendar/month in a zone", run: calendarPlay(provider.Month, "America/Phoenix")},
	{name: "calendar/an anchor that the day skips", days: true, run: calendarSkipped},
	{name: "calendar/an anchor that the day repeats", days: true, run: calendarRepeated},
	{name: "calendar/days of 23 and 25 hours", days: true, run: calendarLengths},
	{name: "calendar/a month without the anchor's day", days: true, run: calendarMonths},
	{name: "calendar/a week of days", days: true, run: calendarWeek},
}

// word makes a limit of three for each period of a calendar.
func (r *rig) word(p provider.Period, zone, anchor string) *shared {
	l := r.limit(provider.FixedWindow, 3)
	l.limit.Per, l.limit.Zone, l.limit.Anchor = p, zone, anchor
	return l
}

// date is an instant of the play.
func (r *rig) date(text string) time.Duration {
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(r.t, err)
	return at.Sub(r.start)
}

// period is what a period of a calendar needs to be found by looking at a clock: how
// far the next begin is put from now, in which steps to look, how a begin is told, and
// the anchor that is told so.
type period struct {
	ahead, step   time.Duration
	shows, anchor string // layouts of package time
}

var periods = map[provider.Period]period{
	provider.Minute: {20 * time.Second, time.Second, "05", "05s"},
	provider.Hour:   {20 * time.Minute, time.Minute, "04:00", "04m"},
	provider.Day:    {3 * time.Hour, time.Minute, "15:04:00", "15:04"},
	provider.Month:  {50 * time.Hour, time.Minute, "02 15:04:00", "2 15:04"},
}

// calendarPlay waits for no period to end, so that it can be played in real time.
func calendarPlay(word provider.Period, zone string) func(r *rig) {
	return func(r *rig) {
		where, err := time.LoadLocation(zone)
		require.NoError(r.t, err)
		p := periods[word]
		// The next begin is a round instant, ahead; the one before is looked for.
		end := r.at(r.now).Add(p.ahead).Truncate(p.step).In(where)
		start := end.Add(-p.step)
		for start.Format(p.shows) != end.Format(p.shows) {
			start = start.Add(-p.step)
		}
		l := r.word(word, zone, end.Format(p.anchor))
		a, b := r.process("a"), r.process("b")
		a.charge(l, start.Sub(r.start)-p.step, 3) // of the period before
		b.used(l, 0, 0)
		a.charge(l, start.Sub(r.start)+p.step, 2)
		b.used(l, 2, 0)
		b.went(l.n(1))
		opens := end.Sub(r.start) + guard(end.Sub(start))
		if word == provider.Month { // the next one's length counts, which is a second's worth in any case
			opens = end.Sub(r.start) + time.Second
		}
		b.take(l.n(1)).refused(0, opens-r.now)
		if r.b.Virtual {
			b.take(l.n(3)).opens(0, opens)
			b.take(l.n(1)).refused(0, ledger.Event)
		}
	}
}

// resets asserts that a limit that is used up opens at each of the instants, its guard
// after, and not in between.
func (r *rig) resets(l *shared, from string, at ...string) {
	r.t.Helper()
	p, q := r.process("p "+l.limit.Name), r.process("q "+l.limit.Name)
	r.until(r.date(from))
	p.went(l.n(3))
	for _, text := range at {
		r.pass(time.Minute)
		q.settle(q.take(l.n(1)).opens(0, r.date(text)+time.Second))
		p.went(l.n(2))
	}
	p.take(l.n(1)).no()
}

func calendarSkipped(r *rig) {
	r.resets(r.word(provider.Day, "Europe/Berlin", "02:30"), "2000-03-25T02:00:00Z",
		"2000-03-26T01:00:00Z", // 02:00 is 03:00
		"2000-03-27T00:30:00Z")
}

func calendarRepeated(r *rig) {
	r.resets(r.word(provider.Day, "Europe/Berlin", "02:30"), "2000-10-28T01:00:00Z",
		"2000-10-29T00:30:00Z", // the first; 01:30 is the second
		"2000-10-30T01:30:00Z")
}

func calendarLengths(r *rig) {
	l := r.word(provider.Day, "America/New_York", "")
	r.resets(l, "2000-04-01T12:00:00Z",
		"2000-04-02T05:00:00Z", "2000-04-03T04:00:00Z")
	r.resets(l.called("autumn"), "2000-10-28T12:00:00Z",
		"2000-10-29T04:00:00Z", "2000-10-30T05:00:00Z")
}

func calendarMonths(r *rig) {
	r.resets(r.word(provider.Month, "UTC", "31"), "2000-01-31T10:00:00Z",
		"2000-02-29T00:00:00Z", "2000-03-31T00:00:00Z", "2000-04-30T00:00:00Z")
}

// Nobody asks for a week, then everybody: one day's worth goes.
func calendarWeek(r *rig) {
	l := r.word(provider.Day, "UTC", "17:30")
	all := []*process{r.process("a"), r.process("b"), r.process("c")}
	r.until(r.date("2000-01-01T10:00:00Z"))
	all[0].went(l.n(3))
	r.until(r.date("2000-01-08T17:30:01Z"))
	var went int
	for range 3 {
		for _, p := range all {
			if a := p.take(l.n(1)); a.Hold != 0 {
				went++
			}
		}
	}
	require.Equal(r.t, 3, went)
}
