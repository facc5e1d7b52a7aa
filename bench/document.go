package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/headgate/headgate/bench/report"
)

// document is docs/benchmarks.md.
type document struct {
	measured
	options options
	args    []string
	machine machine
	took    time.Duration
}

// peers are the modules whose versions are told.
var peers = []string{"golang.org/x/time", "go.uber.org/ratelimit", "github.com/failsafe-go/failsafe-go", "github.com/sony/gobreaker/v2",
	"github.com/projectdiscovery/ratelimit", "github.com/throttled/throttled/v2", "github.com/sethvargo/go-limiter", "github.com/hashicorp/go-retryablehttp",
	"golang.org/x/sync", "github.com/cenkalti/backoff/v5"}

func (d document) write(w io.Writer) {
	command := strings.TrimSpace("go run ./bench " + strings.Join(d.args, " "))
	fmt.Fprintf(w, "# Benchmarks\n\n<!-- Written by `%s`: do not edit. -->\n\n", command)
	fmt.Fprintf(w, "Headgate side by side with what would be taken instead, each set up as well as it can be for what is declared\n"+
		"(`bench/peer` says how, and why so). In bold is the best of each column; where another than Headgate is better, a line under the\n"+
		"table says so. Everything on this page is computed from the run, also whether a target holds.\n\n")
	if d.options.quick {
		fmt.Fprintf(w, "**This was a quick look (`-quick`): the figures mean little.**\n\n")
	}
	if d.busy {
		fmt.Fprintf(w, "**The machine did other work meanwhile**, so figures on the wall say little here, and what is played on the wall (go-limiter) is less exact.\n"+
			"What is played in virtual time, bytes, and the time of cores are as sound as ever, but for cold caches.\n\n")
	}
	fmt.Fprintf(w, "| | |\n|---|---|\n| date | %s |\n| machine | %s |\n| command | `%s`, %s, %d runs |\n| Headgate | %s |\n",
		d.machine.when.UTC().Format("2006-01-02 15:04 UTC"), d.machine, command, d.took.Round(time.Second), d.options.runs, d.machine.headgate)
	for _, p := range peers {
		fmt.Fprintf(w, "| %s | %s |\n", p, d.machine.version(p))
	}
	fmt.Fprintf(w, "\n*By hand* is the same parts nested: an x/time/rate for each limit, gobreaker, a semaphore of x/sync, and a retry by backoff.\n"+
		"Of projectdiscovery/ratelimit it is the newest version that the public module proxy would serve.\n\n")
	d.writeTargets(w)
	for _, s := range []struct {
		part, title string
		tables      []report.Table
	}{
		{"conformance", "Conformance", d.conformanceTables()},
		{"decision", "Cost of a decision", d.decisionTables()},
		{"waiting", "Waiting", d.waitingTables()},
		{"outage", "Outage", d.outageTables()},
		{"scale", "Scale", d.scaleTables()},
	} {
		if len(s.tables) == 0 {
			continue
		}
		fmt.Fprintf(w, "## %s\n\n", s.title)
		for _, t := range s.tables {
			t.Write(w)
		}
	}
}

func (d document) writeTargets(w io.Writer) {
	fmt.Fprint(w, "## Targets\n\n| target | measured | |\n|---|---|---|\n")
	for _, t := range d.targets() {
		value := t.Measured
		if !t.Known {
			value = "–"
		}
		fmt.Fprintf(w, "| %s | %s | %s |\n", t.Name, value, t.Verdict())
	}
	fmt.Fprint(w, "\nRatios of times are the median of those of the single runs, so that a machine that is busy for a while slows both sides down.\n\n")
}
