package coordinator_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/memory"
	"github.com/headgate/headgate/provider"
)

// team is several processes, played by coordinators, that share one store.
type team struct {
	t     *testing.T
	store *memory.Store
	link  *link
	cs    []*coordinator.Coordinator
	ls    []*ledger.Client
	judge *referee.Referee
}

// link is the way to the store: it can be slow, and cut.
type link struct {
	ledger.Store
	delay atomic.Pointer[func() time.Duration]
	cut   atomic.Bool
}

var errCut = errors.New("the store is cut off")

func (l *link) Exchange(ctx context.Context, b *ledger.Batch) (*ledger.Reply, error) {
	if delay := l.delay.Load(); delay != nil {
		if err := sleep(ctx, (*delay)()); err != nil {
			return nil, err
		}
	}
	if l.cut.Load() {
		return nil, errCut
	}
	return l.Store.Exchange(ctx, b)
}

func (l *link) Close() error { return nil }

func (l *link) slow(delay func() time.Duration) { l.delay.Store(&delay) }

// teamed runs f with n processes that share the limits of p in virtual time.
func teamed(t *testing.T, n int, s ledger.Settings, p provider.Provider, f func(x *team)) {
	t.Helper()
	teamedWith(t, n, s, p, nil, f)
}

func teamedWith(t *testing.T, n int, s ledger.Settings, p provider.Provider, tr *coordinator.Trace, f func(x *team)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x := &team{t: t, store: memory.New()}
		x.link = &link{Store: x.store}
		var err error
		x.judge, err = referee.New(7, referee.Play{Provider: p})
		require.NoError(t, err)
		for range n {
			led, err := ledger.Open(x.link, s)
			require.NoError(t, err)
			c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{p}, Ledger: led, Traces: []*coordinator.Trace{tr}})
			require.NoError(t, err)
			x.cs, x.ls = append(x.cs, c), append(x.ls, led)
		}
		defer x.close()
		f(x)
	})
}

// close ends all, and sees to it that nothing stays taken.
func (x *team) close() {
	synctest.Wait()
	for i, c := range x.cs {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		assert.NoError(x.t, c.Shutdown(ctx))
		for _, s := range c.States() {
			assert.Zero(x.t, s.InFlight)
			assert.Zero(x.t, s.Queue.Length)
		}
		_ = x.ls[i].Close(ctx)
		cancel()
	}
	x.judge.Close()
}

// visit is a call to the referee's provider, with a network between.
func (x *team) visit(there, back time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		time.Sleep(there)
		leave, ok := x.judge.Enter("p", "", "", nil)
		defer leave(provider.OK)
		time.Sleep(back)
		if !ok {
			return provider.Feedback{Outcome: provider.RateLimited}.Err(nil)
		}
		return nil
	}
}

func (x *team) clean() referee.Report {
	r := x.judge.Report("p")
	assert.Zero(x.t, r.Violated, "%+v", r.Violations)
	return r
}

func (x *team) peek(d provider.Limit) ledger.Usage {
	synctest.Wait()
	all, err := x.ls[0].Peek(context.Background(), []*ledger.Counter{ledger.NewCounter("p", d, "", "")})
	require.NoError(x.t, err)
	return all[0]
}

func sharedLimit(d provider.Limit) provider.Limit {
	d.Name, d.Shared = "quota", true
	return d
}

// Three processes, 200 callers each, share one limit, whatever its algorithm: the
// provider refuses nobody, and they use at least 95 % of it that one process would.
func TestTeamSharesALimit(t *testing.T) {
	for name, d := range map[string]provider.Limit{
		"sliding":    {Max: 60, Per: "1m"},
		"counter":    {Max: 60, Per: "1m", Algorithm: provider.SlidingWindowCounter},
		"fixed":      {Max: 60, Per: "minute", Algorithm: provider.FixedWindow},
		"bucket":     {Max: 60, Per: "1m", Burst: 10, Algorithm: provider.TokenBucket},
		"leaky":      {Max: 60, Per: "1m", Algorithm: provider.LeakyBucket},
		"one by one": {Max: 1, Per: "1s"},
		"in flight":  {Max: 4, Algorithm: provider.InFlight},
	} {
		t.Run(name, func(t *testing.T) {
			alone, shared := sixHundred(t, 1, d), sixHundred(t, 3, d)
			t.Logf("alone %v, three together %v", alone, shared)
			least := 0.95
			if d.Algorithm == provider.InFlight {
				least = 0.8 // a slot that is free is known to the others a trip to the store later, of 50 ms
			}
			assert.LessOrEqual(t, least*shared.Seconds(), alone.Seconds())
		})
	}
}

