package ledgertest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The memory store passes the suite in virtual time, in its own tests. Here some of
// each group show that the suite can be passed in real time, too.
func TestInRealTime(t *testing.T) {
	for _, group := range groups {
		for i, p := range group {
			if i > 1 || p.days {
				continue
			}
			t.Run(p.name, func(t *testing.T) {
				p.start(t, false, func(*testing.T) Bench {
					s := memory.New()
					return Bench{
						Store: func(*testing.T) ledger.Store { return s },
						Lose:  func(*testing.T) { s.Lose() },
					}
				})
			})
		}
	}
}
