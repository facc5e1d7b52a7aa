// Package sqlite is a ledger in one file, for many processes of one machine: what was
// spent is known after a restart and a kill −9.
//
// A batch is one transaction of SQLite (WAL mode, BEGIN IMMEDIATE), whose arithmetic is
// package limit's. Nothing that was granted is lost when a process dies. A power cut, or
// a crash of the system, may lose what the last moments have granted (the file stays
// whole), unless Options.Full is set, which waits for the disk at each batch.
//
// Three files belong together: the one that is named, and those whose names end in -wal
// and -shm; none may be deleted or copied while a process has them open. A file that was
// replaced, a disk that is full and the like are errors of Exchange; the next one tries
// again, and opens the file anew where that is needed.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/headgate/headgate/ledger"
)

// Options are what may be chosen. The zero value is the default.
type Options struct {
	// Full has each batch wait until it is on the disk (synchronous = FULL), so that a
	// power cut loses nothing that was granted. It costs the disk's latency a batch.
	Full bool
	// Network allows files on a network file system. SQLite's locks are known not to
	// hold on many of them: then limits are overrun and the file is damaged. Set it only
	// where all processes are on one machine and the locks are known to work.
	Network bool
	// MaxBytes bounds the file; 0: only the disk does. A file that is full refuses to
	// count anything that is new, with an error.
	MaxBytes int64
}

// Store is a ledger.Store in a file. It is safe for concurrent use, but one client a
// Store is faster: batches of one Store go one by one.
type Store struct {
	path    string
	options Options

	mu     sync.Mutex
	f      *file // nil: not open
	closed bool
	back   time.Duration // by so much the clock has stepped back, in a test
}

var _ ledger.Store = (*Store)(nil)

// opening bounds how long the opening of a file waits for others that have it locked.
const opening = 5 * time.Second

// Open opens the ledger in a file, which is made where there is none; its directory must
// be there. It is an error where the file is none of ours (another program's, damaged,
// written by a newer version: it is never overwritten), cannot be written, is on a
// network file system, or is locked by somebody for more than 5 s.
func Open(path string, o Options) (*Store, error) {
	path, err := locate(path)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, options: o}
	ctx, cancel := context.WithTimeout(context.Background(), opening)
	defer cancel()
	if s.f, err = openFile(ctx, path, o); err != nil {
		return nil, err
	}
	return s, nil
}

// Exchange carries out a batch. It waits for other processes as long as ctx allows, at
// most 5 s. Where an error says that the file is not the one that was opened, the next
// Exchange opens what is there then.
func (s *Store) Exchange(ctx context.Context, b *ledger.Batch) (*ledger.Reply, error) {
	if b == nil {
		return nil, errors.New("ledger/sqlite: no batch")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("ledger/sqlite: the store is closed")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, opening)
	defer cancel()
	if s.f == nil {
		f, err := openFile(ctx, s.path, s.options)
		if err != nil {
			return nil, err
		}
		s.f = f
	}
	reply, err := s.f.exchange(ctx, b, s.back)
	if err != nil && s.f.lost {
		err = errors.Join(err, s.f.close())
		s.f = nil
	}
	return reply, err
}

// Close closes the file. Others may have it open still.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.f == nil {
		return nil
	}
	f := s.f
	s.f = nil
	if err := f.close(); err != nil {
		return fmt.Errorf("ledger/sqlite: closing %s: %w", s.path, err)
	}
	return nil
}
