package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/sqlite"
	"github.com/headgate/headgate/provider"
)

func counter(name string, most int64, per provider.Period) *ledger.Counter {
	return ledger.NewCounter("acme", provider.Limit{Name: name, Max: most, Per: per}, "", "")
}

func batch(holder string) *ledger.Batch {
	return &ledger.Batch{Holder: holder, Lease: time.Hour}
}

func exchange(t testing.TB, s ledger.Store, b *ledger.Batch) *ledger.Reply {
	t.Helper()
	r, err := s.Exchange(t.Context(), b)
	require.NoError(t, err)
	return r
}

func asking(holder string, hold int, units ...*ledger.Counter) *ledger.Batch {
	b := batch(holder)
	a := ledger.Asked{Hold: ledger.Hold(hold), Take: ledger.Take{Provider: "acme"}}
	for _, c := range units {
		a.Take.Units = append(a.Take.Units, ledger.Units{Counter: c, N: 1})
	}
	b.Takes = []ledger.Asked{a}
	return b
}

// granted takes one unit of each.
func granted(t testing.TB, s ledger.Store, holder string, hold int, units ...*ledger.Counter) {
	t.Helper()
	g := exchange(t, s, asking(holder, hold, units...)).Grants[0]
	require.NotZero(t, g.Hold, "%+v", g)
}

func peek(t testing.TB, s ledger.Store, holder string, c *ledger.Counter) ledger.Usage {
	t.Helper()
	b := batch(holder)
	b.Peek = []*ledger.Counter{c}
	return exchange(t, s, b).Usages[0]
}

// A run that is killed at 4 of 10 knows the 4 after its restart; declaring the limit
// again refills nothing; a lowered one counts at once.
func TestRestartKnowsWhatWasSpent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := open(t, path)
	for i := range 4 {
		granted(t, s, "a", i+1, counter("day", 10, "24h"))
	}
	require.NoError(t, s.Close())
	s = open(t, path)
	require.Equal(t, int64(4), peek(t, s, "b", counter("day", 10, "24h")).Held)
	granted(t, s, "b", 1, counter("day", 5, "24h"))
	g := exchange(t, s, asking("b", 2, counter("day", 5, "24h"))).Grants[0]
	require.Zero(t, g.Hold)
	require.NoError(t, s.Close())
	require.NoFileExists(t, path+"-wal", "the last one to leave tidies up")
}

// Files that are replaced, deleted or cut off from their log are noticed by the batch
// that comes next, and the one after it opens what is there.
func TestReplacedUnderneath(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"deleted":     os.Remove,
		"log deleted": func(path string) error { return os.Remove(path + "-wal") },
		"index deleted": func(path string) error {
			return errors.Join(os.Remove(path+"-wal"), os.Remove(path+"-shm"))
		},
		"replaced": func(path string) error {
			other, err := sqlite.Open(path+".new", sqlite.Options{})
			return errors.Join(err, other.Close(), os.Rename(path+".new", path))
		},
		"emptied": func(path string) error { return os.WriteFile(path, nil, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			s := open(t, path)
			granted(t, s, "a", 1, counter("day", 1, "24h"))
			epoch := exchange(t, s, batch("a")).Epoch
			require.NoError(t, harm(path))
			if name != "emptied" { // which keeps the file, and its log tells what was in it
				_, err := s.Exchange(t.Context(), asking("a", 2, counter("day", 1, "24h")))
				require.ErrorContains(t, err, "it was replaced or deleted while it was open")
			}
			b := batch("a")
			b.Epoch = epoch
			r := exchange(t, s, b)
			if name == "deleted" || name == "replaced" {
				require.NotEqual(t, epoch, r.Epoch, "it knows that it knows nothing")
				return
			}
			if r.Epoch == epoch {
				require.Equal(t, int64(1), peek(t, s, "a", counter("day", 1, "24h")).Held, "or it knows everything")
			}
		})
	}
}

func init() {
	roles["lock"] = func(args []string) error {
		c, err := sqlite3.Open(args[0])
		if err != nil {
			return err
		}
		// SQLite's own handler waits so long between its tries that it is never its turn.
		err = c.BusyHandler(func(context.Context, int) bool {
			time.Sleep(100 * time.Microsecond)
			return true
		})
		if err := errors.Join(err, c.Exec("BEGIN IMMEDIATE")); err != nil {
			return err
		}
		fmt.Println("locked")
		select {}
	}
}

// Where another process has the file locked a batch waits as long as its context
// allows, and says so; then everything is as it was.
func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := open(t, path)
	granted(t, s, "a", 1, counter("day", 5, "24h"))
	other := start(t, "lock", path)
	require.Eventually(t, func() bool { return len(other.said()) > 0 }, time.Minute, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := s.Exchange(ctx, asking("a", 2, counter("day", 5, "24h")))
	require.ErrorContains(t, err, "locked by another process")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	other.kill(t)
	granted(t, s, "a", 3, counter("day", 5, "24h"))
	require.Equal(t, int64(2), peek(t, s, "a", counter("day", 5, "24h")).Held)
}

