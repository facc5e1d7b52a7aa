package coordinator_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

const ms = time.Millisecond

// mostIn is how many of the instants lie in the fullest closed window of a length.
func mostIn(at []time.Duration, w time.Duration) (most int) {
	at = slices.Sorted(slices.Values(at))
	for i := range at {
		n := 0
		for j := i; j < len(at) && at[j]-at[i] <= w; j++ {
			n++
		}
		most = max(most, n)
	}
	return most
}

// A counter that starts afresh with each second lets four calls through within a
// tenth of one, two on either side of the boundary.
func TestCase20_ABoundaryIsNoSecondHelping(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		time.Sleep(950 * ms)
		first := calls(t, c, 2, to, 0)
		time.Sleep(100 * ms)
		next := calls(t, c, 2, to, 0)
		assert.Equal(t, []time.Duration{0, 0}, first)
		assert.Equal(t, []time.Duration{900*ms + 1, 900*ms + 1}, next, "a second after those before the boundary")
	}, declare(provider.Throttle{RPS: 2}))
}

func TestCase20_NoRollingSecondHoldsMoreThanDeclared(t *testing.T) {
	var full int
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 20))
		var mu sync.Mutex
		draw := func(d time.Duration) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(rng.Int64N(int64(d) + 1))
		}
		var arrived []time.Duration
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			start := time.Now()
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(func() {
					for range 8 {
						time.Sleep(draw(500 * ms))
						assert.NoError(t, c.Do(t.Context(), to, func(ctx context.Context) error {
							time.Sleep(draw(150 * ms))
							mu.Lock()
							arrived = append(arrived, time.Since(start))
							mu.Unlock()
							return sleep(ctx, draw(150*ms))
						}))
					}
				})
			}
			wg.Wait()
			assert.Len(t, arrived, 40)
			assert.Less(t, time.Since(start), 20*1300*ms, "two in each second and its round trip")
		}, declare(provider.Throttle{RPS: 2}))
		most := mostIn(arrived, second)
		require.LessOrEqual(t, most, 2, "seed %d", seed)
		full += most
	}
	assert.Equal(t, 2*60, full, "and each run filled a window")
}

// Both readings of "60 a minute" can be said: all at once, and evenly spread.
func TestCase21_AtOnceOrSpread(t *testing.T) {
	t.Run("at once", func(t *testing.T) {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			went := calls(t, c, 61, to, 0)
			assert.Equal(t, time.Duration(0), went[59])
			assert.Equal(t, time.Minute+1, went[60])
		}, declare(provider.Throttle{RPM: 60, Burst: 60}))
	})
	t.Run("spread", func(t *testing.T) {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			for i, at := range calls(t, c, 61, to, 0) {
				assert.InDelta(t, time.Duration(i)*second, at, 1, i)
			}
		}, declare(provider.Throttle{RPM: 60, Algorithm: provider.LeakyBucket}))
	})
}

// goes tells whether a call could go now. It takes nothing.
func goes(t *testing.T, c *coordinator.Coordinator) (bool, *coordinator.Error) {
	t.Helper()
	now := to
	now.Wait = -1
	ls, err := c.Acquire(t.Context(), now)
	if err != nil {
		return false, refusal(t, err)
	}
	ls.Forget()
	return true, nil
}

// A day ends where the provider lives: at no midnight of ours or of UTC, and on the
// days on which its clocks change after 23 and 25 hours.
func TestCase22_ADayIsTheProviders(t *testing.T) {
	local := time.Local
	time.Local = time.FixedZone("elsewhere", 9*3600)
	defer func() { time.Local = local }()
	th := limits(provider.Limit{Name: "day", Max: 2, Per: provider.Day, Zone: "America/Los_Angeles"})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for _, end := range []string{
			"2000-01-02T08:00:00Z", "2000-07-02T07:00:00Z", "2000-10-29T07:00:00Z", // of usual days
			"2000-10-30T08:00:00Z", // 25 hours
			"2001-01-02T08:00:00Z", "2001-04-01T08:00:00Z",
			"2001-04-02T07:00:00Z", // 23 hours
		} {
			reset, err := time.Parse(time.RFC3339, end)
			require.NoError(t, err)
			time.Sleep(time.Until(reset.Add(-22*time.Hour - 30*time.Minute)))
			for range 2 {
				require.NoError(t, c.Do(t.Context(), to, ok), end)
			}
			for time.Until(reset) > time.Hour { // every hour and half hour in between
				may, e := goes(t, c)
				require.False(t, may, time.Now())
				assert.Equal(t, reset.Add(second), e.RetryAt.UTC(), time.Now())
				time.Sleep(30 * time.Minute)
			}
			time.Sleep(time.Until(reset.Add(second - 1)))
			may, _ := goes(t, c)
			assert.False(t, may, "the provider's clock may be behind ours")
			time.Sleep(time.Nanosecond)
			may, _ = goes(t, c)
			assert.True(t, may, end)
		}
	}, declare(th))
}

