package journal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headgate/headgate/batch/journal"
)

func open(t *testing.T, path string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(path, "run")
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

func write(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "j")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path)
	assert.Empty(t, j.Interrupted())
	for _, key := range []string{"out", "done", "failed", "also out"} {
		require.NoError(t, j.Began(key))
	}
	require.NoError(t, j.Finished("done"))
	require.NoError(t, j.Failed("failed"))
	assert.Empty(t, j.Interrupted(), "of earlier runs only")
	assert.True(t, j.Done("done"))
	require.NoError(t, j.Close())
	assert.Equal(t, "headgate-journal 1 \"run\"\nb \"out\"\nb \"done\"\nb \"failed\"\nb \"also out\"\nf \"done\"\nx \"failed\"\n", read(t, path))

	j = open(t, path)
	assert.Equal(t, []string{"out", "also out"}, j.Interrupted())
	for key, done := range map[string]bool{"done": true, "out": false, "failed": false, "": false, "never": false} {
		assert.Equal(t, done, j.Done(key), key)
	}
	require.NoError(t, j.Began("out"))
	require.NoError(t, j.Finished("out"))
	assert.Equal(t, []string{"out", "also out"}, j.Interrupted(), "it may have been done twice, still")
	require.NoError(t, j.Close())
	assert.Equal(t, []string{"also out"}, open(t, path).Interrupted())
}

// Keys and the name of a run are any text, or none.
func TestAnyText(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		run, keys := text.Draw(rt, "run"), rapid.SliceOf(text).Draw(rt, "keys")
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		j, err := journal.Open(path, run)
		require.NoError(rt, err)
		for i, key := range keys {
			require.NoError(rt, j.Began(key))
			if i%2 == 0 {
				require.NoError(rt, j.Finished(key))
			}
		}
		require.NoError(rt, j.Close())
		j, err = journal.Open(path, run)
		require.NoError(rt, err)
		defer j.Close()
		left := map[string]bool{}
		for i, key := range keys {
			if left[key] = true; i%2 == 0 {
				require.True(rt, j.Done(key))
				delete(left, key)
			}
		}
		require.Len(rt, j.Interrupted(), len(left))
		for _, key := range j.Interrupted() {
			require.True(rt, left[key])
		}
	})
}

// A file that ends anywhere in a line is a journal that ends at the line before.
func TestTornAnywhere(t *testing.T) {
	whole := "headgate-journal 1 \"run\"\nb \"a\"\nf \"a\"\nb \"b\\n\"\n"
	for cut := range len(whole) + 1 {
		path := write(t, whole[:cut])
		j := open(t, path)
		lines := strings.Count(whole[:cut], "\n")
		assert.Equal(t, lines >= 3, j.Done("a"), cut)
		want := [][]string{nil, nil, {"a"}, nil, {"b\n"}}[lines]
		assert.Equal(t, want, j.Interrupted(), cut)
		require.NoError(t, j.Began("c"))
		require.NoError(t, j.Close())
		rest := whole[:strings.LastIndex(whole[:cut], "\n")+1]
		if rest == "" {
			rest = "headgate-journal 1 \"run\"\n"
		}
		assert.Equal(t, rest+"b \"c\"\n", read(t, path), cut)
	}
}

