package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// errReplaced is that the file on the disk is not the one that is open.
var errReplaced = errors.New("it was replaced or deleted while it was open: what was counted in it is lost")

// errForeign is that the file is another program's.
var errForeign = errors.New("it is a database of another program, and stays as it is: give another path")

// identity is which files are open: what has their names may become another file.
type identity struct {
	names [3]string // the file, its log, and the log's index
	files [3]os.FileInfo
}

// identify looks at the three files of an open file. The log is beside what a link
// points to.
func identify(path string) (*identity, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	id := &identity{names: [3]string{path, real + "-wal", real + "-shm"}}
	for i, name := range id.names {
		if id.files[i], err = os.Stat(name); err != nil {
			return nil, err
		}
	}
	return id, nil
}

// same tells whether the ith name is still that of the file that is open.
func (id *identity) same(i int) (bool, error) {
	now, err := os.Stat(id.names[i])
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(now, id.files[i]), err
}

func (id *identity) check() error {
	for i := range id.names {
		if same, err := id.same(i); err != nil {
			return err
		} else if !same {
			return errReplaced
		}
	}
	return nil
}

// clear removes the log and the index of a file that is not there any more. Who opened
// another file by the same name would take them for its own, and write into it what
// they say.
func (id *identity) clear() error {
	if same, err := id.same(0); same || err != nil {
		return err
	}
	for i := 1; i < len(id.names); i++ {
		if same, err := id.same(i); err != nil {
			return err
		} else if same {
			if err := os.Remove(id.names[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// locate makes a path that stays true wherever the process goes.
func locate(path string) (string, error) {
	if path == "" {
		return "", errors.New("ledger/sqlite: no path: name a file")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("ledger/sqlite: %w", err)
	}
	return abs, nil
}

// networkOf is networkFS, but for a test.
var networkOf = networkFS

// check finds what the operating system has against the file.
func check(path string, o Options) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("ledger/sqlite: %s is a directory: name a file in it", path)
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("ledger/sqlite: %s is no ordinary file (%s)", path, info.Mode().Type())
	}
	if !o.Network {
		if kind := networkOf(filepath.Dir(path)); kind != "" {
			return fmt.Errorf("ledger/sqlite: %s is on a network file system (%s), where locks cannot be relied on: "+
				"choose a local one, ledger/redis for many machines, or Options.Network", path, kind)
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("ledger/sqlite: %w", err)
	}
	defer f.Close()
	// Another process may just be writing the first bytes of a new file.
	for range 20 {
		if err = checkHeader(path, f); err == nil {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return err
}

// checkHeader looks whether a file is ours before SQLite does: what that finds beside
// it, the log of a file that was there before, it would write into it.
func checkHeader(path string, f io.ReaderAt) error {
	var header [100]byte
	switch n, err := f.ReadAt(header[:], 0); {
	case n == 0 && errors.Is(err, io.EOF):
		return nil // new
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("ledger/sqlite: %w", err)
	case err != nil || string(header[:16]) != "SQLite format 3\x00":
		return explain(path, sqlite3.NOTADB)
	}
	if id := binary.BigEndian.Uint32(header[68:]); id != application {
		return explain(path, errForeign)
	}
	return nil
}

// explain says what an error of SQLite means for a file.
func explain(path string, err error) error {
	if errors.Is(err, sqlite3.IOERR) && full(filepath.Dir(path)) {
		err = errors.Join(sqlite3.FULL, err) // the driver does not tell this failure to write from others
	}
	for _, x := range []struct {
		code sqlite3.ErrorCode
		says string
	}{
		{sqlite3.NOTADB, "it is no SQLite database, and stays as it is: give another path"},
		{sqlite3.CORRUPT, "it is damaged, and stays as it is: to begin anew, move it away together with its -wal and -shm"},
		{sqlite3.FULL, "there is no room: the disk is full, or the file as large as it may be"},
		{sqlite3.READONLY, "it, or its directory, cannot be written"},
		{sqlite3.CANTOPEN, "it, or its -wal or -shm, cannot be opened: its directory must be writable"},
		{sqlite3.BUSY, "it is locked by another process"},
	} {
		if errors.Is(err, x.code) {
			return fmt.Errorf("ledger/sqlite: %s: %s: %w", path, x.says, err)
		}
	}
	return fmt.Errorf("ledger/sqlite: %s: %w", path, err)
}
