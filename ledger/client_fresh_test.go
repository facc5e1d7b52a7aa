package ledger_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
)

// A store that has lost its state hears what this client knows before it is asked.
func TestLostStateIsToldAgain(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		day := counter("day", "24h")
		two := ledger.Take{Provider: "p", Units: []ledger.Units{{Counter: minute, N: 2}, {Counter: day, N: 3}}}
		open, err := c.Take(t.Context(), two)
		require.NoError(t, err)
		half, err := c.Take(t.Context(), two)
		require.NoError(t, err)
		at := time.Now()
		c.Settle(ledger.Settlement{Hold: half.Hold, Part: []ledger.Part{{Unit: 0, Charged: 5}}})
		gone, err := c.Take(t.Context(), two)
		require.NoError(t, err)
		c.Settle(ledger.Settlement{Hold: gone.Hold})
		back, err := c.Take(t.Context(), two)
		require.NoError(t, err)
		c.Settle(ledger.Settlement{Hold: back.Hold, Back: true})
		c.Charge(ledger.Charge{Counter: day, N: 10})
		c.Charge(ledger.Charge{Counter: day, N: -4})
		own := pause("provider", "", time.Hour)
		c.Tell(ledger.News{Pause: own})
		store.others(ledger.News{Pause: pause("key", "k", time.Minute)})
		learnt := &ledger.Learnt{Counter: day, NotBefore: time.Now().Add(time.Hour)}
		c.Tell(ledger.News{Learn: learnt})
		c.Tell(ledger.News{Learn: &ledger.Learnt{Counter: minute, Max: 3, Until: time.Now().Add(1050 * time.Millisecond)}})
		sleep(t.Context(), 1100*time.Millisecond)
		store.batches()

		var e ear
		stop := c.Watch(e.hear)
		synctest.Wait()
		stop()
		store.lose("second")
		g, err := c.Take(t.Context(), two)
		require.NoError(t, err)
		require.Zero(t, g.Hold)
		require.Equal(t, ledger.Grace, g.Wait, "asked again, after all was told, and refused")

		heard := store.batches()
		require.Len(t, heard, 2)
		require.Equal(t, "first", heard[0].Epoch)
		b := heard[1]
		require.Equal(t, "second", b.Epoch)
		require.Greater(t, b.Seq, heard[0].Seq)
		require.ElementsMatch(t, []ledger.Held{
			{Hold: open.Hold, At: at, Take: two},
			{Hold: half.Hold, At: at, Take: two, Part: []int{1}},
		}, b.Holds)
		require.ElementsMatch(t, []ledger.Charge{{Counter: minute, At: at, N: 7}, {Counter: day, At: at, N: 9}}, b.Charges)
		require.Empty(t, b.Settlements)
		require.Len(t, b.News, 3)
		require.Equal(t, learnt, b.News[2].Learn)
		require.Len(t, b.Takes, 1)
		require.Len(t, store.pauses, 2)

		c.Settle(ledger.Settlement{Hold: open.Hold})
		c.Settle(ledger.Settlement{Hold: half.Hold})
		sleep(t.Context(), ledger.Grace)
		require.Zero(t, store.holds())
		require.NotZero(t, take(t, c))
	})
}

// What is told again is not news to those who watch.
func TestLostStateIsNoNews(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		var e ear
		defer c.Watch(e.hear)()
		store.others(ledger.News{Pause: pause("key", "k", time.Minute)})
		require.Len(t, e.since(t), 1)
		store.lose("second")
		require.Empty(t, e.since(t))
		require.Len(t, store.pauses, 1)
		store.others(ledger.News{Resume: pause("key", "k", 0)})
		require.Equal(t, []string{"resume key k"}, e.since(t))
	})
}

func TestNewsForALostStateAreToldAgain(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.lose("second")
		c.Tell(ledger.News{Pause: pause("key", "k", time.Minute)})
		synctest.Wait()
		require.Len(t, store.pauses, 1)
	})
}

