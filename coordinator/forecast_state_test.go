package coordinator_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// What stands in the way and is no limit: a pause with its trial, an open breaker
// with its probe, a quota that was told.
func TestForecastOfWhatTheProviderSaid(t *testing.T) {
	const trip = 200 * time.Millisecond
	th := limits(provider.Limit{Name: "minute", Max: 10, Per: "1m"})
	p := provider.Provider{Slug: "p", Throttle: th, Retry: provider.Retry{Off: true}, Breaker: provider.Breaker{Failures: 2, Cooldown: 5 * time.Minute}}
	for name, happens := range map[string]func(c *coordinator.Coordinator){
		"pause": func(c *coordinator.Coordinator) {
			_ = c.Do(context.Background(), to, answers(provider.RateLimited, 3*time.Minute))
		},
		"breaker": func(c *coordinator.Coordinator) {
			for range 2 {
				_ = c.Do(context.Background(), to, answers(provider.Failed, 0))
			}
		},
		"spent": func(c *coordinator.Coordinator) {
			_ = c.Do(context.Background(), to, answers(provider.QuotaSpent, 20*time.Minute))
		},
		"told": func(c *coordinator.Coordinator) {
			_ = c.Do(context.Background(), to, func(context.Context) error {
				return provider.Feedback{Outcome: provider.Rejected, Budgets: []provider.Budget{
					{Name: "minute", Remaining: 3, HasRemaining: true, Reset: 90 * time.Second, HasReset: true},
				}}.Err(nil)
			})
		},
		"paused by hand": func(c *coordinator.Coordinator) {
			_ = c.Pause("p", time.Now().Add(time.Hour), "maintenance")
		},
	} {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			happens(c)
			demand := coordinator.Demand{Call: to, Calls: 25}
			f, err := c.ForecastAll(trip, demand)
			require.NoError(t, err)
			exact := c.Rehearse(trip, demand)
			if name == "breaker" { // who comes to an open breaker is refused; who comes then is not
				s, _ := c.State("p")
				time.Sleep(time.Until(s.Breaker.Until) + 1)
			}
			sameTimes(t, f, exact, instants(t, c, trip, demand), name)
		}, p)
	}
}

// answersIn answers so after a time.
func answersIn(d time.Duration, f provider.Feedback) func(context.Context) error {
	return func(context.Context) error {
		time.Sleep(d)
		return f.Err(nil)
	}
}

// lessAndMore tells at first that few are left, then that many are: the few bind.
func lessAndMore(d time.Duration) func(context.Context) error {
	left := int64(4)
	return func(ctx context.Context) error {
		b := provider.Budget{Remaining: left, HasRemaining: true, Reset: 30 * time.Second, HasReset: true}
		left = 90
		return answersIn(d, provider.Feedback{Outcome: provider.Rejected, Budgets: []provider.Budget{b}})(ctx)
	}
}

// A probe that is out keeps all others until its answer.
func TestForecastWhileAProbeIsOut(t *testing.T) {
	const trip = 3 * time.Second
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		_ = c.Do(t.Context(), to, answers(provider.Failed, 0))
		time.Sleep(time.Minute + 1)
		var probe sync.WaitGroup
		probe.Go(func() { assert.NoError(t, c.Do(t.Context(), to, takes(trip))) })
		synctest.Wait()
		time.Sleep(time.Second)
		demand := coordinator.Demand{Call: to, Calls: 5}
		f, err := c.ForecastAll(trip, demand)
		require.NoError(t, err)
		exact := c.Rehearse(trip, demand)
		assert.Equal(t, 2*time.Second, f.Portions[0].From.Sub(f.At))
		sameTimes(t, f, exact, instants(t, c, trip, demand), "probe")
		probe.Wait()
	}, provider.Provider{Slug: "p", Retry: provider.Retry{Off: true}, Breaker: provider.Breaker{Failures: 1, Cooldown: time.Minute}})
}

