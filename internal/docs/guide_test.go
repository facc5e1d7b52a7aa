package docs_test

// The code of docs/guide.md. Each of its Go blocks stands in here, but for the
// indentation: TestGuideIsCompiled keeps it so.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/headgate/headgate/batch"
	"github.com/headgate/headgate/batch/journal"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/edge"
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/memory"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
	"github.com/headgate/headgate/tracelog"
	"github.com/headgate/headgate/transport"
)

// fetch is the request of the guide's program.
func fetch(context.Context, string) (string, error) { return "a host", nil }

func Example_first() {
	ctx, id := context.Background(), "203.0.113.7"
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{
		Slug: "acme",
		Throttle: provider.Throttle{
			RPS: 5, Burst: 10, Algorithm: provider.TokenBucket, // rate.NewLimiter(5, 10)
			RPM:         100, // and a second limiter, asked in the same decision
			MaxInFlight: 4,   // a semaphore
		},
		Breaker: provider.Breaker{Failures: 5, Cooldown: 30 * time.Second}, // gobreaker.Settings
	}}})
	if err != nil {
		log.Fatal(err)
	}
	host, err := coordinator.Get(ctx, c, coordinator.Call{Provider: "acme"}, func(ctx context.Context) (string, error) {
		return fetch(ctx, id) // limiter.Wait, breaker.Execute and the retry loop are gone
	})
	fmt.Println(host, err)
	// Output: a host <nil>
}

// statusError is an error of a client that knows the status.
type statusError struct {
	code       int
	retryAfter time.Duration
}

func (e *statusError) Error() string { return fmt.Sprint("status ", e.code) }

func Example_tell() {
	c := made(provider.Throttle{RPS: 5})
	ctx, call := context.Background(), coordinator.Call{Provider: "acme", Wait: -1}
	err := c.Do(ctx, call, func(ctx context.Context) error {
		err := send(ctx)
		var s *statusError
		if errors.As(err, &s) && s.code == http.StatusTooManyRequests {
			return provider.Feedback{Outcome: provider.RateLimited, RetryAfter: s.retryAfter}.Err(err)
		}
		return err
	})
	fmt.Println(err)
	// Output: coordinator: acme: rate limited after 1 attempt. Retry in 30 s
}

func send(context.Context) error { return &statusError{429, 30 * time.Second} }

func made(t provider.Throttle) *coordinator.Coordinator {
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{Slug: "acme", Throttle: t}}})
	if err != nil {
		log.Fatal(err)
	}
	return c
}

func Example_transport() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a host") }))
	defer server.Close()
	ctx := context.Background()
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{
		Slug: "acme", BaseURL: server.URL, Throttle: provider.Throttle{RPS: 5},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: &transport.Transport{Coordinator: c}}

	ctx = transport.WithCall(ctx, coordinator.Call{Flow: "alice", Priority: coordinator.Interactive})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/hosts/203.0.113.7", http.NoBody)
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close() // gives the place in flight back
	text, err := io.ReadAll(res.Body)
	fmt.Println(string(text), err)
	// Output: a host <nil>
}

func Example_algorithms() {
	th := provider.Throttle{Limits: []provider.Limit{
		{Name: "minute", Max: 60, Per: "1m"}, // sliding_window
		{Name: "bucket", Max: 600, Per: "1m", Burst: 50, Algorithm: provider.TokenBucket},
		{Name: "pace", Max: 1, Per: "1s", Algorithm: provider.LeakyBucket, Basis: provider.BasisPacing},
		{Name: "quota", Max: 500, Per: provider.Day, Zone: "America/Los_Angeles"}, // fixed_window, at midnight there
		{Name: "search", Max: 10, Per: "1m", Endpoints: []string{"search"}},
		{Name: "tokens", Max: 40_000, Per: "1m", Unit: provider.Tokens, Scope: provider.ScopeKey},
		{Name: "cap", Max: 4, Algorithm: provider.InFlight},
	}}
	fmt.Println(th.Validate())
	// Output: <nil>
}

func Example_errors() {
	c := made(provider.Throttle{RPD: 1})
	once(c)
	err := once(c)

	var e *coordinator.Error
	switch {
	case err == nil: // answered
	case errors.Is(err, coordinator.ErrThrottled) && errors.As(err, &e):
		fmt.Println(e.Reason, e.Limit.Name, "later:", e.RetryAfter > 23*time.Hour) // put it back, for e.RetryAt
	case errors.Is(err, coordinator.ErrTooHeavy):
		fmt.Println("make it smaller") // no wait cures it
	default:
		fmt.Println("the provider's own answer, or a mistake of ours:", err)
	}
	// Output: rate_limited rpd later: true
}

func once(c *coordinator.Coordinator) error {
	return c.Do(context.Background(), coordinator.Call{Provider: "acme", Wait: -1}, func(context.Context) error { return nil })
}

func Example_tokens() {
	c := made(provider.Throttle{Limits: []provider.Limit{{Name: "tokens", Max: 40_000, Per: "1m", Unit: provider.Tokens}}})
	ctx := context.Background()
	call := coordinator.Call{Provider: "acme", Cost: map[string]int64{provider.Tokens: 1500}} // an estimate
	err := c.Do(ctx, call, func(ctx context.Context) error {
		used, err := complete(ctx)
		if lease, ok := coordinator.LeaseFrom(ctx); ok && err == nil {
			lease.Report(provider.Feedback{Used: map[string]int64{provider.Tokens: used}})
		}
		return err
	})
	s, _ := c.State("acme")
	fmt.Println(s.Limits[0].Used, err)
	// Output: 1234 <nil>
}

