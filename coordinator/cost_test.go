package coordinator_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// wide has three limits, a breaker and a cap, none of which is ever in the way.
func wide() provider.Provider {
	return declare(provider.Throttle{Limits: []provider.Limit{
		{Name: "second", Max: 1 << 40, Per: "1s"},
		{Name: "minute", Max: 1 << 40, Per: "1m"},
		{Name: "hour", Max: 1 << 40, Per: "1h"},
	}, MaxInFlight: 100})
}

func TestDoOnAnIdleLaneAllocatesOnce(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{wide()}})
	require.NoError(t, err)
	for range 5000 { // fill the windows' memory
		require.NoError(t, c.Do(t.Context(), to, ok))
	}
	ctx := context.Background()
	n := testing.AllocsPerRun(1000, func() { _ = c.Do(ctx, to, ok) })
	require.LessOrEqual(t, n, 1.0)
}

func BenchmarkDo(b *testing.B) {
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{wide()}})
	require.NoError(b, err)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		_ = c.Do(ctx, to, ok)
	}
}

func BenchmarkDoKeyed(b *testing.B) {
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{wide()}})
	require.NoError(b, err)
	ctx, call := context.Background(), to
	call.Key = "k"
	b.ReportAllocs()
	for b.Loop() {
		_ = c.Do(ctx, call, ok)
	}
}

func BenchmarkDoContended(b *testing.B) {
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{wide()}})
	require.NoError(b, err)
	b.ReportAllocs()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		ctx := context.Background()
		for pb.Next() {
			_ = c.Do(ctx, to, ok)
		}
	})
}
