package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/bench/conformance"
	"github.com/headgate/headgate/bench/decision"
	"github.com/headgate/headgate/bench/outage"
	"github.com/headgate/headgate/bench/scale"
	"github.com/headgate/headgate/bench/waiting"
)

// measured is all that was measured; what was not is nil. Of what was measured several
// times the runs are in their order, so that those of two peers belong together.
type measured struct {
	conformance []conformance.Result
	decision    []decision.Result
	waiting     []waiting.Cost
	patience    waiting.Results
	outage      []outage.Result
	scale       []scale.Result

	busy bool // others worked on the machine, too: its wall clock says little
}

const module = "github.com/headgate/headgate/bench"

func measureAll(ctx context.Context, o options) (m measured, err error) {
	for _, part := range parts {
		if !slices.Contains(o.only, part) {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: %s\n", part)
		switch part {
		case "conformance":
			err = played(ctx, o, part, &m.conformance)
		case "decision":
			m.decision, err = decisions(o)
		case "waiting":
			if m.waiting, err = waits(ctx, o); err == nil {
				err = played(ctx, o, part, &m.patience)
			}
		case "outage":
			err = played(ctx, o, part, &m.outage)
		case "scale":
			m.scale, err = scales(ctx, o)
		}
		if err != nil {
			return m, err
		}
	}
	return m, nil
}

// played runs the test of a package that plays in virtual time and reads its results.
func played(ctx context.Context, o options, pkg string, results any) error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "results.json")
	args := []string{"test", "-count=1", "-timeout=60m", "-run=^TestPlay$", module + "/" + pkg, "-args", "-report=" + file}
	if o.quick {
		args = append(args, "-quick")
	}
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("bench: go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("bench: %s has written no results: %w", pkg, err)
	}
	if err := json.Unmarshal(b, results); err != nil {
		return fmt.Errorf("bench: results of %s: %w", pkg, err)
	}
	return nil
}

// decisions measures all peers in turn, as often as there are runs.
func decisions(o options) (all []decision.Result, err error) {
	for range o.runs {
		for _, n := range decision.Goroutines {
			for _, p := range decision.Peers {
				r, err := decision.Measure(p, n)
				if err != nil {
					return nil, err
				}
				all = append(all, r)
			}
		}
	}
	return all, nil
}

// waitCounts are how many calls wait.
func waitCounts(o options) []int {
	if o.quick {
		return []int{1000}
	}
	return []int{10_000, 100_000}
}

func waits(ctx context.Context, o options) (all []waiting.Cost, err error) {
	names := []string{waiting.Select}
	for _, p := range waiting.Peers {
		names = append(names, p.Name)
	}
	for range min(o.runs, 3) { // memory is the same each time
		for _, n := range waitCounts(o) {
			for _, name := range names {
				var c waiting.Cost
				if err := child(ctx, o, &c, "waiting", name, strconv.Itoa(n)); err != nil {
					return nil, err
				}
				all = append(all, c)
			}
		}
	}
	return all, nil
}

func scales(ctx context.Context, o options) (all []scale.Result, err error) {
	for run := range min(o.runs, 3) {
		for _, among := range []scale.Among{scale.Providers, scale.Keys} {
			for _, n := range scale.Counts[among] {
				switch {
				case o.quick:
					n = min(n, 1000)
				case run > 0 && n > 10_000: // to make a million takes long, and they weigh the same each time
					continue
				}
				for _, s := range scale.Subjects[among] {
					var r scale.Result
					if err := child(ctx, o, &r, "scale", s.Name, string(among), strconv.Itoa(n)); err != nil {
						return nil, err
					}
					all = append(all, r)
				}
			}
		}
	}
	return all, nil
}

// child runs this program for one measurement in a process of its own.
func child(ctx context.Context, o options, result any, what ...string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	args := []string{"-child=" + strings.Join(what, "|")}
	if o.quick {
		args = append(args, "-quick")
	}
	out, err := exec.CommandContext(ctx, self, args...).Output()
	if err != nil {
		var e *exec.ExitError
		if errors.As(err, &e) {
			err = fmt.Errorf("%w: %s", err, e.Stderr)
		}
		return fmt.Errorf("bench: %s: %w", strings.Join(what, " "), err)
	}
	if err := json.Unmarshal(out, result); err != nil {
		return fmt.Errorf("bench: result of %s: %w", strings.Join(what, " "), err)
	}
	return nil
}

// childMain is the other end of child.
func childMain(o options) error {
	what := strings.Split(o.child, "|")
	var result any
	var err error
	switch {
	case what[0] == "waiting" && len(what) == 3:
		n, _ := strconv.Atoi(what[2])
		result, err = waiting.Measure(what[1], n)
	case what[0] == "scale" && len(what) == 4:
		n, _ := strconv.Atoi(what[3])
		result, err = scale.Measure(what[1], scale.Among(what[2]), n)
	default:
		err = fmt.Errorf("bench: -child %q is not known", o.child)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}
