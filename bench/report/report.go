// Package report writes tables of measurements as Markdown, and says of each column
// who is best in it.
package report

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// Better is which end of a column is the good one.
type Better int

// The ends.
const (
	Neither Better = iota
	Lower
	Higher
)

// Column is one figure of each row.
type Column struct {
	Name   string
	Better Better
	Format func(float64) string // nil: Number
}

// Row is one peer. A value that is not a number is shown as "–".
type Row struct {
	Name   string
	Values []float64
	Lacks  string // "" or what it lacks: shown, and said where it wins
}

// Table is one table. The rows named Ours (by their beginning) are compared with the
// others.
type Table struct {
	Title   string
	How     string // how it was measured
	Columns []Column
	Rows    []Row
	Ours    string
	// Slack is by how much of itself another's value must be better to be called so.
	Slack float64
	// Fold hides the table behind its title, and says nothing of who is best: another
	// table does.
	Fold bool
	// Why, by the name of a row, is why that row may win, where Lacks does not say.
	Why map[string]string
}

// Write writes t, with its remarks.
func (t Table) Write(w io.Writer) {
	if t.Fold {
		fmt.Fprintf(w, "<details><summary>%s</summary>\n\n", t.Title)
		defer fmt.Fprint(w, "</details>\n\n")
	} else if t.Title != "" {
		fmt.Fprintf(w, "### %s\n\n", t.Title)
	}
	if t.How != "" {
		fmt.Fprintf(w, "%s\n\n", t.How)
	}
	t.writeRows(w)
	for _, remark := range t.Remarks() {
		fmt.Fprintf(w, "- %s\n", remark)
	}
	if !t.Fold && len(t.Remarks()) > 0 {
		fmt.Fprintln(w)
	}
}

func (t Table) writeRows(w io.Writer) {
	lacks := false
	for _, r := range t.Rows {
		lacks = lacks || r.Lacks != ""
	}
	head, line := "| |", "|---|"
	for _, c := range t.Columns {
		head += " " + c.Name + " |"
		line += "--:|"
	}
	if lacks {
		head, line = head+" it has no |", line+"---|"
	}
	fmt.Fprintf(w, "%s\n%s\n", head, line)
	for _, r := range t.Rows {
		fmt.Fprintf(w, "| %s |", r.Name)
		for i, c := range t.Columns {
			cell := c.show(r.Values[i])
			if !t.Fold && c.Better != Neither && cell != none && cell == c.show(t.best(i, everybody)) {
				cell = "**" + cell + "**"
			}
			fmt.Fprintf(w, " %s |", cell)
		}
		if lacks {
			fmt.Fprintf(w, " %s |", r.Lacks)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
}

const none = "–"

func (c Column) show(v float64) string {
	switch {
	case math.IsNaN(v):
		return none
	case c.Format != nil:
		return c.Format(v)
	}
	return Number(v)
}

// best is the best value of a column among the rows that which takes; not a number
// where there is none.
func (t Table) best(column int, which func(Row) bool) float64 {
	best := math.NaN()
	for _, r := range t.Rows {
		if v := r.Values[column]; which(r) && (math.IsNaN(best) || t.Columns[column].beats(v, best)) {
			best = v
		}
	}
	return best
}

func everybody(Row) bool { return true }

func (c Column) beats(a, b float64) bool {
	return c.Better == Lower && a < b || c.Better == Higher && a > b
}

// Remarks says of each column in which another is better than ours who that is, and by
// how much; then of each who is, why: by Why, or by what it lacks.
func (t Table) Remarks() []string {
	if t.Fold || t.Ours == "" {
		return nil
	}
	var all []string
	named := map[string]bool{}
	for i, c := range t.Columns {
		ours := t.best(i, t.ours)
		var ahead []string
		for _, r := range t.Rows {
			if v := r.Values[i]; t.clearly(c, v, ours) { // never one of ours, nor what is no number
				ahead = append(ahead, fmt.Sprintf("%s (%s)", r.Name, c.show(v)))
				named[r.Name] = true
			}
		}
		if len(ahead) > 0 {
			all = append(all, fmt.Sprintf("*%s*: better than %s (%s): %s.", c.Name, t.Ours, c.show(ours), strings.Join(ahead, ", ")))
		}
	}
	return append(all, t.reasons(named)...)
}

// reasons are one line for all that have the same.
func (t Table) reasons(named map[string]bool) (all []string) {
	who := map[string][]string{}
	var order []string
	for _, r := range t.Rows {
		why := t.Why[r.Name]
		if why == "" && r.Lacks != "" {
			why = "it has no " + r.Lacks
		}
		if why == "" || !named[r.Name] {
			continue
		}
		if who[why] == nil {
			order = append(order, why)
		}
		who[why] = append(who[why], r.Name)
	}
	for _, why := range order {
		all = append(all, fmt.Sprintf("Why %s: %s.", strings.Join(who[why], ", "), why))
	}
	return all
}

func (t Table) ours(r Row) bool { return strings.HasPrefix(r.Name, t.Ours) }

func (t Table) clearly(c Column, v, ours float64) bool {
	return c.beats(v, ours) && math.Abs(v-ours) > t.Slack*math.Abs(ours) && c.show(v) != c.show(ours)
}