func complete(context.Context) (int64, error) { return 1234, nil }

func Example_flows() {
	c := made(provider.Throttle{RPS: 5})
	ctx := context.Background()
	call := coordinator.Call{
		Provider: "acme",
		Flow:     "tenant-17",             // tenants share acme equally, however much each has queued
		Priority: coordinator.Interactive, // before its own bulk work; that still advances
		Wait:     2 * time.Second,         // a person waits no longer
	}
	fmt.Println(c.Do(ctx, call, func(context.Context) error { return nil }))
	// Output: <nil>
}

func Example_keys() {
	p := provider.Provider{
		Slug: "acme", Category: "reputation",
		Auth: provider.Auth{Kind: "header", Name: "X-Api-Key", Env: []string{"ACME_KEY_A", "ACME_KEY_B"}},
		Throttle: provider.Throttle{Limits: []provider.Limit{
			{Name: "key", Max: 4, Per: "1m", Scope: provider.ScopeKey}, // each key has its own
			{Name: "ip", Max: 20, Per: "1s"},                           // and both share the address
		}},
	}
	c, err := coordinator.New(coordinator.Config{
		Providers: []provider.Provider{p},
		Pools:     map[string]int{"reputation": 8, "": 32}, // in flight: in this category, and in all
	})
	if err != nil {
		log.Fatal(err)
	}
	err = c.Do(context.Background(), coordinator.Call{Provider: "acme"}, func(ctx context.Context) error {
		lease, _ := coordinator.LeaseFrom(ctx)
		fmt.Println(lease.Key()) // the one that could go first; the transport puts it in by itself
		return nil
	})
	fmt.Println(err)
	// Output:
	// ACME_KEY_A
	// <nil>
}

func Example_ledger() {
	ctx := context.Background()
	store := memory.New() // or sqlite.Open(path, …), or redis.Open(ctx, url, …)
	shared, err := ledger.Open(store, ledger.Settings{
		Longer: time.Minute,  // limits with a longer window are shared, and those with shared: true
		Mode:   ledger.Share, // while the store does not answer
	})
	if err != nil {
		log.Fatal(err)
	}
	c, err := coordinator.New(coordinator.Config{
		Providers: []provider.Provider{{Slug: "acme", Throttle: provider.Throttle{RPS: 5, RPD: 1000}}},
		Ledger:    shared,
	})
	if err != nil {
		log.Fatal(err)
	}
	err = c.Do(ctx, coordinator.Call{Provider: "acme"}, func(context.Context) error { return nil })
	s, _ := c.State("acme")
	fmt.Println(err, s.Ledger.Mode, s.Limits[1].Name, s.Limits[1].Shared)

	// In the end, in this order:
	err = errors.Join(c.Shutdown(ctx), shared.Close(ctx))
	fmt.Println(err)
	// Output:
	// <nil> shared rpd true
	// <nil>
}

func Example_batch() {
	dir, err := os.MkdirTemp("", "guide")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	c, ctx := made(provider.Throttle{RPS: 1000}), context.Background()
	hosts := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}

	done, err := journal.Open(filepath.Join(dir, "done"), "hosts of today") // the same jobs go on where a killed run was
	if err != nil {
		fmt.Println(err)
		return
	}
	defer done.Close()
	jobs := func(yield func(batch.Job) bool) { // as many as there are: a million need no memory
		for _, host := range hosts {
			call := coordinator.Call{Provider: "acme"}
			if !yield(batch.Job{Key: host, Call: call, Do: func(ctx context.Context) error { return ask(ctx, host) }}) {
				return
			}
		}
	}
	answered := 0
	for job, result := range batch.Run(ctx, c, jobs, batch.Options{Journal: done}) {
		if result.Err != nil {
			fmt.Println(job.Key, result.Err)
			continue
		}
		answered++
	}
	fmt.Println(answered, "answered")
	// Output: 3 answered
}

func ask(context.Context, string) error { return nil }

func Example_watch() {
	c, err := coordinator.New(coordinator.Config{
		Registry:  new(registry.Registry),
		Providers: []provider.Provider{{Slug: "acme", Throttle: provider.Throttle{RPM: 100}}},
		Traces:    []*coordinator.Trace{tracelog.New(nil, tracelog.Options{})}, // what goes wrong, sampled, into log/slog
	})
	if err != nil {
		log.Fatal(err)
	}
	f, err := c.Forecast(coordinator.Call{Provider: "acme"}, 250)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Now > 0, f.Done().Sub(f.At).Round(time.Minute)) // 100 now, 100 in a minute, 50 in two
	// Output: true 2m0s
}

func Example_edge() {
	c := made(provider.Throttle{RPD: 1})
	once(c)
	handler := func(w http.ResponseWriter, r *http.Request) {
		err := c.Do(r.Context(), coordinator.Call{Provider: "acme", Wait: -1}, func(context.Context) error { return nil })
		switch {
		case edge.WriteError(w, err): // 429 with Retry-After, RateLimit fields and a JSON body
		case err != nil:
			http.Error(w, "not available", http.StatusBadGateway)
		default:
			fmt.Fprint(w, "a host")
		}
	}
	w := httptest.NewRecorder()
	handler(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	fmt.Println(w.Code)
	// Output: 429
}
