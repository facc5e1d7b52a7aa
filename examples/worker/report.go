package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/internal/referee"
)

// progress is a line on the way.
func progress(elapsed time.Duration, all iter.Seq[stats]) string {
	var sum stats
	for s := range all {
		sum.Done, sum.Refused, sum.Failed, sum.Dead = sum.Done+s.Done, sum.Refused+s.Refused, sum.Failed+s.Failed, sum.Dead+s.Dead
	}
	return fmt.Sprintf("%6.1fs  %d done, %d times sent back to wait, %d failed, %d dead", elapsed.Seconds(), sum.Done, sum.Refused, sum.Failed, sum.Dead)
}

// summary is a run that has ended.
type summary struct {
	rows    []row
	letters []string // the dead ones
	jobs    int      // of which there are records
	done    int
	dead    int
	left    int // in the queue
	lost    int // neither done, dead nor left
	elapsed time.Duration
	ideal   time.Duration
	took    time.Duration // from the first call to the last
	report  *referee.Report
}

// row is one worker: done and dead as they are recorded, the rest as it said last.
type row struct {
	name            string
	killed          bool
	done, dead      int
	refused, failed int64
}

// sum asks the queue what became of all jobs.
func (p *pool) sum(ctx context.Context, judge *referee.Referee) (*summary, error) {
	s := &summary{elapsed: time.Since(p.begin)}
	p.mu.Lock()
	rows := make(map[string]*row)
	for _, m := range p.members {
		said := p.stats[m.name]
		rows[m.name] = &row{name: m.name, killed: m.killed, refused: said.Refused, failed: said.Failed}
	}
	p.mu.Unlock()
	err := p.queue.each(ctx, func(id string, r record) {
		x := rows[r.Worker]
		if x == nil {
			x = new(row) // an earlier run's
		}
		s.jobs++
		switch r.State {
		case done:
			s.done++
			x.done++
		case dead:
			s.dead++
			x.dead++
			s.letters = append(s.letters, fmt.Sprintf("%s (%s, tried %d times)", id, r.Why, r.Tries))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("the records cannot be read: %w", err)
	}
	if s.left, err = p.queue.left(ctx); err != nil {
		return nil, err
	}
	s.lost = max(0, s.jobs-s.done-s.dead-s.left)
	for _, x := range rows {
		s.rows = append(s.rows, *x)
	}
	slices.SortFunc(s.rows, func(a, b row) int {
		i, _ := strconv.Atoi(a.name)
		j, _ := strconv.Atoi(b.name)
		return i - j
	})
	slices.Sort(s.letters)
	if judge != nil {
		r := judge.Report(p.told.Provider.Slug)
		s.report, s.took, s.ideal = &r, r.Last.Sub(r.First), ideal(p.told.Provider, r.Admitted)
	}
	return s, nil
}

func (s *summary) write(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "worker\tdone\tsent back\tfailed\tdead letters\t\t")
	for _, r := range s.rows {
		end := ""
		if r.killed {
			end = "killed"
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%s\t\n", r.name, r.done, r.refused, r.failed, r.dead, end)
	}
	table.Flush()
	for _, l := range s.letters {
		fmt.Fprintf(w, "dead letter: %s\n", l)
	}
	fmt.Fprintf(w, "jobs: %d, done: %d, dead letters: %d, left: %d, lost: %d, in %s\n", s.jobs, s.done, s.dead, s.left, s.lost, s.elapsed.Round(100*time.Millisecond))
	if s.report != nil {
		fmt.Fprintf(w, "violations: %d in %d calls   utilisation: %s\n", s.report.Violated, s.report.Arrivals, stage.Percent(s.ideal.Seconds(), s.took.Seconds()))
	}
}
