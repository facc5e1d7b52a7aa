package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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
}

// row is one provider.
type row struct {
	tally
	reachable  time.Duration    // with the round trip there was, see target.reachable
	trip       time.Duration    // median round trip
	arrivals   int64            // as the referee counted them
	violations int64            // likewise
	limits     map[string]int64 // violations by limit, of those that the referee lists
}

var heads = []string{"provider", "lookups", "answered", "no data", "waited p50", "p95", "elapsed", "ideal", "used", "violations", "refused"}

// summarise puts together what the board, the coordinator and the referee know.
func summarise(b *board, c *coordinator.Coordinator, judge *referee.Referee, elapsed time.Duration) *summary {
	s := &summary{elapsed: elapsed, judged: judge != nil}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.tallies {
		r := row{tally: *x}
		if x.t.missing == nil {
			s.ideal = max(s.ideal, x.t.ideal)
			if state, err := c.State(x.t.p.Slug); err == nil {
				r.trip = state.RoundTrip
				r.reachable = x.t.reachable(r.trip)
			}
		}
		if judge != nil {
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
		align(w, table)
	}
	fmt.Fprintln(w)
	notes := 0
	for _, r := range s.rows {
		for _, note := range r.notes() {
			fmt.Fprintf(w, "%s: %s\n", r.t.p.Slug, note)
			notes++
		}
	}
	if notes > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, s.total())
}

// cells are the row's; waits are those of lookups that were asked.
func (r *row) cells(judged bool) []string {
	waits := slices.Sorted(slices.Values(r.waits))
	violations := "–"
	if judged {
		violations = fmt.Sprint(r.violations)
	}
	return []string{
		r.t.p.Slug, fmt.Sprint(len(r.t.jobs)), fmt.Sprint(r.answered), fmt.Sprint(r.empty),
		short(percentile(waits, 50)), short(percentile(waits, 95)), short(r.elapsed), short(r.t.ideal),
		r.used(), violations, reasons(r.refused),
	}
}

// used is how much of its limits the run used. It has no meaning where the limits
// cost no time, nor where not every job was answered.
func (r *row) used() string {
	if r.t.ideal == 0 || r.answered < len(r.t.jobs) {
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
	if r.suspicious > 0 {
		add("%d empty %s suspicious: it has been seen to answer so when it was overloaded",
			r.suspicious, plural(r.suspicious, "answer is", "answers are"))
	}
	for _, reason := range slices.Sorted(maps.Keys(r.retryAt)) {
		add("%s: ask again from %s on", reason, r.retryAt[reason].Format(time.RFC3339))
	}
	for _, name := range slices.Sorted(maps.Keys(r.limits)) {
		add("the limit %s was broken %d times", name, r.limits[name])
	}
	return notes
}

// total is the last line: what it all comes to.
func (s *summary) total() string {
	var jobs, failed int
	var arrivals, violations int64
	for _, r := range s.rows {
		if r.t.missing == nil {
			jobs, failed = jobs+len(r.t.jobs), failed+r.failed
			arrivals, violations = arrivals+r.arrivals, violations+r.violations
		}
	}
	answered := s.answered()
	parts := []string{"violations: – (real providers do not tell)"}
	if s.judged {
		parts[0] = fmt.Sprintf("violations: %d in %d calls", violations, arrivals)
	}
	if answered == jobs && s.ideal > 0 {
		parts = append(parts, fmt.Sprintf("utilisation: %s", percent(s.ideal, s.elapsed)))
	}
	outcome := fmt.Sprintf("all answered: %d lookups", jobs)
	switch {
	case s.stopped:
		outcome = fmt.Sprintf("stopped: %d of %d lookups answered, %d refused, %d given up", answered, jobs, failed, s.givenUp())
	case answered < jobs:
		outcome = fmt.Sprintf("answered: %d of %d lookups", answered, jobs)
	}
	outcome += " in " + short(s.elapsed)
	if answered == jobs && s.ideal > 0 {
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

// percentile is the nearest-rank one of sorted values; 0 where there are none.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(float64(p) / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// percent rounds down: 100 % is all of it. It is never more: a run that meets the
// end of a real provider's calendar period can beat an ideal that counts periods
// from its own begin.
func percent(part, whole time.Duration) string {
	if whole <= 0 {
		return "–"
	}
	return fmt.Sprintf("%d %%", int64(float64(min(part, whole))*100/float64(whole)))
}

// short writes a duration with three digits or so.
func short(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + "s"
	}
	return d.Round(time.Second).String()
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// align writes a table: the first and the last column to the left, numbers to the
// right.
func align(w io.Writer, table [][]string) {
	widths := make([]int, len(table[0]))
	for _, cells := range table {
		for i, c := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for _, cells := range table {
		var b strings.Builder
		for i, c := range cells {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			switch i {
			case 0:
				b.WriteString(c + space)
			case len(cells) - 1:
				b.WriteString("  " + c)
			default:
				b.WriteString("  " + space + c)
			}
		}
		fmt.Fprintln(w, b.String())
	}
}
