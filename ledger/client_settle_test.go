package ledger_test

import (
	"context"
	"math"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// settlements are those that the store has heard since the last call.
func settlements(store *fake) (all []ledger.Settlement) {
	synctest.Wait()
	for _, b := range store.batches() {
		all = append(all, b.Settlements...)
	}
	return all
}

func TestSettlementsThatTellNothingAreNotSaid(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		start := time.Now()
		three := ledger.Take{Provider: "p", Units: []ledger.Units{{minute, 1}, {minute, 2}, {minute, 3}}}
		g, err := c.Take(t.Context(), three)
		require.NoError(t, err)
		three.Units[1].N = 100 // the caller's own again

		settle := func(s ledger.Settlement) []ledger.Settlement {
			s.Hold = g.Hold
			c.Settle(s)
			return settlements(store)
		}
		part := func(unit int, charged int64) []ledger.Part { return []ledger.Part{{Unit: unit, Charged: charged}} }
		require.Equal(t, []ledger.Settlement{{Hold: g.Hold, At: start, Part: part(1, 9)}},
			settle(ledger.Settlement{Part: part(1, 9)}))
		require.Empty(t, settle(ledger.Settlement{Part: part(1, 9)}), "twice")
		require.Empty(t, settle(ledger.Settlement{Part: part(7, 9)}), "no such unit")
		require.Empty(t, settle(ledger.Settlement{Part: part(-1, 9)}), "no such unit")
		require.Equal(t, []ledger.Settlement{{Hold: g.Hold, At: start, Part: part(0, 0)}},
			settle(ledger.Settlement{Part: []ledger.Part{{1, 9}, {0, -5}, {0, 4}}}), "what is left of it")
		require.Equal(t, []ledger.Settlement{{Hold: g.Hold, At: start, Part: []ledger.Part{}, Trial: ledger.Opens}},
			settle(ledger.Settlement{Part: part(1, 9), Trial: ledger.Opens}))
		at := start.Add(-time.Second)
		require.Equal(t, []ledger.Settlement{{Hold: g.Hold, At: at, Back: true}},
			settle(ledger.Settlement{At: at, Back: true}))
		require.Empty(t, settle(ledger.Settlement{}), "over")
		c.Settle(ledger.Settlement{Hold: 12345})
		c.Settle(ledger.Settlement{})
		require.Empty(t, settlements(store))
		require.Equal(t, int64(9), store.charged[minute.ID()])
		require.Zero(t, store.holds())
	})
}

// A call of which only pauses are asked holds nothing, unless it goes alone.
func TestGrantWithoutUnits(t *testing.T) {
	for _, alone := range []bool{false, true} {
		bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
			store.refuse = func(ledger.Take) ledger.Grant { return ledger.Grant{Hold: 99, Alone: alone} }
			g, err := c.Take(t.Context(), ledger.Take{Provider: "p"})
			require.NoError(t, err)
			require.Equal(t, alone, g.Alone)
			store.batches()
			c.Settle(ledger.Settlement{Hold: g.Hold, Trial: ledger.Opens})
			require.Len(t, settlements(store), map[bool]int{true: 1, false: 0}[alone])
		})
	}
}

// A store carries out charges before settlements: what takes back from a settlement
// goes with the batch after it.
func TestTakeBackGoesAfterItsSettlement(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		g, err := c.Take(t.Context(), ledger.Take{Provider: "p", Units: []ledger.Units{{minute, 10}}})
		require.NoError(t, err)
		store.always(fault{before: 5 * time.Millisecond})
		c.Charge(ledger.Charge{Counter: minute, N: 1})
		synctest.Wait()
		at := time.Now()
		c.Settle(ledger.Settlement{Hold: g.Hold, At: at})
		back := ledger.Charge{Counter: minute, At: at, N: -4}
		c.Charge(back)
		c.Charge(ledger.Charge{Counter: minute, At: at, N: 2})
		store.batches()
		sleep(t.Context(), 30*time.Millisecond)
		heard := store.batches()
		require.Len(t, heard, 3)
		require.Equal(t, []ledger.Charge{{Counter: minute, At: at, N: 2}}, heard[1].Charges)
		require.Len(t, heard[1].Settlements, 1)
		require.Equal(t, []ledger.Charge{back}, heard[2].Charges)

		// Where there is no settlement it need not wait.
		c.Charge(back)
		u, err := c.Peek(t.Context(), []*ledger.Counter{minute})
		require.NoError(t, err)
		require.Equal(t, []ledger.Usage{{Used: 1 + 2 + 10 - 4 - 4}}, u)
	})
}

