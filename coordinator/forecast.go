package coordinator

import (
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/queue"
)

// portionGap is the pause that divides portions: who sits and waits sits through
// less.
const portionGap = 10 * time.Minute

// maxPortions bounds what a Forecast holds: the last one takes in all that follows.
const maxPortions = 1000

// mostForecast bounds the work of one Forecast to some seconds.
const mostForecast = 10_000_000

// Demand is so many calls alike.
type Demand struct {
	Call  Call
	Calls int
}

// Forecast tells when calls could go.
type Forecast struct {
	Provider string        `json:"provider"`
	At       time.Time     `json:"at"`
	Calls    int           `json:"calls"`
	Now      int           `json:"now"`      // of the first portion, if it begins now: within ten minutes
	Portions []Portion     `json:"portions"` // in order of time; a pause of ten minutes begins a new one; at most 1,000
	Never    int           `json:"never"`    // calls that only an event could let go: a limit that all who wait overtake, a call that hangs
	Trip     time.Duration `json:"round_trip"`
	// Limit is what the first portion that does not begin now waits for, as it stands
	// now; nil: there is none, or it is no limit that holds it up.
	Limit *LimitState `json:"limit,omitempty"`
}

// Portion is calls that go one after the other.
type Portion struct {
	From  time.Time `json:"from"` // the first of them goes
	To    time.Time `json:"to"`   // the last
	Calls int       `json:"calls"`
	Limit string    `json:"limit,omitempty"` // that the first of them waits for, where they do not begin now
	Why   string    `json:"why,omitempty"`   // or the pause that it waits for
}

// Done is when the last call goes; zero: there is none, or not all can.
func (f Forecast) Done() time.Time {
	if len(f.Portions) == 0 || f.Never > 0 {
		return time.Time{}
	}
	return f.Portions[len(f.Portions)-1].To
}

// String is the forecast in a line, such as "386 calls, 240 of 500 left per day:
// 240 now, 146 after 00:00 UTC". Times are in the zone of At.
func (f Forecast) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d calls", f.Calls)
	if l := f.Limit; l != nil {
		fmt.Fprintf(&b, ", %d of %d %s left per %s", max(0, l.Max-l.Used-l.Held), l.Max, l.Unit, l.Per)
	}
	sep := ": "
	for i, p := range f.Portions {
		if rest := len(f.Portions) - i; i == 3 && rest > 1 {
			last := f.Portions[len(f.Portions)-1]
			fmt.Fprintf(&b, ", the rest by %s", f.clock(last.To))
			break
		}
		when := "now"
		if p.From.Sub(f.At) >= portionGap {
			when = "after " + f.clock(p.From)
		}
		fmt.Fprintf(&b, "%s%d %s", sep, p.Calls, when)
		sep = ", "
	}
	if f.Never > 0 {
		fmt.Fprintf(&b, "%s%d nobody knows when", sep, f.Never)
	}
	return b.String()
}

// clock is a time for people: the date where it is not today's.
func (f Forecast) clock(t time.Time) string {
	t = t.In(f.At.Location())
	layout := "15:04 MST"
	if t.YearDay() != f.At.YearDay() || t.Year() != f.At.Year() {
		layout = "Jan 2 15:04 MST"
		if t.Sub(f.At) > 300*24*time.Hour {
			layout = "2006-01-02 15:04 MST"
		}
	}
	return t.Format(layout)
}

// Forecast tells when n calls like call could go, if all came now and waited as
// long as it takes, behind those that wait already. Nothing is sent, nothing is
// taken.
//
// It plays the provider's lane forward with the decision's own code: exact, where
// every answer is ok and takes as long as the round trips so far (their median; see
// ForecastAll), to a slot of a large window, and as far as no other calls come.
// Flows that compete are assumed to owe each other nothing. It costs about a
// microsecond or two a call and needs the lane's lock only while it copies.
//
// The error is that of Do for a call that is refused at once whatever comes: an
// unknown provider or endpoint, a cost that no limit can ever admit. Of a limit that is
// shared and that no call has asked for yet, the ledger is asked what is left, as State
// does.
func (c *Coordinator) Forecast(call Call, n int) (Forecast, error) {
	return c.ForecastAll(-1, Demand{call, n})
}

