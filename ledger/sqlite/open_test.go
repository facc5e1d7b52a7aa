//go:build unix

package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger/sqlite"
)

func init() {
	roles["open"] = func(args []string) error {
		s, err := sqlite.Open(args[0], sqlite.Options{})
		if err != nil {
			return err
		}
		return s.Close()
	}
}

// raw runs SQL on a file, as another program would.
func raw(t testing.TB, path, sql string) {
	t.Helper()
	c, err := sqlite3.Open(path)
	require.NoError(t, err)
	require.NoError(t, c.Exec(sql))
	require.NoError(t, c.Close())
}

// A file that is none of ours is an error that says what to do, at Open and when it
// turns up under an open store; and stays as it is, to the byte.
func TestForeignFilesAreNeverWritten(t *testing.T) {
	for _, row := range []struct {
		name string
		make func(path string)
		says string
	}{
		{"text", func(path string) {
			require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("Dear diary, ", 1000)), 0o644))
		}, "it is no SQLite database"},
		{"short text", func(path string) { require.NoError(t, os.WriteFile(path, []byte("hello"), 0o644)) }, "it is no SQLite database"},
		{"another program's", func(path string) { raw(t, path, "CREATE TABLE song (name TEXT); INSERT INTO song VALUES ('x')") },
			"it is a database of another program"},
		{"another program's, in WAL mode", func(path string) {
			raw(t, path, "PRAGMA journal_mode = WAL; CREATE TABLE meta (key TEXT); PRAGMA user_version = 1")
		}, "it is a database of another program"},
		{"another program's, marked", func(path string) { raw(t, path, "PRAGMA application_id = 7") }, "it is a database of another program"},
		{"newer", func(path string) {
			require.NoError(t, open(t, path).Close())
			raw(t, path, "PRAGMA user_version = 1000")
		}, "it was written by a newer version (its schema is 1000, this program knows up to 1): update this program"},
		{"damaged", func(path string) {
			fill(t, path)
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte(strings.Repeat("damage!!", 512)), 4096)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}, "it is damaged, and stays as it is: to begin anew, move it away"},
		{"damaged header", func(path string) {
			fill(t, path)
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte("SQLite format 4"), 0)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}, "it is no SQLite database"},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			row.make(path)
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			_, err = sqlite.Open(path, sqlite.Options{})
			require.ErrorContains(t, err, "ledger/sqlite: "+path+": "+row.says)
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, before, after)

			ours := filepath.Join(t.TempDir(), "ledger.db")
			s := open(t, ours)
			require.NoError(t, os.Rename(path, ours))
			_, err = s.Exchange(t.Context(), batch("a"))
			require.ErrorContains(t, err, "it was replaced or deleted")
			for range 2 {
				_, err = s.Exchange(t.Context(), batch("a"))
				require.ErrorContains(t, err, row.says)
			}
		})
	}
}

// What a process that was killed has left beside the file is not written into another
// one that took its place.
func TestForeignFileBesideALog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	p := start(t, "spend", path, "a")
	require.Eventually(t, func() bool { return len(p.said()) > 20 }, time.Minute, time.Millisecond)
	p.kill(t)
	require.FileExists(t, path+"-wal")
	foreign := filepath.Join(t.TempDir(), "foreign.db")
	raw(t, foreign, "CREATE TABLE song (name TEXT); INSERT INTO song VALUES ('x')")
	before, err := os.ReadFile(foreign)
	require.NoError(t, err)
	require.NoError(t, os.Rename(foreign, path))
	_, err = sqlite.Open(path, sqlite.Options{})
	require.ErrorContains(t, err, "it is a database of another program")
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// fill makes a ledger of several pages.
func fill(t *testing.T, path string) {
	s := open(t, path)
	for i := range 200 {
		granted(t, s, "a", i+1, counter(fmt.Sprint("limit ", i), 5, "1h"))
	}
	require.NoError(t, s.Close())
}

func TestUnusablePaths(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o644))
	for path, says := range map[string]string{
		"":                               "no path: name a file",
		dir:                              dir + " is a directory: name a file in it",
		fifo:                             fifo + " is no ordinary file (p---------)",
		filepath.Join(dir, "no", "file"): "no such file or directory",
	} {
		_, err := sqlite.Open(path, sqlite.Options{})
		require.ErrorContains(t, err, "ledger/sqlite: ")
		require.ErrorContains(t, err, says)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing was made")
}

// A directory that this user cannot write, a file that he cannot, and a file in a
// directory that he cannot write.
func TestReadOnly(t *testing.T) {
	dir, err := os.MkdirTemp("", "headgate") //nolint:usetesting // another user has to be able to get there
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, open(t, filepath.Join(dir, "there.db")).Close())
	require.NoError(t, os.Chmod(filepath.Join(dir, "there.db"), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file.db"), nil, 0o444))
	require.NoError(t, os.Chmod(dir, 0o555))
	for name, says := range map[string]string{
		"new.db":   "permission denied",
		"file.db":  "permission denied",
		"there.db": "it, or its directory, cannot be written",
	} {
		require.ErrorContains(t, openAsNobody(t, filepath.Join(dir, name)), says)
	}
}

// openAsNobody opens a file as a user to whom permissions apply.
func openAsNobody(t *testing.T, path string) error {
	if os.Getuid() != 0 {
		s, err := sqlite.Open(path, sqlite.Options{})
		if err == nil {
			err = s.Close()
		}
		return err
	}
	self := filepath.Join(filepath.Dir(path), "program")
	require.NoError(t, exec.CommandContext(t.Context(), "cp", os.Args[0], self).Run())
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), roleVar+"=open\n"+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if err != nil {
		return errors.New(string(out))
	}
	return nil
}

// Whoever comes first makes the tables; whoever comes meanwhile waits for it.
func TestManyMakeTheFileAtOnce(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "ledger.db")
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				s, err := sqlite.Open(path, sqlite.Options{})
				if err == nil {
					_, err = s.Exchange(context.Background(), batch(fmt.Sprint(i)))
				}
				if err == nil {
					err = s.Close()
				}
				errs[i] = err
			})
		}
		wg.Wait()
		require.NoError(t, errors.Join(errs...))
	}
}

func TestClosed(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "ledger.db"))
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	_, err := s.Exchange(t.Context(), batch("a"))
	require.EqualError(t, err, "ledger/sqlite: the store is closed")
	_, err = s.Exchange(t.Context(), nil)
	require.EqualError(t, err, "ledger/sqlite: no batch")
}

// A path is where it was, wherever the process goes, and a link is what it points to.
func TestPaths(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s := open(t, "ledger.db")
	t.Chdir("/")
	granted(t, s, "a", 1, counter("day", 5, "24h"))
	require.NoError(t, os.Symlink(filepath.Join(dir, "ledger.db"), filepath.Join(dir, "link.db")))
	link := open(t, filepath.Join(dir, "link.db"))
	require.Equal(t, int64(1), peek(t, link, "b", counter("day", 5, "24h")).Held)
}
