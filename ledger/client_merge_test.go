package ledger_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
)

func TestOutageOfAnHourNeedsLittleMemory(t *testing.T) {
	const counters = 10
	calls := 1_000_000
	if raceEnabled {
		calls /= 10 // the detector makes each ten times as long
	}
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.always(fault{refused: true})
		var all []*ledger.Counter
		for i := range counters {
			all = append(all, counter(string(rune('a'+i)), "1h"))
		}
		before := heap()
		start := time.Now()
		for i := range calls {
			c.Charge(ledger.Charge{Counter: all[i%counters], N: 1})
			if i%100 == 0 {
				sleep(t.Context(), time.Hour*100/time.Duration(calls))
			}
		}
		require.Less(t, heap()-before, int64(1<<20), "bytes")
		store.always(fault{})
		sleep(t.Context(), 2*time.Second)
		require.True(t, c.Status().Up)
		told, sum := 0, int64(0)
		for _, b := range store.batches() {
			told += len(b.Charges)
			for _, ch := range b.Charges {
				sum += ch.N
				require.False(t, ch.At.Before(start))
			}
		}
		// None of an hour's window is lost, but for the two seconds since that hour began.
		require.InDelta(t, calls, sum, float64(calls)/1000)
		require.LessOrEqual(t, told, counters*66)
	})
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Merged charges are told at the latest instant of their slot: never too early.
func TestMergedChargesAreStrict(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		r := seeded(t, 1)
		store.always(fault{refused: true})
		c.Charge(ledger.Charge{Counter: minute, N: 1})
		synctest.Wait() // it is being said again, and not merged with
		type charge struct {
			at time.Time
			n  int64
		}
		var told []charge
		now := time.Now()
		for range 1000 {
			ch := charge{at: now.Add(-time.Duration(r.Int64N(int64(time.Minute)))), n: r.Int64N(5) + 1}
			told = append(told, ch)
			c.Charge(ledger.Charge{Counter: minute, At: ch.at, N: ch.n})
		}
		store.always(fault{})
		c.Charge(ledger.Charge{Counter: minute, At: now.Add(-61 * time.Second), N: 1000}) // counts no more
		sleep(t.Context(), 150*time.Millisecond)
		heard := store.batches()
		require.Len(t, heard[0].Charges, 1) // the first, which was being said
		for _, ch := range heard[1].Charges {
			require.LessOrEqual(t, now.Sub(ch.At), time.Minute)
		}
		since := func(at time.Time) (declared, heardOf int64) {
			for _, ch := range told {
				if !ch.at.Before(at) {
					declared += ch.n
				}
			}
			for _, b := range heard {
				for _, ch := range b.Charges {
					if !ch.At.Before(at) {
						heardOf += ch.N
					}
				}
			}
			return declared + 1, heardOf
		}
		for back := time.Duration(0); back <= 59*time.Second; back += 100 * time.Millisecond {
			at := now.Add(-back)
			less, got := since(at)
			more, _ := since(at.Add(-time.Minute / 64))
			require.GreaterOrEqual(t, got, less, back)
			require.LessOrEqual(t, got, more, back)
		}
	})
}

func TestNewsAreMerged(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		other := counter("other", "24h")
		store.always(fault{refused: true})
		c.Charge(ledger.Charge{Counter: minute, N: 1}) // what is being said again is not merged with
		synctest.Wait()
		long, short := pause("key", "k", time.Hour), pause("key", "k", time.Minute)
		resumed := pause("endpoint", "e", time.Hour)
		for range 1000 {
			c.Tell(ledger.News{Pause: pause("provider", "", time.Minute)})
			c.Tell(ledger.News{Pause: long})
			c.Tell(ledger.News{Pause: short})
			c.Tell(ledger.News{Pause: resumed})
			c.Tell(ledger.News{Learn: &ledger.Learnt{Counter: other, Max: 7, Until: time.Now().Add(time.Hour)}})
			c.Tell(ledger.News{Learn: &ledger.Learnt{Counter: other, Max: 5, Until: time.Now().Add(time.Hour)}})
		}
		c.Tell(ledger.News{Resume: resumed})
		c.Tell(ledger.News{})
		store.always(fault{})
		sleep(t.Context(), 200*time.Millisecond)
		heard := store.batches()
		var news []ledger.News
		for _, b := range heard {
			news = append(news, b.News...)
		}
		require.Len(t, news, 4)
		require.Equal(t, "provider", news[0].Pause.Scope)
		require.Equal(t, long, news[1].Pause)
		require.Equal(t, int64(5), news[2].Learn.Max)
		require.Equal(t, resumed, news[3].Resume)

		// All of a provider: what was told of its scopes before is needless.
		store.always(fault{refused: true})
		c.Charge(ledger.Charge{Counter: minute, N: 1})
		synctest.Wait()
		c.Tell(ledger.News{Pause: long})
		c.Tell(ledger.News{Resume: resumed})
		c.Tell(ledger.News{Pause: &ledger.Pause{Provider: "q", Scope: "provider", Until: time.Now().Add(time.Hour)}})
		c.Tell(ledger.News{Resume: &ledger.Pause{Provider: "p"}})
		c.Tell(ledger.News{Pause: short})
		store.always(fault{})
		sleep(t.Context(), 200*time.Millisecond)
		news = nil
		for _, b := range store.batches() {
			news = append(news, b.News...)
		}
		require.Len(t, news, 3)
		require.Equal(t, "q", news[0].Pause.Provider)
		require.Equal(t, &ledger.Pause{Provider: "p"}, news[1].Resume)
		require.Equal(t, short, news[2].Pause)
	})
}