// sixHundred has n processes make 600 calls together as fast as they may, and returns
// how long that took.
func sixHundred(t *testing.T, n int, d provider.Limit) (took time.Duration) {
	p := declare(limits(sharedLimit(d)))
	p.Throttle.MaxWait = provider.Forever
	teamed(t, n, ledger.Settings{}, p, func(x *team) {
		rng := rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		draw := func(least, most time.Duration) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return least + time.Duration(rng.Int64N(int64(most-least)))
		}
		if n > 1 {
			x.link.slow(func() time.Duration { return draw(ms, 8*ms) })
		}
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 600 {
			wg.Go(func() {
				require.NoError(t, x.cs[i%n].Do(x.t.Context(), to, x.visit(draw(ms, 50*ms), draw(ms, 50*ms))))
			})
		}
		wg.Wait()
		took = time.Since(start)
		assert.EqualValues(t, 600, x.clean().Admitted)
	})
	return took
}

// What the ledger refuses is given back here, and the call keeps its place: nobody
// passes it, and it is told when it goes.
func TestRefusedThereKeepsItsPlace(t *testing.T) {
	d := sharedLimit(provider.Limit{Max: 4, Per: "1m"})
	teamed(t, 2, ledger.Settings{}, declare(limits(d)), func(x *team) {
		t := x.t
		for range 4 {
			require.NoError(t, x.cs[0].Do(t.Context(), to, ok))
		}
		start := time.Now()
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				require.NoError(t, x.cs[1].Do(t.Context(), to, func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, i)
					return nil
				}))
			})
			synctest.Wait()
		}
		call := to
		call.Wait = -1
		err := x.cs[1].Do(t.Context(), call, ok)
		var e *coordinator.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, coordinator.ReasonRateLimited, e.Reason)
		assert.InDelta(t, time.Minute, e.RetryAfter, float64(second))
		assert.Equal(t, "quota", e.Limit.Name)
		wg.Wait()
		slices.Sort(order[:4]) // who goes at one instant runs in any order
		slices.Sort(order[4:])
		assert.Equal(t, []int{0, 1, 2, 3, 4, 5}, order)
		assert.InDelta(t, 2*time.Minute, time.Since(start), float64(second))
		s := state(t, x.cs[1])
		assert.EqualValues(t, 6, s.Granted)
		assert.True(t, s.Limits[0].Shared)
		var decided int64
		for _, d := range s.Decisions {
			decided += d.Count
		}
		assert.EqualValues(t, 7, decided, "each call is decided once")
	})
}

// A run that was killed has spent what it spent; declaring it again refills nothing,
// and a lower limit counts at once.
func TestSpentStaysSpent(t *testing.T) {
	d := sharedLimit(provider.Limit{Max: 10, Per: "24h"})
	teamed(t, 1, ledger.Settings{}, declare(limits(d)), func(x *team) {
		t := x.t
		for range 4 {
			require.NoError(t, x.cs[0].Do(t.Context(), to, ok))
		}
		synctest.Wait()
		for _, most := range []int64{10, 6} {
			d.Max = most
			led, err := ledger.Open(x.link, ledger.Settings{})
			require.NoError(t, err)
			c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{declare(limits(d))}, Ledger: led})
			require.NoError(t, err)
			call := to
			call.Wait = -1
			if most == 10 {
				require.NoError(t, c.Do(t.Context(), call, ok))
				assert.EqualValues(t, 5, state(t, c).Limits[0].Left)
			} else {
				require.NoError(t, c.Do(t.Context(), call, ok))
				require.ErrorIs(t, c.Do(t.Context(), call, ok), coordinator.ErrRateLimited)
			}
			require.NoError(t, c.Shutdown(t.Context()))
			require.NoError(t, led.Close(t.Context()))
		}
	})
}

