package sqlite_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/ledgertest/outage"
	"github.com/headgate/headgate/ledger/sqlite"
)

// Three coordinators with ninety callers at a provider that counts, while something
// happens to their file.
func TestOutage(t *testing.T) {
	for name, play := range map[string]func(path string) outage.Play{
		"locked": func(path string) outage.Play {
			var other *process
			return outage.Play{
				Begin: func(t *testing.T) {
					other = start(t, "lock", path)
					require.Eventually(t, func() bool { return len(other.said()) > 0 }, time.Minute, time.Millisecond)
				},
				End: func(t *testing.T) { other.kill(t) },
			}
		},
		"locked, denied": func(path string) outage.Play {
			var other *process
			return outage.Play{
				Mode: ledger.Deny,
				Begin: func(t *testing.T) {
					other = start(t, "lock", path)
					require.Eventually(t, func() bool { return len(other.said()) > 0 }, time.Minute, time.Millisecond)
				},
				End: func(t *testing.T) { other.kill(t) },
			}
		},
		"deleted": func(path string) outage.Play {
			return outage.Play{Some: true, Begin: func(t *testing.T) { require.NoError(t, os.Remove(path)) }}
		},
		"replaced": func(path string) outage.Play {
			return outage.Play{Some: true, Begin: func(t *testing.T) {
				other, err := sqlite.Open(path+".new", sqlite.Options{})
				require.NoError(t, err)
				require.NoError(t, other.Close())
				require.NoError(t, os.Rename(path+".new", path))
			}}
		},
		"turned into a directory": func(path string) outage.Play {
			return outage.Play{
				Begin: func(t *testing.T) {
					require.NoError(t, os.Rename(path, path+".away"))
					require.NoError(t, os.Mkdir(path, 0o755))
				},
				End: func(t *testing.T) { require.NoError(t, os.Remove(path)) },
			}
		},
		"disk full": func(path string) outage.Play {
			ballast := path + ".ballast"
			return outage.Play{
				Some:  true, // a batch that needs no new page goes still
				Begin: func(t *testing.T) { fillUp(t, ballast) },
				End:   func(t *testing.T) { require.NoError(t, os.Remove(ballast)) },
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if name == "disk full" {
				small(t, dir)
			}
			path := filepath.Join(dir, "ledger.db")
			p := play(path)
			p.Store = func(t *testing.T) ledger.Store {
				s, err := sqlite.Open(path, sqlite.Options{})
				require.NoError(t, err)
				return s
			}
			outage.Run(t, p)
		})
	}
}

// small makes a disk of a folder that is soon full. Where that is not allowed the test is
// skipped; that a file may not grow is tested by TestNoRoom in any case.
func small(t *testing.T, dir string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted here (%s)", out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
}

// fillUp writes until there is no room.
func fillUp(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	require.NoError(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 1024))
	}
	require.NoError(t, f.Close())
}
