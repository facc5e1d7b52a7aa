package ledger_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/memory"
)

// losses is how often the store loses its state. Around that instant lines are good: a
// client that cannot tell what it knows within ledger.Grace tells it too late.
const losses = 2 * time.Minute

// astray is a store on a bad line.
type astray struct {
	ledger.Store
	start time.Time
	mu    sync.Mutex
	r     *rand.Rand
}

func (a *astray) Exchange(ctx context.Context, b *ledger.Batch) (*ledger.Reply, error) {
	a.mu.Lock()
	x := fault{before: time.Duration(a.r.Int64N(int64(3 * time.Millisecond))), after: time.Duration(a.r.Int64N(int64(3 * time.Millisecond)))}
	if near := (time.Since(a.start) + 2*time.Second) % losses; near > 5*time.Second && a.r.IntN(10) == 0 {
		x = randomFault(a.r)
	}
	a.mu.Unlock()
	if x.hangs {
		<-ctx.Done()
	}
	if err := sleep(ctx, x.before); err != nil || x.hangs || x.refused {
		return nil, errNet
	}
	r, err := a.Store.Exchange(ctx, b)
	if e := sleep(ctx, x.after); e != nil || x.cut {
		return nil, errNet
	}
	return r, err
}

// line is the other side: when calls arrived there.
type line struct {
	mu      sync.Mutex
	arrived []time.Time
}

func (l *line) call(ctx context.Context, c *ledger.Client, r *rand.Rand) {
	for ctx.Err() == nil {
		g, err := c.Take(ctx, one(minute))
		if err != nil || g.Hold == 0 {
			sleep(ctx, min(max(g.Wait, 50*time.Millisecond), time.Second))
			continue
		}
		sleep(context.Background(), time.Duration(r.Int64N(int64(50*time.Millisecond))))
		l.mu.Lock()
		l.arrived = append(l.arrived, time.Now())
		l.mu.Unlock()
		sleep(context.Background(), time.Duration(r.Int64N(int64(50*time.Millisecond))))
		c.Settle(ledger.Settlement{Hold: g.Hold})
	}
}

// Three processes on bad lines to a store that loses its state now and then keep to 100
// a minute, and use most of it.
func TestBudgetHoldsOverFaults(t *testing.T) {
	for seed := range uint64(2) {
		synctest.Test(t, func(t *testing.T) {
			store, r := memory.New(), seeded(t, seed)
			var l line
			var all sync.WaitGroup
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
			defer cancel()
			for range 3 {
				c := open(t, &astray{Store: store, start: time.Now(), r: rand.New(rand.NewPCG(r.Uint64(), 1))}, ledger.Settings{})
				for range 5 {
					mine := rand.New(rand.NewPCG(r.Uint64(), 2))
					all.Go(func() { l.call(ctx, c, mine) })
				}
			}
			all.Go(func() {
				for sleep(ctx, losses) == nil {
					store.Lose()
				}
			})
			all.Wait()
			slices.SortFunc(l.arrived, time.Time.Compare)
			for i := range len(l.arrived) - 100 {
				require.Greater(t, l.arrived[i+100].Sub(l.arrived[i]), time.Minute)
			}
			require.Greater(t, len(l.arrived), 6*100*8/10)
			t.Log(len(l.arrived), "calls of", 6*100)
		})
	}
}
