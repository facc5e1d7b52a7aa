// Package decision measures what it costs to let a call go that need not wait: time,
// bytes and allocations, alone and with many goroutines at once.
package decision

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/bench/core"
	"github.com/headgate/headgate/bench/peer"
)

// Headgate's rows: with its default algorithm, and with the one that the others have.
var (
	Headgate = peer.Headgate
	Buckets  = renamed(peer.Headgate, "Headgate, token buckets")
)

// Peers are measured with three limits, a breaker, a cap and a retry, as far as they
// have such parts.
var Peers = []peer.Peer{Headgate, Buckets, peer.ByHand, peer.HandOnce, peer.Failsafe, peer.Breaker, peer.Burst,
	peer.Uber, peer.Discovery, peer.Throttled, peer.GoLimiter, peer.Retryable}

func renamed(p peer.Peer, name string) peer.Peer {
	p.Name = name
	return p
}

// Goroutines is with how many callers each is measured.
var Goroutines = []int{1, 2, 128}

// Result is one measurement of a call, all goroutines together.
type Result struct {
	Peer          string
	Goroutines    int
	Nanoseconds   float64 // on the wall, from one call's going to the next one's
	Core          float64 // nanoseconds of cores at work; where that is not known, those on the wall
	Bytes, Allocs float64
}

// config is never in the way: one call a nanosecond, in each of three limits.
func config(p peer.Peer) peer.Config {
	c := peer.Config{Kind: peer.Bucket, Cap: 1000, Breaker: true, Attempts: 3}
	if p.Name == Headgate.Name {
		c.Kind = peer.Window
	}
	periods := []time.Duration{time.Second, time.Minute, time.Hour}
	if p.Name == peer.GoLimiter.Name { // its second window has one call where so many are allowed: it is measured in the first
		periods = []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour}
	}
	for _, per := range periods {
		c.Limits = append(c.Limits, peer.Limit{N: int(per), Per: per})
	}
	return c
}

// Measure measures a peer once, for as long as the flag test.benchtime says.
func Measure(p peer.Peer, goroutines int) (Result, error) {
	gate := p.New(config(p))
	if gate.Close != nil {
		defer gate.Close()
	}
	var worked float64
	var err error
	b := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		fill(gate)
		b.ResetTimer()
		before := core.Time()
		err = run(gate, goroutines, b.N)
		worked = float64((core.Time() - before).Nanoseconds()) / float64(b.N)
		b.StopTimer()
	})
	if err != nil {
		return Result{}, fmt.Errorf("decision: %s: %w", p.Name, err)
	}
	if core.Time() == 0 {
		worked = float64(b.T.Nanoseconds()) / float64(b.N)
	}
	return Result{p.Name, goroutines, float64(b.T.Nanoseconds()) / float64(b.N), worked,
		float64(b.AllocedBytesPerOp()), float64(b.AllocsPerOp())}, nil
}

// fill lets what remembers calls remember enough of them not to grow any more.
func fill(gate *peer.Gate) {
	for range 5000 {
		_ = gate.Call(context.Background(), "", nothing)
	}
}

// run makes n calls from so many goroutines.
func run(gate *peer.Gate, goroutines, n int) error {
	if goroutines == 1 {
		return calls(gate, n)
	}
	errs := make([]error, goroutines)
	var running sync.WaitGroup
	for i := range goroutines {
		running.Go(func() { errs[i] = calls(gate, (n+i)/goroutines) })
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func calls(gate *peer.Gate, n int) error {
	ctx := context.Background()
	for range n {
		if err := gate.Call(ctx, "", nothing); err != nil {
			return err
		}
	}
	return nil
}

func nothing(context.Context) error { return nil }
