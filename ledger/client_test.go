package ledger_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
)

func TestFirstTakeGoesAtOnce(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		start := time.Now()
		take(t, c)
		require.Zero(t, time.Since(start))
		require.Len(t, store.batches(), 1)
	})
}

func TestTakesThatComeMeanwhileShareABatch(t *testing.T) {
	bubble(t, ledger.Settings{Budget: time.Second}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.always(fault{before: time.Millisecond})
		var all sync.WaitGroup
		for range 1201 {
			all.Go(func() { take(t, c) })
			synctest.Wait()
		}
		all.Wait()
		var sizes []int
		for _, b := range store.batches() {
			sizes = append(sizes, len(b.Takes))
		}
		require.Equal(t, []int{1, 512, 512, 176}, sizes)
		require.Equal(t, 1201, store.holds())
	})
}

func TestTakeFailsAtTheEndOfItsBudget(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.always(fault{hangs: true})
		start := time.Now()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				_, err := c.Take(t.Context(), one(minute))
				assert.ErrorIs(t, err, ledger.ErrDown)
				assert.EqualError(t, err, "ledger: the store does not answer: nothing within 20ms")
			})
			synctest.Wait()
		}
		all.Wait()
		require.Equal(t, 20*time.Millisecond, time.Since(start))

		st := c.Status()
		require.Equal(t, ledger.Status{Since: time.Now(), Reached: true, Replicas: 1, Detail: "nothing within 20ms"}, st)
		_, err := c.Take(t.Context(), one(minute))
		require.ErrorIs(t, err, ledger.ErrDown)
		require.Equal(t, 20*time.Millisecond, time.Since(start), "a store that is down is not waited for")
	})
}

// A take that comes just after another has gone waits for two round trips, but not
// longer than its budget.
func TestBudgetIsOfEachTake(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.always(fault{after: 15 * time.Millisecond})
		var all sync.WaitGroup
		all.Go(func() { take(t, c) })
		sleep(t.Context(), time.Millisecond)
		start := time.Now()
		_, err := c.Take(t.Context(), one(minute))
		require.ErrorIs(t, err, ledger.ErrDown)
		require.Equal(t, 20*time.Millisecond, time.Since(start))
		all.Wait()
		sleep(t.Context(), 10*time.Millisecond) // its own exchange was in time
		require.True(t, c.Status().Up)
	})
}

func TestContextEndsATake(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.always(fault{after: 10 * time.Millisecond})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := c.Take(ctx, one(minute))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 5*time.Millisecond, time.Since(start))
		require.True(t, c.Status().Up, "that was no fault of the store")

		_, err = c.Take(ctx, one(minute))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		sleep(t.Context(), 25*time.Millisecond)
		require.Equal(t, 1, store.given, "what was granted too late is given back")
		require.Zero(t, store.holds())
	})
}

// A take whose caller has left before it was said is never said.
func TestAbandonedTakeIsNotAsked(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.always(fault{after: 10 * time.Millisecond})
		var all sync.WaitGroup
		all.Go(func() { take(t, c) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := c.Take(ctx, one(minute))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		all.Wait()
		sleep(t.Context(), 25*time.Millisecond)
		for _, b := range store.batches()[1:] {
			require.Empty(t, b.Takes)
		}
	})
}

func TestLateGrantIsGivenBack(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.set(func(n int) fault {
			if n == 0 {
				return fault{after: 30 * time.Millisecond}
			}
			return fault{}
		})
		_, err := c.Take(t.Context(), one(minute))
		require.ErrorIs(t, err, ledger.ErrDown)
		require.Equal(t, 1, store.holds())
		sleep(t.Context(), 20*time.Millisecond)
		require.False(t, c.Status().Up, "a late answer does not make it up")
		sleep(t.Context(), 100*time.Millisecond)
		require.True(t, c.Status().Up)
		require.Zero(t, store.holds())
		require.Equal(t, 1, store.given)
	})
}

// Nobody knows whether a batch was carried out whose answer is lost: its takes are never
// asked again, and what they may have got is given back.
func TestLostGrantIsGivenBack(t *testing.T) {
	for _, x := range []fault{{cut: true}, {refused: true}, {after: time.Hour}} {
		bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
			store.set(func(n int) fault {
				if n == 0 {
					return x
				}
				return fault{}
			})
			_, err := c.Take(t.Context(), one(minute))
			require.ErrorIs(t, err, ledger.ErrDown)
			sleep(t.Context(), 2*time.Second)
			require.True(t, c.Status().Up)
			require.Zero(t, store.holds())
			takes, backs := 0, 0
			for _, b := range store.batches() {
				takes += len(b.Takes)
				for _, s := range b.Settlements {
					assert.True(t, s.Back)
					backs++
				}
			}
			require.LessOrEqual(t, takes, 1)
			require.Equal(t, 1, backs)
		})
	}
}

