package ledger_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
)

// A batch whose answer was lost is said again under the same number, and without its
// takes.
func TestSettlementIsCarriedOutOnce(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		h, other := take(t, c), take(t, c)
		store.set(func(n int) fault {
			switch n {
			case 0:
				return fault{after: 5 * time.Millisecond}
			case 1, 3:
				return fault{cut: true}
			case 2:
				return fault{refused: true}
			}
			return fault{}
		})
		c.Charge(ledger.Charge{Counter: minute, N: 1})
		synctest.Wait()
		c.Settle(ledger.Settlement{Hold: h}) // while that is under way, so both go together
		c.Charge(ledger.Charge{Counter: minute, N: 5})
		store.batches()
		sleep(t.Context(), 10*time.Millisecond)
		require.False(t, c.Status().Up)
		c.Settle(ledger.Settlement{Hold: other}) // while it is down
		c.Charge(ledger.Charge{Counter: minute, N: 7})
		sleep(t.Context(), time.Second)

		heard := store.batches()
		require.Len(t, heard, 4, "%v", describe(heard))
		first, next := heard[0], heard[3]
		require.Len(t, first.Settlements, 1)
		require.Len(t, first.Charges, 1)
		require.False(t, first.skipped)
		for _, again := range heard[1:3] {
			require.True(t, again.skipped)
			require.Equal(t, first.Batch, again.Batch)
		}
		require.Equal(t, first.Seq+1, next.Seq)
		require.False(t, next.skipped)
		require.Equal(t, int64(15), store.charged[minute.ID()])
		require.Zero(t, store.holds())
	})
}

func TestRetriesBackOff(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.set(func(n int) fault { return fault{hangs: n == 0, refused: n > 0 && n < 7} })
		start := time.Now()
		_, err := c.Take(t.Context(), one(minute))
		require.ErrorIs(t, err, ledger.ErrDown)
		for range 380 {
			sleep(t.Context(), 10*time.Millisecond)
			c.Charge(ledger.Charge{Counter: minute, N: 1}) // no reason to try sooner
		}
		var at []int64
		for _, x := range store.tries() {
			at = append(at, x.Sub(start).Milliseconds())
		}
		// A second of patience, and then after 100, 200, 400, 500 and 500 ms.
		require.Equal(t, []int64{0, 1100, 1300, 1700, 2200, 2700, 3200, 3700}, at[:8])
		require.True(t, c.Status().Up)
		require.Equal(t, start.Add(3700*time.Millisecond), c.Status().Since)

		store.set(func(n int) fault { return fault{refused: n < 1} })
		c.Charge(ledger.Charge{Counter: minute, N: 1})
		sleep(t.Context(), 150*time.Millisecond)
		tries := store.tries()
		require.Equal(t, 100*time.Millisecond, tries[1].Sub(tries[0]), "patience is new")
	})
}

// A store that is too slow for the budget is not asked, but hears all.
func TestSlowStoreStaysDownAndHearsAll(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.always(fault{after: 30 * time.Millisecond})
		_, err := c.Take(t.Context(), one(minute))
		require.ErrorIs(t, err, ledger.ErrDown)
		for range 100 {
			c.Charge(ledger.Charge{Counter: minute, N: 1})
			sleep(t.Context(), 50*time.Millisecond)
			require.False(t, c.Status().Up)
		}
		sleep(t.Context(), time.Second)
		require.Equal(t, int64(100), store.charged[minute.ID()])
		for _, b := range store.batches()[1:] {
			require.Empty(t, b.Takes)
			require.False(t, b.skipped, "what was carried out late is not said again")
		}
	})
}

// What was queued is heard before the first take is, and before the Status is up: a take
// need not wait for it then.
func TestQueuedGoesBeforeTakes(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.always(fault{refused: true})
		c.Charge(ledger.Charge{Counter: minute, N: 1})
		synctest.Wait()
		require.False(t, c.Status().Up)
		chargeMany(c)
		store.always(fault{before: 5 * time.Millisecond})
		stop := c.Watch(func(ch ledger.Change) {
			if ch.Status != nil && ch.Status.Up {
				_, err := c.Take(context.Background(), one(minute))
				assert.NoError(t, err)
			}
		})
		defer stop()
		sleep(t.Context(), time.Second)
		requireOrder(t, store, 5001)
	})
}

// So it is in the middle of things.
func TestTakeWaitsForWhatWasQueuedBefore(t *testing.T) {
	bubble(t, ledger.Settings{Budget: time.Second}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.always(fault{before: time.Millisecond})
		c.Tell(ledger.News{Pause: pause("key", "k", time.Minute)})
		synctest.Wait()
		chargeMany(c)
		take(t, c)
		requireOrder(t, store, 5000)
	})
}

func chargeMany(c *ledger.Client) {
	for i := range 5000 {
		c.Charge(ledger.Charge{Counter: counter(strconv.Itoa(i), "1h"), N: 1})
	}
}

// requireOrder sees that a take was asked after so many charges.
func requireOrder(t *testing.T, store *fake, charges int) {
	t.Helper()
	total, took := 0, 0
	for _, b := range store.batches() {
		require.LessOrEqual(t, len(b.Charges), 512)
		if !b.skipped {
			total += len(b.Charges)
		}
		if took += len(b.Takes); len(b.Takes) > 0 {
			require.Equal(t, charges, total)
		}
	}
	require.Equal(t, 1, took)
}

// A busy process comes back, though something is queued at each instant.
func TestReturnUnderLoad(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.always(fault{refused: true})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for sleep(ctx, time.Millisecond) == nil {
				c.Charge(ledger.Charge{Counter: minute, N: 1})
			}
		}()
		sleep(t.Context(), 5*time.Second)
		require.False(t, c.Status().Up)
		store.always(fault{before: 10 * time.Millisecond})
		sleep(t.Context(), 600*time.Millisecond)
		require.True(t, c.Status().Up)
		cancel()
		synctest.Wait()
	})
}