// A charge that is taken back while both are queued is not said.
func TestChargeTakenBackInTheQueue(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.always(fault{refused: true})
		c.Charge(ledger.Charge{Counter: minute, N: 1})
		synctest.Wait()
		day := counter("day", "24h")
		at := time.Now()
		c.Charge(ledger.Charge{Counter: day, At: at, N: 5})
		c.Charge(ledger.Charge{Counter: day, At: at, N: -2})
		c.Charge(ledger.Charge{Counter: minute, At: at, N: 5})
		c.Charge(ledger.Charge{Counter: minute, At: at, N: -7})
		c.Charge(ledger.Charge{Counter: minute, At: at, N: math.MinInt64})
		c.Charge(ledger.Charge{Counter: day})
		c.Charge(ledger.Charge{Counter: ledger.NewCounter("p", provider.Limit{Name: "slots", Max: 3, Algorithm: provider.InFlight}, "", ""), N: 1})
		store.always(fault{})
		sleep(t.Context(), 200*time.Millisecond)
		var told []ledger.Charge
		for _, b := range store.batches()[1:] {
			told = append(told, b.Charges...)
		}
		require.ElementsMatch(t, []ledger.Charge{
			{Counter: day, At: at, N: 3}, {Counter: minute, At: at, N: -2}, {Counter: minute, At: at, N: -math.MaxInt64},
		}, told)
	})
}

func TestSumsSaturate(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.always(fault{refused: true})
		c.Charge(ledger.Charge{Counter: minute, N: 1})
		synctest.Wait()
		c.Charge(ledger.Charge{Counter: minute, N: 1})
		c.Charge(ledger.Charge{Counter: minute, At: time.Now().Add(time.Hour), N: math.MaxInt64})
		store.always(fault{})
		sleep(t.Context(), 200*time.Millisecond)
		heard := store.batches()
		require.Equal(t, []ledger.Charge{{Counter: minute, At: heard[0].Charges[0].At, N: math.MaxInt64}}, heard[1].Charges)
	})
}

// Of what takes something back only so much is kept: the rest stays charged.
func TestTakeBacksAreBounded(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		store.always(fault{refused: true})
		for i := range 10_000 {
			c.Charge(ledger.Charge{Counter: minute, At: time.Now().Add(-time.Duration(i) * time.Millisecond), N: -1})
		}
		store.always(fault{})
		sleep(t.Context(), time.Second)
		require.GreaterOrEqual(t, store.charged[minute.ID()], int64(-4096-512), "a batch is in doubt")
		require.Less(t, store.charged[minute.ID()], int64(-4000))
		for _, b := range store.batches() {
			require.LessOrEqual(t, len(b.Charges), 512)
		}
	})
}

