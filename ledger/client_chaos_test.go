package ledger_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// Whatever goes wrong, each charge counts once, no take is asked twice, and what the
// store holds in the end is what callers hold.
func TestNothingIsLostOrDoubled(t *testing.T) {
	for seed := range uint64(40) {
		bubble(t, ledger.Settings{}, func(t *testing.T, c *ledger.Client, store *fake) {
			chaos(t, c, store, seeded(t, seed), func() {})
		})
	}
}

// chaos calls at random a store that fails at random, and sees that all is right when
// both have ceased.
func chaos(t *testing.T, c *ledger.Client, store *fake, r *rand.Rand, cease func()) {
	t.Helper()
	faults := rand.New(rand.NewPCG(r.Uint64(), 0)) // of another goroutine
	store.set(func(int) fault { return randomFault(faults) })
	counters := []*ledger.Counter{minute, counter("hour", "1h"), counter("day", provider.Day)}
	charged := map[string]int64{}
	charge := func(n int64) {
		k := counters[r.IntN(len(counters))]
		c.Charge(ledger.Charge{Counter: k, N: n})
		charged[k.ID()] += n
	}
	type grant struct {
		hold ledger.Hold
		err  error
	}
	grants := make(chan grant, 10_000)
	var out []ledger.Hold
	asked := 0
	for range 600 {
		switch r.IntN(5) {
		case 0:
			charge(r.Int64N(10) + 1)
		case 1, 2:
			asked++
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.Int64N(int64(40*time.Millisecond))))
			go func() {
				defer cancel()
				g, err := c.Take(ctx, one(counters[1]))
				grants <- grant{g.Hold, err}
			}()
		case 3:
			if len(out) > 0 {
				i := r.IntN(len(out))
				back := r.IntN(2) == 0
				if !back {
					charged[counters[1].ID()]++
				}
				c.Settle(ledger.Settlement{Hold: out[i], Back: back})
				out = append(out[:i], out[i+1:]...)
			}
		case 4:
			sleep(t.Context(), time.Duration(r.Int64N(int64(30*time.Millisecond))))
		}
		for len(grants) > 0 {
			if g := <-grants; g.err == nil && g.hold != 0 {
				out = append(out, g.hold)
			}
			asked--
		}
	}
	for range asked {
		if g := <-grants; g.err == nil && g.hold != 0 {
			out = append(out, g.hold)
		}
	}
	cease()
	store.always(fault{})
	sleep(t.Context(), 3*time.Second)
	require.True(t, c.Status().Up)
	require.Len(t, store.held, len(out))
	for n := range store.held {
		require.Contains(t, out, n.hold)
	}
	for h, n := range store.granted {
		require.Equal(t, 1, n, h)
	}
	require.Equal(t, charged[minute.ID()], store.charged[minute.ID()])
	require.Equal(t, charged, store.charged)
}

func randomFault(r *rand.Rand) (x fault) {
	switch r.IntN(10) {
	case 0:
		x.refused = true
	case 1:
		x.cut = true
	case 2:
		x.hangs = true
	case 3:
		x.after = time.Duration(r.Int64N(int64(1200 * time.Millisecond)))
	default:
		x.before = time.Duration(r.Int64N(int64(5 * time.Millisecond)))
		x.after = time.Duration(r.Int64N(int64(10 * time.Millisecond)))
	}
	return x
}
