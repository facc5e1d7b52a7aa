package main

import (
	"fmt"
	"math"

	"github.com/headgate/headgate/bench/conformance"
	"github.com/headgate/headgate/bench/decision"
	"github.com/headgate/headgate/bench/peer"
	"github.com/headgate/headgate/bench/report"
	"github.com/headgate/headgate/bench/scale"
	"github.com/headgate/headgate/bench/stat"
	"github.com/headgate/headgate/bench/waiting"
)

// targets are what Headgate wants to reach, each with what was measured.
func (m measured) targets() []report.Target {
	all := m.conformanceTargets()
	all = append(all, m.decisionTargets()...)
	all = append(all, m.waitingTargets()...)
	return append(all, m.scaleTargets()...)
}

// atMost is a target for a figure that may be unknown.
func atMost(name string, value, limit float64, format string, args ...any) report.Target {
	return report.Target{Name: name, Known: !math.IsNaN(value), Holds: value <= limit, Measured: fmt.Sprintf(format, args...)}
}

// equal is how much less is still as much: a window more or less in the time that is
// played.
const equal = 0.01

func (m measured) conformanceTargets() []report.Target {
	known := len(m.conformance) > 0
	var arrived, refused int64
	least := math.Inf(1)
	for _, r := range m.conformance {
		if r.Peer != peer.Headgate.Name && r.Peer != peer.Informed.Name {
			continue
		}
		arrived, refused = arrived+r.Arrived, refused+r.Refused
		if r.Demand == conformance.Steady && r.Peer == peer.Headgate.Name {
			least = min(least, r.Utilisation/r.Bound)
		}
	}
	same, cells, worst := m.against(peer.Headgate.Name, func(name string) bool { return name != peer.Slowed.Name && name != peer.Informed.Name })
	told, toldCells, worstTold := m.against(peer.Informed.Name, func(name string) bool { return name == peer.Slowed.Name })
	return []report.Target{
		{Name: "no call is refused", Known: known && arrived > 0, Holds: refused == 0,
			Measured: fmt.Sprintf("%s of %s", report.Number(float64(refused)), report.Number(float64(arrived)))},
		{Name: "goodput ≥ 0.98 × W/(W + mean round trip), under steady demand", Known: known, Holds: least >= 0.98,
			Measured: report.Three(least) + " × at the least"},
		{Name: "goodput ≥ every peer without a refusal that knows no more than the declaration (1 % less is as much)", Known: cells > 0,
			Holds: same >= 1-equal, Measured: fmt.Sprintf("%s × at the least of %d%s", report.Three(same), cells, worst)},
		{Name: "told the network's least round trip: goodput ≥ the peer that is told the network's jitter (1 % less is as much)", Known: toldCells > 0,
			Holds: told >= 1-equal, Measured: fmt.Sprintf("%s × at the least of %d%s", report.Three(told), toldCells, worstTold)},
	}
}

// against is the least that the goodput of one of ours under steady demand is of that of
// a peer that had no refusals either, of how many, and where. Until its first refusal a
// peer plays the same whether that counts at the provider or not: who has one in either
// play has been lucky in the other.
func (m measured) against(us string, which func(string) bool) (least float64, cells int, where string) {
	type cell struct {
		set, network string
		kind         peer.Kind
		strict       bool
	}
	type played struct {
		peer string
		cell
	}
	ours, refused := map[cell]float64{}, map[played]int64{}
	at := func(r conformance.Result) cell { return cell{r.Set, r.Network, r.Kind, r.Strict} }
	either := func(r conformance.Result) played { return played{r.Peer, cell{r.Set, r.Network, r.Kind, false}} }
	for _, r := range m.conformance {
		if r.Demand != conformance.Steady {
			continue
		}
		refused[either(r)] += r.Refused
		if r.Peer == us {
			ours[at(r)] = r.Goodput
		}
	}
	least = math.Inf(1)
	for _, r := range m.conformance {
		if r.Demand == conformance.Steady && r.Peer != us && which(r.Peer) && refused[either(r)] == 0 {
			cells++
			if share := ours[at(r)] / r.Goodput; share < least {
				least, where = share, fmt.Sprintf(" (%s: %s, %s, %s)", r.Peer, r.Set, r.Kind, r.Network)
			}
		}
	}
	return least, cells, where
}

// of returns a figure of all runs of a peer.
func (m measured) of(name string, goroutines int, figure func(decision.Result) float64) (all []float64) {
	for _, r := range m.decision {
		if r.Peer == name && r.Goroutines == goroutines {
			all = append(all, figure(r))
		}
	}
	return all
}

func wall(r decision.Result) float64   { return r.Nanoseconds }
func worked(r decision.Result) float64 { return r.Core }
func allocs(r decision.Result) float64 { return r.Allocs }
func size(r decision.Result) float64   { return r.Bytes }

