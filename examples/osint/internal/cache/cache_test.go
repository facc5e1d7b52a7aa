package cache

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, path string, ttl time.Duration) *Cache {
	t.Helper()
	c, err := Open(path, ttl)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func (c *Cache) entries(t *testing.T) (n int) {
	t.Helper()
	require.NoError(t, c.db.View(func(tx *bbolt.Tx) error {
		n = tx.Bucket(bucket).Stats().KeyN
		return nil
	}))
	return n
}

func TestGetAndPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a", "b")
		c := open(t, path, time.Hour)
		begin := time.Now()
		require.NoError(t, c.Put("k", []byte("v"), begin))
		got, at, ok, err := c.Get("k")
		require.NoError(t, err)
		assert.True(t, ok)
		assert.Equal(t, "v", string(got))
		assert.True(t, at.Equal(begin))
		_, _, ok, err = c.Get("other")
		require.NoError(t, err)
		assert.False(t, ok)

		require.NoError(t, c.Close())
		c = open(t, path, time.Hour)
		time.Sleep(time.Until(begin.Add(time.Hour - 1)))
		_, _, ok, _ = c.Get("k")
		assert.True(t, ok, "it survives, until its time")
		time.Sleep(time.Nanosecond)
		_, _, ok, _ = c.Get("k")
		assert.False(t, ok)
		assert.Zero(t, c.entries(t), "what is expired is removed")
	})
}

func TestExpiredAreRemovedAtOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "c")
		c := open(t, path, time.Hour)
		for i := range 50 {
			require.NoError(t, c.Put(fmt.Sprint(i), []byte("v"), time.Now()))
		}
		time.Sleep(30 * time.Minute)
		require.NoError(t, c.Put("young", []byte("v"), time.Now()))
		require.NoError(t, c.Close())
		time.Sleep(40 * time.Minute)
		c = open(t, path, time.Minute) // who wants it fresher takes nothing from others
		assert.Equal(t, 1, c.entries(t))
		_, _, ok, _ := c.Get("young")
		assert.False(t, ok, "too old for this one")
		assert.Equal(t, 1, c.entries(t))
	})
}

// A clock that was set back: nobody knows how old it is.
func TestFromTheFuture(t *testing.T) {
	c := open(t, filepath.Join(t.TempDir(), "c"), time.Hour)
	require.NoError(t, c.Put("k", []byte("v"), time.Now().Add(24*time.Hour)))
	_, _, ok, err := c.Get("k")
	require.NoError(t, err)
	assert.False(t, ok)
}

func TestInUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	open(t, path, time.Hour)
	synctest.Test(t, func(t *testing.T) {
		_, err := Open(path, time.Hour)
		assert.ErrorIs(t, err, ErrInUse)
	})
}

// Whatever is wrong with the file it is an error, not the end of the process.
func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	c := open(t, path, time.Hour)
	for i := range 300 {
		require.NoError(t, c.Put(fmt.Sprint(i), bytes.Repeat([]byte("v"), 1000), time.Now()))
		if i == 3 {
			break
		}
	}
	require.NoError(t, c.db.Update(func(tx *bbolt.Tx) error {
		for i := range 300 {
			if err := tx.Bucket(bucket).Put([]byte(fmt.Sprint("x", i)), bytes.Repeat([]byte("v"), 1000)); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, c.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	page := os.Getpagesize()
	garbage := func(from, to int) []byte {
		b := bytes.Clone(whole)
		for i := from; i < min(to, len(b)); i++ {
			b[i] = 0xa5
		}
		return b
	}
	for name, text := range map[string][]byte{
		"zeros":     make([]byte, len(whole)),
		"short":     whole[:100],
		"cut":       whole[:3*page],
		"no meta":   garbage(0, 2*page),
		"no pages":  garbage(2*page, len(whole)),
		"text":      []byte("hello"),
		"cut pages": whole[:len(whole)/2],
	} {
		bad := filepath.Join(t.TempDir(), "bad")
		require.NoError(t, os.WriteFile(bad, text, 0o600))
		c, err := Open(bad, time.Hour)
		assert.Error(t, err, name)
		assert.Nil(t, c, name)
	}
}

// A file that was cut off anywhere: it is mapped into memory, and what is behind its
// end must not be looked at.
func TestCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c")
	c := open(t, path, time.Hour)
	require.NoError(t, c.db.Update(func(tx *bbolt.Tx) error {
		for i := range 60 {
			if err := tx.Bucket(bucket).Put([]byte(fmt.Sprint(i)), bytes.Repeat([]byte("v"), 1000)); err != nil {
				return err
			}
		}
		return nil
	}))
	require.NoError(t, c.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	refused := 0
	for n := 2 * os.Getpagesize(); n < len(whole); n += os.Getpagesize() {
		bad := filepath.Join(t.TempDir(), "bad")
		require.NoError(t, os.WriteFile(bad, whole[:n], 0o600))
		c, err := Open(bad, time.Hour)
		if err != nil {
			refused++
			continue
		}
		_, _, _, _ = c.Get("1") // whatever it says: the process lives
		_ = c.Close()
	}
	assert.Greater(t, refused, 3)
}

func TestConcurrent(t *testing.T) {
	c := open(t, filepath.Join(t.TempDir(), "c"), time.Hour)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			key := fmt.Sprint(i)
			assert.NoError(t, c.Put(key, []byte(key), time.Now()))
			got, _, ok, err := c.Get(key)
			assert.NoError(t, err)
			assert.True(t, ok)
			assert.Equal(t, key, string(got))
		})
	}
	all.Wait()
	require.NoError(t, c.Close())
	_, _, _, err := c.Get("1")
	assert.Error(t, err)
	assert.Error(t, c.Put("1", nil, time.Now()))
}

// A file that is cut off while it is used damages the cache, and nothing else: no call
// hangs, and the program lives.
func TestDamagedWhileItIsUsed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.db")
	c, err := Open(path, time.Hour)
	require.NoError(t, err)
	require.NoError(t, c.Put("a", []byte("b"), time.Now()))
	require.NoError(t, os.Truncate(path, 0))
	require.Error(t, c.Put("c", []byte("d"), time.Now()))
	require.NoError(t, c.Close())
}
