// Package memory is a store in this process: several coordinators of one program share
// a budget by it, and tests need no other. Nothing of it outlives the process.
package memory

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/internal/book"
)

// Store is a ledger.Store in memory. It is safe for concurrent use: all who share the
// budget Open a ledger over the same Store, and each may close its own.
type Store struct {
	mu   sync.Mutex
	book *book.Book
	back time.Duration // by so much the clock has stepped back, in a test
}

var _ ledger.Store = (*Store)(nil)

// New returns an empty Store.
func New() *Store { return &Store{book: empty()} }

func empty() *book.Book {
	return book.New(book.Storage{
		Meta: table[book.Meta]{}, Holders: table[book.Holder]{}, Records: table[book.Record]{},
		Holds: table[book.Hold]{}, Pauses: table[book.Pause]{},
	})
}

// Exchange carries out a batch. It fails where ctx has ended, or a counter's limit is
// none; then nothing has changed.
func (s *Store) Exchange(ctx context.Context, b *ledger.Batch) (*ledger.Reply, error) {
	if b == nil {
		return nil, errors.New("ledger/memory: no batch")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := time.Now()
	return s.book.Exchange(b, now, now.Add(-s.back))
}

// Lose forgets everything, as a store does that was emptied or replaced: for tests of
// what its users then do.
func (s *Store) Lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book = empty()
}

// Close does nothing: others may use the Store still.
func (s *Store) Close() error { return nil }

// table is a book.Table; the values are those that the book works on.
type table[V any] map[string]*V

func (t table[V]) Get(key string) (*V, error) { return t[key], nil }

func (t table[V]) Put(key string, v *V) error {
	t[key] = v
	return nil
}

func (t table[V]) Delete(key string) error {
	delete(t, key)
	return nil
}

func (t table[V]) Scan(prefix string, f func(string, *V)) error {
	for key, v := range t {
		if strings.HasPrefix(key, prefix) {
			f(key, v)
		}
	}
	return nil
}

// Some relies on a map's order being another one each time.
func (t table[V]) Some(n int) ([]string, error) {
	var keys []string
	for key := range t {
		if len(keys) >= n {
			break
		}
		keys = append(keys, key)
	}
	return keys, nil
}
