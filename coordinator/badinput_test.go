package coordinator_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// never is a function that must not be called.
func never(t *testing.T) func(context.Context) error {
	return func(context.Context) error {
		t.Error("the call went")
		return nil
	}
}

// A call that makes no sense is refused as it comes: the error says what is wrong,
// and nothing is taken, not even a place in a line.
func TestBadCalls(t *testing.T) {
	p := declare(provider.Throttle{RPM: 10, MaxInFlight: 2, Limits: []provider.Limit{
		{Name: "tokens", Max: 100, Per: "1m", Unit: provider.Tokens},
		{Name: "search", Max: 3, Per: "1m", Endpoints: []string{"search"}},
	}})
	p.Endpoints = []provider.Endpoint{{Name: "search"}, {Name: "host", Cost: map[string]int64{provider.Tokens: 5}}}
	cost := func(unit string, n int64) coordinator.Call {
		return coordinator.Call{Provider: "p", Cost: map[string]int64{unit: n}}
	}
	for name, test := range map[string]struct {
		call   coordinator.Call
		reason coordinator.Reason
		says   []string
	}{
		"unknown endpoint":     {coordinator.Call{Provider: "p", Endpoint: "serach"}, coordinator.ReasonInvalid, []string{`"serach"`, "search, host"}},
		"cost below 0":         {cost(provider.Tokens, -1), coordinator.ReasonInvalid, []string{"-1 tokens", "below 0"}},
		"least cost":           {cost(provider.Requests, math.MinInt64), coordinator.ReasonInvalid, []string{"below 0"}},
		"unknown unit below 0": {cost("bananas", -7), coordinator.ReasonInvalid, []string{"-7 bananas"}},
		"too heavy":            {cost(provider.Tokens, 101), coordinator.ReasonTooHeavy, []string{"tokens", "100"}},
		"as heavy as can be":   {cost(provider.Requests, math.MaxInt64), coordinator.ReasonTooHeavy, []string{"rpm", "10"}},
		"too heavy there":      {coordinator.Call{Provider: "p", Endpoint: "search", Cost: map[string]int64{provider.Requests: 4}}, coordinator.ReasonTooHeavy, []string{"search"}},
		"priority too low":     {coordinator.Call{Provider: "p", Priority: coordinator.Bulk - 1}, coordinator.ReasonInvalid, []string{"-2", "Bulk, Normal, Interactive"}},
		"priority too high":    {coordinator.Call{Provider: "p", Priority: 2}, coordinator.ReasonInvalid, []string{"2"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				for _, endpoint := range []string{"search", "host"} { // what is used is shown
					ls, err := c.Acquire(t.Context(), coordinator.Call{Provider: "p", Endpoint: endpoint})
					require.NoError(t, err)
					ls.Forget()
				}
				before := state(t, c)
				e := refusal(t, c.Do(t.Context(), test.call, never(t)))
				assert.Equal(t, test.reason, e.Reason)
				assert.Equal(t, coordinator.StageEntry, e.Stage)
				assert.NotErrorIs(t, e, coordinator.ErrThrottled)
				assert.Zero(t, e.RetryAfter)
				for _, s := range test.says {
					assert.ErrorContains(t, e, s)
				}
				_, err := c.Acquire(t.Context(), test.call)
				require.Error(t, err)
				after := state(t, c)
				assert.EqualValues(t, 2, after.Refused[test.reason])
				assert.Equal(t, before.Limits, after.Limits)
				assert.Zero(t, after.Granted+int64(after.InFlight))
			}, p)
		})
	}
}

// A unit that nobody counts costs nothing and is counted, so that a typing error
// shows.
func TestUnknownUnitIsIgnoredAndCounted(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		call := to
		call.Cost = map[string]int64{"tokenz": 1_000_000, "bananas": math.MaxInt64, provider.Requests: 2}
		require.NoError(t, c.Do(t.Context(), call, ok))
		s := state(t, c)
		assert.EqualValues(t, 2, s.Ignored)
		assert.EqualValues(t, 2, s.Limits[0].Used)
		require.NoError(t, c.Do(t.Context(), to, ok))
		assert.EqualValues(t, 2, state(t, c).Ignored)
	}, declare(provider.Throttle{RPM: 10}))
}

func TestNilFunction(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		e := refusal(t, c.Do(t.Context(), to, nil))
		assert.Equal(t, coordinator.ReasonInvalid, e.Reason)
		assert.ErrorContains(t, e, "function is nil")
		_, err := coordinator.Get[int](t.Context(), c, to, nil)
		assert.Equal(t, coordinator.ReasonInvalid, refusal(t, err).Reason)
		assert.Zero(t, state(t, c).Granted)
	}, declare(provider.Throttle{RPM: 10}))
}

