package coordinator_test

import (
	"context"
	"fmt"
	"slices"
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

// A caller that gives up leaves a free place at that instant, and a turn that he
// never takes: the next one gets it, and waits for nothing besides.
func TestCase27_ACancelledWaiterFreesItsPlaceAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		require.NoError(t, c.Do(t.Context(), to, ok))
		ctx, giveUp := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			gone <- c.Do(ctx, to, func(context.Context) error { t.Error("it was cancelled"); return nil })
		}()
		synctest.Wait()
		var went sync.Map
		wait := func(name string) {
			go func() {
				assert.NoError(t, c.Do(t.Context(), to, func(context.Context) error { went.Store(name, time.Since(start)); return nil }))
			}()
			synctest.Wait()
		}
		wait("second")
		wait("third")
		require.ErrorIs(t, c.Do(t.Context(), to, ok), coordinator.ErrQueueFull)
		giveUp()
		require.ErrorIs(t, <-gone, context.Canceled)
		assert.Equal(t, 2, state(t, c).Queue.Length)
		wait("fourth")
		assert.Equal(t, 3, state(t, c).Queue.Length, "it found the place")
		assert.Zero(t, time.Since(start))
		time.Sleep(5 * second)
		for i, name := range []string{"second", "third", "fourth"} {
			at, _ := went.Load(name)
			assert.Equal(t, time.Duration(i+1)*(second+1), at, name)
		}
		assert.EqualValues(t, 4, state(t, c).Granted)
	}, declare(provider.Throttle{RPS: 1, MaxQueue: 3}))
}

// Nobody of a priority is passed by a later one of it, and who waits knows for how
// long at most.
func TestCase29_FirstInFirstOutWithinAPriorityAndNobodyStarves(t *testing.T) {
	for name, priorities := range map[string][]coordinator.Priority{
		"one":   {coordinator.Normal},
		"three": {coordinator.Bulk, coordinator.Normal, coordinator.Interactive},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				require.NoError(t, c.Do(t.Context(), to, ok))
				start := time.Now()
				var mu sync.Mutex
				order := make(map[coordinator.Priority][]int)
				var wg sync.WaitGroup
				for i := range 100 {
					call := to
					call.Priority = priorities[i%len(priorities)]
					wg.Go(func() {
						assert.NoError(t, c.Do(t.Context(), call, func(context.Context) error {
							mu.Lock()
							defer mu.Unlock()
							order[call.Priority] = append(order[call.Priority], i)
							return nil
						}))
					})
					synctest.Wait()
				}
				wg.Wait()
				assert.InDelta(t, 20*second, time.Since(start), 1000, "100 at 300 a minute")
				for p, went := range order {
					assert.True(t, slices.IsSorted(went), "%d: %v", p, went)
				}
			}, declare(provider.Throttle{RPM: 300, Algorithm: provider.LeakyBucket}))
		})
	}
}

// However many calls one tenant has queued, another's one goes within one round.
func TestCase30_AFlowOfManyDoesNotHoldUpAFlowOfOne(t *testing.T) {
	p := declare(provider.Throttle{RPS: 5, Algorithm: provider.LeakyBucket, MaxQueue: 10_000, MaxWait: provider.Forever})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var mu sync.Mutex
		var order []string
		ctx, giveUp := context.WithCancel(t.Context())
		from := func(ctx context.Context, flow string) error {
			return c.Do(ctx, coordinator.Call{Provider: "p", Flow: flow}, func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, flow)
				return nil
			})
		}
		for range 5000 {
			go func() { _ = from(ctx, "a") }()
		}
		time.Sleep(30*second + 100*ms)
		went := func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(order)
		}
		for range 3 { // each time anew
			before := went()
			require.NoError(t, from(t.Context(), "b"))
			assert.LessOrEqual(t, went()-before, 2, "itself, and at most one of the others")
		}
		giveUp()
	}, p)
}

// However much urgent work keeps coming, bulk work advances: by one call in
// seventeen.
func TestCase30_UrgentWorkNeverStopsBulk(t *testing.T) {
	p := declare(provider.Throttle{RPS: 10, Algorithm: provider.LeakyBucket, MaxWait: provider.Forever})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var over atomic.Bool
		var urgent atomic.Int64
		for range 40 {
			go func() {
				for !over.Load() {
					assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Priority: coordinator.Interactive}, ok))
					urgent.Add(1)
				}
			}()
		}
		time.Sleep(10 * second)
		start, last := time.Now(), urgent.Load()
		for range 20 {
			require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Priority: coordinator.Bulk}, ok))
			assert.LessOrEqual(t, urgent.Load()-last, int64(17))
			last = urgent.Load()
		}
		assert.Greater(t, time.Since(start), 20*second, "and is not served as if it were urgent")
		over.Store(true)
		time.Sleep(10 * second)
	}, p)
}