func (m measured) decisionTargets() []report.Target {
	idle := func(name string) []float64 { return m.of(name, 1, worked) }
	ours := decision.Headgate.Name
	hand := stat.Ratio(idle(ours), idle(peer.ByHand.Name))
	once := stat.Ratio(idle(ours), idle(peer.HandOnce.Name))
	composed := stat.Ratio(idle(ours), idle(peer.Failsafe.Name))
	allocations := stat.Median(m.of(ours, 1, allocs))
	crowd := func(name string, f func(decision.Result) float64) float64 {
		return stat.Ratio(m.of(name, 128, f), m.of(name, 1, f))
	}
	cores, theirs, onTheWall := crowd(ours, worked), crowd(peer.Breaker.Name, worked), crowd(ours, wall)
	if m.busy { // others had the cores for some of it
		onTheWall = math.NaN()
	}
	return []report.Target{
		atMost("`Do` ≤ 0.7 × the same parts nested by hand", hand, 0.7, "%s × (%s × those without the retry)", report.Number(hand), report.Number(once)),
		atMost("`Do` ≤ 0.25 × failsafe-go composed", composed, 0.25, "%s ×", report.Number(composed)),
		atMost("at most 1 allocation", allocations, 1, "%s", report.Number(allocations)),
		atMost("contended at 128 ≤ 1.5 × idle, in the time of all cores at work", cores, 1.5, "%s ×", report.Number(cores)),
		atMost("the same on the wall, from one call's going to the next one's", onTheWall, 1.5, "%s ×", report.Number(onTheWall)),
		atMost("contended ÷ idle ≤ gobreaker's, in the time of all cores", cores, theirs, "%s against %s", report.Number(cores), report.Number(theirs)),
	}
}

// cost is the median of a figure of n waiting calls.
func (m measured) cost(name string, n int, figure func(waiting.Cost) float64) float64 {
	var all []float64
	for _, c := range m.waiting {
		if c.Peer == name && c.N == n {
			all = append(all, figure(c))
		}
	}
	return stat.Median(all)
}

// counts are the numbers of waiting calls that were measured.
func (m measured) counts() (all []int) {
	for _, c := range m.waiting {
		if len(all) == 0 || all[len(all)-1] < c.N {
			all = append(all, c.N)
		}
	}
	return all
}

func heap(c waiting.Cost) float64  { return c.Heap }
func stack(c waiting.Cost) float64 { return c.Stack }

func (m measured) waitingTargets() []report.Target {
	over, ours, theirs := math.NaN(), math.NaN(), math.NaN()
	for _, n := range m.counts() { // the largest number counts: fixed costs are spread over it
		over = m.cost(peer.Headgate.Name, n, heap) - m.cost(waiting.Select, n, heap)
		ours, theirs = m.cost(peer.Headgate.Name, n, stack), m.cost(peer.Spaced.Name, n, stack)
	}
	const grain = 16 // stacks come in spans: this much a call is the rest of the last one
	return []report.Target{
		atMost("heap of a waiting call ≤ 250 B above a goroutine in the same select", over, 250, "%s B", report.Number(over)),
		atMost("and no more stack than x/time/rate's (16 B are the rest of a span)", ours, theirs+grain, "%s B against %s B", report.Number(ours), report.Number(theirs)),
	}
}

func (m measured) scaleTargets() []report.Target {
	figures := func(among scale.Among, n int, figure func(scale.Result) float64) (all []float64) {
		for _, r := range m.scale {
			if r.Subject == scale.Window && r.Among == among && r.N == n {
				all = append(all, figure(r))
			}
		}
		return all
	}
	keys := m.most(scale.Keys)
	enough := func(t report.Target, n, want int) report.Target {
		t.Known = t.Known && n >= want // few of them say nothing of many
		return t
	}
	key := stat.Median(figures(scale.Keys, keys, func(r scale.Result) float64 { return r.Bytes }))
	took := func(r scale.Result) float64 { return r.Nanoseconds }
	providers := m.most(scale.Providers)
	ratio := stat.Ratio(figures(scale.Providers, providers, took), figures(scale.Providers, 1, took))
	return []report.Target{
		enough(atMost("≤ 350 B an idle key", key, 350, "%s B, of %s keys", report.Number(key), report.Number(float64(keys))), keys, 1_000_000),
		enough(atMost("10,000 providers ≤ 5 × one, at random access", ratio, 5, "%s ×", report.Number(ratio)), providers, 10_000),
	}
}

// most is the largest number that was measured.
func (m measured) most(among scale.Among) (n int) {
	for _, r := range m.scale {
		if r.Among == among {
			n = max(n, r.N)
		}
	}
	return n
}
