package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/ledgertest/outage"
	"github.com/headgate/headgate/ledger/sqlite"
)

// Three processes of 200 callers each share a budget by one file, and one of them is
// killed.
func TestProcesses(t *testing.T) {
	outage.Processes(t, outage.Team{
		Place: func(t *testing.T) string { return filepath.Join(t.TempDir(), "ledger.db") },
		Store: func(t *testing.T, place string) ledger.Store {
			s, err := sqlite.Open(place, sqlite.Options{})
			require.NoError(t, err)
			return s
		},
	})
}
