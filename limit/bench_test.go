package limit

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

var benchmarked = []provider.Limit{
	{Max: 50, Per: "1s", Algorithm: provider.SlidingWindow},
	{Max: 1000, Per: "1s", Algorithm: provider.SlidingWindow},
	{Max: 15500, Per: "744h", Algorithm: provider.SlidingWindow},
	{Max: 1000, Per: "1s", Algorithm: provider.SlidingWindowCounter},
	{Max: 1000, Per: "1s", Algorithm: provider.FixedWindow},
	{Max: 1000, Per: "minute", Zone: "America/Los_Angeles", Algorithm: provider.FixedWindow},
	{Max: 1000, Per: "1s", Burst: 50, Algorithm: provider.TokenBucket},
	{Max: 1000, Per: "1s", Algorithm: provider.LeakyBucket},
	{Max: 10, Algorithm: provider.InFlight},
}

// stepper lets calls go one by one, each at the first instant at which it may, with
// its answer at once.
func stepper(tb testing.TB, l provider.Limit) func() {
	r, err := New(l)
	require.NoError(tb, err)
	now := time.Duration(1)
	step := func() {
		if t := r.Look(at(now), 1); t > now {
			now = t
		}
		r.Take(at(now), 1)
		r.Settle(at(now), at(now), 1, 1)
		now++
	}
	for range 2*l.Max + 2000 {
		step()
	}
	return step
}

func BenchmarkLookTakeSettle(b *testing.B) {
	for _, l := range benchmarked {
		b.Run(fmt.Sprintf("%s/%d", l.Algorithm, l.Max), func(b *testing.B) {
			step := stepper(b, l)
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}

// BenchmarkLook is what a waiting call costs.
func BenchmarkLook(b *testing.B) {
	for _, l := range benchmarked {
		b.Run(fmt.Sprintf("%s/%d", l.Algorithm, l.Max), func(b *testing.B) {
			r, err := New(l)
			require.NoError(b, err)
			for i := range time.Duration(min(l.Max, 1000)) {
				r.Take(at(i), 1)
				r.Settle(at(i), at(i), 1, 1)
			}
			for b.Loop() {
				r.Look(at(2000), (r.Heaviest()+1)/2)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = New(benchmarked[5])
	}
}

// TestAWarmRuleAllocatesNothing in Look, Take and Settle, of any algorithm.
func TestAWarmRuleAllocatesNothing(t *testing.T) {
	for _, l := range benchmarked {
		step := stepper(t, l)
		require.Zero(t, testing.AllocsPerRun(3000, step), "%+v", l)
	}
}

// TestUsualRulesFindRoom: what they are is where the caller wants it.
func TestUsualRulesFindRoom(t *testing.T) {
	for _, l := range []provider.Limit{{Name: "window", Max: 5, Per: "10s"}, {Name: "flight", Max: 5, Algorithm: provider.InFlight}} {
		r, err := New(l)
		require.NoError(t, err)
		var m Room
		require.Same(t, &m.rule, r.FreshIn(&m))
		require.Zero(t, testing.AllocsPerRun(100, func() { r.FreshIn(&m) }), l.Name)
	}
}

// TestAnIdleKeyIsSmall: one allocation, and a ring only once something is charged.
func TestAnIdleKeyIsSmall(t *testing.T) {
	for _, l := range benchmarked {
		r, err := New(l)
		require.NoError(t, err)
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() { r.Fresh() }), 1.0, "%+v", l)
	}
	require.LessOrEqual(t, unsafe.Sizeof(Rule{})+unsafe.Sizeof(window{}), uintptr(96))
	require.LessOrEqual(t, unsafe.Sizeof(Rule{})+unsafe.Sizeof(bucket{}), uintptr(96))
	require.LessOrEqual(t, unsafe.Sizeof(Rule{})+unsafe.Sizeof(counter{}), uintptr(128))
	require.LessOrEqual(t, unsafe.Sizeof(Rule{})+unsafe.Sizeof(fixed{}), uintptr(144))
	require.LessOrEqual(t, unsafe.Sizeof(Rule{})+unsafe.Sizeof(leaky{}), uintptr(160))
	r, err := New(benchmarked[0])
	require.NoError(t, err)
	spend(t, r, at(1), 1)
	require.Len(t, r.algo.(*window).entries, 2)
}
