package ledger_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs f in virtual time with a client of a fake store that has greeted it.
func bubble(t *testing.T, s ledger.Settings, f func(t *testing.T, c *ledger.Client, store *fake)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := newFake()
		c := open(t, store, s)
		require.True(t, c.Status().Up)
		store.batches()
		f(t, c, store)
	})
}

func open(t *testing.T, store ledger.Store, s ledger.Settings) *ledger.Client {
	t.Helper()
	c, err := ledger.Open(store, s)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		c.Close(ctx)
	})
	return c
}

func counter(id string, per provider.Period) *ledger.Counter {
	return ledger.NewCounter("p", provider.Limit{Name: id, Max: 100, Per: per}, "", "")
}

var minute = counter("minute", "1m")

func one(c *ledger.Counter) ledger.Take {
	return ledger.Take{Provider: "p", Units: []ledger.Units{{Counter: c, N: 1}}}
}

func take(t *testing.T, c *ledger.Client) ledger.Hold {
	t.Helper()
	g, err := c.Take(t.Context(), one(minute))
	require.NoError(t, err)
	require.NotZero(t, g.Hold)
	return g.Hold
}

func pause(scope, name string, in time.Duration) *ledger.Pause {
	return &ledger.Pause{Provider: "p", Scope: scope, Name: name, Until: time.Now().Add(in), Why: "rate_limited"}
}

func seeded(t *testing.T, seed uint64) *rand.Rand {
	t.Helper()
	t.Log("seed", seed)
	return rand.New(rand.NewPCG(seed, seed))
}

func describe(bs []heard) (all []string) {
	for _, b := range bs {
		all = append(all, fmt.Sprintf("%v: #%d holds %d, charges %d, settlements %d, news %d, takes %d", b.at, b.Seq,
			len(b.Holds), len(b.Charges), len(b.Settlements), len(b.News), len(b.Takes)))
	}
	return all
}
