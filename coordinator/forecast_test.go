package coordinator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// instants does what was forecast, and returns when each call went.
func instants(t *testing.T, c *coordinator.Coordinator, trip time.Duration, demands ...coordinator.Demand) []time.Time {
	t.Helper()
	var mu sync.Mutex
	var at []time.Time
	var all sync.WaitGroup
	for more, i := true, 0; more; i++ { // one of each kind in turn, in order
		more = false
		for _, d := range demands {
			if i >= d.Calls {
				continue
			}
			more = true
			d.Call.Wait = provider.Forever
			all.Go(func() {
				err := c.Do(t.Context(), d.Call, func(context.Context) error {
					mu.Lock()
					at = append(at, time.Now())
					mu.Unlock()
					time.Sleep(trip)
					return nil
				})
				assert.NoError(t, err)
			})
			synctest.Wait()
		}
	}
	all.Wait()
	slices.SortFunc(at, time.Time.Compare)
	return at
}

// portions are what a forecast of these instants says.
func portions(at []time.Time) (all []coordinator.Portion) {
	for i, x := range at {
		if i == 0 || x.Sub(at[i-1]) >= 10*time.Minute {
			all = append(all, coordinator.Portion{From: x})
		}
		p := &all[len(all)-1]
		p.To, p.Calls = x, p.Calls+1
	}
	return all
}

// sameTimes tells that a forecast says what happened.
func sameTimes(t *testing.T, f coordinator.Forecast, exact, at []time.Time, name string) {
	t.Helper()
	if assert.Len(t, exact, len(at), name) {
		for i := range at {
			assert.Zero(t, at[i].Sub(exact[i]), "%s: call %d", name, i)
		}
	}
	got := slices.Clone(f.Portions)
	for i := range got {
		got[i].Limit, got[i].Why = "", ""
	}
	want := portions(at)
	if !assert.Len(t, got, len(want), name) {
		return
	}
	for i := range want {
		assert.Equal(t, want[i].Calls, got[i].Calls, "%s: portion %d", name, i)
		assert.Zero(t, want[i].From.Sub(got[i].From), "%s: portion %d begins", name, i)
		assert.Zero(t, want[i].To.Sub(got[i].To), "%s: portion %d ends", name, i)
	}
}

func one(l provider.Limit) provider.Throttle {
	l.Name = "only"
	return provider.Throttle{Limits: []provider.Limit{l}}
}

// What is forecast is what happens, to the nanosecond, for every algorithm.
func TestForecastIsWhatHappens(t *testing.T) {
	day := provider.Limit{Name: "day", Max: 30, Per: provider.Day, Zone: "America/New_York"}
	for name, th := range map[string]provider.Throttle{
		"sliding window":  one(provider.Limit{Max: 7, Per: "10s"}),
		"sliding log":     one(provider.Limit{Max: 7, Per: "10s", Algorithm: provider.SlidingLog}),
		"counter":         one(provider.Limit{Max: 7, Per: "10s", Algorithm: provider.SlidingWindowCounter}),
		"fixed window":    one(provider.Limit{Max: 7, Per: "1h", Algorithm: provider.FixedWindow}),
		"token bucket":    one(provider.Limit{Max: 7, Per: "10s", Burst: 3, Algorithm: provider.TokenBucket}),
		"leaky bucket":    one(provider.Limit{Max: 7, Per: "10s", Algorithm: provider.LeakyBucket}),
		"in flight":       one(provider.Limit{Max: 3, Algorithm: provider.InFlight}),
		"day":             {Limits: []provider.Limit{day}},
		"month":           one(provider.Limit{Max: 40, Per: provider.Month, Anchor: "31"}),
		"minute and day":  {Limits: []provider.Limit{day, {Name: "minute", Max: 4, Per: "1m"}}, MaxInFlight: 2},
		"rates":           {RPS: 2, RPM: 30, RPH: 60, Algorithm: provider.TokenBucket, Burst: 5},
		"rolling day":     {Limits: []provider.Limit{{Name: "24h", Max: 25, Per: "24h"}, {Name: "s", Max: 1, Per: "1s", Algorithm: provider.LeakyBucket}}},
		"no limit at all": {},
	} {
		for _, trip := range []time.Duration{0, 130 * time.Millisecond, 7 * time.Second} {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				demand := coordinator.Demand{Call: to, Calls: 100}
				f, err := c.ForecastAll(trip, demand)
				require.NoError(t, err)
				exact := c.Rehearse(trip, demand)
				sameTimes(t, f, exact, instants(t, c, trip, demand), fmt.Sprint(name, " ", trip))
				assert.Zero(t, f.Never)
			}, declare(th))
		}
	}
}