// What a call takes there is settled as here: given back if it was never sent, held on
// for as long as it may be on its way, corrected by what the answer tells.
func TestSettledThereAsHere(t *testing.T) {
	requests := sharedLimit(provider.Limit{Max: 10, Per: "1h"})
	tokens := provider.Limit{Name: "tokens", Max: 1000, Per: "1h", Unit: "tokens", Shared: true}
	slots := provider.Limit{Name: "slots", Max: 2, Algorithm: provider.InFlight, Shared: true}
	teamed(t, 1, ledger.Settings{}, declare(limits(requests, tokens, slots)), func(x *team) {
		t := x.t
		call := to
		call.Cost = map[string]int64{"tokens": 400}
		ls, err := x.cs[0].Acquire(t.Context(), call)
		require.NoError(t, err)
		assert.EqualValues(t, 1, x.peek(requests).Held)
		assert.EqualValues(t, 1, x.peek(slots).Held)
		ls.Forget()
		assert.Zero(t, x.peek(requests))
		assert.Zero(t, x.peek(slots))

		ls, err = x.cs[0].Acquire(t.Context(), call)
		require.NoError(t, err)
		ls.Report(provider.Feedback{Outcome: provider.OK})
		assert.EqualValues(t, 1, x.peek(requests).Used, "the answer settles requests")
		assert.EqualValues(t, 400, x.peek(tokens).Held, "its end, what may be corrected still")
		ls.Report(provider.Feedback{Outcome: provider.OK, Used: map[string]int64{"tokens": 90}})
		ls.Release()
		assert.EqualValues(t, 90, x.peek(tokens).Used)
		assert.Zero(t, x.peek(tokens).Held)
		assert.Zero(t, x.peek(slots))

		ls, err = x.cs[0].Acquire(t.Context(), to)
		require.NoError(t, err)
		ls.Release() // without an answer: it may still be on its way
		assert.EqualValues(t, 1, x.peek(requests).Held)
		assert.Zero(t, x.peek(slots), "its slot is free at once")
		time.Sleep(300 * ms)
		assert.Zero(t, x.peek(requests).Held, "nobody calls, and it is settled all the same")
		assert.EqualValues(t, 2, x.peek(requests).Used)
	})
}

// A call that ends while the ledger is asked leaves nothing behind there.
func TestCanceledWhileAsking(t *testing.T) {
	d := sharedLimit(provider.Limit{Max: 10, Per: "1h"})
	teamed(t, 1, ledger.Settings{Budget: 50 * ms}, declare(limits(d)), func(x *team) {
		t := x.t
		require.NoError(t, x.cs[0].Do(t.Context(), to, ok))
		x.link.slow(func() time.Duration { return 10 * ms })
		ctx, cancel := context.WithTimeout(t.Context(), 5*ms)
		defer cancel()
		require.ErrorIs(t, x.cs[0].Do(ctx, to, ok), coordinator.ErrTooLate)
		time.Sleep(second)
		u := x.peek(d)
		assert.Zero(t, u.Held)
		assert.EqualValues(t, 1, u.Used)
		s := state(t, x.cs[0])
		assert.EqualValues(t, 1, s.Granted)
		assert.EqualValues(t, 1, s.Limits[0].Used)
		assert.Zero(t, s.Limits[0].Held)
	})
}

// A turn that meets the end of its call is given back before anybody is asked: others
// may ask.
func TestTurnMeetsTheEndBeforeAsking(t *testing.T) {
	d := sharedLimit(provider.Limit{Max: 1, Per: "1h"})
	teamed(t, 1, ledger.Settings{}, declare(limits(d)), func(x *team) {
		t, c := x.t, x.cs[0]
		for range 3 {
			ls, err := c.Acquire(t.Context(), to)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- c.Do(ctx, to, ok) }()
			synctest.Wait()
			c.HoldLane("p", cancel, ls)
			require.ErrorIs(t, <-done, context.Canceled)
			synctest.Wait()
			assert.Zero(t, x.peek(d))
		}
		require.NoError(t, c.Do(t.Context(), to, ok))
	})
}

