package journal

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// disk is a file on a disk with so much room.
type disk struct {
	*os.File
	room int
	sync error
}

var errFull = errors.New("no space left on device")

func (d *disk) Write(b []byte) (int, error) {
	n, err := min(len(b), d.room), error(nil)
	if n < len(b) {
		err = errFull
	}
	d.room -= n
	_, e := d.File.Write(b[:n])
	return n, errors.Join(err, e)
}

func (d *disk) Sync() error { return errors.Join(d.sync, d.File.Sync()) }

// A disk that is full is told by each note from then on, by Close too, and what was
// noted before can be read: the line that was cut in the middle is cut off.
func TestAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, err := Open(path, "run")
	require.NoError(t, err)
	d := &disk{File: j.file.(*os.File), room: len("b \"a\"\nf \"a\"\nb \"b")}
	j.file = d
	require.NoError(t, j.Began("a"))
	require.NoError(t, j.Finished("a"))
	require.ErrorIs(t, j.Began("b"), errFull)
	d.room = 1000 // there is room again: what would be written now would make one line with the half one
	require.ErrorIs(t, j.Began("c"), errFull)
	require.ErrorIs(t, j.Finished("c"), errFull)
	assert.False(t, j.Done("c"), "it was not noted")
	require.ErrorIs(t, j.Close(), errFull)
	require.NoError(t, j.Close())

	j, err = Open(path, "run")
	require.NoError(t, err)
	assert.True(t, j.Done("a"))
	assert.Empty(t, j.Interrupted())
	require.NoError(t, j.Close())
}

// Some file systems tell of a full disk only when everything is to be on it.
func TestADiskThatIsFullAtTheEnd(t *testing.T) {
	j, err := Open(filepath.Join(t.TempDir(), "j"), "run")
	require.NoError(t, err)
	j.file = &disk{File: j.file.(*os.File), room: 1000, sync: errFull}
	require.NoError(t, j.Began("a"))
	require.ErrorIs(t, j.Close(), errFull)
}

// Some 30 bytes of memory for each key that is finished, however long it is.
func TestAllocOfAMillionKeys(t *testing.T) {
	n := 1_000_000
	if testing.Short() || raceEnabled {
		n = 100_000
	}
	path := filepath.Join(t.TempDir(), "j")
	f, err := os.Create(path)
	require.NoError(t, err)
	text := header("run")
	for i := range n {
		text = append(append(text, line(began, "https://example.org/"+strconv.Itoa(i))...), line(finished, "https://example.org/"+strconv.Itoa(i))...)
		if len(text) > 1<<20 || i == n-1 {
			_, err = f.Write(text)
			require.NoError(t, err)
			text = text[:0]
		}
	}
	require.NoError(t, f.Close())
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	j, err := Open(path, "run")
	require.NoError(t, err)
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / int64(n)
	t.Logf("%d bytes a key", each)
	assert.Less(t, each, int64(48))
	assert.True(t, j.Done("https://example.org/"+strconv.Itoa(n-1)))
	assert.Empty(t, j.Interrupted())
	require.NoError(t, j.Close())
}