// ForecastAll is Forecast for calls of several kinds to one provider, which share
// its limits: they take turns. trip is what a round trip is taken to last; below 0:
// the median of those so far, 0 where there were none, and never below the declared least.
func (c *Coordinator) ForecastAll(trip time.Duration, demands ...Demand) (Forecast, error) {
	if len(demands) == 0 {
		return Forecast{}, fmt.Errorf("coordinator: forecast: no demand: want the calls that are to be made")
	}
	slug := demands[0].Call.Provider
	l, unknown := c.lane(slug)
	if unknown != nil {
		return Forecast{}, unknown
	}
	for _, d := range demands {
		switch {
		case d.Call.Provider != slug:
			return Forecast{}, fmt.Errorf("coordinator: forecast: calls to %q and to %q: want one provider", slug, d.Call.Provider)
		case d.Calls < 0 || d.Calls > mostForecast:
			return Forecast{}, fmt.Errorf("coordinator: forecast: %d calls: want 0 to %d", d.Calls, mostForecast)
		}
		if e := l.possible(d.Call); e != nil {
			return Forecast{}, e
		}
	}
	l.peekDemands(demands)
	return l.forecast(trip, demands), nil
}

// possible is the refusal of a call that could never go.
func (l *lane) possible(call Call) *Error {
	l.lock()
	defer func() { l.tell(l.unlock()) }()
	if detail := l.check(&call); detail != "" {
		return invalid(l.slug, detail)
	}
	ls := l.draft(call)
	if l.pooled(&call) {
		if all, heavy := l.options(ls, call.Endpoint); len(all) == 0 {
			return l.tooHeavy(nil, heavy)
		}
		return nil
	}
	if g := ls.route.tooHeavy(ls.wait.Cost); g != nil {
		return l.tooHeavy(nil, g)
	}
	return nil
}

func (l *lane) forecast(trip time.Duration, demands []Demand) Forecast {
	r := l.rehearsal(trip, demands)
	f := Forecast{Provider: l.slug, At: r.wall(), Trip: r.trip}
	limits := make(map[*queue.Gate]*LimitState)
	r.eachLimit(func(g *limitGate) { limits[&g.Gate] = g.state() })
	b := builder{f: &f, start: r.now.Mono, limits: limits}
	r.went = b.went
	r.run()
	for i, c := range r.classes {
		f.Calls += demands[i].Calls
		f.Never += c.left
	}
	return f
}

// rehearsal is what is needed to play the demands, from now on.
func (l *lane) rehearsal(trip time.Duration, demands []Demand) *rehearsal {
	l.lock()
	defer func() { l.tell(l.unlock()) }()
	if trip < 0 {
		trip = max(l.trips.median(), l.least.holds)
	}
	r := &rehearsal{shadow: l.shadow(trip)}
	for _, d := range demands {
		r.classes = append(r.classes, &class{call: d.Call, left: d.Calls, place: l.q.Arrive()})
		r.routeLike(l, routeKey{d.Call.Endpoint, d.Call.Key})
		for _, key := range l.keys {
			r.routeLike(l, routeKey{d.Call.Endpoint, key})
		}
	}
	return r
}

// builder makes portions of calls that go.
type builder struct {
	f      *Forecast
	start  time.Duration
	last   time.Duration // when the last call went
	limits map[*queue.Gate]*LimitState
}

func (b *builder) went(at time.Duration, by *queue.Gate) {
	f := b.f
	n := len(f.Portions)
	when := f.At.Add(at - b.start)
	if n == 0 || at-b.last >= portionGap && n < maxPortions {
		p := Portion{From: when}
		if by != nil && when.Sub(f.At) >= portionGap {
			b.blame(&p, by)
		}
		f.Portions = append(f.Portions, p)
		n++
	}
	p := &f.Portions[n-1]
	p.To = when
	p.Calls++
	b.last = at
	if n == 1 && p.From.Sub(f.At) < portionGap {
		f.Now++
	}
}

// blame names what held up the first call of a portion.
func (b *builder) blame(p *Portion, by *queue.Gate) {
	switch g := by.Rule().(type) {
	case *limitGate:
		p.Limit = g.d.Name
		if b.f.Limit == nil {
			b.f.Limit = b.limits[by]
		}
	case *pauseGate:
		p.Why = "the " + g.scope + " is paused"
	}
}