// A pause that one process is told is one for all, at once for calls that ask the
// ledger and within a second for others; after it one call of all goes alone.
func TestPausesAreShared(t *testing.T) {
	d := sharedLimit(provider.Limit{Max: 1000, Per: "1h"})
	teamed(t, 3, ledger.Settings{}, declare(limits(d)), func(x *team) {
		t := x.t
		for _, c := range x.cs {
			require.NoError(t, c.Do(t.Context(), to, ok))
		}
		call := to
		call.Wait = -1
		err := x.cs[0].Do(t.Context(), call, func(context.Context) error {
			return provider.Feedback{Outcome: provider.RateLimited, RetryAfter: 10 * second, Detail: "slow down"}.Err(nil)
		})
		require.ErrorIs(t, err, coordinator.ErrRateLimited)
		synctest.Wait()
		for _, c := range x.cs {
			err := c.Do(t.Context(), call, ok)
			var e *coordinator.Error
			require.ErrorAs(t, err, &e)
			assert.InDelta(t, 10*second, e.RetryAfter, float64(ms))
		}
		time.Sleep(second)
		for _, c := range x.cs {
			require.Len(t, state(t, c).Pauses, 1)
			assert.Equal(t, "rate_limited", state(t, c).Pauses[0].Why)
		}
		var out, most, calls atomic.Int32
		var wg sync.WaitGroup
		start := time.Now()
		for _, c := range x.cs {
			for range 5 {
				wg.Go(func() {
					require.NoError(t, c.Do(t.Context(), to, func(context.Context) error {
						if calls.Add(1) <= 1 {
							assert.EqualValues(t, 9, time.Since(start)/second)
						}
						if n := out.Add(1); time.Since(start) < 9*second+900*ms {
							most.Store(max(most.Load(), n))
						}
						time.Sleep(950 * ms)
						out.Add(-1)
						return nil
					}))
				})
			}
		}
		wg.Wait()
		assert.EqualValues(t, 1, most.Load(), "of all processes one call went alone")
		for _, c := range x.cs {
			assert.Empty(t, state(t, c).Pauses)
		}

		require.NoError(t, x.cs[0].Pause("p", time.Now().Add(time.Hour), "maintenance"))
		time.Sleep(second)
		require.Len(t, state(t, x.cs[2]).Pauses, 1)
		require.NoError(t, x.cs[1].Resume("p"))
		time.Sleep(second)
		for _, c := range x.cs {
			assert.Empty(t, state(t, c).Pauses)
			require.NoError(t, c.Do(t.Context(), call, ok))
		}
	})
}

// Pauses are shared where no limit is.
func TestPausesAreSharedWithoutLimits(t *testing.T) {
	teamed(t, 2, ledger.Settings{}, declare(provider.Throttle{}), func(x *team) {
		t := x.t
		require.NoError(t, x.cs[1].Do(t.Context(), to, ok))
		require.NoError(t, x.cs[0].Pause("p", time.Now().Add(time.Minute), "maintenance"))
		time.Sleep(second)
		require.Len(t, state(t, x.cs[1]).Pauses, 1)
	})
}

// What an answer says of a limit holds for all.
func TestLearnedIsShared(t *testing.T) {
	d := sharedLimit(provider.Limit{Max: 100, Per: "1h"})
	teamed(t, 2, ledger.Settings{}, declare(limits(d)), func(x *team) {
		t := x.t
		require.NoError(t, x.cs[1].Do(t.Context(), to, ok))
		call := to
		call.Wait = -1
		_ = x.cs[0].Do(t.Context(), call, func(context.Context) error {
			return provider.Feedback{Outcome: provider.QuotaSpent, Limit: "quota", RetryAfter: 20 * time.Minute}.Err(nil)
		})
		synctest.Wait()
		var e *coordinator.Error
		require.ErrorAs(t, x.cs[1].Do(t.Context(), call, ok), &e)
		assert.InDelta(t, 20*time.Minute, e.RetryAfter, float64(second))
		time.Sleep(20*time.Minute + second)
		require.NoError(t, x.cs[1].Do(t.Context(), call, ok))
	})
}