// A store that is told in several batches does not know the pauses until the last.
func TestLostStateOfManyHoldsIsNoNews(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		for range 600 {
			take(t, c)
		}
		var e ear
		defer c.Watch(e.hear)()
		store.others(ledger.News{Pause: pause("key", "k", time.Minute)})
		require.Len(t, e.since(t), 1)
		store.always(fault{before: time.Millisecond, after: time.Millisecond})
		store.lose("second")
		require.Empty(t, e.since(t))
		require.Len(t, store.pauses, 1)
		require.Equal(t, 600, store.holds())
	})
}

// What is forgotten just when the store has lost its state stays so.
func TestForgetOfALostState(t *testing.T) {
	for i, held := range []int{0, 0, 600, 600} {
		bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
			for range held {
				take(t, c)
			}
			if i%2 == 0 {
				store.others(ledger.News{Pause: pause("key", "k", time.Minute)})
			}
			sleep(t.Context(), 1100*time.Millisecond)
			for _, epoch := range []string{"second", "third"} {
				store.lose(epoch)
				require.NoError(t, c.Forget(t.Context(), "p"))
				require.Zero(t, store.holds())
				require.Empty(t, store.pauses)
			}
		})
	}
}

// What was queued, and what was under way, for a store that has lost its state is told
// once. What is settled while the store is being told is settled after that.
func TestLostStateDuringAnOutage(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		const calls = 1300
		holds := make([]ledger.Hold, calls)
		for i := range holds {
			holds[i] = take(t, c)
		}
		c.Charge(ledger.Charge{Counter: minute, N: 100})
		synctest.Wait()
		store.always(fault{cut: true})
		c.Settle(ledger.Settlement{Hold: holds[0]}) // in doubt
		synctest.Wait()
		c.Settle(ledger.Settlement{Hold: holds[1]}) // queued
		c.Charge(ledger.Charge{Counter: minute, N: 10})
		c.Tell(ledger.News{Pause: pause("key", "k", time.Hour)})
		store.lose("second")
		store.batches()
		store.always(fault{before: time.Millisecond})
		sleep(t.Context(), 101*time.Millisecond) // refused
		sleep(t.Context(), time.Millisecond/2)
		for _, h := range holds[2:] {
			c.Settle(ledger.Settlement{Hold: h})
		}
		sleep(t.Context(), time.Second)
		require.True(t, c.Status().Up)
		require.Zero(t, store.holds(), "%v", describe(store.heard))
		require.Equal(t, int64(calls+110), store.charged[minute.ID()])
		require.Len(t, store.pauses, 1)
		for _, b := range store.batches() {
			require.LessOrEqual(t, len(b.Holds)+len(b.Charges)+len(b.Settlements)+len(b.News), 512)
			require.Empty(t, b.Takes)
		}
	})
}

func TestTakeWaitsNoLongerThanItsBudgetForALostState(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.lose("second")
		store.always(fault{after: 15 * time.Millisecond})
		start := time.Now()
		_, err := c.Take(t.Context(), one(minute))
		require.ErrorIs(t, err, ledger.ErrDown)
		require.Equal(t, 20*time.Millisecond, time.Since(start))
		sleep(t.Context(), 2*time.Second)
		require.Zero(t, store.holds())
	})
}

// A store whose state is another one each time (two that do not know of each other
// behind one address) is not asked in a tight loop.
func TestStateThatChangesEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		c := open(t, storeFunc(func(b *ledger.Batch) (*ledger.Reply, error) {
			return &ledger.Reply{Epoch: string('a' + n.Add(1))}, nil
		}), ledger.Settings{})
		_, err := c.Take(t.Context(), one(minute))
		require.EqualError(t, err, "ledger: the store does not answer: its state is another one with each batch")
		sleep(t.Context(), 10*time.Second)
		require.Less(t, n.Load(), int32(30))
	})
}

// Losses of state among all other faults: what is held and charged is right again.
func TestChaosWithLosses(t *testing.T) {
	for seed := range uint64(20) {
		bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
			r := seeded(t, seed)
			ctx, cancel := context.WithCancel(t.Context())
			var losses sync.WaitGroup
			losses.Go(func() {
				for i := 0; sleep(ctx, 700*time.Millisecond) == nil; i++ {
					store.lose(string(rune('a' + i)))
				}
			})
			chaos(t, c, store, r, func() {
				cancel()
				losses.Wait()
			})
			assert.NotEqual(t, "first", store.epoch)
		})
	}
}