// Quotas of days that a change of clocks makes longer or shorter.
func TestForecastOverDaylightSaving(t *testing.T) {
	for _, x := range []struct{ zone, date string }{
		{"Europe/Berlin", "2026-10-24T20:00:00Z"}, {"America/New_York", "2027-03-13T20:00:00Z"}, {"Australia/Lord_Howe", "2027-04-03T00:00:00Z"},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin, err := time.Parse(time.RFC3339, x.date)
			require.NoError(t, err)
			time.Sleep(time.Until(begin))
			c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{Slug: to.Provider, Throttle: provider.Throttle{
				Limits: []provider.Limit{{Name: "day", Max: 10, Per: provider.Day, Zone: x.zone, Anchor: "02:30"}, {Name: "hour", Max: 4, Per: "1h"}},
			}}}})
			require.NoError(t, err)
			demand := coordinator.Demand{Call: to, Calls: 35}
			f, err := c.ForecastAll(80*time.Millisecond, demand)
			require.NoError(t, err)
			exact := c.Rehearse(80*time.Millisecond, demand)
			sameTimes(t, f, exact, instants(t, c, 80*time.Millisecond, demand), x.zone)
			require.NoError(t, c.Shutdown(t.Context()))
		})
	}
}

// A lane that is not new: units used and held, calls that wait, endpoints, keys.
func TestForecastInTheMiddleOfThings(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for round := range 40 {
		th := provider.Throttle{MaxInFlight: rng.IntN(5), Limits: []provider.Limit{
			{Name: "a", Max: 1 + rng.Int64N(9), Per: "20s", Algorithm: pick(rng)},
			{Name: "b", Max: 5 + rng.Int64N(9), Per: "2m", Scope: provider.ScopeEndpoint},
			{Name: "c", Max: 30 + rng.Int64N(9), Per: "1h", Scope: provider.ScopeKey, Algorithm: pick(rng)},
		}}
		trip := time.Duration(rng.IntN(3000)) * time.Millisecond
		p := provider.Provider{Slug: to.Provider, Throttle: th, Endpoints: []provider.Endpoint{{Name: "x"}, {Name: "y"}}}
		bubbleWith(t, coordinator.Config{Providers: []provider.Provider{p}}, func(t *testing.T, c *coordinator.Coordinator) {
			call := coordinator.Call{Provider: to.Provider, Endpoint: "x", Key: "k", Wait: provider.Forever}
			var before sync.WaitGroup
			for range rng.IntN(20) {
				before.Go(func() { assert.NoError(t, c.Do(t.Context(), call, takes(trip))) })
				synctest.Wait()
				if rng.IntN(2) == 0 {
					time.Sleep(time.Duration(rng.IntN(5000)) * time.Millisecond)
				}
			}
			other := call
			other.Endpoint = "y"
			demands := []coordinator.Demand{{Call: call, Calls: 25}, {Call: other, Calls: rng.IntN(20)}}
			f, err := c.ForecastAll(trip, demands...)
			require.NoError(t, err)
			exact := c.Rehearse(trip, demands...)
			sameTimes(t, f, exact, instants(t, c, trip, demands...), fmt.Sprintf("round %d: %+v, trip %v", round, th, trip))
			before.Wait()
		})
	}
}

func pick(rng *rand.Rand) provider.Algorithm {
	all := []provider.Algorithm{provider.SlidingWindow, provider.FixedWindow, provider.TokenBucket, provider.LeakyBucket, provider.SlidingWindowCounter}
	return all[rng.IntN(len(all))]
}