// While the store does not answer each goes by the mode; a caller waits no longer for
// it than its budget.
func TestModes(t *testing.T) {
	d := sharedLimit(provider.Limit{Max: 9, Per: "1m"})
	for mode, most := range map[ledger.Mode]int64{ledger.Share: 9, ledger.Deny: 0, ledger.Free: 27} {
		t.Run(string(mode), func(t *testing.T) {
			var changes atomic.Int32
			tr := &coordinator.Trace{Ledger: func(x coordinator.LedgerChange) {
				changes.Add(1)
				if !x.Up {
					assert.Equal(t, string(mode), x.State.Mode)
				}
			}}
			p := declare(limits(d))
			p.Throttle.MaxWait = time.Hour
			teamedWith(t, 3, ledger.Settings{Mode: mode}, p, tr, func(x *team) {
				t := x.t
				for _, c := range x.cs {
					require.NoError(t, c.Do(t.Context(), to, ok))
				}
				time.Sleep(2 * time.Minute)
				for _, c := range x.cs { // so that each knows that there is much left
					require.NoError(t, c.Do(t.Context(), to, ok))
				}
				time.Sleep(61 * second)
				changes.Store(0)
				x.link.cut.Store(true)
				start := time.Now()
				var went atomic.Int64
				var wg sync.WaitGroup
				for _, c := range x.cs {
					for range 20 {
						wg.Go(func() {
							patience := 50 * second
							if mode == ledger.Deny {
								patience = time.Hour // else some are too late before anybody knows of the outage
							}
							ctx, cancel := context.WithTimeout(t.Context(), patience)
							defer cancel()
							err := c.Do(ctx, to, func(context.Context) error { went.Add(1); return nil })
							if mode == ledger.Deny {
								require.ErrorIs(t, err, coordinator.ErrLedger)
								require.ErrorIs(t, err, coordinator.ErrThrottled)
								require.ErrorIs(t, err, ledger.ErrDown)
								require.LessOrEqual(t, time.Since(start), 20*ms)
							}
						})
					}
				}
				wg.Wait()
				synctest.Wait() // those who watch are told by a goroutine of their own
				assert.Equal(t, most, went.Load())
				require.Positive(t, changes.Load())
				assert.Equal(t, string(mode), state(t, x.cs[0]).Ledger.Mode)
				assert.Equal(t, 3, state(t, x.cs[0]).Ledger.Replicas)
				assert.EqualValues(t, 3, changes.Load(), "each process is told once")

				// It is back: nobody forgets what went meanwhile.
				x.link.cut.Store(false)
				time.Sleep(2 * second)
				assert.Equal(t, "shared", state(t, x.cs[0]).Ledger.Mode)
				assert.EqualValues(t, 6, changes.Load())
				assert.Equal(t, most, x.peek(d).Used)
				call := to
				call.Wait = -1
				if most >= 9 {
					require.ErrorIs(t, x.cs[0].Do(t.Context(), call, ok), coordinator.ErrRateLimited)
				} else {
					require.NoError(t, x.cs[0].Do(t.Context(), call, ok))
				}
			})
		})
	}
}

// A store that hangs, or is half a second away, costs a call no more than the budget,
// and the calls after it nothing.
func TestDecisionsKeepToTheBudget(t *testing.T) {
	d := sharedLimit(provider.Limit{Max: 3000, Per: "1m"})
	for _, delay := range []time.Duration{500 * ms, time.Hour} {
		teamed(t, 3, ledger.Settings{}, declare(limits(d)), func(x *team) {
			t := x.t
			for _, c := range x.cs {
				require.NoError(t, c.Do(t.Context(), to, ok))
			}
			x.link.slow(func() time.Duration { return delay })
			var late atomic.Int32
			var wg sync.WaitGroup
			for i := range 900 {
				wg.Go(func() {
					time.Sleep(time.Duration(i/300) * second)
					start := time.Now()
					require.NoError(t, x.cs[i%3].Do(t.Context(), to, ok))
					switch took := time.Since(start); {
					case took > 20*ms:
						t.Errorf("the %dth call took %v", i, took)
					case took > 0:
						late.Add(1)
					}
				})
			}
			wg.Wait()
			assert.LessOrEqual(t, late.Load(), int32(300), "only who asked as it hung waited at all")
			x.link.delay.Store(nil)
			time.Sleep(time.Minute)
		})
	}
}