func TestPeekAsksForManyInTurn(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		var all []*ledger.Counter
		for i := range 1100 {
			k := counter(strconv.Itoa(i), "1h")
			all = append(all, k)
			c.Charge(ledger.Charge{Counter: k, N: int64(i + 1)})
		}
		got, err := c.Peek(t.Context(), all)
		require.NoError(t, err)
		require.Len(t, got, 1100)
		for i, u := range got {
			require.Equal(t, int64(i+1), u.Used)
		}
		for _, b := range store.batches() {
			require.LessOrEqual(t, len(b.Peek), 512)
		}
		none, err := c.Peek(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, none)

		store.always(fault{refused: true})
		_, err = c.Peek(t.Context(), all)
		require.ErrorIs(t, err, ledger.ErrDown)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = c.Peek(ctx, all)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// What was queued of a provider before it is forgotten is not heard after it.
func TestForget(t *testing.T) {
	bubble(t, ledger.Settings{Budget: time.Second}, func(t *testing.T, c *ledger.Client, store *fake) {
		other := ledger.NewCounter("q", provider.Limit{Name: "minute", Max: 1, Per: "1m"}, "", "")
		h := take(t, c)
		g, err := c.Take(t.Context(), ledger.Take{Provider: "q", Units: []ledger.Units{{other, 1}}})
		require.NoError(t, err)
		store.always(fault{before: 5 * time.Millisecond})
		c.Charge(ledger.Charge{Counter: minute, N: 1})
		synctest.Wait()
		for _, k := range []*ledger.Counter{minute, other} {
			c.Charge(ledger.Charge{Counter: k, N: 1})
			c.Charge(ledger.Charge{Counter: k, At: time.Now().Add(-time.Second), N: -1})
			c.Tell(ledger.News{Pause: &ledger.Pause{Provider: k.Provider(), Scope: "provider", Until: time.Now().Add(time.Hour)}})
			c.Tell(ledger.News{Learn: &ledger.Learnt{Counter: k, NotBefore: time.Now().Add(time.Hour)}})
		}
		store.batches()
		require.NoError(t, c.Forget(t.Context(), "p"))
		sleep(t.Context(), 50*time.Millisecond)
		var charges []ledger.Charge
		var forgot []string
		news := 0
		for _, b := range store.batches()[1:] {
			charges = append(charges, b.Charges...)
			forgot = append(forgot, b.Forget...)
			news += len(b.News)
		}
		require.Equal(t, []string{"p"}, forgot)
		require.Len(t, charges, 2)
		require.Equal(t, other, charges[0].Counter)
		require.Equal(t, 2, news)

		c.Settle(ledger.Settlement{Hold: h})
		sleep(t.Context(), 50*time.Millisecond)
		require.Empty(t, settlements(store), "what was held is forgotten")
		c.Settle(ledger.Settlement{Hold: g.Hold})
		sleep(t.Context(), 50*time.Millisecond)
		require.Len(t, settlements(store), 1)

		store.lose("second")
		sleep(t.Context(), 2*time.Second)
		require.Zero(t, store.charged[minute.ID()])
		require.NotZero(t, store.charged[other.ID()])

		store.always(fault{cut: true})
		require.ErrorIs(t, c.Forget(t.Context(), "p"), ledger.ErrDown)
		store.always(fault{})
		store.batches()
		sleep(t.Context(), time.Second)
		for _, b := range store.batches() {
			require.Empty(t, b.Forget, "it is not said again")
		}
	})
}

func TestUnitsMayBeUsedAgain(t *testing.T) {
	bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
		units := []ledger.Units{{minute, 1}}
		g, err := c.Take(t.Context(), ledger.Take{Provider: "p", Units: units})
		require.NoError(t, err)
		units[0].N = 7
		c.Settle(ledger.Settlement{Hold: g.Hold})
		synctest.Wait()
		require.Equal(t, int64(1), store.charged[minute.ID()])

		learnt := &ledger.Learnt{Counter: minute, Max: 7}
		paused := pause("key", "k", time.Hour)
		store.always(fault{before: time.Millisecond})
		c.Charge(ledger.Charge{Counter: minute, N: 1})
		c.Tell(ledger.News{Learn: learnt})
		c.Tell(ledger.News{Resume: paused})
		c.Tell(ledger.News{Pause: paused})
		learnt.Max, paused.Name = 8, "other"
		sleep(t.Context(), 5*time.Millisecond)
		var news []ledger.News
		for _, b := range store.batches() {
			news = append(news, b.News...)
		}
		require.Len(t, news, 3)
		require.Equal(t, int64(7), news[0].Learn.Max)
		require.Equal(t, "k", news[1].Resume.Name)
		require.Equal(t, "k", news[2].Pause.Name)
	})
}
