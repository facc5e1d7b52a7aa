package coordinator_test

import (
	"context"
	"fmt"
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

// room is how many calls could go at once, up to 50. It takes nothing.
func room(t *testing.T, c *coordinator.Coordinator, call coordinator.Call) (n int) {
	t.Helper()
	call.Wait = -1
	var ls []*coordinator.Lease
	for range 50 {
		l, err := c.Acquire(t.Context(), call)
		if err != nil {
			break
		}
		ls = append(ls, l)
	}
	for _, l := range ls {
		l.Forget()
	}
	return len(ls)
}

// ten is ten a minute, by any algorithm.
func ten(change ...func(*provider.Limit)) provider.Throttle {
	l := provider.Limit{Name: "x", Max: 10, Per: "1m"}
	for _, f := range change {
		f(&l)
	}
	return limits(l)
}

func by(a provider.Algorithm) func(*provider.Limit) {
	return func(l *provider.Limit) { l.Algorithm = a }
}
func most(n int64) func(*provider.Limit)          { return func(l *provider.Limit) { l.Max = n } }
func per(p provider.Period) func(*provider.Limit) { return func(l *provider.Limit) { l.Per = p } }
func named(name string) func(*provider.Limit)     { return func(l *provider.Limit) { l.Name = name } }
func scoped(s string) func(*provider.Limit)       { return func(l *provider.Limit) { l.Scope = s } }
func sent(l *provider.Limit)                      { l.Counted = provider.CountedSent }

// Six of ten calls went, the last two are not answered yet, when the declaration
// changes.
func TestUpdateKeepsWhatALimitKnows(t *testing.T) {
	type want struct {
		now   int // could go at once
		used  int64
		held  int64
		later int // could go when the two have been answered and a minute is over
	}
	for name, test := range map[string]struct {
		from, to provider.Throttle
		want     want
	}{
		"the same":         {ten(), ten(), want{4, 4, 2, 10}},
		"raised":           {ten(), ten(most(13)), want{7, 4, 2, 13}},
		"lowered":          {ten(), ten(most(7)), want{1, 4, 2, 7}},
		"lowered below":    {ten(), ten(most(5)), want{0, 4, 2, 5}},
		"a longer period":  {ten(), ten(per("1h")), want{4, 4, 2, 4}},
		"to token bucket":  {ten(), ten(by(provider.TokenBucket)), want{4, 4, 2, 10}},
		"to fixed window":  {ten(), ten(by(provider.FixedWindow)), want{4, 4, 2, 10}},
		"to counter":       {ten(), ten(by(provider.SlidingWindowCounter)), want{4, 4, 2, 4}},
		"to leaky":         {ten(), ten(by(provider.LeakyBucket)), want{1, 4, 2, 1}},
		"from bucket":      {ten(by(provider.TokenBucket)), ten(), want{4, 4, 2, 10}},
		"from fixed":       {ten(by(provider.FixedWindow)), ten(), want{4, 4, 2, 10}},
		"to counted: sent": {ten(), ten(sent), want{4, 6, 0, 10}},
		"another name":     {ten(), ten(named("y")), want{10, 0, 0, 10}},
		"by key":           {ten(), ten(scoped(provider.ScopeKey)), want{10, 0, 0, 10}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				require.Len(t, calls(t, c, 4, to, 0), 4)
				var out []*coordinator.Lease
				for range 2 {
					ls, err := c.Acquire(t.Context(), to)
					require.NoError(t, err)
					out = append(out, ls)
				}
				require.NoError(t, c.Update("p", test.to))
				assert.Equal(t, test.want.now, room(t, c, to))
				if s := state(t, c); len(s.Limits) > 0 {
					assert.Equal(t, test.want.used, s.Limits[0].Used)
					assert.Equal(t, test.want.held, s.Limits[0].Held)
				}
				for _, ls := range out {
					ls.Report(provider.Feedback{})
					ls.Release()
				}
				time.Sleep(time.Minute + second)
				assert.Equal(t, test.want.later, room(t, c, to))
				time.Sleep(2 * time.Hour)
				s := state(t, c)
				assert.Zero(t, s.InFlight)
				for _, l := range s.Limits {
					assert.Zero(t, l.Used+l.Held)
				}
			}, declare(test.from))
		})
	}
}

