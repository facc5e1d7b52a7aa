package ledger_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
)

func TestCloseHandsInWhatIsQueued(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		var holds []ledger.Hold
		for range 1500 {
			holds = append(holds, take(t, c))
		}
		store.always(fault{before: time.Millisecond, after: time.Millisecond})
		for _, h := range holds {
			c.Settle(ledger.Settlement{Hold: h})
			c.Charge(ledger.Charge{Counter: minute, N: 2})
			c.Charge(ledger.Charge{Counter: minute, At: time.Now().Add(-time.Second), N: -1})
		}
		require.NoError(t, c.Close(t.Context()))
		require.Equal(t, 1, store.closes)
		require.Zero(t, store.holds())
		require.Equal(t, int64(3000), store.charged[minute.ID()])
		heard := store.batches()
		for _, b := range heard[:len(heard)-1] {
			require.False(t, b.Gone)
		}
		last := heard[len(heard)-1]
		require.True(t, last.Gone)
		require.Empty(t, len(last.Settlements)+len(last.Charges)+len(last.News), "it may be said twice")
	})
}

func TestClosedLedgerDoesNothing(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		h := take(t, c)
		require.NoError(t, c.Close(t.Context()))
		require.NoError(t, c.Close(t.Context()))
		require.Equal(t, 1, store.closes)
		store.batches()

		_, err := c.Take(t.Context(), one(minute))
		require.ErrorIs(t, err, ledger.ErrClosed)
		_, err = c.Peek(t.Context(), []*ledger.Counter{minute})
		require.ErrorIs(t, err, ledger.ErrClosed)
		require.ErrorIs(t, c.Forget(t.Context(), "p"), ledger.ErrClosed)
		c.Settle(ledger.Settlement{Hold: h})
		c.Charge(ledger.Charge{Counter: minute, N: 1})
		c.Tell(ledger.News{Pause: pause("key", "k", time.Hour)})
		c.Watch(func(ledger.Change) { t.Error("told") })()
		st := c.Status()
		require.False(t, st.Up)
		require.Equal(t, "closed", st.Detail)
		sleep(t.Context(), time.Minute)
		require.Empty(t, store.batches())
	})
}

// Whatever the store does, Close returns when its context ends, and with an error.
func TestCloseIsBounded(t *testing.T) {
	for _, x := range []fault{{refused: true}, {hangs: true}, {cut: true}, {after: time.Hour}, {deaf: true}} {
		bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
			h := take(t, c)
			store.always(x)
			c.Settle(ledger.Settlement{Hold: h})
			synctest.Wait()
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err := c.Close(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "ledger: closed before the store had heard all")
			require.Equal(t, 10*time.Second, time.Since(start))
			require.Equal(t, 1, store.closes)
			close(store.release)
		})
	}
}

func TestCloseTriesAgain(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		h := take(t, c)
		store.set(func(n int) fault { return fault{refused: n < 4} })
		c.Settle(ledger.Settlement{Hold: h})
		require.NoError(t, c.Close(t.Context()))
		require.Zero(t, store.holds())
		heard := store.batches()
		require.True(t, heard[len(heard)-1].Gone)
	})
}

// That a client is gone is said once: its lease ends by itself.
func TestCloseWithNothingToSayDoesNotInsist(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.always(fault{refused: true})
		start := time.Now()
		require.NoError(t, c.Close(context.Background()))
		require.Zero(t, time.Since(start))
		require.Len(t, store.tries(), 1)
	})
}

// What is granted while Close runs is given back.
func TestCloseWithTakesUnderWay(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.always(fault{before: 5 * time.Millisecond, after: 5 * time.Millisecond})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				_, err := c.Take(t.Context(), one(minute))
				assert.ErrorIs(t, err, ledger.ErrClosed)
			})
			synctest.Wait()
		}
		require.NoError(t, c.Close(t.Context()))
		all.Wait()
		require.Zero(t, store.holds())
		require.Equal(t, 1, store.given)
	})
}

func TestCloseByManyAndUnderLoad(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.always(fault{before: time.Millisecond})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				for {
					g, err := c.Take(context.Background(), one(minute))
					if err != nil {
						assert.ErrorIs(t, err, ledger.ErrClosed)
						return
					}
					c.Settle(ledger.Settlement{Hold: g.Hold})
				}
			})
		}
		sleep(t.Context(), 50*time.Millisecond)
		for range 5 {
			all.Go(func() { assert.NoError(t, c.Close(context.Background())) })
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		all.Wait()
		require.NoError(t, c.Close(ctx), "it is closed")
		require.Equal(t, 1, store.closes)
	})
}

func TestSecondCloseWaitsNoLongerThanItsContext(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.always(fault{after: 100 * time.Millisecond})
		c.Charge(ledger.Charge{Counter: minute, N: 1})
		var first sync.WaitGroup
		first.Go(func() { assert.NoError(t, c.Close(context.Background())) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, c.Close(ctx), context.DeadlineExceeded)
		first.Wait()
	})
}

func TestOpenWhileTheStoreIsDown(t *testing.T) {
	for x, want := range map[fault]struct {
		took   time.Duration
		detail string
	}{
		{refused: true}: {0, "connection refused"},
		{hangs: true}:   {time.Second, "nothing within 1s"},
		{deaf: true}:    {time.Second, "not reached yet"},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := newFake()
			store.always(x)
			start := time.Now()
			c := open(t, store, ledger.Settings{})
			require.Equal(t, want.took, time.Since(start))
			synctest.Wait()
			st := c.Status()
			require.Equal(t, want.detail, st.Detail)
			require.False(t, st.Up || st.Reached)
			require.Zero(t, st.Replicas)
			_, err := c.Take(t.Context(), one(minute))
			require.ErrorIs(t, err, ledger.ErrDown)
			store.always(fault{})
			if x.deaf {
				close(store.release)
			}
			sleep(t.Context(), 2*time.Second)
			require.True(t, c.Status().Up && c.Status().Reached)
		})
	}
}

// The first exchange may have to dial: the budget is that of a decision.
func TestGreetingMayTakeItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFake()
		store.set(func(n int) fault {
			if n == 0 {
				return fault{before: 900 * time.Millisecond}
			}
			return fault{}
		})
		require.True(t, open(t, store, ledger.Settings{}).Status().Up)
	})
}