// What calls that are out, or were, leave behind: the forecast is made while the
// last of them is out.
func TestForecastOfWhatIsUnderWay(t *testing.T) {
	const trip = 400 * time.Millisecond
	refused := provider.Feedback{Outcome: provider.RateLimited, RetryAfter: 5 * time.Second}
	quota := provider.Feedback{Outcome: provider.Rejected, Budgets: []provider.Budget{{Remaining: 7, HasRemaining: true, Reset: 30 * time.Second, HasReset: true}}}
	size := provider.Feedback{Outcome: provider.Rejected, Budgets: []provider.Budget{{Name: "s", Limit: 3, HasLimit: true, Reset: 20 * time.Second, HasReset: true}}}
	for name, x := range map[string]struct {
		th    provider.Throttle
		first func(ctx context.Context) error
		pause time.Duration // before the next, which is out
		out   bool
	}{
		"trial":     {provider.Throttle{}, answersIn(trip, refused), 5 * time.Second, true},
		"warm-up":   {provider.Throttle{Warmup: time.Minute}, answersIn(trip, refused), 5 * time.Second, true},
		"warming":   {provider.Throttle{Warmup: time.Minute}, answersIn(trip, refused), 5 * time.Second, false},
		"adaptive":  {provider.Throttle{Adaptive: true}, answersIn(trip, refused), 7 * time.Second, true},
		"nameless":  {provider.Throttle{}, answersIn(trip, quota), 0, true},
		"least":     {provider.Throttle{}, lessAndMore(trip), 0, true},
		"told size": {provider.Throttle{}, answersIn(trip, size), 0, true},
		"canceled": {provider.Throttle{}, func(ctx context.Context) error {
			time.Sleep(trip)
			return provider.Feedback{Outcome: provider.Canceled}.Err(nil)
		}, 0, false},
		"arrived": {provider.Throttle{ArrivalWithin: 100 * time.Millisecond}, takes(trip), 0, true},
	} {
		x.th.Limits = []provider.Limit{{Name: "s", Max: 4, Per: "2s"}}
		p := provider.Provider{Slug: "p", Throttle: x.th, Retry: provider.Retry{Off: true}}
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			for range 3 {
				_ = c.Do(t.Context(), to, x.first)
				time.Sleep(x.pause)
			}
			var last sync.WaitGroup
			if x.out {
				last.Go(func() {
					_ = c.Do(t.Context(), to, func(ctx context.Context) error {
						ls, _ := coordinator.LeaseFrom(ctx)
						ls.Sent()
						return takes(trip)(ctx)
					})
				})
				synctest.Wait()
			} else {
				_ = c.Do(t.Context(), to, takes(trip))
			}
			demand := coordinator.Demand{Call: to, Calls: 40}
			f, err := c.ForecastAll(trip, demand)
			require.NoError(t, err)
			exact := c.Rehearse(trip, demand)
			sameTimes(t, f, exact, instants(t, c, trip, demand), name)
			last.Wait()
		}, p)
	}
}

// Slots of calls that are out come back.
func TestForecastOfWhatIsOut(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { assert.NoError(t, c.Do(t.Context(), to, takes(time.Second))) })
			synctest.Wait()
			time.Sleep(300 * time.Millisecond)
		}
		demand := coordinator.Demand{Call: to, Calls: 4}
		f, err := c.ForecastAll(time.Second, demand)
		require.NoError(t, err)
		exact := c.Rehearse(time.Second, demand)
		sameTimes(t, f, exact, instants(t, c, time.Second, demand), "in flight")
		all.Wait()
	}, declare(provider.Throttle{MaxInFlight: 2}))
}

func TestForecastTakesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.NoError(t, c.Do(t.Context(), to, takes(time.Second)))
		before, err := c.State("p")
		require.NoError(t, err)
		f, err := c.Forecast(to, 100_000)
		require.NoError(t, err)
		assert.Equal(t, time.Second, f.Trip, "the median so far")
		after, err := c.State("p")
		require.NoError(t, err)
		assert.Equal(t, before, after)
	}, declare(provider.Throttle{RPM: 30, RPD: 5000, MaxInFlight: 3, Adaptive: true, Warmup: time.Minute}))
}

func TestForecastNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // from 2000-01-01 00:00 UTC
		time.Sleep(6 * time.Hour)
		c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{declare(limits(
			provider.Limit{Name: "minute", Max: 4, Per: "1m"}, provider.Limit{Name: "day", Max: 500, Per: provider.Day},
		))}})
		require.NoError(t, err)
		for range 260 {
			call := to
			call.Wait = provider.Forever
			require.NoError(t, c.Do(t.Context(), call, ok))
		}
		f, err := c.Forecast(to, 386)
		require.NoError(t, err)
		require.Len(t, f.Portions, 2)
		assert.Equal(t, 240, f.Now)
		assert.Equal(t, 240, f.Portions[0].Calls)
		assert.Equal(t, 146, f.Portions[1].Calls)
		assert.Equal(t, "day", f.Portions[1].Limit)
		require.NotNil(t, f.Limit)
		assert.EqualValues(t, 260, f.Limit.Used)
		f.At = f.At.UTC()
		assert.Equal(t, "386 calls, 240 of 500 requests left per day: 240 now, 146 after Jan 2 00:00 UTC", f.String())
		assert.Equal(t, f.Portions[1].To, f.Done())
	})
}

