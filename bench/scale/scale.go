// Package scale measures what a decision costs among many providers, and among many
// keys of one provider, asked in no order; and what each of them costs in memory.
package scale

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate/headgate/bench/core"
	"github.com/headgate/headgate/bench/peer"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// Among is what there are many of.
type Among string

// Providers each have three limits, a breaker, a cap and a retry; keys have one limit
// each, of one provider.
const (
	Providers Among = "providers"
	Keys      Among = "keys"
)

// Counts are how many of them.
var Counts = map[Among][]int{Providers: {1, 100, 10_000}, Keys: {1, 1000, 1_000_000}}

// The rows besides the names of package peer.
const (
	Window = "Headgate" // its default algorithm, the sliding window
	Bucket = "Headgate, token buckets"
)

// subject makes n of them and returns a call to the i-th.
type subject struct {
	Name string
	make func(names []string) (call func(i int) error)
}

// Subjects are the rows.
var Subjects = map[Among][]subject{
	Providers: {
		{Window, headgateProviders},
		{peer.ByHand.Name, gates(peer.ByHand)},
		{peer.Failsafe.Name, gates(peer.Failsafe)},
	},
	Keys: {
		{Window, headgateKeys(provider.SlidingWindow)},
		{Bucket, headgateKeys(provider.TokenBucket)},
		{"x/time/rate", limiters},
		{peer.Throttled.Name, throttled},
		{peer.GoLimiter.Name, goLimiter},
	},
}

// Result is one measurement. Bytes are those of one more of them after a call each.
type Result struct {
	Subject     string
	Among       Among
	N           int
	Nanoseconds float64 // of cores at work
	Bytes       float64
}

// Measure measures one subject, for as long as the flag test.benchtime says. Let it
// run in a process of its own: it measures all of its memory.
func Measure(name string, among Among, n int) (Result, error) {
	for _, s := range Subjects[among] {
		if s.Name == name {
			return measure(s, among, n)
		}
	}
	return Result{}, fmt.Errorf("scale: no subject has the name %q", name)
}

func measure(s subject, among Among, n int) (Result, error) {
	names := make([]string, n)
	for i := range names {
		names[i] = "n" + strconv.Itoa(i)
	}
	before := heap()
	call := s.make(names)
	for i := range n {
		if err := call(i); err != nil {
			return Result{}, fmt.Errorf("scale: %s: %w", s.Name, err)
		}
	}
	bytes := float64(int64(heap())-int64(before)) / float64(n)

	order := make([]int32, 1<<20) // drawn beforehand: a good generator costs as much as a limiter
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range order {
		order[i] = int32(rng.IntN(n))
	}
	var err error
	var worked time.Duration
	b := testing.Benchmark(func(b *testing.B) {
		begun := core.Time()
		for i := 0; i < b.N && err == nil; i++ {
			err = call(int(order[i%len(order)]))
		}
		worked = core.Time() - begun
	})
	if worked == 0 {
		worked = b.T // the next best
	}
	runtime.KeepAlive(names)
	if err != nil {
		return Result{}, fmt.Errorf("scale: %s: %w", s.Name, err)
	}
	return Result{s.Name, among, n, float64(worked.Nanoseconds()) / float64(b.N), bytes}, nil
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC() // twice: what a sync.Pool holds survives the first
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// plenty is never in the way.
func plenty() peer.Config {
	c := peer.Config{Kind: peer.Window, Cap: 1000, Breaker: true, Attempts: 3}
	for _, per := range []time.Duration{time.Second, time.Minute, time.Hour} {
		c.Limits = append(c.Limits, peer.Limit{N: int(per), Per: per})
	}
	return c
}

// perKey is the limit of each of n keys: never in the way, but so tight that a key that
// was used once is not as good as new soon, and forgotten.
func perKey(n int) peer.Limit { return peer.Limit{N: max(1000, 50_000_000/n), Per: 24 * time.Hour} }

func nothing(context.Context) error { return nil }

func headgateProviders(names []string) func(int) error {
	var all []provider.Provider
	for _, name := range names {
		all = append(all, peer.Declare(name, plenty()))
	}
	return calls(all, func(i int) coordinator.Call { return coordinator.Call{Provider: names[i], Replayable: true} })
}

func headgateKeys(a provider.Algorithm) func([]string) func(int) error {
	return func(names []string) func(int) error {
		p := provider.Provider{Slug: peer.Slug, Throttle: provider.Throttle{Limits: []provider.Limit{{
			Name: "day", Max: int64(perKey(len(names)).N), Per: "24h", Algorithm: a, Scope: provider.ScopeKey,
		}}}}
		return calls([]provider.Provider{p}, func(i int) coordinator.Call { return coordinator.Call{Provider: peer.Slug, Key: names[i]} })
	}
}

func calls(all []provider.Provider, call func(int) coordinator.Call) func(int) error {
	c, err := coordinator.New(coordinator.Config{Providers: all})
	if err != nil {
		panic(fmt.Sprintf("scale: %v", err)) // a fault of this program
	}
	ctx := context.Background()
	return func(i int) error { return c.Do(ctx, call(i), nothing) }
}

// found is a map as a program would have one, made at first use.
func found[V any](names []string, fresh func() V) func(i int) V {
	var mu sync.RWMutex
	all := map[string]V{}
	return func(i int) V {
		mu.RLock()
		v, ok := all[names[i]]
		mu.RUnlock()
		if !ok {
			mu.Lock()
			defer mu.Unlock()
			if v, ok = all[names[i]]; !ok {
				v = fresh()
				all[names[i]] = v
			}
		}
		return v
	}
}

func gates(p peer.Peer) func([]string) func(int) error {
	return func(names []string) func(int) error {
		gate := found(names, func() *peer.Gate {
			c := plenty()
			c.Kind = peer.Bucket
			return p.New(c)
		})
		ctx := context.Background()
		return func(i int) error { return gate(i).Call(ctx, "", nothing) }
	}
}

func limiters(names []string) func(int) error {
	l := perKey(len(names))
	limiter := found(names, func() *rate.Limiter {
		return rate.NewLimiter(rate.Limit(float64(l.N)/l.Per.Seconds()), l.N)
	})
	ctx := context.Background()
	return func(i int) error { return limiter(i).Wait(ctx) }
}

func throttled(names []string) func(int) error {
	g := peer.GCRA(peer.Bucket, perKey(len(names)))
	ctx := context.Background()
	return func(i int) error {
		limited, _, err := g.RateLimitCtx(ctx, names[i], 1)
		return granted(!limited, err)
	}
}

func goLimiter(names []string) func(int) error {
	take, _ := peer.Windows(perKey(len(names))) // its process ends with it
	ctx := context.Background()
	return func(i int) error {
		wait, err := take(ctx, names[i])
		return granted(wait == 0, err)
	}
}

// granted is an error where a call was not let go: nothing was measured then.
func granted(yes bool, err error) error {
	if err == nil && !yes {
		return errors.New("the limit is in the way")
	}
	return err
}
