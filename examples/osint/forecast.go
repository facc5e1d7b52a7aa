package main

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

	"github.com/headgate/headgate/batch/journal"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/examples/internal/ledgerflag"
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// plannedTrip is what a round trip is taken to last before there was any: the mean
// of the played network.
const plannedTrip = shortestDelay + longestDelay

// manyPortions is how many later portions of a provider are told.
const manyPortions = 3

// forecast tells when the lookups would go, provider by provider, and sends nothing.
func (w *world) forecast(o options, targets []*target, done *journal.Journal, kept *store, told io.Writer) (int, error) {
	for _, t := range targets {
		if !o.live && t.byHand != nil {
			t.missing = errUnplayed
		}
		if o.live {
			if err := t.connect(w.getenv, w.client); err != nil {
				return exitFailed, err
			}
		}
	}
	o.unavailable(targets, told)
	known, err := w.known(o, targets, told)
	if err != nil {
		return exitFailed, err
	}
	defer func() { _ = ledgerflag.Close(known) }() // nothing was spent
	c, err := newRehearsal(targets, known)
	if err != nil {
		return exitFailed, err
	}
	table := [][]string{{"provider", "lookups", "done", "cached", "not asked", "to ask", "now", "done by", "later, and the limit that binds"}}
	var last time.Time
	sum, never := 0, 0
	for _, t := range targets {
		if t.missing != nil {
			continue
		}
		n := t.split(o, done, kept)
		f, err := forecastOf(c, t, n.jobs, plannedTrip)
		if err != nil {
			return exitFailed, err
		}
		sum, never = sum+len(n.jobs), never+f.Never
		if f.Done().After(last) {
			last = f.Done()
		}
		table = append(table, n.cells(t, f, o.wait))
	}
	if len(table) == 1 {
		return exitFailed, errors.New("no provider can be asked: osint -list tells why")
	}
	fmt.Fprintln(told)
	align(told, table)
	fmt.Fprintf(told, "\n%d lookups to ask, nothing was sent; a round trip is taken to last %s\n", sum, short(plannedTrip))
	if len(table) > 2 && !last.IsZero() && never == 0 {
		fmt.Fprintf(told, "the last goes by %s\n", last.Format(time.RFC3339))
	}
	return exitOK, nil
}

// newRehearsal is a coordinator in which nothing is asked. What its forecasts know of
// earlier runs is in the ledger; nil: nothing.
func newRehearsal(targets []*target, known *ledger.Client) (*coordinator.Coordinator, error) {
	var declared []provider.Provider
	over := make(map[string]provider.Throttle)
	for _, t := range targets {
		if t.missing != nil {
			continue
		}
		declared = append(declared, t.base)
		if t.overridden {
			over[t.p.Slug] = t.p.Throttle
		}
	}
	cfg := coordinator.Config{Registry: new(registry.Registry), Providers: declared, Overrides: over}
	if known != nil {
		cfg.Ledger = known
	}
	return coordinator.New(cfg)
}

// split is what of a target's jobs is left to ask, and what is not.
type split struct {
	jobs                     []job
	before, cached, notAsked int
}

func (t *target) split(o options, done *journal.Journal, kept *store) (n split) {
	for _, j := range t.jobs {
		_, isKept := kept.get(t, &j)
		switch {
		case done != nil && done.Done(j.key(t.p.Slug)):
			n.before++
		case isKept:
			n.cached++
		case o.maxCalls > 0 && len(n.jobs) == o.maxCalls:
			n.notAsked++
		default:
			n.jobs = append(n.jobs, j)
		}
	}
	return n
}

// forecastOf plays the jobs forward at a round trip of that length.
func forecastOf(c *coordinator.Coordinator, t *target, jobs []job, trip time.Duration) (coordinator.Forecast, error) {
	if len(jobs) == 0 {
		return coordinator.Forecast{Provider: t.p.Slug, At: time.Now()}, nil
	}
	type kind struct{ endpoint, flow string }
	at := make(map[kind]int)
	var demands []coordinator.Demand
	for _, j := range jobs {
		k := kind{j.endpoint, j.lists[0]}
		i, ok := at[k]
		if !ok {
			i = len(demands)
			at[k] = i
			demands = append(demands, coordinator.Demand{Call: coordinator.Call{Provider: t.p.Slug, Endpoint: j.endpoint, Flow: k.flow}})
		}
		demands[i].Calls++
	}
	return c.ForecastAll(trip, demands...)
}

// cells are the row of a provider.
func (n split) cells(t *target, f coordinator.Forecast, wait time.Duration) []string {
	doneBy := "–"
	switch {
	case f.Never > 0:
		doneBy = "never"
	case f.Calls > 0:
		doneBy = clock(f.Done(), f.At)
	}
	return []string{
		t.p.Slug, fmt.Sprint(len(t.jobs)), fmt.Sprint(n.before), fmt.Sprint(n.cached), fmt.Sprint(n.notAsked),
		fmt.Sprint(len(n.jobs)), fmt.Sprint(f.Now), doneBy, later(t, f, wait),
	}
}

// later tells what goes after the first portion, and why.
func later(t *target, f coordinator.Forecast, wait time.Duration) string {
	text, sep := "", ""
	add := func(format string, args ...any) {
		text += sep + fmt.Sprintf(format, args...)
		sep = ", "
	}
	next := func() { // another subject
		if text != "" {
			sep = "; "
		}
	}
	told := 0
	for i, p := range f.Portions {
		if i == 0 && f.Now > 0 {
			continue
		}
		if told == manyPortions {
			add("and so on")
			break
		}
		add("%d after %s", p.Calls, clock(p.From, f.At))
		told++
	}
	if f.Never > 0 {
		add("%d nobody knows when", f.Never)
	}
	if l := t.binds(f); l != "" {
		next()
		add("%s", l)
	}
	if d := f.Done(); d.Sub(f.At) > wait {
		next()
		add("want -wait %s", short(d.Sub(f.At).Truncate(time.Minute)+time.Minute))
	}
	if t.paged() {
		next()
		add("at least: a further page is a further call")
	}
	if text == "" {
		return "–"
	}
	return text
}

// binds is the limit that binds: what the first later portion waits for, else the
// one that alone needs the longest. With where its number comes from.
func (t *target) binds(f coordinator.Forecast) string {
	var name string
	if f.Limit != nil {
		name = f.Limit.Name
	} else if l, ok := t.binding(); ok && f.Calls > 0 {
		name = l.Name
	}
	for _, l := range t.limits {
		if l.Name != name {
			continue
		}
		text := l.Name + ": " + limitText(l)
		if t.changes(l) {
			text += ", overridden"
		}
		return text
	}
	return name
}

// changes tells whether a limit is the user's, and not the declared one.
func (t *target) changes(l provider.Limit) bool {
	declared, err := t.base.Throttle.Expand()
	return err == nil && !slices.ContainsFunc(declared, func(d provider.Limit) bool { return reflect.DeepEqual(d, l) })
}

// clock is a time for people, with the date where it is not today's.
func clock(t, now time.Time) string {
	t = t.In(now.Location())
	switch {
	case t.YearDay() == now.YearDay() && t.Year() == now.Year():
		return t.Format("15:04:05")
	case t.Sub(now) > 300*24*time.Hour:
		return t.Format("2006-01-02 15:04")
	}
	return t.Format("Jan 2 15:04")
}
