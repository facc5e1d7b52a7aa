package referee

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate/provider"
)

// teller tells one declared budget from the counters of the limit that it names.
type teller struct {
	source   provider.BudgetSource
	rule     *rule
	calendar *calendar     // of its windows; nil: they have a length
	phase    time.Duration // of those
	closed   bool
}

// said is what a limit's counter says at an arrival, that arrival included.
type said struct {
	limit, used, remaining int64
	rate                   float64       // units a second
	window                 time.Duration // 0: in_flight has none
	more                   time.Duration // until more is left; 0: nothing is used
}

// newTeller finds the limit of a budget: that of its name.
func newTeller(b provider.BudgetSource, p Play, rules []*rule) (*teller, error) {
	i := slices.IndexFunc(rules, func(r *rule) bool { return r.limit.Name == b.Name })
	if i < 0 {
		return nil, fmt.Errorf("name: %q, would have to be that of a limit, whose counter is told", b.Name)
	}
	return tellerOf(b, p, rules[i])
}

func tellerOf(b provider.BudgetSource, p Play, r *rule) (*teller, error) {
	t := &teller{source: b, rule: r, phase: p.Phase, closed: p.Closed}
	if _, word := r.limit.Per.Duration(); word {
		var err error
		if t.calendar, err = newCalendar(r.limit); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// conventional is the budget of a dialect that declares none, by the conventions.
var conventional = provider.BudgetSource{
	Limit:     provider.Source{Header: "X-RateLimit-Limit"},
	Remaining: provider.Source{Header: "X-RateLimit-Remaining"},
	Reset:     provider.Source{Header: "X-RateLimit-Reset", As: "seconds"},
}

// newConventional tells one limit by the conventions; nil: they have no words for
// such a limit.
func newConventional(p Play, r *rule) (*teller, error) {
	if r.limit.Algorithm == provider.InFlight || r.limit.Unit != provider.Requests {
		return nil, nil
	}
	return tellerOf(conventional, p, r)
}

// count reads the counter for c; false: the limit is not c's.
func (t *teller) count(c *call) (said, bool) {
	r := t.rule
	if r.cost(c) == 0 {
		return said{}, false
	}
	k, now, most := r.counter(c), c.At.UnixNano(), r.most()
	used, _ := k.fits(now, 0)
	used = min(max(used, 0), most)
	s := t.says(used, most-used)
	switch {
	case used == 0 || r.limit.Algorithm == provider.InFlight:
	case r.limit.Algorithm == provider.FixedWindow:
		s.more = time.Duration(t.end(now) - now)
	default:
		if at, ok := opens(k, now, s.remaining+1); ok {
			s.more = time.Duration(at - now)
		}
	}
	return s, true
}

// share is how much of the limit is left.
func (s said) share() float64 { return float64(s.remaining) / float64(s.limit) }

// says fills in what the declaration knows.
func (t *teller) says(used, remaining int64) said {
	l := t.rule.limit
	s := said{limit: l.Max, used: used, remaining: remaining}
	if s.window, _ = l.Per.Duration(); s.window > 0 {
		s.rate = float64(l.Max) / s.window.Seconds()
	}
	return s
}

// end is the end of the fixed window that holds now.
func (t *teller) end(now int64) int64 {
	var end int64
	if t.calendar != nil {
		t.calendar.start(now)
		end = t.calendar.to
	} else {
		w, _ := t.rule.limit.Per.Duration()
		end = floor(now-int64(t.phase), int64(w)) + int64(t.phase) + int64(w)
	}
	if t.closed {
		end++
	}
	return end
}

// line is one value in its place.
type line struct {
	source provider.Source
	values []string // how it may be written
}

// lines writes what is said in the places of the budget.
func (t *teller) lines(s said, now time.Time) []line {
	var all []line
	add := func(source provider.Source, values ...string) {
		if source != (provider.Source{}) && len(values) > 0 {
			all = append(all, line{source, values})
		}
	}
	b := t.source
	if b.Limit != (provider.Source{}) && place(b.Limit) == place(b.Reset) {
		// One number for both is an order of silence: so long, since nothing is left.
		if s.remaining == 0 && s.more > 0 {
			add(b.Reset, waits(s.more, now, b.Reset.As)...)
		}
		return all
	}
	add(b.Limit, s.amount(s.limit, b.Limit.As))
	add(b.Remaining, s.amount(s.remaining, b.Remaining.As))
	add(b.Used, s.amount(s.used, b.Used.As))
	switch {
	case b.Reset.As == "rate":
		add(b.Reset, s.amount(0, "rate"))
	case s.more > 0:
		add(b.Reset, waits(s.more, now, b.Reset.As)...)
	}
	if s.window > 0 {
		add(b.Window, lengths(s.window, b.Window.As)...)
	}
	return all
}

// place is where a source stands, however it is written there.
func place(s provider.Source) provider.Source {
	s.As = ""
	return s
}

// amount writes n, or what is used of the limit.
func (s said) amount(n int64, as string) string {
	switch as {
	case "used_of_limit":
		return strconv.FormatInt(s.used, 10) + "/" + strconv.FormatInt(s.limit, 10)
	case "percent":
		return strconv.FormatInt((s.used*100+s.limit-1)/s.limit, 10)
	case "rate":
		return strconv.FormatFloat(s.rate, 'f', -1, 64)
	}
	return strconv.FormatInt(n, 10)
}