// The share is one of what was left when the store was lost, until that window is over.
func TestShareOfWhatWasLeft(t *testing.T) {
	d := sharedLimit(provider.Limit{Max: 12, Per: "1m"})
	p := declare(limits(d))
	teamed(t, 3, ledger.Settings{}, p, func(x *team) {
		t := x.t
		for range 6 {
			require.NoError(t, x.cs[0].Do(t.Context(), to, x.visit(0, 0)))
		}
		for _, c := range x.cs[1:] {
			require.NoError(t, c.Do(t.Context(), to, x.visit(0, 0)))
		}
		x.link.cut.Store(true)
		var wg sync.WaitGroup
		for _, c := range x.cs {
			for range 20 {
				wg.Go(func() { _ = c.Do(t.Context(), to, x.visit(0, 0)) })
			}
		}
		time.Sleep(50 * second)
		r := x.clean()
		assert.LessOrEqual(t, r.Admitted, int64(12))
		assert.GreaterOrEqual(t, r.Admitted, int64(10))
		wg.Wait()
		x.clean()
	})
}

// Where the store was never reached nobody knows who else is there.
func TestStartsWhileTheStoreIsDown(t *testing.T) {
	d := sharedLimit(provider.Limit{Max: 10, Per: "1h"})
	synctest.Test(t, func(t *testing.T) {
		for replicas, wants := range map[int]int{0: 0, 5: 2} {
			store := &link{Store: memory.New()}
			store.cut.Store(true)
			led, err := ledger.Open(store, ledger.Settings{Replicas: replicas})
			require.NoError(t, err)
			c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{declare(limits(d))}, Ledger: led})
			require.NoError(t, err)
			call := to
			call.Wait = -1
			went := 0
			for range 10 {
				err := c.Do(t.Context(), call, ok)
				if err == nil {
					went++
				} else if replicas == 0 {
					require.ErrorIs(t, err, coordinator.ErrLedger)
					require.ErrorContains(t, err, "Replicas")
				}
			}
			assert.Equal(t, wants, went)
			store.cut.Store(false)
			time.Sleep(2 * second)
			went = 0
			for range 10 {
				if c.Do(t.Context(), call, ok) == nil {
					went++
				}
			}
			assert.Equal(t, 10-wants, went)
			require.NoError(t, c.Shutdown(t.Context()))
			require.NoError(t, led.Close(t.Context()))
		}
	})
}

// Three processes, a store that comes and goes, calls that are canceled, forgotten,
// refused: the provider is never asked too often while the store answers or each keeps
// to its share, and in the end nothing is held anywhere.
func TestTeamStorm(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			quota := sharedLimit(provider.Limit{Max: 20 + rng.Int64N(20), Per: "10s"})
			slots := provider.Limit{Name: "slots", Max: 6, Algorithm: provider.InFlight, Shared: true}
			p := declare(limits(quota, slots))
			p.Throttle.MaxWait = time.Minute
			teamed(t, 3, ledger.Settings{Budget: 20 * ms}, p, func(x *team) {
				t := x.t
				var mu sync.Mutex
				draw := func(most time.Duration) time.Duration {
					mu.Lock()
					defer mu.Unlock()
					return time.Duration(rng.Int64N(int64(most)))
				}
				x.link.slow(func() time.Duration { return draw(4 * ms) })
				var wg sync.WaitGroup
				for i := range 900 {
					c := x.cs[i%3]
					ctx, cancel := context.WithTimeout(t.Context(), draw(60*second)+ms)
					there, back, kind := draw(50*ms), draw(50*ms), draw(10)
					wg.Go(func() {
						defer cancel()
						switch kind {
						case 0:
							ls, err := c.Acquire(ctx, to)
							if err == nil {
								ls.Forget()
							}
						case 1:
							ls, err := c.Acquire(ctx, to)
							if err == nil {
								ls.Release()
							}
						default:
							err := c.Do(ctx, to, x.visit(there, back))
							assert.NotErrorIs(t, err, coordinator.ErrLedger)
						}
					})
					time.Sleep(draw(150 * ms))
				}
				wg.Wait()
				x.clean()
				time.Sleep(20 * second)
				assert.Zero(t, x.peek(slots))
				assert.Zero(t, x.peek(quota).Held)
			})
		})
	}
}
