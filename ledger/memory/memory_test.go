package memory_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/ledgertest"
	"github.com/headgate/headgate/ledger/memory"
)

func TestConformance(t *testing.T) {
	ledgertest.Run(t, func(*testing.T) ledgertest.Bench {
		s := memory.New()
		return ledgertest.Bench{
			Store:   func(*testing.T) ledger.Store { return s },
			Virtual: true,
			Lose:    func(*testing.T) { s.Lose() },
			Step:    func(_ *testing.T, d time.Duration) { s.Step(d) },
		}
	})
}
