package coordinator_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// counted is a ledger that counts how often it is peeked at.
type counted struct {
	ledger.Ledger
	peeks, counters atomic.Int64
	down            atomic.Bool // it says so, whatever it tells those who watch
	meanwhile       func()      // after a Peek has its answer, before it returns
}

func (l *counted) Peek(ctx context.Context, counters []*ledger.Counter) ([]ledger.Usage, error) {
	l.peeks.Add(1)
	l.counters.Add(int64(len(counters)))
	all, err := l.Ledger.Peek(ctx, counters)
	if l.meanwhile != nil {
		l.meanwhile()
	}
	return all, err
}

func (l *counted) Status() ledger.Status {
	s := l.Ledger.Status()
	s.Up = s.Up && !l.down.Load()
	return s
}

// restart is a further process, which starts now; x ends it.
func (x *team) restart(s ledger.Settings, ps ...provider.Provider) (*coordinator.Coordinator, *counted) {
	x.t.Helper()
	led, err := ledger.Open(x.link, s)
	require.NoError(x.t, err)
	l := &counted{Ledger: led}
	c, err := coordinator.New(coordinator.Config{Providers: ps, Ledger: l})
	require.NoError(x.t, err)
	x.cs, x.ls = append(x.cs, c), append(x.ls, led)
	return c, l
}

// spend has the first process make n calls, and be killed before it says more: it never
// shuts down.
func (x *team) spend(n int) {
	for range n {
		require.NoError(x.t, x.cs[0].Do(x.t.Context(), to, ok))
	}
	synctest.Wait()
}

// A run that was killed at four of ten: the next one shows six before its first call,
// plans with six, and knows when the others come back; and so it is.
func TestRestartShowsWhatWasSpent(t *testing.T) {
	const gap = 10 * time.Minute // from the calls to the restart
	for name, x := range map[string]struct {
		d    provider.Limit
		left int64
		back time.Duration // after the restart
		now  int           // of 20 calls that can go now; 0: they are too evenly spaced to tell
		next time.Duration // the first of the others, after the restart
	}{
		"sliding": {provider.Limit{Max: 10, Per: "1h"}, 6, 50 * time.Minute, 6, 50 * time.Minute},
		"fixed":   {provider.Limit{Max: 10, Per: "hour", Algorithm: provider.FixedWindow}, 6, 50*time.Minute + second, 6, 50*time.Minute + second},
		"day":     {provider.Limit{Max: 10, Per: provider.Day}, 6, 23*time.Hour + 50*time.Minute + second, 6, 23*time.Hour + 50*time.Minute + second},
		"bucket":  {provider.Limit{Max: 10, Burst: 10, Per: "24h", Algorithm: provider.TokenBucket}, 6, 134 * time.Minute, 6, 134 * time.Minute},
		"sent":    {provider.Limit{Max: 10, Per: "1h", Counted: provider.CountedSent}, 6, 50 * time.Minute, 6, 50 * time.Minute},
		"leaky":   {provider.Limit{Max: 10, Per: "1h", Algorithm: provider.LeakyBucket}, 6, 32 * time.Minute, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := declare(limits(sharedLimit(x.d)))
			teamed(t, 1, ledger.Settings{}, p, func(team *team) {
				t := team.t
				team.spend(4)
				time.Sleep(gap)
				c, led := team.restart(ledger.Settings{}, p)
				start := time.Now()
				s := state(t, c).Limits[0]
				assert.Equal(t, x.left, s.Left)
				assert.EqualValues(t, 10, s.Room)
				assert.Zero(t, s.Used, "this process's")
				assert.Zero(t, s.Held)
				assert.InDelta(t, x.back, s.ResetAt.Sub(start), float64(second))
				f, err := c.Forecast(to, 20)
				require.NoError(t, err)
				assert.EqualValues(t, 1, led.peeks.Load(), "both know by one question")
				if x.now == 0 {
					return
				}
				assert.Equal(t, x.now, f.Now)
				assert.InDelta(t, x.next, f.Portions[1].From.Sub(start), float64(second))
				require.NotNil(t, f.Limit)
				assert.Equal(t, x.left, f.Limit.Left)

				call := to
				call.Wait = -1
				for range x.left {
					require.NoError(t, c.Do(t.Context(), call, ok))
				}
				assert.InDelta(t, x.next, refusal(t, c.Do(t.Context(), call, ok)).RetryAfter, float64(second))
				assert.Zero(t, state(t, c).Limits[0].Left)
				time.Sleep(x.next - time.Since(start) + second)
				require.NoError(t, c.Do(t.Context(), call, ok))
			})
		})
	}
}