// A limit that is lifted binds nobody; one that is new counts from now on; calls of
// the one that was there end as they would have.
func TestUpdateLiftsAndAddsLimits(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.Len(t, calls(t, c, 9, to, 0), 9)
		ls, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		require.Zero(t, room(t, c, to))
		require.NoError(t, c.Update("p", provider.Throttle{}))
		assert.Equal(t, 50, room(t, c, to))
		require.NoError(t, c.Update("p", ten(named("new"), most(3))))
		assert.Equal(t, 3, room(t, c, to))
		ls.Report(provider.Feedback{})
		ls.Release()
		assert.Equal(t, 3, room(t, c, to), "the old limit's")
		require.Len(t, calls(t, c, 3, to, 0), 3)
		assert.Zero(t, room(t, c, to))
	}, declare(ten()))
}

// Who waits keeps his place, and goes at the first instant that the new numbers give.
func TestUpdateLetsWhoWaitsGoAtTheNewFirstInstant(t *testing.T) {
	for name, test := range map[string]struct {
		to   provider.Throttle
		want []time.Duration // when the five who wait go, from the start
	}{
		"the same":    {provider.Throttle{RPS: 1}, []time.Duration{second + 1, 2*second + 2, 3*second + 3, 4*second + 4, 5*second + 5}},
		"twice":       {provider.Throttle{RPS: 2}, []time.Duration{500 * ms, second + 1, 1500*ms + 1, 2*second + 2, 2500*ms + 2}},
		"half":        {provider.Throttle{RPS: 0.5}, []time.Duration{2*second + 1, 4*second + 2, 6*second + 3, 8*second + 4, 10*second + 5}},
		"none":        {provider.Throttle{}, []time.Duration{500 * ms, 500 * ms, 500 * ms, 500 * ms, 500 * ms}},
		"fewer place": {provider.Throttle{RPS: 2, MaxQueue: 1, Excess: provider.Reject}, []time.Duration{500 * ms, second + 1, 1500*ms + 1, 2*second + 2, 2500*ms + 2}},
		"a cap":       {provider.Throttle{MaxInFlight: 1}, []time.Duration{500 * ms, 500 * ms, 500 * ms, 500 * ms, 500 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				start := time.Now()
				require.NoError(t, c.Do(t.Context(), to, ok))
				var mu sync.Mutex
				var went []time.Duration
				var order []int
				var wg sync.WaitGroup
				for i := range 5 {
					call := coordinator.Call{Provider: "p", Key: fmt.Sprint(i % 2)}
					wg.Go(func() {
						assert.NoError(t, c.Do(t.Context(), call, func(context.Context) error {
							mu.Lock()
							defer mu.Unlock()
							went, order = append(went, time.Since(start)), append(order, i)
							return nil
						}))
					})
					synctest.Wait()
				}
				time.Sleep(500 * ms)
				require.NoError(t, c.Update("p", test.to))
				wg.Wait()
				assert.Equal(t, test.want, went)
				if test.to.RPS != 0 || test.to.MaxInFlight != 0 { // else all go at once
					assert.Equal(t, []int{0, 1, 2, 3, 4}, order)
				}
			}, declare(provider.Throttle{RPS: 1}))
		})
	}
}

// A cap that is lowered counts what is out already, and one that is raised lets who
// waits go now.
func TestUpdateOfACapCountsWhatIsOut(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var out []*coordinator.Lease
		for range 3 {
			ls, err := c.Acquire(t.Context(), to)
			require.NoError(t, err)
			out = append(out, ls)
		}
		var went atomic.Int64
		for range 3 {
			go func() {
				assert.NoError(t, c.Do(t.Context(), to, func(ctx context.Context) error { went.Add(1); return sleep(ctx, time.Minute) }))
			}()
		}
		synctest.Wait()
		require.NoError(t, c.Update("p", provider.Throttle{MaxInFlight: 1}))
		for i, ls := range out {
			assert.Zero(t, went.Load(), "%d are out", 3-i)
			ls.Release()
			synctest.Wait()
		}
		assert.EqualValues(t, 1, went.Load())
		require.NoError(t, c.Update("p", provider.Throttle{MaxInFlight: 2}))
		synctest.Wait()
		assert.EqualValues(t, 2, went.Load())
		require.NoError(t, c.Update("p", provider.Throttle{}))
		synctest.Wait()
		assert.EqualValues(t, 3, went.Load())
		time.Sleep(time.Minute)
	}, declare(provider.Throttle{MaxInFlight: 3}))
}

