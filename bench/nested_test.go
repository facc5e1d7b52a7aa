// Package bench measures Headgate side by side with what its users would take
// instead. It is a module of its own, so that nobody else gets the peers.
package bench

import (
	"context"
	"testing"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// plenty is never in the way: the cost of the decision is measured, not a wait.
const plenty = 1 << 40

func work(context.Context) error { return nil }

// nested is the same parts chained by hand: a breaker around a semaphore around
// three limiters.
type nested struct {
	breaker  *gobreaker.TwoStepCircuitBreaker[struct{}]
	slots    *semaphore.Weighted
	limiters [3]*rate.Limiter
}

func newNested() *nested {
	n := &nested{
		breaker: gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{}),
		slots:   semaphore.NewWeighted(100),
	}
	for i, w := range []time.Duration{time.Second, time.Minute, time.Hour} {
		n.limiters[i] = rate.NewLimiter(rate.Limit(plenty/w.Seconds()), 1<<40)
	}
	return n
}

func (n *nested) Do(ctx context.Context, fn func(context.Context) error) error {
	done, err := n.breaker.Allow()
	if err != nil {
		return err
	}
	if err := n.slots.Acquire(ctx, 1); err != nil {
		done(err)
		return err
	}
	defer n.slots.Release(1)
	for _, l := range n.limiters {
		if err := l.Wait(ctx); err != nil {
			done(err)
			return err
		}
	}
	err = fn(ctx)
	done(err)
	return err
}

func newCoordinator(b *testing.B) *coordinator.Coordinator {
	b.Helper()
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{
		Slug: "p",
		Throttle: provider.Throttle{MaxInFlight: 100, Limits: []provider.Limit{
			{Name: "second", Max: plenty, Per: "1s"},
			{Name: "minute", Max: plenty, Per: "1m"},
			{Name: "hour", Max: plenty, Per: "1h"},
		}},
	}}})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// Three limits, a breaker and a cap of what is in flight, nothing to wait for.
func BenchmarkDecision(b *testing.B) {
	call := coordinator.Call{Provider: "p"}
	c, n := newCoordinator(b), newNested()
	for _, peer := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"headgate", func(ctx context.Context) error { return c.Do(ctx, call, work) }},
		{"by hand", func(ctx context.Context) error { return n.Do(ctx, work) }},
	} {
		b.Run(peer.name+"/idle", func(b *testing.B) {
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				if err := peer.do(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(peer.name+"/128 goroutines", func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(64)
			b.RunParallel(func(pb *testing.PB) {
				ctx := context.Background()
				for pb.Next() {
					if err := peer.do(ctx); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