// What is held there is not left: of a cap, and of a call that was out as its process
// died, until its lease is over.
func TestRestartShowsWhatIsOut(t *testing.T) {
	quota := sharedLimit(provider.Limit{Max: 10, Per: "1h"})
	slots := provider.Limit{Name: "slots", Max: 4, Algorithm: provider.InFlight, Shared: true}
	sent := provider.Limit{Name: "sent", Max: 10, Per: "1h", Counted: provider.CountedSent, Shared: true}
	p := declare(limits(quota, slots, sent))
	teamed(t, 1, ledger.Settings{}, p, func(x *team) {
		t := x.t
		ls, err := x.cs[0].Acquire(t.Context(), to)
		require.NoError(t, err)
		c, _ := x.restart(ledger.Settings{}, p)
		s := state(t, c)
		assert.EqualValues(t, 9, s.Limits[0].Left)
		assert.EqualValues(t, 3, s.Limits[1].Left)
		assert.True(t, s.Limits[1].ResetAt.IsZero())
		assert.EqualValues(t, 9, s.Limits[2].Left)
		f, err := c.Forecast(to, 20)
		require.NoError(t, err)
		assert.Equal(t, 9, f.Now)
		assert.Zero(t, f.Never)
		ls.Report(provider.Feedback{Outcome: provider.OK})
		ls.Release()
		synctest.Wait()
		time.Sleep(500 * ms)
		assert.EqualValues(t, 4, state(t, c).Limits[1].Left)
	})
}

// All are gone: nothing goes before the first comes back, and no later.
func TestRestartKnowsThatNothingIsLeft(t *testing.T) {
	p := declare(limits(sharedLimit(provider.Limit{Max: 10, Per: "1h"})))
	teamed(t, 1, ledger.Settings{}, p, func(x *team) {
		t := x.t
		x.spend(10)
		time.Sleep(50 * time.Minute)
		c, _ := x.restart(ledger.Settings{}, p)
		f, err := c.Forecast(to, 15)
		require.NoError(t, err)
		require.Len(t, f.Portions, 2)
		assert.Zero(t, f.Now)
		assert.Equal(t, 10, f.Portions[0].Calls)
		assert.InDelta(t, 10*time.Minute, f.Portions[0].From.Sub(f.At), float64(second))
		assert.Equal(t, "quota", f.Portions[0].Limit)
	})
}

// What answers have said there of a limit: its size, and that it is spent. Resume
// forgets it at once.
func TestRestartKnowsWhatWasLearned(t *testing.T) {
	d := sharedLimit(provider.Limit{Max: 10, Per: "1h"})
	p := declare(limits(d))
	teamed(t, 1, ledger.Settings{}, p, func(x *team) {
		t := x.t
		counter := ledger.NewCounter("p", d, "", "")
		x.spend(2)
		x.ls[0].Tell(ledger.News{Learn: &ledger.Learnt{Counter: counter, Max: 5, Until: time.Now().Add(30 * time.Minute)}})
		synctest.Wait()
		c, _ := x.restart(ledger.Settings{}, p)
		assert.EqualValues(t, 3, state(t, c).Limits[0].Left)
		f, err := c.Forecast(to, 20)
		require.NoError(t, err)
		assert.Equal(t, 3, f.Now)

		x.ls[0].Tell(ledger.News{Learn: &ledger.Learnt{Counter: counter, NotBefore: time.Now().Add(20 * time.Minute)}})
		time.Sleep(second)
		s := state(t, c).Limits[0]
		assert.Zero(t, s.Left)
		assert.InDelta(t, time.Hour, time.Until(s.ResetAt), float64(time.Hour))
		f, err = c.Forecast(to, 3)
		require.NoError(t, err)
		assert.Zero(t, f.Now)
		assert.InDelta(t, 20*time.Minute, f.Portions[0].From.Sub(f.At), float64(2*second))

		require.NoError(t, c.Resume("p"))
		assert.EqualValues(t, 8, state(t, c).Limits[0].Left)
	})
}

