package main

import (
	"fmt"
	"math"
	"time"

	"github.com/headgate/headgate/bench/decision"
	"github.com/headgate/headgate/bench/outage"
	"github.com/headgate/headgate/bench/peer"
	"github.com/headgate/headgate/bench/report"
	"github.com/headgate/headgate/bench/scale"
	"github.com/headgate/headgate/bench/stat"
	"github.com/headgate/headgate/bench/waiting"
)

func (m measured) decisionTables() []report.Table {
	if len(m.decision) == 0 {
		return nil
	}
	t := report.Table{
		Ours: peer.Headgate.Name, Slack: 0.02,
		How: "A call that need not wait, of a function that does nothing, with three limits, a breaker, a cap of what is in flight and a retry, as far as a peer has such parts: " +
			"how long the cores have worked for a call, alone and with 128 goroutines; nanoseconds on the wall from one call's going to the next one's, with 1, 2 and 128 goroutines together; bytes " +
			"and allocations. Medians of runs in turn. On a machine that does nothing else the first figure and the one of one goroutine on the wall are alike. Headgate's own limits are sliding windows; its second row has the token buckets that the others have.",
	}
	t.Columns = append(t.Columns, report.Column{Name: "core ns, 1", Better: report.Lower}, report.Column{Name: "core ns, 128", Better: report.Lower})
	for _, n := range decision.Goroutines {
		t.Columns = append(t.Columns, report.Column{Name: fmt.Sprintf("wall ns, %d", n), Better: report.Lower})
	}
	t.Columns = append(t.Columns, report.Column{Name: "B, 1", Better: report.Lower},
		report.Column{Name: "allocs, 1", Better: report.Lower}, report.Column{Name: "allocs, 128", Better: report.Lower},
		report.Column{Name: "wall 128 ÷ 1", Better: report.Lower})
	for _, p := range decision.Peers {
		row := report.Row{Name: p.Name, Lacks: p.Lacks, Values: []float64{stat.Median(m.of(p.Name, 1, worked)), stat.Median(m.of(p.Name, 128, worked))}}
		for _, n := range decision.Goroutines {
			row.Values = append(row.Values, stat.Median(m.of(p.Name, n, wall)))
		}
		row.Values = append(row.Values, stat.Median(m.of(p.Name, 1, size)),
			stat.Median(m.of(p.Name, 1, allocs)), stat.Median(m.of(p.Name, 128, allocs)),
			stat.Ratio(m.of(p.Name, 128, wall), m.of(p.Name, 1, wall)))
		t.Rows = append(t.Rows, row)
	}
	return []report.Table{t}
}

func (m measured) waitingTables() (all []report.Table) {
	const timer = "its waiting is a timer and a turn that is reserved, which is paid for when others give up (below)"
	for _, n := range m.counts() {
		t := report.Table{
			Title: fmt.Sprintf("What %s waiting calls cost, each", report.Number(float64(n))), Ours: peer.Headgate.Name, Slack: 0.05,
			How: "Bytes of heap and of stack after a collection, with the goroutine; nanoseconds of cores at work until all wait, with the start of the goroutine, and until 99 of 100 are back " +
				"after their context has ended. Each in a process of its own. The select is on a channel of its own and the end of a context.",
			Why: map[string]string{peer.Uber.Name: "it sleeps and cannot be left", peer.Throttled.Name: "it sleeps and asks again, in no order (below)",
				peer.Spaced.Name: timer, peer.Failsafe.Name: timer,
				peer.ByHand.Name: timer, waiting.Select: "all are measured against it"},
		}
		for _, name := range []string{"heap B", "stack B", "enter ns", "cancel ns"} {
			t.Columns = append(t.Columns, report.Column{Name: name, Better: report.Lower})
		}
		t.Columns = append(t.Columns, report.Column{Name: "heap above the select"})
		names := []string{waiting.Select}
		for _, p := range waiting.Peers {
			names = append(names, p.Name)
		}
		for _, name := range names {
			cancel := m.cost(name, n, func(c waiting.Cost) float64 { return c.Cancel })
			if cancel < 0 {
				cancel = math.NaN()
			}
			t.Rows = append(t.Rows, report.Row{Name: name, Values: []float64{m.cost(name, n, heap), m.cost(name, n, stack),
				m.cost(name, n, func(c waiting.Cost) float64 { return c.Enter }), cancel,
				m.cost(name, n, heap) - m.cost(waiting.Select, n, heap)}})
		}
		all = append(all, t)
	}
	return append(all, m.patienceTables()...)
}

