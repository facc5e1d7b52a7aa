// Command bench plays Headgate side by side with what its users would take instead,
// and writes what it has measured as Markdown.
//
//	go run ./bench                          # everything, to the standard output
//	go run ./bench -o docs/benchmarks.md    # as the Makefile does it
//	go run ./bench -only decision,scale -runs 3
//
// Conformance, outages and patience are played in virtual time, which only tests have:
// the program runs the tests of their packages and reads what they write. What measures
// memory runs in processes of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"testing"
	"time"
)

// parts are what can be measured, in the order of the document.
var parts = []string{"conformance", "decision", "waiting", "outage", "scale"}

// options are what the program was asked for.
type options struct {
	only  []string
	quick bool
	runs  int
	out   string
	child string // of this program: what to measure
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	if o.child != "" {
		return childMain(o)
	}
	begun := time.Now()
	m, err := measureAll(ctx, o)
	if err != nil {
		return err
	}
	where := thisMachine(ctx, begun)
	m.busy = where.busy()
	d := document{measured: m, options: o, args: args, machine: where, took: time.Since(begun)}
	if o.out == "" {
		d.write(os.Stdout)
		return nil
	}
	var b strings.Builder
	d.write(&b)
	if err := os.WriteFile(o.out, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

func parse(args []string, errs io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(errs)
	only := f.String("only", "", "measure only these parts, a comma between: "+strings.Join(parts, ","))
	f.BoolVar(&o.quick, "quick", false, "a look at everything, for CI: the figures mean little")
	f.IntVar(&o.runs, "runs", 0, "how often each peer is measured, in turn; the median counts (default 5, with -quick 1)")
	f.StringVar(&o.out, "o", "", "write to this file (default: the standard output)")
	f.StringVar(&o.child, "child", "", "for the program itself")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("bench: argument %q, there are none", f.Arg(0))
	case o.runs < 0:
		return o, fmt.Errorf("bench: -runs %d, would have to be 1 or more", o.runs)
	case o.runs == 0 && o.quick:
		o.runs = 1
	case o.runs == 0:
		o.runs = 5
	}
	o.only = parts
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for _, p := range o.only {
		if !slices.Contains(parts, p) {
			return o, fmt.Errorf("bench: -only %q, would have to be one of %s", p, strings.Join(parts, ", "))
		}
	}
	testing.Init() // of package flag's own set, which nobody parses
	benchtime := "200ms"
	if o.quick {
		benchtime = "10ms"
	}
	return o, flag.Set("test.benchtime", benchtime)
}