// However many calls meet at the instant at which a quota starts afresh: it does so
// once.
func TestCase23_OneResetHoweverManyCome(t *testing.T) {
	th := limits(provider.Limit{Name: "day", Max: 300, Per: provider.Day})
	th.MaxWait = 72 * time.Hour
	day := 24*time.Hour + second
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.Len(t, calls(t, c, 300, to, 0), 300)
		var went atomic.Int64
		var wg sync.WaitGroup
		come := func(n int, call coordinator.Call) {
			for range n {
				wg.Go(func() {
					if c.Do(t.Context(), call, ok) == nil {
						went.Add(1)
					}
				})
			}
		}
		come(500, to) // wait for it
		synctest.Wait()
		now := to
		now.Wait = -1
		wg.Go(func() {
			time.Sleep(day)
			come(500, now) // come exactly then
		})
		time.Sleep(day)
		synctest.Wait()
		assert.EqualValues(t, 300, went.Load(), "the second day's")
		assert.EqualValues(t, 300, state(t, c).Limits[0].Used)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		assert.EqualValues(t, 500, went.Load(), "the rest of those who wait")
		assert.EqualValues(t, 200, state(t, c).Limits[0].Used)
		wg.Wait()
	}, declare(th))
}

// What one window refuses has cost the others nothing.
func TestCase25_ARefusalByTheMinuteLeavesSecondAndDay(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		require.Len(t, calls(t, c, 100, to, 0), 100)
		time.Sleep(5 * second)
		now := to
		now.Wait = -1
		before := state(t, c)
		require.Equal(t, []int64{0, 100, 100}, []int64{before.Limits[0].Used, before.Limits[1].Used, before.Limits[2].Used})
		for range 50 {
			e := refusal(t, c.Do(t.Context(), now, ok))
			require.Equal(t, "rpm", e.Limit.Name)
			require.Equal(t, start.Add(time.Minute+1), e.RetryAt)
		}
		assert.Equal(t, before.Limits, state(t, c).Limits)
		time.Sleep(time.Minute)
		went := calls(t, c, 10, now, 0)
		assert.Len(t, went, 10, "the second holds all of its ten")
		assert.EqualValues(t, 110, state(t, c).Limits[2].Used)
	}, declare(provider.Throttle{RPS: 10, RPM: 100, RPD: 500}))
}

// delayed sends 500 calls at once over a network whose delay varies, and returns
// when they arrived and what the provider thinks of it.
func delayed(t *testing.T, th provider.Throttle) (arrived []time.Duration, report referee.Report) {
	t.Helper()
	p := once(th)
	p.Breaker.Off = true
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		r, err := referee.New(26, referee.Play{Provider: p, Limits: []provider.Limit{{Name: "second", Max: 50, Per: "1s"}}, Closed: true})
		require.NoError(t, err)
		defer r.Close()
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(26, 0))
		delay := func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(rng.Int64N(int64(120*ms) + 1))
		}
		start := time.Now()
		calls := func(ctx context.Context) error {
			time.Sleep(delay())
			leave, _ := r.Enter("p", "", "", nil)
			leave(provider.OK)
			mu.Lock()
			arrived = append(arrived, time.Since(start))
			mu.Unlock()
			return sleep(ctx, delay())
		}
		var wg sync.WaitGroup
		for range 500 {
			wg.Go(func() { assert.NoError(t, c.Do(t.Context(), to, calls)) })
		}
		wg.Wait()
		assert.LessOrEqual(t, time.Since(start), 9*(second+240*ms+1)+240*ms, "50 in each second and round trip")
		report = r.Report("p")
	}, p)
	return arrived, report
}

// What counts is when calls arrive, not when they are sent: a delay that varies
// presses two seconds' calls together.
func TestCase26_NoSecondOfArrivalsHoldsMoreThanDeclared(t *testing.T) {
	arrived, report := delayed(t, provider.Throttle{RPS: 50})
	assert.Len(t, arrived, 500)
	assert.LessOrEqual(t, mostIn(arrived, second), 50)
	assert.Zero(t, report.Violated, report.Violations)

	arrived, report = delayed(t, limits(provider.Limit{Name: "rps", Max: 50, Per: "1s", Counted: provider.CountedSent}))
	assert.Greater(t, mostIn(arrived, second), 50, "what the test would see if they were counted when sent")
	assert.Positive(t, report.Violated)
}
