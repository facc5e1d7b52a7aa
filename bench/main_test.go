package main

import (
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/bench/conformance"
	"github.com/headgate/headgate/bench/decision"
	"github.com/headgate/headgate/bench/outage"
	"github.com/headgate/headgate/bench/peer"
	"github.com/headgate/headgate/bench/report"
	"github.com/headgate/headgate/bench/scale"
	"github.com/headgate/headgate/bench/waiting"
)

func TestParse(t *testing.T) {
	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, options{only: parts, runs: 5}, o)
	o, err = parse([]string{"-quick", "-only", "scale,outage", "-o", "x.md"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, options{only: []string{"scale", "outage"}, runs: 1, quick: true, out: "x.md"}, o)
	o, err = parse([]string{"-quick", "-runs=3"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 3, o.runs)
	for _, bad := range [][]string{{"-only", "everything"}, {"-runs", "-1"}, {"decision"}, {"-fast"}} {
		_, err := parse(bad, io.Discard)
		require.Error(t, err, bad)
	}
	require.ErrorContains(t, childMain(options{child: "sleeping|1"}), "is not known")
}

// sample is a run in which every target holds.
func sample() measured {
	m := measured{
		conformance: []conformance.Result{
			{Peer: "Headgate", Set: "50 per 1 s", Network: "10–100 ms", Kind: peer.Window, Demand: conformance.Steady, Arrived: 100, Goodput: 45, Utilisation: 0.9, Bound: 0.9},
			{Peer: peer.Informed.Name, Set: "50 per 1 s", Network: "10–100 ms", Kind: peer.Window, Demand: conformance.Steady, Arrived: 100, Goodput: 46, Utilisation: 0.92, Bound: 0.9},
			{Peer: peer.Slowed.Name, Set: "50 per 1 s", Network: "10–100 ms", Kind: peer.Window, Demand: conformance.Steady, Arrived: 100, Goodput: 45.2, Utilisation: 0.904, Bound: 0.9},
			{Peer: peer.Spaced.Name, Set: "50 per 1 s", Network: "10–100 ms", Kind: peer.Window, Demand: conformance.Steady, Arrived: 100, Refused: 9, Goodput: 47, Utilisation: 0.94, Bound: 0.9},
			{Peer: peer.Failsafe.Name, Set: "50 per 1 s", Network: "10–100 ms", Kind: peer.Window, Demand: conformance.Steady, Arrived: 100, Goodput: 40, Utilisation: 0.8, Bound: 0.9},
		},
		patience: waiting.Results{
			Leaving:  []waiting.Leaving{{Peer: "Headgate", N: 1000, Next: 0.015, Newcomer: 0.2, Ideal: 0.2}},
			Fairness: []waiting.Fairness{{Peer: "Headgate", Longest: 1, Other: 0.04}},
		},
		outage: []outage.Result{{Peer: "Headgate", Mode: outage.Fails, Sent: 30}, {Peer: "Headgate", Mode: outage.Hangs, Wasted: -1}},
	}
	for range 3 {
		for _, d := range []struct {
			name       string
			ns, crowds float64
		}{{decision.Headgate.Name, 500, 700}, {decision.Buckets.Name, 400, 600}, {peer.ByHand.Name, 1000, 2000}, {peer.HandOnce.Name, 600, 2000}, {peer.Failsafe.Name, 4000, 9000}, {peer.Breaker.Name, 100, 400}} {
			m.decision = append(m.decision, decision.Result{Peer: d.name, Goroutines: 1, Nanoseconds: d.ns, Core: d.ns, Allocs: 1},
				decision.Result{Peer: d.name, Goroutines: 128, Nanoseconds: d.crowds, Core: d.crowds, Allocs: 1})
		}
		m.waiting = append(m.waiting, waiting.Cost{Peer: waiting.Select, N: 10_000, Heap: 800, Stack: 2048}, waiting.Cost{Peer: "Headgate", N: 10_000, Heap: 1000, Stack: 4096},
			waiting.Cost{Peer: peer.Spaced.Name, N: 10_000, Heap: 900, Stack: 4096, Cancel: -1})
		m.scale = append(m.scale, scale.Result{Subject: "Headgate", Among: scale.Providers, N: 1, Nanoseconds: 500, Bytes: 9000},
			scale.Result{Subject: "Headgate", Among: scale.Providers, N: 10_000, Nanoseconds: 2000, Bytes: 9000},
			scale.Result{Subject: "Headgate", Among: scale.Keys, N: 1_000_000, Nanoseconds: 2000, Bytes: 300})
	}
	return m
}

func TestTargetsHold(t *testing.T) {
	targets := sample().targets()
	require.Len(t, targets, 14)
	for _, target := range targets {
		require.True(t, target.Known, target.Name)
		require.True(t, target.Holds, "%s: %s", target.Name, target.Measured)
	}
	for _, target := range (measured{}).targets() {
		require.Equal(t, "not measured", target.Verdict(), target.Name)
	}
}

// Each target fails where its figure is worse, and no other one does.
func TestTargetsFail(t *testing.T) {
	ours := func(m measured, goroutines int, change func(*decision.Result)) {
		for i := range m.decision {
			if r := &m.decision[i]; r.Peer == "Headgate" && r.Goroutines == goroutines {
				change(r)
			}
		}
	}
	for _, c := range []struct {
		fails string
		spoil func(*measured)
	}{
		{"no call is refused", func(m *measured) { m.conformance[0].Refused = 1 }},
		{"goodput ≥ 0.98", func(m *measured) { m.conformance[0].Utilisation = 0.87 }},
		{"no call is refused", func(m *measured) { m.conformance[1].Refused = 1 }},
		{"goodput ≥ every peer", func(m *measured) { m.conformance[4].Goodput = 46 }},
		{"told the network's least round trip", func(m *measured) { m.conformance[2].Goodput = 47 }},
		{"told the network's least round trip", func(m *measured) { m.conformance[1].Goodput = 44 }},
		{"`Do` ≤ 0.7", func(m *measured) {
			for i := range m.decision {
				if r := &m.decision[i]; r.Peer == peer.ByHand.Name {
					r.Core = 700
				}
			}
		}},
		{"`Do` ≤ 0.25", func(m *measured) {
			for i := range m.decision {
				if r := &m.decision[i]; r.Peer == peer.Failsafe.Name {
					r.Core = 1900
				}
			}
		}},
		{"at most 1 allocation", func(m *measured) { ours(*m, 1, func(r *decision.Result) { r.Allocs = 2 }) }},
		{"contended at 128 ≤ 1.5", func(m *measured) { ours(*m, 128, func(r *decision.Result) { r.Core = 760 }) }},
		{"the same on the wall", func(m *measured) { ours(*m, 128, func(r *decision.Result) { r.Nanoseconds = 760 }) }},
		{"contended ÷ idle", func(m *measured) {
			for i := range m.decision {
				if r := &m.decision[i]; r.Peer == peer.Breaker.Name {
					r.Core = 100
				}
			}
		}},
		{"heap of a waiting call", func(m *measured) { each(m.waiting, "Headgate", func(c *waiting.Cost) { c.Heap = 1051 }) }},
		{"and no more stack", func(m *measured) { each(m.waiting, "Headgate", func(c *waiting.Cost) { c.Stack = 8192 }) }},
		{"≤ 350 B", func(m *measured) { m.scale[2].Bytes, m.scale[5].Bytes = 351, 351 }},
		{"10,000 providers", func(m *measured) { m.scale[1].Nanoseconds, m.scale[4].Nanoseconds = 2600, 2600 }},
	} {
		m := sample()
		c.spoil(&m)
		for _, target := range m.targets() {
			require.Equal(t, !strings.HasPrefix(target.Name, c.fails), target.Holds, "%s: %s is %s", c.fails, target.Name, target.Measured)
		}
	}
}

func each(all []waiting.Cost, name string, change func(*waiting.Cost)) {
	for i := range all {
		if all[i].Peer == name {
			change(&all[i])
		}
	}
}

func TestFewerProvidersAreNoProof(t *testing.T) {
	m := sample()
	for i := range m.scale {
		m.scale[i].N = min(m.scale[i].N, 1000)
	}
	for _, target := range m.scaleTargets() {
		require.False(t, target.Known, target.Name)
	}
}

func TestDocument(t *testing.T) {
	d := document{measured: sample(), options: options{runs: 3}, args: []string{"-runs", "3"}, took: time.Minute,
		machine: machine{when: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), cpu: "Z80", cores: 2, goes: "go1.26", headgate: "commit abc",
			moduleNames: map[string]string{"golang.org/x/time": "v0.16.0"}}}
	var b strings.Builder
	d.write(&b)
	doc := b.String()
	for _, want := range []string{
		"| date | 2026-11-30 12:00 UTC |", "| machine | Z80, 2 cores, go1.26 |", "`go run ./bench -runs 3`, 1m0s, 3 runs", "| Headgate | commit abc |",
		"| golang.org/x/time | v0.16.0 |", "| golang.org/x/sync | version unknown |",
		"| no call is refused | 0 of 200 | holds |", "| `Do` ≤ 0.7 × the same parts nested by hand | 0.50 × (0.83 × those without the retry) | holds |",
		"## Conformance", "## Cost of a decision", "## Waiting", "## Outage", "## Scale",
		"better than Headgate (0.900): told the least round trip: Headgate (0.920), x/time/rate, spaced (0.940).",
		"Why x/time/rate, spaced: 9.0 % of its requests were refused.",
		"<details><summary>All of 50 per 1 s</summary>",
	} {
		require.Contains(t, doc, want)
	}
	require.NotContains(t, doc, "NaN")
	require.NotContains(t, doc, "Inf")
	require.NotContains(t, doc, "quick look")
	d.measured, d.options.quick = measured{}, true
	b.Reset()
	d.write(&b)
	require.Contains(t, b.String(), "| no call is refused | – | not measured |")
	require.Contains(t, b.String(), "quick look")
	require.NotContains(t, b.String(), "## Scale")
}

