package ledger_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
)

// grants is a store that grants all at once, or after a round trip.
type grants struct {
	trip      time.Duration
	exchanges atomic.Int64
}

func (g *grants) Exchange(_ context.Context, b *ledger.Batch) (*ledger.Reply, error) {
	g.exchanges.Add(1)
	if g.trip > 0 {
		time.Sleep(g.trip)
	}
	r := &ledger.Reply{Epoch: "e", Version: 1, Replicas: 1}
	for _, a := range b.Takes {
		r.Grants = append(r.Grants, ledger.Grant{Hold: a.Hold})
	}
	return r, nil
}

func (*grants) Close() error { return nil }

func benchmark(b *testing.B, trip time.Duration, callers int) {
	store := &grants{trip: trip}
	c, err := ledger.Open(store, ledger.Settings{Budget: 10 * time.Second, Lease: time.Minute})
	require.NoError(b, err)
	defer c.Close(b.Context())
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				g, err := c.Take(b.Context(), one(minute))
				if err != nil {
					b.Error(err)
					return
				}
				c.Settle(ledger.Settlement{Hold: g.Hold})
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(store.exchanges.Load())/float64(b.N), "exchanges/op")
}

// A take and its settlement: what the client adds to a store that takes no time.
func BenchmarkAlone(b *testing.B)    { benchmark(b, 0, 1) }
func BenchmarkThousand(b *testing.B) { benchmark(b, 0, 1000) }

// The same with a store 200 µs away.
func BenchmarkThousandFar(b *testing.B) { benchmark(b, 200*time.Microsecond, 1000) }

func BenchmarkCharge(b *testing.B) {
	c, err := ledger.Open(&grants{}, ledger.Settings{})
	require.NoError(b, err)
	defer c.Close(b.Context())
	b.ReportAllocs()
	for b.Loop() {
		c.Charge(ledger.Charge{Counter: minute, N: 1})
	}
}

func BenchmarkStatus(b *testing.B) {
	c, err := ledger.Open(&grants{}, ledger.Settings{})
	require.NoError(b, err)
	defer c.Close(b.Context())
	b.ReportAllocs()
	for b.Loop() {
		c.Status()
	}
}
