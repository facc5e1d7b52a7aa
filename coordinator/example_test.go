package coordinator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// made is a coordinator of one provider, for the examples.
func made(t provider.Throttle) *coordinator.Coordinator {
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{Slug: "geo", Throttle: t}}})
	if err != nil {
		panic(err)
	}
	return c
}

// A coordinator of one's own providers, and of those that registered themselves. What
// makes no sense is an error that names the field.
func ExampleNew() {
	_, err := coordinator.New(coordinator.Config{
		Providers: []provider.Provider{{Slug: "geo", Throttle: provider.Throttle{RPS: 10, MaxInFlight: 4}}},
	})
	fmt.Println(err)
	_, err = coordinator.New(coordinator.Config{
		Overrides: map[string]provider.Throttle{"goe": {RPS: 20}},
	})
	fmt.Println(err)
	// Output:
	// <nil>
	// coordinator: override: coordinator: goe: unknown provider: no such provider
}

// The function runs as soon as the provider will accept the call: five calls, of
// which two may go in any 20 ms.
func ExampleCoordinator_Do() {
	c := made(provider.Throttle{Limits: []provider.Limit{{Name: "burst", Max: 2, Per: "20ms"}}})
	start := time.Now()
	for range 5 {
		err := c.Do(context.Background(), coordinator.Call{Provider: "geo"}, func(ctx context.Context) error {
			return nil // the request, with ctx
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("took more than 40 ms:", time.Since(start) > 40*time.Millisecond)
	// Output: took more than 40 ms: true
}

// A function with a result.
func ExampleGet() {
	c := made(provider.Throttle{RPS: 10})
	country, err := coordinator.Get(context.Background(), c, coordinator.Call{Provider: "geo"},
		func(context.Context) (string, error) { return "NL", nil })
	fmt.Println(country, err)
	// Output: NL <nil>
}

type geo struct{}

func (geo) Provider() provider.Provider {
	return provider.Provider{Slug: "geo", Throttle: provider.Throttle{RPS: 10},
		Endpoints: []provider.Endpoint{{Name: "lookup", Kinds: []provider.Kind{provider.IP}}}}
}

func (geo) Lookup(_ context.Context, q provider.Query) (provider.Result, error) {
	return provider.Result{Provider: "geo", Endpoint: q.Endpoint, Data: json.RawMessage(`{"country":"NL"}`)}, nil
}

// A registered adapter is asked for a value, and the endpoint that takes its kind is
// found.
func ExampleCoordinator_Execute() {
	reg := new(registry.Registry)
	if err := reg.Register(geo{}); err != nil {
		fmt.Println(err)
	}
	c, _ := coordinator.New(coordinator.Config{Registry: reg})
	res, err := c.Execute(context.Background(), coordinator.Call{Provider: "geo"}, provider.Query{Kind: provider.IP, Value: "192.0.2.1"})
	fmt.Println(res.Endpoint, string(res.Data), err)
	// Output: lookup {"country":"NL"} <nil>
}

// A call that is not a function: whoever acquires a lease reports and releases.
func ExampleCoordinator_Acquire() {
	c := made(provider.Throttle{MaxInFlight: 1})
	ls, err := c.Acquire(context.Background(), coordinator.Call{Provider: "geo"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ls.Release()
	_, err = c.Acquire(context.Background(), coordinator.Call{Provider: "geo", Wait: -1})
	fmt.Println(errors.Is(err, coordinator.ErrThrottled))
	ls.Report(provider.Feedback{Outcome: provider.OK})
	// Output: true
}

// The function knows its lease, and tells what the call really cost.
func ExampleLeaseFrom() {
	c := made(provider.Throttle{Limits: []provider.Limit{{Name: "tokens", Max: 1000, Per: "1h", Unit: provider.Tokens}}})
	call := coordinator.Call{Provider: "geo", Cost: map[string]int64{provider.Tokens: 500}} // an estimate
	_ = c.Do(context.Background(), call, func(ctx context.Context) error {
		ls, _ := coordinator.LeaseFrom(ctx)
		ls.Report(provider.Feedback{Used: map[string]int64{provider.Tokens: 120}})
		return nil
	})
	s, _ := c.State("geo")
	fmt.Println(s.Limits[0].Used, "of", s.Limits[0].Max)
	// Output: 120 of 1000
}

// A plan that changes while the program runs. What has been used stays used.
func ExampleCoordinator_Update() {
	c := made(provider.Throttle{RPD: 100})
	_ = c.Do(context.Background(), coordinator.Call{Provider: "geo"}, func(context.Context) error { return nil })
	fmt.Println(c.Update("geo", provider.Throttle{RPD: 5000}))
	s, _ := c.State("geo")
	fmt.Println(s.Limits[0].Used, "of", s.Limits[0].Max, s.Limits[0].Origin)
	fmt.Println(c.Update("geo", provider.Throttle{RPD: -1}))
	// Output:
	// <nil>
	// 1 of 5000 overridden
	// coordinator: update of "geo": throttle.rpd: -1 is negative: write a number above 0, or leave it out
}

// Nothing goes to a provider that is paused, until then or until Resume.
func ExampleCoordinator_Pause() {
	c := made(provider.Throttle{})
	call := coordinator.Call{Provider: "geo", Wait: -1}
	_ = c.Pause("geo", time.Now().Add(24*time.Hour), "maintenance")
	err := c.Do(context.Background(), call, func(context.Context) error { return nil })
	fmt.Println(errors.Is(err, coordinator.ErrThrottled))
	_ = c.Resume("geo")
	fmt.Println(c.Do(context.Background(), call, func(context.Context) error { return nil }))
	// Output:
	// true
	// <nil>
}

func ExampleCoordinator_Resume() {
	c := made(provider.Throttle{})
	_ = c.Pause("geo", time.Now().Add(24*time.Hour), "maintenance")
	s, _ := c.State("geo")
	fmt.Println(s.Pauses[0].Scope, "is paused for", s.Pauses[0].Why)
	_ = c.Resume("geo")
	s, _ = c.State("geo")
	fmt.Println(len(s.Pauses), "pauses")
	// Output:
	// provider is paused for maintenance
	// 0 pauses
}

func ExampleCoordinator_State() {
	c := made(provider.Throttle{RPM: 60, RPD: 1000})
	for range 3 {
		_ = c.Do(context.Background(), coordinator.Call{Provider: "geo"}, func(context.Context) error { return nil })
	}
	s, _ := c.State("geo")
	for _, l := range s.Limits {
		fmt.Printf("%s: %d of %d per %s\n", l.Name, l.Used, l.Max, l.Per)
	}
	fmt.Println(s.Queue.Length, "wait; the breaker is", s.Breaker.State)
	// Output:
	// rpm: 3 of 60 per 1m
	// rpd: 3 of 1000 per 24h
	// 0 wait; the breaker is closed
}

func ExampleCoordinator_States() {
	c := made(provider.Throttle{})
	fmt.Println(len(c.States()), "used")
	_ = c.Do(context.Background(), coordinator.Call{Provider: "geo"}, func(context.Context) error { return nil })
	for _, s := range c.States() {
		fmt.Println(s.Provider, s.Granted)
	}
	// Output:
	// 0 used
	// geo 1
}

func ExampleCoordinator_Providers() {
	c, _ := coordinator.New(coordinator.Config{
		Registry:  new(registry.Registry),
		Providers: []provider.Provider{{Slug: "whois"}, {Slug: "geo", Throttle: provider.Throttle{RPS: 1}}},
		Overrides: map[string]provider.Throttle{"geo": {RPS: 5}}, // our plan
	})
	for p := range c.Providers() {
		fmt.Println(p.Slug, p.Throttle.RPS)
	}
	// Output:
	// geo 5
	// whois 0
}

func ExampleCoordinator_Shutdown() {
	c := made(provider.Throttle{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(c.Shutdown(ctx))
	fmt.Println(c.Do(ctx, coordinator.Call{Provider: "geo"}, func(context.Context) error { return nil }))
	// Output:
	// <nil>
	// coordinator: geo: shutdown: the coordinator is shut down
}

// Every refusal says why, and when to come back.
func ExampleError() {
	c := made(provider.Throttle{RPD: 1})
	call := coordinator.Call{Provider: "geo", Wait: time.Minute}
	for range 2 {
		err := c.Do(context.Background(), call, func(context.Context) error { return nil })
		var e *coordinator.Error
		switch {
		case err == nil:
			fmt.Println("answered")
		case errors.As(err, &e) && errors.Is(err, coordinator.ErrThrottled):
			fmt.Println(e.Reason, "because of", e.Limit.Name, "- come back in", e.RetryAfter.Round(time.Hour))
		default:
			fmt.Println("waiting will not help:", err)
		}
	}
	// Output:
	// answered
	// too_late because of rpd - come back in 24h0m0s
}

func ExampleTrace() {
	tr := &coordinator.Trace{
		End: func(_ context.Context, call coordinator.CallInfo, err error, _ time.Duration) {
			fmt.Println(call.Provider, "ended after", call.Attempt, "attempts:", err)
		},
		Refused: func(_ context.Context, call coordinator.CallInfo, err *coordinator.Error) {
			fmt.Println(call.Provider, "refused:", err.Reason)
		},
	}
	c, _ := coordinator.New(coordinator.Config{
		Providers: []provider.Provider{{Slug: "geo", Throttle: provider.Throttle{RPD: 1}}},
		Traces:    []*coordinator.Trace{tr},
	})
	for range 2 {
		_ = c.Do(context.Background(), coordinator.Call{Provider: "geo", Wait: -1}, func(context.Context) error { return nil })
	}
	// Output:
	// geo ended after 1 attempts: <nil>
	// geo refused: rate_limited
}
