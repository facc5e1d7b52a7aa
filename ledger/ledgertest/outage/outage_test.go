package outage

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/ledgertest"
	"github.com/headgate/headgate/ledger/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	for mode, fault := range map[ledger.Mode]ledgertest.Fault{
		ledger.Share: {Hang: true},
		ledger.Deny:  {Deaf: true},
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			store := memory.New()
			var ways []*ledgertest.Faulty
			set := func(f ledgertest.Fault) {
				for _, w := range ways {
					w.Set(f)
				}
			}
			Run(t, Play{
				Mode: mode,
				Store: func(*testing.T) ledger.Store {
					ways = append(ways, &ledgertest.Faulty{Store: store})
					return ways[len(ways)-1]
				},
				Begin: func(*testing.T) { set(fault) },
				End:   func(*testing.T) { set(ledgertest.Fault{}) },
			})
		})
	}
	t.Run("loses its state", func(t *testing.T) {
		t.Parallel()
		store := memory.New()
		Run(t, Play{
			Short: true,
			Store: func(*testing.T) ledger.Store { return &ledgertest.Faulty{Store: store} },
			Begin: func(*testing.T) { store.Lose() },
		})
	})
}
