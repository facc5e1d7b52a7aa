package main

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/bench/conformance"
	"github.com/headgate/headgate/bench/peer"
	"github.com/headgate/headgate/bench/report"
)

func (m measured) conformanceTables() (all []report.Table) {
	if len(m.conformance) == 0 {
		return nil
	}
	all = append(all, m.summary(false), m.summary(true))
	for _, s := range conformance.Sets() {
		for _, strict := range []bool{false, true} {
			if t := m.detail(s.Name, strict); len(t.Rows) > 0 {
				all = append(all, t)
			}
		}
	}
	return all
}

const howConformance = "Played in virtual time (`testing/synctest`) against `internal/referee`, which counts each call as it arrives: %s; providers that count " +
	"in exact windows, in fixed windows (of twelve phases, three where a window is a day), and by a token bucket of N; networks without delay, and with 10–100 ms " +
	"and 20–300 ms each way, drawn evenly; demand that is steady (always more than may go), bursty (three windows' worth at once, every five windows) and on-off (a fifth " +
	"too much for five windows, nothing for five). *Refused* is the share of requests. *Steady* is what got through, of what the limit allows; no peer " +
	"can know more than the declaration, and who counts a call until its answer is there can use W/(W + mean round trip) of it: %s. Two rows were told of the network what no declaration says. " +
	"*Bursts* is the wait for the admitted attempt at 50 per 1 s, the mean over providers and networks. go-limiter reads the machine's clock past Go's `time`, so it is " +
	"played on the wall, where windows are a second. gobreaker has no limits and is not here."

// summary is one row a peer.
func (m measured) summary(strict bool) report.Table {
	t := report.Table{Title: "What gets through", Ours: peer.Headgate.Name, Slack: equal, Why: map[string]string{}}
	names := ""
	for i, s := range conformance.Sets() {
		if i > 0 {
			names += "; "
		}
		names += s.Name
	}
	bounds := ""
	for _, n := range conformance.Networks() {
		share := m.mean(func(r conformance.Result) bool { return r.Network == n.Name && r.Demand == conformance.Steady }, bound)
		if !math.IsNaN(share) {
			bounds += fmt.Sprintf("%s with %s, ", report.Three(share), n.Name)
		}
	}
	t.How = fmt.Sprintf(howConformance, names, bounds+"on average over the limits")
	if strict {
		t.Title = "The same where a refused call counts against the limit, too"
		t.How = "As many providers do it: who insists stays out."
	}
	t.Columns = []report.Column{{Name: "combinations without a refusal", Better: report.Higher, Format: report.Percent}}
	for _, n := range conformance.Networks() {
		t.Columns = append(t.Columns, report.Column{Name: "refused, " + n.Name, Better: report.Lower, Format: report.Percent})
	}
	for _, n := range conformance.Networks() {
		t.Columns = append(t.Columns, report.Column{Name: "steady, " + n.Name, Better: report.Higher, Format: report.Three})
	}
	t.Columns = append(t.Columns, report.Column{Name: "bursts: p50", Better: report.Lower, Format: report.Seconds},
		report.Column{Name: "p99", Better: report.Lower, Format: report.Seconds})
	for _, p := range conformance.Peers {
		row := report.Row{Name: p.Name}
		of := func(r conformance.Result) bool { return r.Peer == p.Name && r.Strict == strict }
		row.Values = append(row.Values, m.mean(of, func(r conformance.Result) float64 {
			if r.Refused == 0 {
				return 1
			}
			return 0
		}))
		for _, n := range conformance.Networks() {
			row.Values = append(row.Values, m.refusals(func(r conformance.Result) bool { return of(r) && r.Network == n.Name }))
		}
		for _, n := range conformance.Networks() {
			row.Values = append(row.Values, m.mean(func(r conformance.Result) bool {
				return of(r) && r.Network == n.Name && r.Demand == conformance.Steady
			}, utilisation))
		}
		burst := func(r conformance.Result) bool {
			return of(r) && r.Demand == conformance.Bursty && r.Set == conformance.Sets()[0].Name
		}
		row.Values = append(row.Values, m.mean(burst, p50), m.mean(burst, p99))
		t.Rows = append(t.Rows, row)
		t.Why[p.Name] = m.why(p, m.refusals(of))
	}
	return t
}

// why says what a peer pays for being ahead.
func (m measured) why(p peer.Peer, refused float64) string {
	switch {
	case p.Blind:
		return fmt.Sprintf("%s of its requests were refused (played with the limits per second only)", report.Percent(refused))
	case refused > 0:
		return fmt.Sprintf("%s of its requests were refused", report.Percent(refused))
	case p.Name == peer.Informed.Name:
		return "it was told what no round trip is below, and need not wait for that twice: W/(W + mean round trip − least)"
	case p.Name == peer.Slowed.Name:
		return "it was told how unevenly the network delays; spaced by that, calls need not be counted until their answers"
	}
	return ""
}

func utilisation(r conformance.Result) float64 { return r.Utilisation }
func bound(r conformance.Result) float64       { return r.Bound }
func p50(r conformance.Result) float64         { return r.P50 }
func p99(r conformance.Result) float64         { return r.P99 }

// mean is that of a figure of some results.
func (m measured) mean(which func(conformance.Result) bool, figure func(conformance.Result) float64) float64 {
	sum, n := 0.0, 0
	for _, r := range m.conformance {
		if which(r) {
			sum, n = sum+figure(r), n+1
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

// refusals is the share of requests that were refused.
func (m measured) refusals(which func(conformance.Result) bool) float64 {
	var arrived, refused int64
	for _, r := range m.conformance {
		if which(r) {
			arrived, refused = arrived+r.Arrived, refused+r.Refused
		}
	}
	return float64(refused) / float64(arrived)
}

// detail is every result of one set, folded.
func (m measured) detail(set string, strict bool) report.Table {
	t := report.Table{Title: "All of " + set, Fold: true}
	if strict {
		t.Title += ", where a refused call counts"
	}
	for _, d := range conformance.Demands {
		t.Columns = append(t.Columns, report.Column{Name: string(d) + ": refused", Format: report.Percent})
		if d == conformance.Steady {
			t.Columns = append(t.Columns, report.Column{Name: "a second"}, report.Column{Name: "of the limit", Format: report.Three})
		}
		t.Columns = append(t.Columns, report.Column{Name: "p50", Format: report.Seconds}, report.Column{Name: "p99", Format: report.Seconds})
	}
	for _, k := range conformance.Kinds {
		for _, n := range conformance.Networks() {
			for _, p := range conformance.Peers {
				row := report.Row{Name: fmt.Sprintf("%s, %s: %s", k, n.Name, p.Name)}
				found := false
				for _, d := range conformance.Demands {
					of := func(r conformance.Result) bool {
						return r.Peer == p.Name && r.Set == set && r.Strict == strict && r.Kind == k && r.Network == n.Name && r.Demand == d
					}
					row.Values = append(row.Values, m.refusals(of))
					if d == conformance.Steady {
						row.Values = append(row.Values, m.mean(of, func(r conformance.Result) float64 { return r.Goodput }), m.mean(of, utilisation))
					}
					row.Values = append(row.Values, m.mean(of, p50), m.mean(of, p99))
					found = found || !math.IsNaN(m.mean(of, p50))
				}
				if found {
					t.Rows = append(t.Rows, row)
				}
			}
		}
	}
	return t
}
