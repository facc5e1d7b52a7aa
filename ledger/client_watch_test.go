package ledger_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
)

// ear writes down what a watcher hears.
type ear struct {
	mu    sync.Mutex
	heard []string
}

func (e *ear) hear(ch ledger.Change) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = append(e.heard, text(ch))
}

func text(ch ledger.Change) string {
	switch {
	case ch.Pause != nil:
		return fmt.Sprintf("pause %s %s for %v", ch.Pause.Scope, ch.Pause.Name, time.Until(ch.Pause.Until).Round(10*time.Second))
	case ch.Resume != nil:
		return fmt.Sprintf("resume %s %s", ch.Resume.Scope, ch.Resume.Name)
	}
	return fmt.Sprintf("up %v, replicas %d, %s", ch.Status.Up, ch.Status.Replicas, ch.Status.Detail)
}

// since waits for a beat and returns what was heard since the last time.
func (e *ear) since(t *testing.T) []string {
	t.Helper()
	sleep(t.Context(), 1100*time.Millisecond)
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	heard := e.heard
	e.heard = nil
	return heard
}

func TestWatchHearsOfOthersPauses(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		var e ear
		defer c.Watch(e.hear)()
		require.Empty(t, e.since(t))

		store.others(ledger.News{Pause: pause("key", "k", time.Minute)})
		require.Equal(t, []string{"pause key k for 1m0s"}, e.since(t))
		require.Empty(t, e.since(t), "nothing new")

		store.others(ledger.News{Pause: pause("key", "k", time.Hour)})
		require.Equal(t, []string{"pause key k for 1h0m0s"}, e.since(t))

		store.others(ledger.News{Resume: pause("key", "k", 0)})
		require.Equal(t, []string{"resume key k"}, e.since(t))

		store.others(ledger.News{Pause: pause("key", "k", time.Hour)})
		e.since(t)
		store.others(ledger.News{Resume: pause("key", "k", 0)}, ledger.News{Pause: pause("key", "k", time.Minute)})
		require.Equal(t, []string{"resume key k", "pause key k for 1m0s"}, e.since(t), "pauses are only extended: a shorter one is another one")
	})
}

func TestWatchDoesNotHearOfItsOwn(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		var e ear
		defer c.Watch(e.hear)()
		own := pause("provider", "", time.Minute)
		c.Tell(ledger.News{Pause: own})
		require.Empty(t, e.since(t))
		require.Len(t, store.pauses, 1)

		store.others(ledger.News{Pause: pause("provider", "", time.Hour)})
		require.Equal(t, []string{"pause provider  for 1h0m0s"}, e.since(t), "another one has extended it")

		c.Tell(ledger.News{Resume: own})
		require.Empty(t, e.since(t))
		require.Empty(t, store.pauses)

		// All of a provider, and by the answer to a trial.
		c.Tell(ledger.News{Pause: pause("endpoint", "e", time.Minute)})
		require.Empty(t, e.since(t))
		c.Tell(ledger.News{Resume: &ledger.Pause{Provider: "p"}})
		require.Empty(t, e.since(t))
		require.Empty(t, store.pauses)

		store.others(ledger.News{Pause: pause("key", "k", time.Minute)}, ledger.News{Pause: pause("key", "other", time.Minute)})
		require.Len(t, e.since(t), 2)
		g, err := c.Take(t.Context(), ledger.Take{Provider: "p", Endpoint: "e", Key: "k", Units: one(minute).Units})
		require.NoError(t, err)
		store.others(ledger.News{Resume: pause("key", "k", 0)}, ledger.News{Resume: pause("key", "other", 0)})
		c.Settle(ledger.Settlement{Hold: g.Hold, Trial: ledger.Opens})
		require.Equal(t, []string{"resume key other"}, e.since(t))
	})
}

func TestWatchHearsOwnEndedByOthers(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		var e ear
		defer c.Watch(e.hear)()
		c.Tell(ledger.News{Pause: pause("provider", "", time.Minute)})
		require.Empty(t, e.since(t))
		store.others(ledger.News{Resume: pause("provider", "", 0)})
		require.Equal(t, []string{"resume provider "}, e.since(t))
	})
}