// A file that may not grow, and a disk that is full: what was granted before stays, what
// comes is an error, and goes on when there is room again.
func TestNoRoom(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger.db")
		noRoom(t, path, sqlite.Options{MaxBytes: 64 << 10}, func() {})
	})
	t.Run("disk", func(t *testing.T) {
		dir := t.TempDir()
		if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", dir).CombinedOutput(); err != nil {
			t.Logf("no file system can be mounted here (%s): the disk is played by a file that may not grow", out)
			noRoom(t, filepath.Join(dir, "ledger.db"), sqlite.Options{MaxBytes: 256 << 10}, func() {})
			return
		}
		defer exec.Command("umount", "-l", dir).Run()
		ballast := filepath.Join(dir, "ballast")
		require.NoError(t, os.WriteFile(ballast, make([]byte, 1<<20), 0o644))
		noRoom(t, filepath.Join(dir, "ledger.db"), sqlite.Options{}, func() { require.NoError(t, os.Remove(ballast)) })
	})
}

func noRoom(t *testing.T, path string, o sqlite.Options, makeRoom func()) {
	s, err := sqlite.Open(path, o)
	require.NoError(t, err)
	defer func() { s.Close() }()
	went := 0
	for ; err == nil; went++ {
		require.Less(t, went, 10_000, "it has no end")
		b := asking("a", went+1, counter(fmt.Sprint("limit ", went), 1, "1h"))
		b.Seq = uint64(went + 1)
		_, err = s.Exchange(t.Context(), b)
	}
	went-- // the last one did not
	require.Greater(t, went, 50)
	require.ErrorContains(t, err, "ledger/sqlite: "+path+": there is no room")
	if o.MaxBytes > 0 { // what changes in place has room
		again := batch("a")
		again.Seq = uint64(went + 1) // which was not carried out
		again.Charges = []ledger.Charge{{Counter: counter("limit 0", 1, "1h"), At: time.Now(), N: 1}}
		again.Peek = []*ledger.Counter{counter("limit 0", 1, "1h")}
		require.Equal(t, int64(1), exchange(t, s, again).Usages[0].Used, "nothing is remembered of what failed")
	}
	makeRoom()
	require.NoError(t, s.Close())
	s = open(t, path)
	look := batch("b")
	for i := range went + 1 {
		look.Peek = append(look.Peek, counter(fmt.Sprint("limit ", i), 1, "1h"))
	}
	for i, u := range exchange(t, s, look).Usages {
		want := int64(1)
		if i == went {
			want = 0 // the one that was refused
		}
		require.Equal(t, want, u.Held, "limit %d", i)
	}
	granted(t, s, "b", 1, counter("afterwards", 1, "1h"))
}

// A value that cannot be read is told, and kept; what else its batch said is not done.
func TestDamagedValue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := open(t, path)
	good, bad := counter("good", 5, "1h"), counter("bad", 5, "1h")
	granted(t, s, "a", 1, bad)
	raw(t, path, "UPDATE record SET value = x'0102'")
	b := batch("a")
	b.Charges = []ledger.Charge{{Counter: good, At: time.Now(), N: 1}}
	b.News = []ledger.News{{Pause: &ledger.Pause{Provider: "acme", Scope: provider.ScopeProvider, Until: time.Now().Add(time.Hour)}}}
	b.Takes = asking("a", 2, bad).Takes
	for range 2 {
		_, err := s.Exchange(t.Context(), b)
		require.ErrorContains(t, err, `ledger/sqlite: `+path+`: the record "acme/bad//" cannot be read: `)
	}
	raw(t, path, "DELETE FROM record WHERE key = 'acme/bad//' AND value = x'0102'")
	require.Zero(t, peek(t, s, "b", good).Used)
	require.Zero(t, peek(t, s, "b", bad).Held)
	require.Zero(t, s.Rows("record"))
	require.Zero(t, s.Rows("pause"))
}

// Rows of counters that have been idle for their window go.
func TestOldRowsAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ledger.db")
		s := open(t, path)
		for i := range 300 {
			b := batch("a")
			b.Charges = []ledger.Charge{{Counter: counter(fmt.Sprint("limit ", i), 5, "1m"), At: time.Now(), N: 1}}
			exchange(t, s, b)
		}
		require.Equal(t, int64(300), s.Rows("record"))
		granted(t, s, "b", 1, counter("kept", 5, "1m"))
		for range 2 {
			time.Sleep(2 * time.Minute)
			for range 200 {
				exchange(t, s, batch("b"))
			}
		}
		require.Equal(t, int64(1), s.Rows("record"))
		time.Sleep(2 * time.Hour)
		exchange(t, s, batch("c"))
		time.Sleep(2 * time.Minute)
		exchange(t, s, batch("c"))
		require.Equal(t, int64(1), s.Rows("holder"))
		require.Zero(t, s.Rows("hold"))
	})
}