// Limits of keys and endpoints: those that exist, those that a forecast needs, and the
// keys of a pool.
func TestRestartShowsKeysAndEndpoints(t *testing.T) {
	key := provider.Limit{Name: "key", Max: 10, Per: "1h", Scope: provider.ScopeKey, Shared: true}
	at := provider.Limit{Name: "at", Max: 5, Per: "1h", Scope: provider.ScopeEndpoint, Shared: true}
	p := provider.Provider{Slug: "p", Throttle: limits(key, at), Endpoints: []provider.Endpoint{{Name: "e"}, {Name: "f"}}}
	call := func(endpoint, key string) coordinator.Call {
		return coordinator.Call{Provider: "p", Endpoint: endpoint, Key: key}
	}
	first := func(x *team, calls ...coordinator.Call) {
		for _, call := range calls {
			require.NoError(x.t, x.cs[0].Do(x.t.Context(), call, ok))
		}
		synctest.Wait()
	}
	teamed(t, 1, ledger.Settings{}, p, func(x *team) {
		t := x.t
		first(x, call("e", "a"), call("e", "a"), call("f", "b"), call("f", "b"), call("f", "b"), call("e", ""))
		c, led := x.restart(ledger.Settings{}, p)
		assert.EqualValues(t, 9, state(t, c).Limits[0].Left, "of calls that name no key")
		f, err := c.ForecastAll(0, coordinator.Demand{Call: call("e", "a"), Calls: 20}, coordinator.Demand{Call: call("f", "b"), Calls: 20},
			coordinator.Demand{Call: call("e", "b"), Calls: 20})
		require.NoError(t, err)
		assert.Equal(t, 2+2, f.Now, "three of five are gone at each endpoint")
		s := state(t, c)
		left := map[string]int64{}
		for _, k := range s.Keys {
			left[k.Key] = k.Limits[0].Left
		}
		assert.Equal(t, map[string]int64{"a": 8, "b": 7}, left)
		assert.EqualValues(t, 2, s.Endpoints["e"][0].Left)
		assert.EqualValues(t, 2, led.peeks.Load())
		assert.EqualValues(t, 2+4, led.counters.Load(), "those of neither, of both; none twice")
	})
	p.Throttle = limits(key)
	p.Auth = provider.Auth{Kind: "header", Name: "Key", Env: []string{"a", "b"}}
	teamed(t, 1, ledger.Settings{}, p, func(x *team) {
		t := x.t
		first(x, call("e", "a"), call("e", "a"), call("f", "b"))
		c, _ := x.restart(ledger.Settings{}, p)
		s := state(t, c)
		require.Len(t, s.Keys, 2)
		assert.EqualValues(t, 8, s.Keys[0].Limits[0].Left, "a")
		assert.EqualValues(t, 9, s.Keys[1].Limits[0].Left, "b")
		c, _ = x.restart(ledger.Settings{}, p)
		f, err := c.Forecast(call("", ""), 40)
		require.NoError(t, err)
		assert.Equal(t, 8+9, f.Now, "with either key")
	})
}

// A store that hangs costs a look its budget, once; then nothing, until it is up again.
func TestPeekAtAStoreThatHangs(t *testing.T) {
	p := declare(limits(sharedLimit(provider.Limit{Max: 10, Per: "1h"})))
	teamed(t, 1, ledger.Settings{}, p, func(x *team) {
		t := x.t
		x.spend(4)
		c, led := x.restart(ledger.Settings{}, p)
		x.link.slow(func() time.Duration { return time.Minute })
		look := func() time.Duration {
			start := time.Now()
			assert.EqualValues(t, 10, state(t, c).Limits[0].Left, "it changes nothing")
			return time.Since(start)
		}
		assert.Equal(t, 20*ms, look())
		for range 3 {
			assert.Zero(t, look())
		}
		_, err := c.Forecast(to, 20)
		require.NoError(t, err)
		assert.EqualValues(t, 1, led.peeks.Load())
		x.link.slow(func() time.Duration { return 0 })
		time.Sleep(3 * second)
		assert.EqualValues(t, 6, state(t, c).Limits[0].Left)
	})
}