// Whatever is no journal of this run is told, with its line, and stays as it is.
func TestOthersFilesStayAsTheyAre(t *testing.T) {
	head := "headgate-journal 1 \"run\"\n"
	for _, x := range []struct {
		text, says string
		is         error
	}{
		{"headgate-journal 1 \"other\"\nb \"a\"\n", `belongs to the run "other", not to "run"`, journal.ErrOtherRun},
		{"{\"some\": \"json\"}", "line 1: it does not end", journal.ErrDamaged},
		{"{\"some\": \"json\"}\n", `line 1: it does not begin with "headgate-journal 1"`, journal.ErrDamaged},
		{"headgate-journal 2 \"run\"\n", "line 1", journal.ErrDamaged},
		{"headgate-journal 1 run\n", "line 1: the name of its run is not quoted", journal.ErrDamaged},
		{"\n", "line 1", journal.ErrDamaged},
		{head + "\n", "line 2", journal.ErrDamaged},
		{head + "b \"a\"\n\x00\x00\x00\nb \"b\"\n", "line 3", journal.ErrDamaged},
		{head + "b a\n", "line 2", journal.ErrDamaged},
		{head + "b  \"a\"\n", "line 2", journal.ErrDamaged},
		{head + "b 'a'\n", "line 2", journal.ErrDamaged},
		{head + "b `a`\n", "line 2", journal.ErrDamaged},
		{head + "b \"a\" \n", "line 2", journal.ErrDamaged},
		{head + "b \"a\"\r\n", "line 2", journal.ErrDamaged},
		{head + "b \"\\u0061\"\n", "line 2", journal.ErrDamaged},
		{head + "b", "", nil}, // torn
		{head + "b \"a\"\nq \"a\"\n", "line 3: its mark is none of b, f, x", journal.ErrDamaged},
		{head + "b \"" + strings.Repeat("a", 300<<10) + "\"\n", "line 2: it is too long", journal.ErrDamaged},
		{strings.Repeat("a", 1<<20), "line 1: it is too long", journal.ErrDamaged},
	} {
		path := write(t, x.text)
		j, err := journal.Open(path, "run")
		if x.is == nil {
			require.NoError(t, err)
			require.NoError(t, j.Close())
			continue
		}
		require.ErrorIs(t, err, x.is, x.text[:min(len(x.text), 60)])
		assert.Contains(t, err.Error(), x.says)
		assert.Contains(t, err.Error(), path)
		assert.Equal(t, 1, strings.Count(err.Error(), "journal: "), err)
		assert.Equal(t, x.text, read(t, path))
	}
}

func TestOneRunAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path)
	require.NoError(t, j.Began("a"))
	_, err := journal.Open(path, "run")
	require.ErrorIs(t, err, journal.ErrInUse)
	assert.Equal(t, "journal: in use by another process: "+path, err.Error())
	require.NoError(t, j.Close())
	assert.Equal(t, []string{"a"}, open(t, path).Interrupted())

	damaged := write(t, "no\n")
	for range 2 { // a file that is refused is not left locked
		_, err = journal.Open(damaged, "run")
		require.ErrorIs(t, err, journal.ErrDamaged)
	}
}

func TestWhatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "none", "j"), ""} {
		_, err := journal.Open(path, "run")
		require.Error(t, err)
		assert.Regexp(t, "^journal: ", err.Error())
	}
	_, err := journal.Open(filepath.Join(dir, "j"), strings.Repeat("x", 1<<20))
	require.EqualError(t, err, "journal: the name of a run of 1048576 bytes; at most 65536")
	assert.NoFileExists(t, filepath.Join(dir, "j"))
}

func TestLongKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path)
	for _, unit := range []string{"a", "\x00", "\xff", "\u0080", "\U0010ffff"} {
		require.NoError(t, j.Began(strings.Repeat(unit, 64<<10/len(unit))))
	}
	require.EqualError(t, j.Began(strings.Repeat("a", 64<<10+1)), "journal: a key of 65537 bytes; at most 65536")
	require.NoError(t, j.Began("the next is fine"))
	require.NoError(t, j.Close())
	assert.Len(t, open(t, path).Interrupted(), 6)
}

func TestClose(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "j"))
	require.NoError(t, j.Finished("a"))
	require.NoError(t, j.Close())
	require.NoError(t, j.Close())
	require.ErrorIs(t, j.Began("b"), os.ErrClosed)
	assert.True(t, j.Done("a"))
}

func TestConcurrentNotes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				key := fmt.Sprint(g, " ", i)
				assert.NoError(t, j.Began(key))
				assert.False(t, j.Done(key))
				if i%2 == 0 {
					assert.NoError(t, j.Finished(key))
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, j.Close())
	assert.Len(t, open(t, path).Interrupted(), 400)
}
