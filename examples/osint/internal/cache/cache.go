// Package cache keeps answers on disk for a time: a bbolt file, which one process
// opens at a time and which a crash does not tear.
//
// Not in it: what may be kept, and what a key says; its user decides.
package cache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// ErrInUse says that another process has the file.
var ErrInUse = errors.New("cache: in use by another process")

// bucket holds the values. The name is the format's version: a later format takes
// another, and this one's values are forgotten.
var bucket = []byte("answers 1")

// stamps are the two instants before each value: when it was true, and until when
// it is kept.
const stamps = 16

// patience is how long a file that is in use is waited for.
const patience = 100 * time.Millisecond

// Cache is an open cache. It is safe for concurrent use.
type Cache struct {
	db      *bbolt.DB
	ttl     time.Duration
	damaged atomic.Bool // bbolt has panicked, perhaps with its locks held: Close would wait for ever
}

// Open opens or makes the file, its folders too, and removes what has expired. ttl
// is how old a value may be. The error matches ErrInUse where another process has
// it; a file that is no cache, or is damaged, stays as it is.
func Open(path string, ttl time.Duration) (c *Cache, err error) {
	defer guard(&err)()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	// With the list of free pages on disk: to gather it from the pages bbolt starts a
	// goroutine, in which a damaged one ends the process.
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: patience})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("%w: %s", ErrInUse, path)
	}
	if err != nil {
		return nil, fmt.Errorf("cache: %s: %w", path, err)
	}
	c = &Cache{db: db, ttl: ttl}
	if err := c.sweep(time.Now()); err != nil {
		_ = db.Close() // the first error counts
		return nil, fmt.Errorf("cache: %s: %w", path, err)
	}
	return c, nil
}

// Get returns the value of a key, and when it was true; ok: there is one that is
// young enough. One that is expired is removed.
func (c *Cache) Get(key string) (value []byte, at time.Time, ok bool, err error) {
	defer c.guard(&err)()
	now, expired := time.Now(), false
	err = c.db.View(func(tx *bbolt.Tx) error {
		v := tx.Bucket(bucket).Get([]byte(key))
		if v == nil {
			return nil
		}
		var until time.Time
		if at, until, ok = read(v); !ok || !now.Before(until) {
			ok, expired = false, true
			return nil
		}
		// From the future: the clock was set, nobody knows how old it is.
		if ok = now.Before(at.Add(c.ttl)) && !at.After(now); ok {
			value = append(value, v[stamps:]...) // v is gone with the transaction
		}
		return nil
	})
	if err == nil && expired {
		err = c.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Delete([]byte(key)) })
	}
	return value, at, ok && err == nil, err
}

// Put keeps a value that was true at an instant. It returns when it is on disk. No
// Batch of bbolt: it runs on the goroutine of a timer, where guard does not reach.
func (c *Cache) Put(key string, value []byte, at time.Time) (err error) {
	defer c.guard(&err)()
	stamped := binary.BigEndian.AppendUint64(make([]byte, 0, stamps+len(value)), uint64(at.UnixNano()))
	stamped = binary.BigEndian.AppendUint64(stamped, uint64(at.Add(c.ttl).UnixNano()))
	stamped = append(stamped, value...)
	if err := c.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte(key), stamped) }); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	return nil
}

// Close gives the file free; that of a damaged one with the end of the process.
func (c *Cache) Close() (err error) {
	if c.damaged.Load() {
		return nil
	}
	defer guard(&err)()
	return c.db.Close()
}

// sweep removes what is expired. What another ttl was promised is kept so long.
func (c *Cache) sweep(now time.Time) error {
	return c.db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(bucket)
		if err != nil {
			return err
		}
		var expired [][]byte
		err = b.ForEach(func(key, v []byte) error {
			if _, until, ok := read(v); !ok || !now.Before(until) {
				expired = append(expired, append([]byte(nil), key...))
			}
			return nil
		})
		for _, key := range expired {
			if err == nil {
				err = b.Delete(key)
			}
		}
		return err
	})
}

// read reads the stamps of a value; false: it has none.
func read(v []byte) (at, until time.Time, ok bool) {
	if len(v) < stamps {
		return at, until, false
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(v))), time.Unix(0, int64(binary.BigEndian.Uint64(v[8:]))), true
}

// guard is guard, and notes that the cache is not to be used again.
func (c *Cache) guard(err *error) (end func()) {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			c.damaged.Store(true)
			*err = fmt.Errorf("cache: damaged: %v", p)
		}
	}
}

// guard makes an error of a panic, which is bbolt's answer to a damaged page, and
// of a page that the file is too short for: it is mapped into memory.
func guard(err *error) (end func()) {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			*err = fmt.Errorf("cache: damaged: %v", p)
		}
	}
}
