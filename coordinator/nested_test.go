package coordinator_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// A call inside a call of another provider inside a call of the first goes under the
// slot that its own provider's call has.
func TestNestedCallThroughAnotherProvider(t *testing.T) {
	th := provider.Throttle{RPM: 10, MaxInFlight: 1}
	q := provider.Provider{Slug: "q", Throttle: th}
	other := coordinator.Call{Provider: "q"}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		require.NoError(t, c.Do(t.Context(), to, func(ctx context.Context) error {
			return c.Do(ctx, other, func(ctx context.Context) error {
				return c.Do(ctx, to, func(ctx context.Context) error { return c.Do(ctx, other, ok) })
			})
		}))
		assert.Zero(t, time.Since(start))
		for _, s := range c.States() {
			assert.EqualValues(t, 2, s.Limits[0].Used)
		}
	}, once(th), q)
}

// Two calls hold all that there is, and each needs one more inside: neither may wait
// for the other to end, or both wait to their longest wait.
func TestNestedCallsOfTwoCallersDoNotWaitForEachOther(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				_ = c.Do(t.Context(), to, func(ctx context.Context) error {
					time.Sleep(ms) // until both are out
					return c.Do(ctx, to, ok)
				})
			})
		}
		wg.Wait()
		assert.Less(t, time.Since(start), time.Minute)
	}, once(provider.Throttle{RPS: 2}))
}

// A call that goes when the one it was made in has ended is a call of its own: it has
// its own tries.
func TestCallAfterItsCallerHasTriesOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var inside context.Context
		require.NoError(t, c.Do(t.Context(), to, func(ctx context.Context) error { inside = ctx; return nil }))
		call := to
		call.Replayable = true
		for range 3 {
			var at []time.Time
			require.NoError(t, c.Do(inside, call, flaky(2, provider.Failed, 0, &at)))
		}
	}, declare(provider.Throttle{}))
}

// A call that was made inside another, but goes when that one has ended, has no slot
// to go under: it takes one.
func TestNestedCallThatOutlivesItsCallerTakesASlot(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var out, most atomic.Int64
		work := func(ctx context.Context) error {
			most.Store(max(most.Load(), out.Add(1)))
			defer out.Add(-1)
			return sleep(ctx, 10*second)
		}
		var wg sync.WaitGroup
		require.NoError(t, c.Do(t.Context(), to, func(ctx context.Context) error {
			ls, _ := coordinator.LeaseFrom(ctx)
			ls.Report(provider.Feedback{})
			require.NoError(t, c.Do(ctx, to, ok))
			require.NoError(t, c.Do(ctx, to, ok))
			wg.Go(func() { assert.NoError(t, c.Do(ctx, to, work)) }) // waits for the next second
			synctest.Wait()
			return nil
		}))
		wg.Go(func() { assert.NoError(t, c.Do(t.Context(), to, work)) })
		wg.Wait()
		assert.EqualValues(t, 1, most.Load(), "at once, with a cap of 1")
	}, once(provider.Throttle{RPS: 3, MaxInFlight: 1}))
}