func (m measured) patienceTables() []report.Table {
	if len(m.patience.Leaving) == 0 {
		return nil
	}
	leaving := report.Table{
		Title: "When 99 of 100 give up", Ours: peer.Headgate.Name, Slack: 0.05,
		How: fmt.Sprintf("One call may go each %v. Seconds until the next of those who stay goes, and until a call goes that comes just then, behind them all; virtual time.", waiting.Turn),
		Why: map[string]string{peer.Throttled.Name: "it keeps no order: whoever asks first goes"},
	}
	done := map[int]bool{}
	for _, l := range m.patience.Leaving {
		if done[l.N] {
			continue
		}
		done[l.N] = true
		of := fmt.Sprintf(" of %s", report.Number(float64(l.N)))
		leaving.Columns = append(leaving.Columns, report.Column{Name: "next" + of, Better: report.Lower, Format: report.Seconds},
			report.Column{Name: fmt.Sprintf("newcomer%s (in order: %s)", of, report.Seconds(l.Ideal)), Better: report.Lower, Format: report.Seconds})
	}
	fair := report.Table{
		Title: "Who waits how long", Ours: peer.Headgate.Name, Slack: 0.05,
		How: fmt.Sprintf("%d callers that come again as soon as they have gone: the longest wait, in rounds in which each goes once. And one call of a second user behind %d calls of a first one. Virtual time.",
			waiting.Regulars, waiting.Regulars),
		Columns: []report.Column{{Name: "longest wait, rounds", Better: report.Lower}, {Name: "another user waits", Better: report.Lower, Format: report.Seconds}},
	}
	for _, p := range waiting.Peers {
		row := report.Row{Name: p.Name}
		for _, l := range m.patience.Leaving { // in the order of N
			if l.Peer == p.Name {
				row.Values = append(row.Values, l.Next, l.Newcomer)
			}
		}
		if len(row.Values) == len(leaving.Columns) {
			leaving.Rows = append(leaving.Rows, row)
		}
		for _, f := range m.patience.Fairness {
			if f.Peer == p.Name {
				fair.Rows = append(fair.Rows, report.Row{Name: p.Name, Values: []float64{f.Longest, f.Other}})
			}
		}
	}
	return []report.Table{leaving, fair}
}

func (m measured) outageTables() (all []report.Table) {
	for _, mode := range outage.Modes {
		t := report.Table{
			Title: fmt.Sprintf("A provider that %s for %v", mode, outage.Length), Ours: peer.Headgate.Name, Slack: 0.05,
			How: fmt.Sprintf("%d callers, %d calls a second allowed, %d in flight at most, %d attempts, breakers that open after %d failures in a row for %v; attempts that hang end after %v. "+
				"Requests sent into the outage; permits spent in it on calls that were then not sent; seconds from its end until the good answers of two seconds are 90 %% of those before. "+
				"The mean of %d outages of %v to %v; virtual time.", outage.Callers, outage.Rate, outage.Cap, outage.Attempts, peer.Failures, peer.Cooldown, outage.Timeout,
				outage.Plays, outage.Length, outage.Length+(outage.Plays-1)*time.Second),
			Columns: []report.Column{{Name: "sent into the outage", Better: report.Lower}, {Name: "permits wasted", Better: report.Lower},
				{Name: "back after", Better: report.Lower, Format: report.Seconds}, {Name: "calls a second before"}},
			Why: map[string]string{
				peer.LimitsFirst.Name: "it asks the breaker last: nobody is let through early, and the permits are gone",
				peer.Spaced.Name:      "it has no breaker, and never stopped sending",
				peer.Retryable.Name:   "it has no breaker, and never stopped sending",
				peer.ByHand.Name:      "it had let them all through before its breaker opened, and is still sending them",
				peer.Failsafe.Name:    "it had let them all through before its breaker opened, and is still sending them",
			},
		}
		for _, p := range outage.Peers {
			for _, r := range m.outage {
				if r.Peer != p.Name || r.Mode != mode {
					continue
				}
				wasted := r.Wasted
				if wasted < 0 {
					wasted = math.NaN()
				}
				t.Rows = append(t.Rows, report.Row{Name: p.Name, Lacks: p.Lacks, Values: []float64{r.Sent, wasted, r.Back, r.Before}})
			}
		}
		if len(t.Rows) > 0 {
			all = append(all, t)
		}
	}
	return all
}

func (m measured) scaleTables() (all []report.Table) {
	how := map[scale.Among]string{
		scale.Providers: "A call that need not wait to one of many providers, drawn evenly, each with three limits, a breaker, a cap and a retry; nanoseconds that cores have worked; bytes of one more of them after its first call. " +
			"Each in a process of its own. The others are in a map behind a read-write lock, as a program would have them.",
		scale.Keys: "The same with one limit for each of many keys of one provider.",
	}
	for _, among := range []scale.Among{scale.Providers, scale.Keys} {
		t := report.Table{Title: "Many " + string(among), How: how[among], Ours: peer.Headgate.Name, Slack: 0.05,
			Why: map[string]string{
				"x/time/rate":       "a map of limiters and nothing else: no order, no pause, no breaker, and no key is ever forgotten",
				peer.Throttled.Name: "one number a key and nothing else: no order, no pause, no breaker, and no key is ever forgotten",
				peer.GoLimiter.Name: "one window a key and nothing else: no order, no pause, no breaker",
			}}
		var counts []int
		for _, r := range m.scale {
			if r.Among == among && (len(counts) == 0 || r.N > counts[len(counts)-1]) {
				counts = append(counts, r.N)
				t.Columns = append(t.Columns, report.Column{Name: "ns, " + report.Number(float64(r.N)), Better: report.Lower})
			}
		}
		if len(counts) == 0 {
			continue
		}
		t.Columns = append(t.Columns, report.Column{Name: "B each, " + report.Number(float64(counts[len(counts)-1])), Better: report.Lower})
		for _, s := range scale.Subjects[among] {
			row := report.Row{Name: s.Name}
			for _, n := range counts {
				row.Values = append(row.Values, m.scaled(s.Name, among, n, func(r scale.Result) float64 { return r.Nanoseconds }))
			}
			row.Values = append(row.Values, m.scaled(s.Name, among, counts[len(counts)-1], func(r scale.Result) float64 { return r.Bytes }))
			t.Rows = append(t.Rows, row)
		}
		all = append(all, t)
	}
	return all
}

func (m measured) scaled(name string, among scale.Among, n int, figure func(scale.Result) float64) float64 {
	var all []float64
	for _, r := range m.scale {
		if r.Subject == name && r.Among == among && r.N == n {
			all = append(all, figure(r))
		}
	}
	return stat.Median(all)
}