// tardy is a ledger whose Peek takes its time, and which stays up.
type tardy struct {
	ledger.Ledger
	takes time.Duration
	peeks int
}

func (l *tardy) Peek(ctx context.Context, counters []*ledger.Counter) ([]ledger.Usage, error) {
	l.peeks++
	if err := sleep(ctx, l.takes); err != nil {
		return nil, err
	}
	return l.Ledger.Peek(ctx, counters)
}

// A ledger whose Peek alone hangs is asked once a beat, by all providers together, and
// bounded by the budget also where it does not bound itself.
func TestPeekThatFailsIsNotRepeated(t *testing.T) {
	quota := limits(sharedLimit(provider.Limit{Max: 10, Per: "1h"}))
	var ps []provider.Provider
	for i := range 100 {
		ps = append(ps, provider.Provider{Slug: fmt.Sprintf("p%d", i), Throttle: quota})
	}
	teamed(t, 1, ledger.Settings{}, ps[0], func(x *team) {
		t := x.t
		l := &tardy{Ledger: x.ls[0], takes: time.Minute}
		c, err := coordinator.New(coordinator.Config{Providers: ps, Ledger: l})
		require.NoError(t, err)
		defer func() { assert.NoError(t, c.Shutdown(t.Context())) }()
		start := time.Now()
		for range 5 {
			for _, p := range ps {
				_, err := c.State(p.Slug)
				require.NoError(t, err)
			}
			c.States()
		}
		assert.Equal(t, 20*ms, time.Since(start))
		assert.Equal(t, 1, l.peeks)
		time.Sleep(500 * ms)
		c.States()
		assert.Equal(t, 2, l.peeks)
		assert.Equal(t, 540*ms, time.Since(start), "a hundred providers cost one budget")
		time.Sleep(500 * ms)
		l.takes = 10 * ms
		c.States()
		assert.Equal(t, 3, l.peeks, "and one round trip")
		time.Sleep(500*ms - 1)
		c.States()
		assert.Equal(t, 3, l.peeks, "all are known")
		time.Sleep(time.Nanosecond)
		c.States()
		assert.Equal(t, 4, l.peeks, "others may have spent since")
	})
}

// What a Take has told while a Peek was on its way is newer.
func TestTakeWinsOverAPeekOnItsWay(t *testing.T) {
	p := declare(limits(sharedLimit(provider.Limit{Max: 10, Per: "1h"})))
	for name, refused := range map[string]bool{"granted": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			teamed(t, 1, ledger.Settings{}, p, func(x *team) {
				t := x.t
				x.spend(4)
				c, led := x.restart(ledger.Settings{}, p)
				led.meanwhile = func() {
					if refused {
						x.spend(6)
						call := to
						call.Wait = -1
						require.ErrorIs(t, c.Do(t.Context(), call, never(t)), coordinator.ErrRateLimited)
						return
					}
					x.spend(2)
					require.NoError(t, c.Do(t.Context(), to, ok))
				}
				left := int64(3)
				if refused {
					left = 0
				}
				assert.Equal(t, left, state(t, c).Limits[0].Left)
				led.meanwhile = nil
				time.Sleep(second)
				assert.Equal(t, left, state(t, c).Limits[0].Left)
				assert.EqualValues(t, 1, led.peeks.Load(), "a Take tells enough")
			})
		})
	}
}

// While the ledger does not answer nobody peeks, whatever the mode; afterwards a limit
// that no call has asked for is known again.
func TestNoPeekWhileApart(t *testing.T) {
	p := declare(limits(sharedLimit(provider.Limit{Max: 10, Per: "1h"})))
	for _, mode := range []ledger.Mode{ledger.Share, ledger.Deny, ledger.Free} {
		t.Run(string(mode), func(t *testing.T) {
			s := ledger.Settings{Mode: mode, Replicas: 1}
			teamed(t, 1, s, p, func(x *team) {
				t := x.t
				x.spend(4)
				c, led := x.restart(s, p)
				x.link.cut.Store(true)
				time.Sleep(second)
				for range 3 {
					assert.EqualValues(t, 10, state(t, c).Limits[0].Left)
					_, err := c.Forecast(to, 20)
					require.NoError(t, err)
					c.States()
					time.Sleep(second)
				}
				assert.Zero(t, led.peeks.Load())
				x.link.cut.Store(false)
				time.Sleep(3 * second)
				assert.EqualValues(t, 6, state(t, c).Limits[0].Left)
			})
		})
	}
}