// Who can never go under the new numbers is told so now, and holds up nobody.
func TestUpdateRefusesWhoHasBecomeTooHeavy(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.Len(t, calls(t, c, 10, to, 0), 10)
		heavy, light := to, to
		heavy.Cost = map[string]int64{provider.Requests: 6}
		errs := make(chan error, 2)
		go func() { errs <- c.Do(t.Context(), heavy, never(t)) }()
		synctest.Wait()
		start := time.Now()
		go func() { errs <- c.Do(t.Context(), light, ok) }()
		synctest.Wait()
		require.NoError(t, c.Update("p", ten(most(5))))
		e := refusal(t, <-errs)
		require.Equal(t, coordinator.ReasonTooHeavy, e.Reason)
		assert.Equal(t, coordinator.StageQueue, e.Stage)
		assert.EqualValues(t, 5, e.Limit.Max)
		assert.Zero(t, time.Since(start))
		require.NoError(t, <-errs)
		assert.Equal(t, time.Minute+1, time.Since(start))
		assert.EqualValues(t, 11, state(t, c).Granted)
	}, declare(ten()))
}

// An estimate that is corrected after an update is corrected in the limit as it is
// now.
func TestUpdateBetweenEstimateAndAnswer(t *testing.T) {
	tokens := func(l *provider.Limit) { l.Unit = provider.Tokens }
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		ls, err := c.Acquire(t.Context(), units(provider.Tokens, 8))
		require.NoError(t, err)
		require.NoError(t, c.Update("p", ten(tokens, most(100))))
		ls.Report(provider.Feedback{Used: map[string]int64{provider.Tokens: 30}})
		assert.EqualValues(t, 30, state(t, c).Limits[0].Used)
		require.NoError(t, c.Update("p", ten(tokens, most(50))))
		ls.Report(provider.Feedback{Used: map[string]int64{provider.Tokens: 20}})
		ls.Release()
		assert.EqualValues(t, 20, state(t, c).Limits[0].Used)
		assert.Zero(t, state(t, c).Limits[0].Held)
		require.NoError(t, c.Do(t.Context(), units(provider.Tokens, 30), ok))
		require.Error(t, c.Do(t.Context(), units(provider.Tokens, 1), ok))
	}, declare(ten(tokens)))
}

// An endpoint that an Update takes out of a limit's endpoints is bound by it no more, nor
// is its count shown; the others keep theirs, and so does a key for all of them.
func TestUpdateTakesAnEndpointOut(t *testing.T) {
	of := func(endpoints ...string) provider.Throttle {
		return limits(provider.Limit{Name: "each", Max: 2, Per: "1h", Scope: provider.ScopeEndpoint, Endpoints: endpoints},
			provider.Limit{Name: "key", Max: 9, Per: "1h", Scope: provider.ScopeKey, Endpoints: endpoints})
	}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		ask := func(endpoint string) error {
			call := to
			call.Endpoint, call.Key, call.Wait = endpoint, "k", -1
			return c.Do(t.Context(), call, takes(0))
		}
		for _, endpoint := range []string{"a", "a", "b", "b"} {
			require.NoError(t, ask(endpoint))
		}
		require.Error(t, ask("a"))
		require.Error(t, ask("b"))
		require.Len(t, state(t, c).Endpoints["b"], 1)
		require.NoError(t, c.Update("p", of("a")))
		assert.Empty(t, state(t, c).Endpoints["b"])
		require.Error(t, ask("a"))
		require.NoError(t, ask("b"))
		s := state(t, c)
		assert.EqualValues(t, 2, s.Endpoints["a"][0].Used)
		assert.EqualValues(t, 4, s.Keys[0].Limits[0].Used, "the key's count goes on without b")
		require.NoError(t, c.Update("p", of("a", "b")))
		require.NoError(t, ask("b"), "it begins anew")
	}, provider.Provider{Slug: "p", Endpoints: []provider.Endpoint{{Name: "a"}, {Name: "b"}}, Throttle: of("a", "b")})
}
