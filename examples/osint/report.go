package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/internal/referee"
)

// summary is a run that has ended, ready to be told.
type summary struct {
	rows    []row
	elapsed time.Duration
	ideal   time.Duration // the slowest provider's: they run side by side
	judged  bool          // a referee has counted violations
	stopped bool          // before all was done

	detailed bool // who cannot be asked is told one by one
}

// row is one provider.
type row struct {
	tally
	reachable  time.Duration    // with the round trip there was, see target.reachable
	trip       time.Duration    // median round trip
	arrivals   int64            // as the referee counted them
	violations int64            // likewise
	limits     map[string]int64 // violations by limit, of those that the referee lists
	keys       []string         // what each of several keys has left
	spent      bool             // earlier runs have: the ideal knows nothing of it
}

// heads are the columns. Those that are optional are shown where a row has something
// in them.
var heads = []string{"provider", "lookups", "done before", "answered", "no data", "cached", "not asked", "waited p50", "p95", "elapsed", "ideal", "used", "violations", "refused"}

var optional = []string{"done before", "cached", "not asked"}

// summarise puts together what the board, the coordinator and the referee know.
func summarise(b *board, c *coordinator.Coordinator, judge *referee.Referee, before map[string][]standing, elapsed time.Duration) *summary {
	s := &summary{elapsed: elapsed, judged: judge != nil}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.tallies {
		r := row{tally: *x, spent: len(before[x.t.p.Slug]) > 0}
		if x.t.missing == nil {
			s.ideal = max(s.ideal, x.t.ideal)
			if state, err := c.State(x.t.p.Slug); err == nil {
				r.trip, r.keys = state.RoundTrip, keysLeft(state, before[x.t.p.Slug])
				r.reachable = x.t.reachable(r.trip)
			}
		}
		if judge != nil && x.t.missing == nil {
			report := judge.Report(x.t.p.Slug)
			r.arrivals, r.violations = report.Arrivals, report.Violated
			r.limits = make(map[string]int64)
			for _, v := range report.Violations {
				r.limits[v.Limit]++
			}
		}
		s.rows = append(s.rows, r)
	}
	return s
}

// answered is how many lookups were.
func (s *summary) answered() (n int) {
	for _, r := range s.rows {
		n += r.answered
	}
	return n
}

// before is how many were done in the run that this one goes on with.
func (s *summary) before() (n int) {
	for _, r := range s.rows {
		n += r.tally.before
	}
	return n
}

// givenUp is how many lookups the end of the run came before.
func (s *summary) givenUp() (n int) {
	for _, r := range s.rows {
		if r.t.missing == nil {
			n += len(r.t.jobs) - r.done()
		}
	}
	return n
}

// write tells the summary: a table, what in it needs a word, and the total.
func (s *summary) write(w io.Writer) {
	table := [][]string{heads}
	for _, r := range s.rows {
		if r.t.missing == nil {
			table = append(table, r.cells(s.judged))
		}
	}
	if len(table) > 1 {
		fmt.Fprintln(w)
		align(w, compactTable(table))
	}
	fmt.Fprintln(w)
	notes := 0
	for _, note := range s.notes() {
		fmt.Fprintln(w, note)
		notes++
	}
	if notes > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, s.total())
}

// notes are those of all rows.
func (s *summary) notes() (notes []string) {
	missing := 0
	for _, r := range s.rows {
		if r.t.missing != nil {
			missing++
		}
	}
	for _, r := range s.rows {
		if r.t.missing != nil && !s.detailed && missing > fewUnavailable {
			continue
		}
		for _, note := range append(r.notes(), r.keys...) {
			notes = append(notes, r.t.p.Slug+": "+note)
		}
	}
	if !s.detailed && missing > fewUnavailable {
		notes = append(notes, fmt.Sprintf("%d providers are not available (osint -list tells why)", missing))
	}
	return notes
}

// compactTable leaves optional columns out that hold nothing.
func compactTable(table [][]string) [][]string {
	for _, name := range optional {
		at := slices.Index(table[0], name)
		if slices.ContainsFunc(table[1:], func(cells []string) bool { return cells[at] != "0" }) {
			continue
		}
		for i, cells := range table {
			table[i] = slices.Delete(slices.Clone(cells), at, at+1)
		}
	}
	return table
}