func TestForecastRefusesWhatCanNeverGo(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		_, err := c.Forecast(coordinator.Call{Provider: "q"}, 1)
		require.ErrorIs(t, err, coordinator.ErrUnknownProvider)
		_, err = c.Forecast(coordinator.Call{Provider: "p", Endpoint: "nope"}, 1)
		require.ErrorContains(t, err, `no such endpoint "nope"`)
		_, err = c.Forecast(coordinator.Call{Provider: "p", Cost: map[string]int64{"requests": 11}}, 1)
		require.ErrorIs(t, err, coordinator.ErrTooHeavy)
		_, err = c.Forecast(to, -1)
		require.EqualError(t, err, "coordinator: forecast: -1 calls: want 0 to 10000000")
		_, err = c.Forecast(to, 10_000_001)
		require.Error(t, err)
		_, err = c.ForecastAll(0)
		require.ErrorContains(t, err, "no demand")
		_, err = c.ForecastAll(0, coordinator.Demand{Call: to}, coordinator.Demand{Call: coordinator.Call{Provider: "q"}})
		require.ErrorContains(t, err, `calls to "p" and to "q": want one provider`)
		f, err := c.Forecast(to, 0)
		require.NoError(t, err)
		assert.Equal(t, coordinator.Forecast{Provider: "p", At: f.At}, f)
		assert.True(t, f.Done().IsZero())
	}, provider.Provider{Slug: "p", Throttle: provider.Throttle{RPM: 10}, Endpoints: []provider.Endpoint{{Name: "e"}}})
}

// A forecast while others call: under -race, and for a lane with many keys.
func TestForecastWhileOthersCall(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				for range 20 {
					call := coordinator.Call{Provider: "p", Key: fmt.Sprint(i % 7), Flow: fmt.Sprint(i % 3), Wait: provider.Forever}
					assert.NoError(t, c.Do(t.Context(), call, takes(30*time.Millisecond)))
				}
			})
		}
		for range 50 {
			time.Sleep(100 * time.Millisecond)
			f, err := c.Forecast(coordinator.Call{Provider: "p", Key: "1"}, 10)
			require.NoError(t, err)
			assert.Zero(t, f.Never)
			n := 0
			for _, p := range f.Portions {
				n += p.Calls
			}
			assert.Equal(t, 10, n)
		}
		all.Wait()
	}, declare(limits(provider.Limit{Name: "s", Max: 40, Per: "1s"}, provider.Limit{Name: "k", Max: 9, Per: "1s", Scope: provider.ScopeKey})))
}

func BenchmarkForecast(b *testing.B) {
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{declare(provider.Throttle{RPS: 10, RPM: 300, RPD: 100_000, MaxInFlight: 5})}})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.ForecastAll(100*time.Millisecond, coordinator.Demand{Call: to, Calls: 1000}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/call")
}

// Calls that went under other limits than are in force now.
func TestForecastAfterAnUpdate(t *testing.T) {
	second := provider.Limit{Name: "s", Max: 2, Per: "1s"}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { assert.NoError(t, c.Do(t.Context(), to, takes(3*time.Second))) })
		}
		synctest.Wait()
		require.NoError(t, c.Update("p", limits(provider.Limit{Name: "first", Max: 50, Per: "1m"}, provider.Limit{Name: "s", Max: 3, Per: "1s"}, provider.Limit{Name: "cap", Max: 9, Algorithm: provider.InFlight})))
		demand := coordinator.Demand{Call: to, Calls: 20}
		f, err := c.ForecastAll(3*time.Second, demand)
		require.NoError(t, err)
		exact := c.Rehearse(3*time.Second, demand)
		sameTimes(t, f, exact, instants(t, c, 3*time.Second, demand), "update")
		all.Wait()
	}, declare(limits(second)))
}
