package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/ledgertest"
	"github.com/headgate/headgate/ledger/sqlite"
)

func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// bench is a file that all processes of a play open, each by itself. Where there is a
// file system in memory it is there: the suite opens hundreds.
func bench(t *testing.T) ledgertest.Bench {
	if raceEnabled && (strings.Contains(t.Name(), "/random/") || strings.Contains(t.Name(), "/many_callers")) {
		t.Skip("under the race detector SQLite is 30 times as slow: this is played without it")
	}
	path := filepath.Join(tempDir(t), "ledger.db")
	var all []*sqlite.Store
	var back time.Duration
	return ledgertest.Bench{
		Store: func(t *testing.T) ledger.Store {
			s := open(t, path)
			s.Step(back)
			all = append(all, s)
			return s
		},
		Virtual: true,
		Lose: func(t *testing.T) {
			require.NoError(t, open(t, path).Lose())
		},
		Step: func(t *testing.T, d time.Duration) {
			// Processes that have said nothing yet learn the time from what others said last.
			now := open(t, path)
			now.Step(back)
			_, err := now.Exchange(t.Context(), &ledger.Batch{Holder: "clock", Gone: true})
			require.NoError(t, err)
			back += d
			for _, s := range all {
				s.Step(d)
			}
		},
	}
}

func tempDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "ledger") //nolint:usetesting // that one is on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func TestConformance(t *testing.T) { ledgertest.Run(t, bench) }
