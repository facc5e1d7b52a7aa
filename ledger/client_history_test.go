package ledger_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// retold loses the store's state and returns which charges it is told, by counter.
func retold(t *testing.T, store *fake, epoch string) map[string]int64 {
	t.Helper()
	store.lose(epoch)
	sleep(t.Context(), 2*time.Second)
	synctest.Wait()
	return store.charged
}

func peek(t *testing.T, c *ledger.Client) {
	t.Helper()
	_, err := c.Peek(t.Context(), []*ledger.Counter{minute})
	require.NoError(t, err)
}

// What was charged is remembered for as long as it may count.
func TestHistoryIsAsLongAsUnitsCount(t *testing.T) {
	for _, x := range []struct {
		name  string
		limit provider.Limit
		span  time.Duration
	}{
		{"sliding", provider.Limit{Per: "1h"}, time.Hour},
		{"a day of 25 hours", provider.Limit{Per: provider.Day, Zone: "Europe/Berlin"}, 25 * time.Hour},
		{"two windows", provider.Limit{Per: "1h", Algorithm: provider.SlidingWindowCounter}, 2 * time.Hour},
		{"a bucket of several windows", provider.Limit{Per: "1h", Algorithm: provider.TokenBucket, Burst: 50}, 5 * time.Hour},
		{"a smaller bucket", provider.Limit{Per: "1h", Algorithm: provider.TokenBucket, Burst: 1}, time.Hour},
	} {
		t.Run(x.name, func(t *testing.T) {
			bubble(t, ledger.Settings{Beat: time.Minute, Lease: time.Hour}, func(t *testing.T, c *ledger.Client, store *fake) {
				x.limit.Name, x.limit.Max = "a", 10
				k := ledger.NewCounter("p", x.limit, "", "")
				c.Charge(ledger.Charge{Counter: k, N: 3})
				sleep(t.Context(), x.span-3*time.Minute)
				store.lose("second")
				peek(t, c) // hears of it
				require.Equal(t, map[string]int64{k.ID(): 3}, store.charged)
				sleep(t.Context(), x.span/10)
				store.lose("third")
				peek(t, c)
				require.Empty(t, store.charged)
			})
		})
	}
}

// A limit whose numbers have changed goes on with what it has counted.
func TestHistoryFollowsItsCounter(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		old := minute
		for range 100 {
			c.Charge(ledger.Charge{Counter: old, N: 1})
			sleep(t.Context(), 500*time.Millisecond)
		}
		renewed := counter("minute", "1h")
		c.Charge(ledger.Charge{Counter: renewed, N: 1})
		require.Equal(t, old.ID(), renewed.ID())
		store.batches()
		require.Equal(t, map[string]int64{old.ID(): 101}, retold(t, store, "second"))
		for _, b := range store.batches() {
			for _, ch := range b.Charges {
				require.Same(t, renewed, ch.Counter)
			}
		}
		sleep(t.Context(), 2*time.Minute)
		require.Equal(t, map[string]int64{old.ID(): 101}, retold(t, store, "third"))
	})
}

// Counters that are idle need no memory, and those that are not stay known.
func TestHistoryForgetsIdleCounters(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		const idle = 20_000
		before := heap()
		want := map[string]int64{}
		for i := range idle {
			if i%2000 == 0 {
				k := counter("busy"+strconv.Itoa(i), "1h")
				c.Charge(ledger.Charge{Counter: k, N: 2})
				want[k.ID()] = 2
				c.Tell(ledger.News{Learn: &ledger.Learnt{Counter: counter("learnt"+strconv.Itoa(i), "1s"), NotBefore: time.Now().Add(time.Minute)}})
			}
			c.Charge(ledger.Charge{Counter: counter(strconv.Itoa(i), "1s"), N: 1})
		}
		sleep(t.Context(), time.Second)
		store.charged = map[string]int64{}
		store.batches()
		remembered := heap() - before
		sleep(t.Context(), time.Minute)
		require.Less(t, heap()-before, remembered/4, "bytes")
		require.Equal(t, want, retold(t, store, "second"))
	})
}
