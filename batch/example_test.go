package batch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/headgate/headgate/batch"
	"github.com/headgate/headgate/batch/journal"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// geo is an adapter without a network.
type geo struct{}

func (geo) Provider() provider.Provider {
	return provider.Provider{Slug: "geo", Throttle: provider.Throttle{MaxInFlight: 1},
		Endpoints: []provider.Endpoint{{Name: "lookup", Kinds: []provider.Kind{provider.IP}}}}
}

func (geo) Lookup(_ context.Context, q provider.Query) (provider.Result, error) {
	return provider.Result{Provider: "geo", Data: json.RawMessage(`"data of ` + q.Value + `"`)}, nil
}

func made(cfg coordinator.Config) *coordinator.Coordinator {
	c, err := coordinator.New(cfg)
	if err != nil {
		panic(err)
	}
	return c
}

// Lookups of addresses that come from anywhere; the sequence is read only as far as
// there is room.
func ExampleRun() {
	r := new(registry.Registry)
	if err := r.Register(geo{}); err != nil {
		panic(err)
	}
	c := made(coordinator.Config{Registry: r, Traces: []*coordinator.Trace{batch.Trace()}})
	addresses := slices.Values([]string{"192.0.2.1", "192.0.2.2", "192.0.2.3"})
	jobs := func(yield func(batch.Job) bool) {
		for a := range addresses {
			q := &provider.Query{Kind: provider.IP, Value: a}
			if !yield(batch.Job{Key: a, Call: coordinator.Call{Provider: "geo"}, Query: q}) {
				return
			}
		}
	}
	for job, res := range batch.Run(context.Background(), c, jobs, batch.Options{}) {
		fmt.Printf("%s: %s, err %v, %d attempt\n", job.Key, res.Result.Data, res.Err, res.Attempts)
	}
	// Unordered output:
	// 192.0.2.1: "data of 192.0.2.1", err <nil>, 1 attempt
	// 192.0.2.2: "data of 192.0.2.2", err <nil>, 1 attempt
	// 192.0.2.3: "data of 192.0.2.3", err <nil>, 1 attempt
}

// Two jobs a day, and a run that must be over soon: the third comes out refused at
// once, and says when it could go.
func ExampleOptions_until() {
	c := made(coordinator.Config{Providers: []provider.Provider{{Slug: "whois", Throttle: provider.Throttle{
		Limits: []provider.Limit{{Name: "day", Max: 2, Per: "24h"}}, MaxInFlight: 1}}}})
	var jobs []batch.Job
	for _, name := range []string{"a.example", "b.example", "c.example"} {
		jobs = append(jobs, batch.Job{Key: name, Call: coordinator.Call{Provider: "whois"},
			Do: func(context.Context) error { return nil }}) // the request, with that context
	}
	var p batch.Progress
	opt := batch.Options{Until: time.Now().Add(time.Hour), Progress: &p}
	for job, res := range batch.Run(context.Background(), c, slices.Values(jobs), opt) {
		var e *coordinator.Error
		if errors.As(res.Err, &e) {
			fmt.Println(job.Key, e.Reason, "for about", e.RetryAfter.Round(time.Hour))
		} else {
			fmt.Println(job.Key, "done")
		}
	}
	for _, t := range p.Snapshot() {
		fmt.Printf("%s: %d done, %d refused\n", t.Provider, t.Done, t.Refused)
	}
	// Unordered output:
	// a.example done
	// b.example done
	// c.example too_late for about 24h0m0s
	// whois: 2 done, 1 refused
}

// A journal in a file: a run that ends in the middle, however it does, goes on where
// it was.
func ExampleJournal() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	run := func(most int) {
		j, err := journal.Open(filepath.Join(dir, "run"), "addresses of 2026-11-30")
		if err != nil {
			fmt.Println(err)
			return
		}
		defer j.Close()
		c := made(coordinator.Config{Providers: []provider.Provider{{Slug: "geo", Throttle: provider.Throttle{MaxInFlight: 1}}}})
		jobs := func(yield func(batch.Job) bool) {
			for _, key := range []string{"one", "two", "three", "four"} {
				do := func(context.Context) error { return nil }
				if !yield(batch.Job{Key: key, Call: coordinator.Call{Provider: "geo"}, Do: do}) {
					return
				}
			}
		}
		for job := range batch.Run(context.Background(), c, jobs, batch.Options{Journal: j, Ahead: 1}) {
			fmt.Println("done:", job.Key)
			if most--; most < 0 {
				fmt.Println("stopped before it was noted as finished")
				return
			}
		}
	}
	run(1)
	run(10)
	// Output:
	// done: one
	// done: two
	// stopped before it was noted as finished
	// done: two
	// done: three
	// done: four
}
