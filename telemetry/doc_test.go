package telemetry

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/memory"
)

var update = flag.Bool("update", false, "write docs/telemetry.md anew")

const docFile = "../docs/telemetry.md"

// promName is an instrument's name as OpenTelemetry's Prometheus exporter writes it;
// a histogram has the suffixes _bucket, _sum and _count besides.
func promName(x instrument) string {
	name := strings.ReplaceAll(x.name, ".", "_")
	switch x.unit {
	case "s":
		name += "_seconds"
	case "1":
		name += "_ratio"
	}
	if x.kind == counter {
		name += "_total"
	}
	return name
}

func promLabel(attr string) string { return strings.ReplaceAll(attr, ".", "_") }

func TestDocIsInStep(t *testing.T) {
	want := document()
	if *update {
		require.NoError(t, os.WriteFile(docFile, []byte(want), 0o644))
	}
	got, err := os.ReadFile(docFile)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "write it anew: go test ./telemetry -run TestDoc -update")
}

func document() string {
	var b strings.Builder
	b.WriteString(docIntro)
	b.WriteString("| instrument | in Prometheus | kind | unit | attributes | what it says |\n|---|---|---|---|---|---|\n")
	for _, x := range instruments[:] {
		var attrs []string
		for _, a := range x.attrs {
			attrs = append(attrs, "`"+a+"`")
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | `%s` | %s | %s |\n", x.name, promName(x), x.kind, x.unit, strings.Join(attrs, ", "), x.text)
	}
	b.WriteString(docSpans)
	return b.String()
}

// What is documented is what a reader gets: each instrument, with these attributes
// and no other.
func TestDocNamesWhatIsCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		led, err := ledger.Open(memory.New(), ledger.Settings{})
		require.NoError(t, err)
		defer func() { assert.NoError(t, led.Close(context.Background())) }()
		c, reader, _ := metered(t, nil, coordinator.Config{Providers: scenarioProviders(), Pools: map[string]int{"": 900, "web": 800}, Ledger: led})
		play(t, c)
		got := collect(t, reader)
		var names []string
		for _, x := range instruments[:] {
			names = append(names, x.name)
			seen := map[string]bool{}
			for _, p := range got[x.name] {
				for a := range p.attrs {
					seen[a] = true
				}
			}
			for _, a := range slices.Sorted(maps.Keys(seen)) {
				assert.Contains(t, x.attrs, a, x.name)
			}
			for _, a := range x.attrs {
				assert.Contains(t, seen, a, x.name)
			}
		}
		assert.ElementsMatch(t, names, slices.Collect(maps.Keys(got)))
	})
}

const docIntro = `# Telemetry

<!-- Written by "go test ./telemetry -run TestDoc -update": change the package, not this file. -->

Package ` + "`telemetry`" + ` tells OpenTelemetry what a Coordinator does. The program chooses SDK and exporter; without the package nothing of OpenTelemetry is compiled in.

` + "```go" + `
t, err := telemetry.New(meterProvider, tracerProvider) // nil: none of that kind
cfg.Traces = append(cfg.Traces, t.Trace())
c, err := coordinator.New(cfg)
err = t.Observe(c)
defer t.Close()
` + "```" + `

A dashboard for Grafana is in ` + "[deploy/grafana/headgate.json](../deploy/grafana/headgate.json)" + `, alerts for Prometheus are in ` + "[deploy/prometheus/rules.yml](../deploy/prometheus/rules.yml)" + `.

## Metrics

Counts are kept by the Coordinator and read when a reader collects; only the histograms are written to while a call runs. A provider has series from its first call on. An attribute that would be empty is left out: the endpoint of a call that names none, the reason of a call that was admitted.

A flow or a key is never an attribute: the number of series is bounded by what is declared. An endpoint is one only where its provider declares it.

`

const docSpans = `
What the last minute was like (calls a second, shares of errors and refusals, p50 and p99) is in ` + "`State.Lately`" + `; with a backend, its own rates over these counters say the same.

## Spans

| span | for | attributes |
|---|---|---|
| ` + "`headgate.call`" + ` | one call, from coming to its end; one that is refused at once has no length | ` + "`headgate.provider`, `headgate.endpoint`, `headgate.attempts`" + `; where it failed ` + "`error.type` (the reason), `headgate.stage`, `headgate.limit`, `headgate.retry_after` (s)" + ` |
| ` + "`headgate.attempt`" + ` | one attempt: its child, and the parent of what the function starts | ` + "`headgate.provider`, `headgate.endpoint`, `headgate.attempt`, `headgate.outcome`" + `; where that is not ok ` + "`error.type`" + ` |

| event of a call | when | attributes |
|---|---|---|
| ` + "`headgate.waiting`" + ` | it waits for its turn | ` + "`headgate.queue.length`, `headgate.queue.estimated_wait` (s)" + ` |
| ` + "`headgate.paused`" + ` | it waits behind a pause | ` + "`headgate.scope`, `headgate.reason`, `headgate.pause.remaining` (s)" + ` |
| ` + "`headgate.retry`" + ` | an attempt was not enough | ` + "`headgate.attempts`" + ` so far |
| ` + "`headgate.going`" + ` | it goes | ` + "`headgate.attempt`, `headgate.call.wait` (s)" + ` |

A lease of ` + "`Acquire`" + ` has no function: its attempt's span is written when it is released, and has no children. A program that asks once for several who want the same links their spans to the one that asked with ` + "`telemetry.Coalesced`" + `.
`