// Whoever has given up before he came takes nothing, and passes nobody.
func TestEndedContextOnEntry(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		e := refusal(t, c.Do(canceled, to, never(t)))
		assert.Equal(t, coordinator.ReasonCanceled, e.Reason)
		assert.ErrorIs(t, e, context.Canceled)
		assert.NotErrorIs(t, e, coordinator.ErrThrottled)
		assert.Equal(t, coordinator.StageEntry, e.Stage)

		past, cancel := context.WithDeadline(t.Context(), time.Now().Add(-second))
		defer cancel()
		_, err := c.Acquire(past, to)
		assert.ErrorIs(t, err, coordinator.ErrTooLate)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		s := state(t, c)
		assert.Zero(t, s.Granted)
		assert.Zero(t, s.Limits[0].Used+s.Limits[0].Held)
	}, declare(provider.Throttle{RPM: 10}))
}

func TestUnknownProviderNamesNearOnes(t *testing.T) {
	reg := registryOf(t, &echo{p: provider.Provider{Slug: "shodan"}})
	cfg := coordinator.Config{Registry: reg, Providers: []provider.Provider{{Slug: "censys"}}}
	bubbleWith(t, cfg, func(t *testing.T, c *coordinator.Coordinator) {
		call := coordinator.Call{Provider: "shodna"}
		_, stateErr := c.State("shodna")
		_, executeErr := c.Execute(t.Context(), call, provider.Query{})
		_, acquireErr := c.Acquire(t.Context(), call)
		for name, err := range map[string]error{
			"Do": c.Do(t.Context(), call, never(t)), "Acquire": acquireErr, "Execute": executeErr, "State": stateErr,
			"Update": c.Update("shodna", provider.Throttle{}), "Resume": c.Resume("shodna"),
			"Pause": c.Pause("shodna", time.Now().Add(time.Hour), "test"),
		} {
			assert.ErrorIs(t, err, coordinator.ErrUnknownProvider, name)
			assert.ErrorContains(t, err, "did you mean shodan?", name)
		}
		assert.NotContains(t, c.Do(t.Context(), coordinator.Call{Provider: "zzz"}, ok).Error(), "did you mean")
		assert.Empty(t, c.States(), "no lane is made for it")
	})
}

// The same mistake gets the same answer each time, whatever order a map has.
func TestNearNamesAreInOneOrder(t *testing.T) {
	cfg := coordinator.Config{Registry: registryOf(t), Providers: []provider.Provider{{Slug: "whois-us"}, {Slug: "whois-eu"}, {Slug: "whois-asia"}}}
	bubbleWith(t, cfg, func(t *testing.T, c *coordinator.Coordinator) {
		for range 50 {
			require.ErrorContains(t, c.Do(t.Context(), coordinator.Call{Provider: "whois"}, ok), "whois-asia, whois-eu, whois-us")
		}
	})
}

// What a lease is told late, twice, or in a mess has a defined effect: the first
// report counts, nothing after Release does, and what was sent is not forgotten.
func TestLeaseMisuse(t *testing.T) {
	rate := provider.Feedback{Outcome: provider.RateLimited, RetryAfter: time.Hour}
	for name, test := range map[string]struct {
		use     func(*coordinator.Lease)
		outcome provider.Outcome
		used    int64 // at once
	}{
		"report twice":         {func(l *coordinator.Lease) { l.Report(provider.Feedback{}); l.Report(rate) }, provider.OK, 1},
		"report after release": {func(l *coordinator.Lease) { l.Release(); l.Report(rate) }, provider.Canceled, 0},
		"unknown outcome":      {func(l *coordinator.Lease) { l.Report(provider.Feedback{Outcome: "fine"}) }, provider.Unknown, 1},
		"forget after sent":    {func(l *coordinator.Lease) { l.Sent(); l.Forget() }, provider.Canceled, 0},
		"forget after report":  {func(l *coordinator.Lease) { l.Report(provider.Feedback{}); l.Forget() }, provider.OK, 1},
		"report after forget":  {func(l *coordinator.Lease) { l.Forget(); l.Report(rate); l.Sent() }, "", 0},
		"negative real use":    {func(l *coordinator.Lease) { l.Report(provider.Feedback{Used: map[string]int64{"requests": -5}}) }, provider.OK, 0},
		"enormous real use": {func(l *coordinator.Lease) {
			l.Report(provider.Feedback{Used: map[string]int64{"requests": math.MaxInt64}})
		}, provider.OK, math.MaxInt64},
		"real use of something": {func(l *coordinator.Lease) { l.Report(provider.Feedback{Used: map[string]int64{"bananas": 5}}) }, provider.OK, 1},
		"negative advice":       {func(l *coordinator.Lease) { l.Report(provider.Feedback{RetryAfter: -time.Hour}) }, provider.OK, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				ls, err := c.Acquire(t.Context(), to)
				require.NoError(t, err)
				test.use(ls)
				ls.Release()
				ls.Release()
				s := state(t, c)
				want := map[provider.Outcome]int64{}
				if test.outcome != "" {
					want[test.outcome] = 1
				}
				assert.Equal(t, want, s.Outcomes)
				assert.Equal(t, test.used, s.Limits[0].Used)
				assert.Empty(t, s.Pauses)
				assert.Zero(t, s.InFlight)
				assert.Zero(t, s.Limits[1].Held, "the slot")
				time.Sleep(2 * time.Minute)
				assert.Zero(t, state(t, c).Limits[0].Used+state(t, c).Limits[0].Held, "nothing stays")
			}, declare(provider.Throttle{RPM: 10, MaxInFlight: 1}))
		})
	}
}