func TestRefusalIsPassedOn(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		told := ledger.Grant{Wait: time.Minute, By: 0, Room: []int64{0}}
		store.refuse = func(ledger.Take) ledger.Grant { return told }
		g, err := c.Take(t.Context(), one(minute))
		require.NoError(t, err)
		require.Equal(t, told, g)
		require.Zero(t, store.holds())
	})
}

func TestAnswerThatDoesNotFit(t *testing.T) {
	for text, reply := range map[string]*ledger.Reply{
		"ledger: the store does not answer: an empty answer":          nil,
		"ledger: the store does not answer: 0 grants for 1 takes":     {},
		"ledger: the store does not answer: 1 usages of 0 counters":   {Grants: make([]ledger.Grant, 1), Usages: make([]ledger.Usage, 1)},
		"ledger: the store does not answer: 2 grants for 1 takes":     {Grants: make([]ledger.Grant, 2)},
		"ledger: the store does not answer: this is not the database": nil,
	} {
		synctest.Test(t, func(t *testing.T) {
			var n int
			c := open(t, storeFunc(func(b *ledger.Batch) (*ledger.Reply, error) {
				if n++; n != 2 {
					return &ledger.Reply{}, nil
				}
				if text == "ledger: the store does not answer: this is not the database" {
					return nil, errors.New("this is not the database")
				}
				return reply, nil
			}), ledger.Settings{})
			_, err := c.Take(t.Context(), one(minute))
			require.EqualError(t, err, text)
		})
	}
}

type storeFunc func(b *ledger.Batch) (*ledger.Reply, error)

func (f storeFunc) Exchange(_ context.Context, b *ledger.Batch) (*ledger.Reply, error) { return f(b) }

func (storeFunc) Close() error { return nil }

func TestBeats(t *testing.T) {
	for _, s := range []struct {
		set   ledger.Settings
		every time.Duration
	}{
		{ledger.Settings{}, 500 * time.Millisecond},
		{ledger.Settings{Lease: 1200 * time.Millisecond}, 400 * time.Millisecond},
		{ledger.Settings{Beat: 50 * time.Millisecond}, 50 * time.Millisecond},
	} {
		bubble(t, s.set, func(t *testing.T, c *ledger.Client, store *fake) {
			sleep(t.Context(), 3*s.every+time.Millisecond)
			store.others(ledger.News{Pause: pause("key", "k", time.Hour)})
			sleep(t.Context(), 2*s.every)
			heard := store.batches()
			require.Len(t, heard, 5)
			for i, b := range heard {
				require.Equal(t, time.Duration(i+1)*s.every, b.at)
				require.Equal(t, ledger.Batch{
					Holder: heard[0].Holder, Seq: uint64(i + 2), Lease: s.set.WithDefaults().Lease, Epoch: "first", Known: b.Known,
				}, b.Batch)
			}
			require.Equal(t, []uint64{1, 1, 1, 1, 2}, []uint64{heard[0].Known, heard[1].Known, heard[2].Known, heard[3].Known, heard[4].Known})
			require.NotEmpty(t, heard[0].Holder)

			// A beat is due where nothing was said for so long.
			sleep(t.Context(), s.every/2)
			take(t, c)
			sleep(t.Context(), s.every-time.Millisecond)
			require.Len(t, store.batches(), 1)
		})
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for text, s := range map[string]ledger.Settings{
		"ledger: longer is -1s: it must not be below 0":                                                         {Longer: -time.Second},
		"ledger: budget is -1s: it must not be below 0":                                                         {Budget: -time.Second},
		"ledger: beat is -1s: it must not be below 0":                                                           {Beat: -time.Second},
		"ledger: lease is -1s: it must not be below 0":                                                          {Lease: -time.Second},
		"ledger: lease is 200ms: it must be at least 1s, or 0 for the default":                                  {Lease: 200 * time.Millisecond},
		"ledger: budget is 15s: it must be below the lease, 15s":                                                {Budget: 15 * time.Second},
		"ledger: replicas is -1: it must not be below 0":                                                        {Replicas: -1},
		`ledger: mode is "shared": it must be share, deny or open`:                                              {Mode: "shared"},
		"ledger: replicas is -2: it must not be below 0\nledger: mode is \"x\": it must be share, deny or open": {Replicas: -2, Mode: "x"},
	} {
		store := newFake()
		_, err := ledger.Open(store, s)
		require.EqualError(t, err, text)
		require.Zero(t, store.closes, "the store is the caller's still")
	}
	_, err := ledger.Open(nil, ledger.Settings{})
	require.EqualError(t, err, "ledger: Open needs a store")

	for _, s := range []ledger.Settings{{}, {Mode: ledger.Deny, Lease: time.Second}, {Mode: ledger.Free}, {Mode: ledger.Share}} {
		synctest.Test(t, func(t *testing.T) {
			require.Equal(t, s.WithDefaults(), open(t, newFake(), s).Settings())
		})
	}
}