// A store tells instants as times from now: they come a little later or sooner each time.
func TestWatchDoesNotHearNoise(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		var e ear
		defer c.Watch(e.hear)()
		store.always(fault{after: 8 * time.Millisecond})
		c.Tell(ledger.News{Pause: pause("provider", "", time.Minute)})
		store.others(ledger.News{Pause: pause("key", "k", time.Minute)})
		require.Len(t, e.since(t), 1)
		shift := func(d time.Duration) {
			store.mu.Lock()
			defer store.mu.Unlock()
			store.version++
			for i := range store.pauses {
				store.pauses[i].Until = store.pauses[i].Until.Add(d)
			}
		}
		for _, d := range []time.Duration{5 * time.Millisecond, -10 * time.Millisecond, 5 * time.Millisecond} {
			shift(d)
			require.Empty(t, e.since(t))
		}
		shift(10 * time.Millisecond)
		require.Empty(t, e.since(t))
		shift(10 * time.Millisecond)
		require.Len(t, e.since(t), 2, "small steps add up")
	})
}

func TestWatcherIsToldWhatThereIs(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.others(ledger.News{Pause: pause("key", "k", time.Minute)})
		sleep(t.Context(), time.Second)
		var e ear
		defer c.Watch(e.hear)()
		synctest.Wait()
		require.Equal(t, []string{"pause key k for 1m0s"}, e.heard)
	})
}

func TestWatchHearsOfTheStatus(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		var e ear
		defer c.Watch(e.hear)()
		store.mu.Lock()
		store.replicas, store.warning = 3, "it evicts keys"
		store.mu.Unlock()
		require.Equal(t, []string{"up true, replicas 3, it evicts keys"}, e.since(t))
		store.always(fault{refused: true})
		require.Equal(t, []string{"up false, replicas 3, connection refused"}, e.since(t))
		store.always(fault{})
		require.Equal(t, []string{"up true, replicas 3, it evicts keys"}, e.since(t))
	})
}

// Of what happens while a watcher is busy it hears what has become of it.
func TestSlowWatcherHearsTheLast(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		var e ear
		busy, calls := make(chan struct{}), 0
		defer c.Watch(func(ch ledger.Change) {
			if calls++; calls == 1 {
				<-busy
			}
			e.hear(ch)
		})()
		key := func(in time.Duration) ledger.News { return ledger.News{Pause: pause("key", "k", in)} }
		store.others(key(time.Second))
		require.Empty(t, e.since(t), "busy")
		for i := range 5 {
			store.others(key(time.Duration(i+1) * time.Hour))
			e.since(t)
		}
		store.others(ledger.News{Resume: pause("key", "k", 0)})
		e.since(t)
		store.others(key(time.Minute), ledger.News{Pause: pause("key", "mine", time.Minute)})
		e.since(t)
		c.Tell(ledger.News{Resume: pause("key", "mine", 0)}) // needs not be told any more
		e.since(t)
		close(busy)
		take(t, c)
		require.Equal(t, []string{"pause key k for -10s", "resume key k", "pause key k for 1m0s"}, e.since(t))
	})
}

func TestWatcherMayPanicAndCallBack(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		var e ear
		h, calls := take(t, c), 0
		var stop func()
		stop = c.Watch(func(ch ledger.Change) {
			e.hear(ch)
			c.Settle(ledger.Settlement{Hold: h})
			c.Charge(ledger.Charge{Counter: minute, N: 1})
			c.Tell(ledger.News{Pause: pause("key", "mine", time.Minute)})
			_ = c.Status()
			g, err := c.Take(context.Background(), one(minute))
			if err == nil {
				c.Settle(ledger.Settlement{Hold: g.Hold, Back: true})
			}
			if calls++; calls == 2 {
				stop()
			}
			panic("watcher")
		})
		store.others(ledger.News{Pause: pause("key", "k", time.Minute)})
		require.Equal(t, []string{"pause key k for 1m0s"}, e.since(t))
		store.others(ledger.News{Resume: pause("key", "k", 0)})
		e.since(t)
		store.others(ledger.News{Pause: pause("key", "k", time.Minute)})
		require.Empty(t, e.since(t), "it has stopped")
		require.Equal(t, int64(3), store.charged[minute.ID()], "two charges, and a unit that was settled")
		require.Zero(t, store.holds())
		stop()
	})
}

func TestNothingIsToldAfterStop(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		var e ear
		var stop func()
		stop = c.Watch(func(ch ledger.Change) {
			e.hear(ch)
			stop()
		})
		store.others(ledger.News{Pause: pause("key", "k", time.Minute)}, ledger.News{Pause: pause("key", "l", time.Minute)})
		require.Len(t, e.since(t), 1)
	})
}