func TestABusyMachine(t *testing.T) {
	require.False(t, machine{cores: 2, load: "2.9"}.busy())
	require.True(t, machine{cores: 2, load: "9.9"}.busy())
	require.False(t, machine{cores: 2}.busy())
	m := sample()
	m.busy = true
	for _, target := range m.targets() {
		require.Equal(t, !strings.HasPrefix(target.Name, "the same on the wall"), target.Known, target.Name)
	}
	var b strings.Builder
	document{measured: m}.write(&b)
	require.Contains(t, b.String(), "did other work")
}

func TestMeansOfNothing(t *testing.T) {
	m := sample()
	require.True(t, math.IsNaN(m.mean(func(conformance.Result) bool { return false }, p50)))
	require.True(t, math.IsNaN(m.refusals(func(conformance.Result) bool { return false })))
	require.InDelta(t, 0.018, m.refusals(func(conformance.Result) bool { return true }), 1e-9)
}

// What a peer lacks is why it is fast: it must be said of each that is measured.
func TestPeersSayWhatTheyLack(t *testing.T) {
	whole := map[string]bool{"Headgate": true, "Headgate, token buckets": true, peer.ByHand.Name: true, peer.Failsafe.Name: true}
	for _, p := range decision.Peers {
		require.Equal(t, whole[p.Name], p.Lacks == "", p.Name)
	}
}

// Who was refused in one of two plays that are the same until then was lucky in the other.
func TestLuckIsNotBeingWithoutRefusals(t *testing.T) {
	m := sample()
	lucky := m.conformance[0]
	lucky.Peer, lucky.Goodput = peer.GoLimiter.Name, 50
	require.False(t, holds(conformanceOf(m, lucky), "goodput ≥ every peer"), "it may be better than us")
	unlucky := lucky
	unlucky.Strict, unlucky.Refused = true, 3
	require.True(t, holds(conformanceOf(m, lucky, unlucky), "goodput ≥ every peer"))
}

func conformanceOf(m measured, more ...conformance.Result) []report.Target {
	m.conformance = append(slices.Clone(m.conformance), more...)
	return m.conformanceTargets()
}

func holds(all []report.Target, name string) bool {
	i := slices.IndexFunc(all, func(t report.Target) bool { return strings.HasPrefix(t.Name, name) })
	return all[i].Holds
}
