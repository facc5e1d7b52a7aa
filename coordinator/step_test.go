package coordinator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// A clock that is set while calls wait for dates: nobody is forgotten, nothing stays
// charged, and as soon as the clock is right again a window holds what it may.
func TestStormsUnderAClockThatSteps(t *testing.T) {
	for seed := range uint64(size(60, 12)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 31))
			pick := func(n int) int { return rng.IntN(n) }
			th := provider.Throttle{MaxQueue: 10_000, MaxWait: provider.Forever, Limits: []provider.Limit{
				{Name: "window", Max: int64(2 + pick(10)), Per: provider.Period(fmt.Sprint(500+pick(5000), "ms")), Algorithm: provider.FixedWindow},
				{Name: "minute", Max: int64(20 + pick(50)), Per: provider.Minute, Zone: []string{"", "Asia/Kathmandu"}[pick(2)]},
				{Name: "counter", Max: int64(5 + pick(20)), Per: "3s", Algorithm: provider.SlidingWindowCounter, Scope: provider.ScopeKey},
				{Name: "sliding", Max: 50, Per: "2s"},
			}}
			least := int64(50)
			for _, l := range th.Limits {
				least = min(least, l.Max)
			}
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				assert.EqualValues(t, least, stormSteps(t, c, rng), "as many as the least of them allows")
			}, declare(th))
		})
	}
}

// stormSteps returns how many calls may go at once in the end.
func stormSteps(t *testing.T, c *coordinator.Coordinator, rng *rand.Rand) int {
	steps := []time.Duration{-time.Hour, -time.Minute, -2 * time.Second, -time.Millisecond, time.Millisecond, time.Second, time.Minute, 25 * time.Hour}
	require.NoError(t, c.Do(t.Context(), to, ok))
	var all sync.WaitGroup
	var stepped time.Time
	for range 200 {
		call := coordinator.Call{Provider: "p", Key: fmt.Sprint(rng.IntN(3))}
		trip := time.Duration(rng.IntN(200)) * ms
		ctx, cancel := context.WithCancel(t.Context())
		if rng.IntN(4) == 0 {
			time.AfterFunc(time.Duration(rng.IntN(3000))*ms, cancel)
		}
		all.Go(func() {
			defer cancel()
			_ = c.Do(ctx, call, takes(trip))
		})
		if time.Sleep(time.Duration(rng.IntN(60)) * ms); rng.IntN(40) == 0 {
			time.Sleep(61 * second)
		}
		if rng.IntN(10) == 0 {
			c.WakeAfterStep("p", steps[rng.IntN(len(steps))])
			stepped = time.Now()
		}
		if time.Since(stepped) > time.Minute && rng.IntN(3) == 0 { // a timer that was set by a wrong date may be so late
			synctest.Wait()
			require.Zero(t, c.Overlooked("p"), "a call that could go waits")
		}
	}
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(24 * time.Hour):
		t.Fatalf("calls are stuck: %+v", state(t, c))
	}
	time.Sleep(26 * time.Hour) // whatever date was shown, its window is over
	s := state(t, c)
	assert.Zero(t, s.Queue.Length+s.InFlight+s.Lingering)
	for _, l := range s.Limits {
		assert.Zero(t, l.Used+l.Held, l.Name)
	}
	return room(t, c, to)
}
