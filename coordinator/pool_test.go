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

// cat is a provider of a category.
func cat(slug, category string, t provider.Throttle) provider.Provider {
	t.MaxQueue = 10_000
	return provider.Provider{Slug: slug, Category: category, Throttle: t, Retry: provider.Retry{Off: true}}
}

// meter counts what is in flight, by category and in all.
type meter struct {
	mu        sync.Mutex
	now, most map[string]int
	done      map[string]int
}

func newMeter() *meter {
	return &meter{now: map[string]int{}, most: map[string]int{}, done: map[string]int{}}
}

func (m *meter) run(slug, category string, d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		m.add(category, 1)
		err := sleep(ctx, d)
		m.add(category, -1)
		m.mu.Lock()
		m.done[slug]++
		m.mu.Unlock()
		return err
	}
}

func (m *meter) add(category string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range []string{category, "*"} {
		m.now[name] += n
		m.most[name] = max(m.most[name], m.now[name])
	}
}

// of is how many calls of a provider are done.
func (m *meter) of(slug string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done[slug]
}

func pooledConfig(pools map[string]int, ps ...provider.Provider) coordinator.Config {
	return coordinator.Config{Providers: ps, Pools: pools}
}

func TestPoolsCapACategoryAndAll(t *testing.T) {
	cfg := pooledConfig(map[string]int{"geo": 3, "": 5}, cat("a", "geo", provider.Throttle{}), cat("b", "geo", provider.Throttle{}), cat("c", "dns", provider.Throttle{}), cat("d", "", provider.Throttle{}))
	bubbleWith(t, cfg, func(t *testing.T, c *coordinator.Coordinator) {
		m := newMeter()
		var all sync.WaitGroup
		for i := range 400 {
			slug, category := string(rune('a'+i%4)), []string{"geo", "geo", "dns", ""}[i%4]
			all.Go(func() {
				assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: slug}, m.run(slug, category, time.Second)))
			})
		}
		synctest.Wait()
		s, err := c.State("a")
		require.NoError(t, err)
		assert.Equal(t, 5, s.Pools[1].Used, "all slots are in use")
		assert.Equal(t, "geo", s.Pools[0].Name)
		start := time.Now()
		all.Wait()
		assert.Equal(t, 3, m.most["geo"])
		assert.Equal(t, 5, m.most["*"])
		// 80 s, if geo's calls were never fewer than half of those in flight; what is left
		// of them at the end goes three at a time.
		assert.LessOrEqual(t, time.Since(start), 90*time.Second)
		s, _ = c.State("a")
		assert.Zero(t, s.Pools[0].Used+s.Pools[1].Used+s.Pools[1].Waiting)
	})
}

// Lanes take turns, however many wait in one of them.
func TestPoolIsFairBetweenLanes(t *testing.T) {
	cfg := pooledConfig(map[string]int{"": 2}, cat("a", "", provider.Throttle{}), cat("b", "", provider.Throttle{}), cat("c", "", provider.Throttle{}))
	bubbleWith(t, cfg, func(t *testing.T, c *coordinator.Coordinator) {
		m := newMeter()
		var all sync.WaitGroup
		start := func(slug string, n int) {
			for range n {
				all.Go(func() {
					assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: slug}, m.run(slug, "", time.Second)))
				})
			}
			synctest.Wait()
		}
		start("a", 300)
		start("b", 40)
		start("c", 40)
		time.Sleep(30*time.Second + time.Millisecond)
		assert.InDelta(t, 20, m.of("a"), 2)
		assert.InDelta(t, 20, m.of("b"), 2)
		assert.InDelta(t, 20, m.of("c"), 2)
		all.Wait()
	})
}

// A lane that waits for its own limit holds no slot, and none that waits for a pool
// keeps another pool's lanes from going.
func TestWaitingHoldsNoSlot(t *testing.T) {
	slow := limits(provider.Limit{Name: "m", Max: 1, Per: "1m"})
	cfg := pooledConfig(map[string]int{"geo": 1, "dns": 1, "": 2}, cat("slow", "geo", slow), cat("fast", "geo", provider.Throttle{}), cat("other", "dns", provider.Throttle{}))
	bubbleWith(t, cfg, func(t *testing.T, c *coordinator.Coordinator) {
		m := newMeter()
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "slow"}, m.run("slow", "geo", time.Second)))
			})
		}
		synctest.Wait()
		for range 100 {
			all.Go(func() {
				assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "fast"}, m.run("fast", "geo", time.Second)))
			})
			all.Go(func() {
				assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "other"}, m.run("other", "dns", time.Second)))
			})
		}
		time.Sleep(50*time.Second + time.Millisecond)
		assert.Equal(t, 49, m.of("fast"), "all the time but for slow's one call")
		assert.Equal(t, 50, m.of("other"))
		all.Wait()
	})
}

// A call nested in another one goes under its slot: else the two would wait for each
// other.
func TestNestedCallsOfOtherProvidersShareTheSlot(t *testing.T) {
	cfg := pooledConfig(map[string]int{"": 1}, cat("a", "", provider.Throttle{}), cat("b", "", provider.Throttle{}))
	bubbleWith(t, cfg, func(t *testing.T, c *coordinator.Coordinator) {
		var late context.Context
		require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "a"}, func(ctx context.Context) error {
			late = ctx
			return c.Do(ctx, coordinator.Call{Provider: "b"}, func(ctx context.Context) error {
				return c.Do(ctx, coordinator.Call{Provider: "a"}, ok)
			})
		}))
		var all sync.WaitGroup
		all.Go(func() {
			assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "b"}, takes(time.Second)))
		})
		synctest.Wait()
		call := coordinator.Call{Provider: "a", Wait: -1}
		assert.ErrorIs(t, c.Do(late, call, never(t)), coordinator.ErrRateLimited, "the outer call is over")
		e := refusal(t, c.Do(t.Context(), call, never(t)))
		assert.ErrorContains(t, e, "all providers together have 1 calls in flight")
		all.Wait()
	})
}