// Nor before those who watch are told that it is down, or up.
func TestNoPeekAsTheLedgerComesAndGoes(t *testing.T) {
	p := declare(limits(sharedLimit(provider.Limit{Max: 10, Per: "1h"})))
	teamed(t, 1, ledger.Settings{}, p, func(x *team) {
		t := x.t
		x.spend(4)
		for _, first := range []bool{true, false} { // what it says as the lane is made
			c, led := x.restart(ledger.Settings{}, p)
			led.down.Store(first)
			_, err := c.Pressure("p") // makes the lane
			require.NoError(t, err)
			led.down.Store(!first)
			assert.EqualValues(t, 10, state(t, c).Limits[0].Left)
			assert.Zero(t, led.peeks.Load())
		}
	})
}

// An outage that begins while a Peek is on its way makes what it says old.
func TestOutageWinsOverAPeekOnItsWay(t *testing.T) {
	p := declare(limits(sharedLimit(provider.Limit{Max: 10, Per: "1h"})))
	teamed(t, 1, ledger.Settings{}, p, func(x *team) {
		t := x.t
		x.spend(4)
		c, led := x.restart(ledger.Settings{}, p)
		led.meanwhile = func() {
			x.link.cut.Store(true)
			time.Sleep(second)
		}
		assert.EqualValues(t, 10, state(t, c).Limits[0].Left)
	})
}

// A process that only looks sees what others spend, a beat later, and a new window; one
// that was given another limit sees that at once.
func TestLooksStayTrue(t *testing.T) {
	d := sharedLimit(provider.Limit{Max: 10, Per: "hour", Algorithm: provider.FixedWindow})
	p := declare(limits(d))
	teamed(t, 1, ledger.Settings{}, p, func(x *team) {
		t := x.t
		c, led := x.restart(ledger.Settings{}, p)
		for spent := range 10 {
			assert.EqualValues(t, 10-spent, state(t, c).Limits[0].Left)
			x.spend(1)
			time.Sleep(500 * ms)
		}
		assert.Zero(t, state(t, c).Limits[0].Left)
		n := led.peeks.Load()
		d.Max = 30
		require.NoError(t, c.Update("p", limits(d)))
		assert.EqualValues(t, 20, state(t, c).Limits[0].Left)
		assert.Equal(t, n+1, led.peeks.Load())
		time.Sleep(time.Hour)
		assert.EqualValues(t, 30, state(t, c).Limits[0].Left)

		require.NoError(t, c.Do(t.Context(), to, ok))
		n = led.peeks.Load()
		time.Sleep(second)
		assert.EqualValues(t, 29, state(t, c).Limits[0].Left)
		assert.Equal(t, n, led.peeks.Load(), "who calls is told by his calls")
	})
}

// A peek goes in portions that a slow store can answer in time; those that it has
// answered are known.
func TestPeekInPortions(t *testing.T) {
	key := provider.Limit{Name: "key", Max: 10, Per: "1h", Scope: provider.ScopeKey, Shared: true}
	p := declare(limits(key))
	teamed(t, 1, ledger.Settings{}, p, func(x *team) {
		t := x.t
		c, led := x.restart(ledger.Settings{}, p)
		var demands []coordinator.Demand
		for i := range 300 {
			call := coordinator.Call{Provider: "p", Key: fmt.Sprint(i)}
			if i == 150 || i == 299 {
				require.NoError(t, x.cs[0].Do(t.Context(), call, ok))
			}
			demands = append(demands, coordinator.Demand{Call: call, Calls: 20})
		}
		synctest.Wait()
		f, err := c.ForecastAll(0, demands...)
		require.NoError(t, err)
		assert.Equal(t, 300*10-2, f.Now)
		assert.EqualValues(t, 3, led.peeks.Load())
		assert.EqualValues(t, 300, led.counters.Load())
	})
}