// cells are the row's; waits are those of lookups that were asked.
func (r *row) cells(judged bool) []string {
	waits := slices.Sorted(slices.Values(r.waits))
	violations := "–"
	if judged {
		violations = fmt.Sprint(r.violations)
	}
	return []string{
		r.t.p.Slug, fmt.Sprint(len(r.t.jobs)), fmt.Sprint(r.tally.before), fmt.Sprint(r.answered), fmt.Sprint(r.empty),
		fmt.Sprint(r.cached), fmt.Sprint(r.notAsked),
		short(percentile(waits, 50)), short(percentile(waits, 95)), short(r.elapsed), short(r.t.ideal),
		r.used(), violations, reasons(r.refused),
	}
}

// used is how much of its limits the run used. It has no meaning where the limits
// cost no time, nor where not every job was answered.
func (r *row) used() string {
	if r.t.ideal == 0 || r.asked() < len(r.t.jobs) || r.failed > 0 {
		return "–"
	}
	return percent(r.t.ideal, r.elapsed)
}

// notes are what the row's cells have no room for.
func (r *row) notes() (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if r.t.missing != nil {
		add("not available: %s", oneLine(r.t.missing))
		return notes
	}
	if binding, ok := r.t.binding(); ok && r.used() != "–" && r.t.ideal*100 < r.reachable*97 {
		per, _ := binding.Per.Duration()
		add("at most %s can be used, because a call counts until %s after its answer, and a round trip takes %s",
			percent(r.t.ideal, r.reachable), short(per), short(r.trip))
	}
	if r.spent && r.used() != "–" && r.elapsed*9 > r.t.ideal*10 {
		add("earlier runs have spent of its limits: the ideal is that of a provider that nobody has asked before")
	}
	if r.suspicious > 0 {
		add("%d empty %s suspicious: it has been seen to answer so when it was overloaded",
			r.suspicious, plural(r.suspicious, "answer is", "answers are"))
	}
	for _, reason := range slices.Sorted(maps.Keys(r.retryAt)) {
		add("%d %s: ask again from %s on", r.refused[reason], reason, r.retryAt[reason].Format(time.RFC3339))
	}
	if r.notAsked > 0 {
		add("%d not asked: its calls of this run are spent (-max-calls)", r.notAsked)
	}
	for _, name := range slices.Sorted(maps.Keys(r.limits)) {
		add("the limit %s was broken %d times", name, r.limits[name])
	}
	return notes
}

// total is the last line: what it all comes to.
func (s *summary) total() string {
	var jobs, failed, cached, before, notAsked int
	var arrivals, violations int64
	for _, r := range s.rows {
		if r.t.missing == nil {
			jobs, failed, cached = jobs+len(r.t.jobs), failed+r.failed, cached+r.cached
			before, notAsked = before+r.tally.before, notAsked+r.notAsked
			arrivals, violations = arrivals+r.arrivals, violations+r.violations
		}
	}
	answered := s.answered()
	parts := []string{"violations: – (real providers do not tell)"}
	if s.judged {
		parts[0] = fmt.Sprintf("violations: %d in %d calls", violations, arrivals)
	}
	used := answered == jobs && cached == 0 && s.ideal > 0 // else the ideal is that of another job
	if used {
		parts = append(parts, fmt.Sprintf("utilisation: %s", percent(s.ideal, s.elapsed)))
	}
	outcome := fmt.Sprintf("all answered: %d lookups", jobs)
	switch {
	case s.stopped:
		outcome = fmt.Sprintf("stopped: %d of %d lookups answered, %d refused, %d given up", answered, jobs, failed, s.givenUp())
	case answered+before < jobs:
		outcome = fmt.Sprintf("answered: %d of %d lookups", answered, jobs)
	}
	for _, x := range []struct {
		n    int
		what string
	}{{before, "done before"}, {cached, "from the cache"}, {notAsked, "not asked"}} {
		if x.n > 0 {
			outcome += fmt.Sprintf(", %d %s", x.n, x.what)
		}
	}
	outcome += " in " + short(s.elapsed)
	if used {
		outcome += fmt.Sprintf(" (ideal %s)", short(s.ideal))
	}
	return strings.Join(append(parts, outcome), "   ")
}

// reasons lists refusals, the most frequent first.
func reasons(refused map[coordinator.Reason]int) string {
	if len(refused) == 0 {
		return "–"
	}
	names := slices.Sorted(maps.Keys(refused))
	slices.SortStableFunc(names, func(a, b coordinator.Reason) int { return refused[b] - refused[a] })
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = fmt.Sprintf("%d %s", refused[name], name)
	}
	return strings.Join(texts, ", ")
}