func TestForecastKnowsPools(t *testing.T) {
	cfg := pooledConfig(map[string]int{"": 3}, cat("p", "", provider.Throttle{}), cat("q", "", provider.Throttle{}))
	bubbleWith(t, cfg, func(t *testing.T, c *coordinator.Coordinator) {
		var all sync.WaitGroup
		all.Go(func() { assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "q"}, takes(time.Hour))) })
		synctest.Wait()
		demand := coordinator.Demand{Call: to, Calls: 30}
		f, err := c.ForecastAll(time.Second, demand)
		require.NoError(t, err)
		exact := c.Rehearse(time.Second, demand)
		sameTimes(t, f, exact, instants(t, c, time.Second, demand), "two slots are left")
		all.Wait()
	})
}

func TestPoolsOfNobody(t *testing.T) {
	_, err := coordinator.New(pooledConfig(map[string]int{"geo": 0, "goe": 3, "": -1}, cat("a", "geo", provider.Throttle{})))
	require.Error(t, err)
	assert.ErrorContains(t, err, `pool "geo": 0 is too small: it must be at least 1`)
	assert.ErrorContains(t, err, `pool "": -1 is too small`)
	assert.ErrorContains(t, err, `pool "goe": no provider has this category: it must be one of ["geo"], or "" for all`)
}

// A storm over many lanes in two pools and all: nobody exceeds a cap, no call that
// could go waits, no lock is waited for forever.
func TestStormsOverPools(t *testing.T) {
	for seed := range uint64(size(150, 30)) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			sizes := map[string]int{"x": 1 + rng.IntN(5), "y": 1 + rng.IntN(5), "": 1 + rng.IntN(8)}
			var ps []provider.Provider
			for i := range 6 {
				th := provider.Throttle{MaxInFlight: rng.IntN(4)}
				if rng.IntN(2) == 0 {
					th.Limits = []provider.Limit{{Name: "l", Max: 1 + rng.Int64N(5), Per: provider.Period(fmt.Sprint(100+rng.IntN(900), "ms")), Scope: []string{"provider", "key"}[rng.IntN(2)]}}
				}
				p := cat(fmt.Sprint("p", i), []string{"x", "y", ""}[i%3], th)
				p.Throttle.MaxWait = provider.Forever
				if rng.IntN(2) == 0 {
					p.Auth = provider.Auth{Kind: "header", Name: "K", Env: []string{"A", "B"}}
				}
				ps = append(ps, p)
			}
			c, err := coordinator.New(pooledConfig(sizes, ps...))
			require.NoError(t, err)
			m := newMeter()
			var all sync.WaitGroup
			quiet := func() {
				synctest.Wait()
				for _, p := range ps {
					require.Zero(t, c.Overlooked(p.Slug), "a call that could go waits: seed %d", seed)
				}
			}
			for range 300 {
				p := ps[rng.IntN(len(ps))]
				ctx, cancel := context.WithCancel(t.Context())
				if rng.IntN(3) == 0 {
					time.AfterFunc(time.Duration(rng.IntN(3000))*time.Millisecond, cancel)
				}
				call := coordinator.Call{Provider: p.Slug, Flow: fmt.Sprint(rng.IntN(3))}
				fn := m.run(p.Slug, p.Category, time.Duration(rng.IntN(300))*time.Millisecond)
				all.Go(func() {
					defer cancel()
					_ = c.Do(ctx, call, fn)
				})
				if rng.IntN(3) == 0 {
					time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
				}
				if rng.IntN(20) == 0 {
					quiet()
				}
				if rng.IntN(100) == 0 {
					require.NoError(t, c.Update(p.Slug, p.Throttle))
				}
			}
			over := make(chan struct{})
			go func() { all.Wait(); close(over) }()
			for waiting := true; waiting; {
				select {
				case <-over:
					waiting = false
				case <-time.After(100 * time.Millisecond):
					quiet()
				}
			}
			assert.LessOrEqual(t, m.most["x"], sizes["x"])
			assert.LessOrEqual(t, m.most["y"], sizes["y"])
			assert.LessOrEqual(t, m.most["*"], sizes[""])
			require.NoError(t, c.Shutdown(t.Context()))
			for _, s := range c.States() {
				for _, p := range s.Pools {
					assert.Zero(t, p.Used+p.Waiting, s.Provider)
				}
			}
		})
	}
}

// Two calls, each of which makes one to the other's category, do not wait for each
// other.
func TestCallsAcrossCategoriesDoNotWaitForEachOther(t *testing.T) {
	cfg := pooledConfig(map[string]int{"x": 1, "y": 1}, cat("a", "x", provider.Throttle{}), cat("b", "y", provider.Throttle{}))
	bubbleWith(t, cfg, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		var all sync.WaitGroup
		for from, into := range map[string]string{"a": "b", "b": "a"} {
			all.Go(func() {
				assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: from}, func(ctx context.Context) error {
					time.Sleep(time.Second)
					return c.Do(ctx, coordinator.Call{Provider: into}, takes(time.Second))
				}))
			})
		}
		all.Wait()
		assert.Equal(t, 2*time.Second, time.Since(start))
	})
}