// Eight goroutines do everything with one lease at once; whichever comes first, the
// slot is given back once and the units are settled once.
func TestLeaseInEveryHandAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for i := range 200 {
			ls, err := c.Acquire(t.Context(), to)
			require.NoError(t, err)
			var wg sync.WaitGroup
			for _, use := range []func(){
				ls.Release, ls.Release, ls.Forget, ls.Forget, ls.Sent,
				func() { ls.Report(provider.Feedback{}) },
				func() { ls.Report(provider.Feedback{Outcome: provider.Unknown}) },
				func() { _, _ = ls.Key(), ls.Waited() },
			} {
				wg.Go(use)
			}
			wg.Wait()
			s := state(t, c)
			require.Zero(t, s.InFlight, i)
			require.Zero(t, s.Limits[1].Held, i)
			require.LessOrEqual(t, s.Limits[0].Used+s.Limits[0].Held, int64(1), i)
			time.Sleep(2 * time.Minute)
			require.Zero(t, state(t, c).Limits[0].Held, i)
		}
	}, declare(provider.Throttle{RPM: 10, MaxInFlight: 1}))
}

// A million flows that each ask once, at a gate where others wait for ever, leave
// nothing behind: no memory, and a state as if they had not been.
func TestManyFlowsLeaveNothing(t *testing.T) {
	waves := 1000
	if testing.Short() || raceEnabled {
		waves = 100
	}
	p := declare(provider.Throttle{MaxWait: provider.Forever, MaxQueue: 10_000, Limits: []provider.Limit{
		{Name: "all", Max: 50, Per: "1s"}, {Name: "cold", Max: 1, Per: "1h", Endpoints: []string{"cold"}},
	}})
	p.Endpoints = []provider.Endpoint{{Name: "cold"}}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		cold := coordinator.Call{Provider: "p", Endpoint: "cold"}
		require.NoError(t, c.Do(t.Context(), cold, ok))
		ctx, giveUp := context.WithCancel(t.Context())
		go func() { _ = c.Do(ctx, cold, ok) }()
		n := 0
		next := func(wait time.Duration) coordinator.Call {
			n++
			return coordinator.Call{Provider: "p", Flow: fmt.Sprint("user-", n), Wait: wait}
		}
		wave := func() { // 50 go, 50 wait and go, 900 are refused
			var wg sync.WaitGroup
			for range 100 {
				call := next(0)
				wg.Go(func() { assert.NoError(t, c.Do(t.Context(), call, ok)) })
			}
			synctest.Wait()
			for range 900 {
				assert.Error(t, c.Do(t.Context(), next(-1), ok))
			}
			wg.Wait()
			time.Sleep(2 * second)
		}
		wave()
		before, heap := state(t, c), heapInUse()
		for range waves {
			wave()
		}
		after := state(t, c)
		assert.Equal(t, before.Granted+int64(waves*100), after.Granted)
		assert.Equal(t, before.Limits[0], after.Limits[0])
		assert.Equal(t, 1, after.Queue.Length, "who waits for the cold endpoint")
		assert.Zero(t, after.KeyCount)
		assert.Less(t, heapInUse()-heap, int64(256<<10))
		giveUp()
		synctest.Wait()
		runtime.KeepAlive(c)
	}, p)
}

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A call made inside the only call that may go must not wait for it to end: it
// would wait for itself, to its longest wait.
func TestNestedCallNeverWaitsForItsOwnCaller(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		err := c.Do(t.Context(), to, func(ctx context.Context) error { return c.Do(ctx, to, ok) })
		assert.Less(t, time.Since(start), 10*second, "%v", err)
	}, once(provider.Throttle{RPS: 1}))
}