// A provider that is shut holds up nobody else, and no lock is held by who waits:
// everything else can be asked and done meanwhile.
func TestCase31_ABlockedProviderBlocksNoOther(t *testing.T) {
	x, y := provider.Provider{Slug: "x", Throttle: provider.Throttle{MaxWait: 2 * time.Hour}}, declare(provider.Throttle{RPS: 2000})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		require.NoError(t, c.Pause("x", start.Add(time.Hour), "maintenance"))
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "x"}, ok)) })
		}
		synctest.Wait()
		for range 1000 {
			require.NoError(t, c.Do(t.Context(), to, ok))
		}
		s, err := c.State("x")
		require.NoError(t, err)
		assert.Equal(t, 100, s.Queue.Length)
		require.NoError(t, c.Update("x", x.Throttle))
		require.NoError(t, c.Pause("x", start.Add(time.Minute), "shorter"))
		require.NoError(t, c.Do(t.Context(), to, func(context.Context) error {
			s, err = c.State("p")
			assert.Len(t, c.States(), 2)
			return err
		}))
		assert.Equal(t, 1, s.InFlight)
		assert.Zero(t, time.Since(start))
		wg.Wait()
		assert.Equal(t, time.Hour, time.Since(start))
	}, x, y)
}

// What becomes of calls in excess is what the provider's policy says.
func TestCase32_EachExcessPolicyDoesWhatItSays(t *testing.T) {
	for name, test := range map[string]struct {
		throttle provider.Throttle
		call     time.Duration // Call.Wait
		waits    int           // how many of 50 wait, and go when they were told
		reason   coordinator.Reason
		after    time.Duration // what the others are told
	}{
		"reject":              {provider.Throttle{RPS: 1, Excess: provider.Reject}, 0, 0, coordinator.ReasonRateLimited, second + 1},
		"queue: places":       {provider.Throttle{RPS: 1, MaxQueue: 7}, 0, 7, coordinator.ReasonQueueFull, second + 1},
		"queue: longest wait": {provider.Throttle{RPS: 1, MaxWait: 10 * second}, 0, 9, coordinator.ReasonTooLate, 10 * (second + 1)},
		"delay":               {provider.Throttle{RPS: 1, Excess: provider.Delay, MaxQueue: 1}, 0, 29, coordinator.ReasonTooLate, 30 * (second + 1)},
		"delay, of one call":  {provider.Throttle{RPS: 1, Excess: provider.Delay}, 5 * second, 4, coordinator.ReasonTooLate, 5 * (second + 1)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				require.NoError(t, c.Do(t.Context(), to, ok))
				start := time.Now()
				call := to
				call.Wait = test.call
				var wg sync.WaitGroup
				var waited, refused atomic.Int64
				for range 50 {
					wg.Go(func() {
						err := c.Do(t.Context(), call, ok)
						if err == nil {
							assert.Equal(t, time.Duration(waited.Add(1))*(second+1), time.Since(start))
							return
						}
						refused.Add(1)
						e := refusal(t, err)
						assert.Equal(t, test.reason, e.Reason)
						assert.InDelta(t, test.after, e.RetryAfter, 50)
						assert.Equal(t, start.Add(e.RetryAfter), e.RetryAt)
						assert.Zero(t, time.Since(start), "told at once")
					})
					synctest.Wait()
				}
				wg.Wait()
				assert.EqualValues(t, test.waits, waited.Load())
				assert.EqualValues(t, 50-test.waits, refused.Load())
			}, declare(test.throttle))
		})
	}
}

// A deadline that comes before the turn is not sat out: the caller is told now, and
// when he could have gone.
func TestCase32_ADeadlineBeforeTheTurnIsToldAtOnce(t *testing.T) {
	for _, policy := range []provider.ExcessPolicy{provider.Queue, provider.Delay} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				require.NoError(t, c.Do(t.Context(), to, ok))
				for range 3 {
					go func() { assert.NoError(t, c.Do(t.Context(), to, ok)) }()
				}
				synctest.Wait()
				start := time.Now()
				early, cancel := context.WithTimeout(t.Context(), 40*second)
				defer cancel()
				e := refusal(t, c.Do(early, to, ok))
				assert.Zero(t, time.Since(start))
				assert.ErrorIs(t, e, context.DeadlineExceeded)
				assert.ErrorIs(t, e, coordinator.ErrTooLate)
				assert.InDelta(t, 80*second, e.RetryAfter, 10)
				assert.Equal(t, 3, state(t, c).Queue.Length, "and leaves no place behind")
				enough, cancel := context.WithTimeout(t.Context(), 80*second+10)
				defer cancel()
				require.NoError(t, c.Do(enough, to, ok))
				assert.InDelta(t, 80*second, time.Since(start), 10, "as predicted")
			}, declare(provider.Throttle{RPM: 3, Algorithm: provider.LeakyBucket, Excess: policy, MaxWait: 10 * time.Minute}))
		})
	}
}
