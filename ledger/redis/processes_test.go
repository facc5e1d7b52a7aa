package redis

import (
	"testing"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/ledgertest"
	"github.com/headgate/headgate/ledger/ledgertest/outage"
)

// Three processes of 200 callers each share a budget by one server, which is some
// milliseconds away, and one of them is killed.
func TestProcesses(t *testing.T) {
	outage.Processes(t, outage.Team{
		Place: func(t *testing.T) string { return serve(t).url("") },
		Store: func(t *testing.T, place string) ledger.Store {
			way := &ledgertest.Faulty{Store: open(t, place)}
			way.Set(ledgertest.Fault{There: 2 * time.Millisecond, Back: 2 * time.Millisecond})
			return way
		},
	})
}
