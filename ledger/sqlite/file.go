package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/internal/book"
)

// file is an open file with its statements, and the book that is kept in it.
type file struct {
	path     string
	conn     *sqlite3.Conn
	identity *identity
	ctx      context.Context // of what is being done: bounds the wait for others
	lost     bool            // it is of no use any more: close it

	begin, commit, rollback, version *sqlite3.Stmt
	seen                             int64 // version of the data when the caches were filled
	caches                           []interface{ forget() }
	book                             *book.Book
}

// openFile opens the file, makes or checks its schema, and prepares everything.
func openFile(ctx context.Context, path string, o Options) (*file, error) {
	if err := check(path, o); err != nil {
		return nil, err
	}
	conn, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE|sqlite3.OPEN_EXRESCODE)
	if err != nil {
		return nil, explain(path, err)
	}
	f := &file{path: path, conn: conn, ctx: ctx}
	if err := f.setUp(o); err != nil {
		return nil, errors.Join(explain(path, err), shut(conn))
	}
	return f, nil
}

func (f *file) setUp(o Options) error {
	if err := f.conn.BusyHandler(f.wait); err != nil {
		return err
	}
	// The second look makes the log and its index.
	for _, step := range []func() error{f.look, func() error { return f.pragmas(o) }, f.schema, f.logMode, f.look, f.prepare} {
		if err := step(); err != nil {
			return err
		}
	}
	var err error
	f.identity, err = identify(f.path)
	return err
}

// wait is asked again and again while another process writes: it tells whether to go
// on. Batches are short, so it begins with a wait that is hardly more than a yield.
func (f *file) wait(_ context.Context, count int) bool {
	d := min(20*time.Microsecond<<min(count, 10), 2*time.Millisecond)
	t := time.NewTimer(d/2 + rand.N(d/2))
	defer t.Stop()
	select {
	case <-f.ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// exchange carries out a batch as one transaction.
func (f *file) exchange(ctx context.Context, b *ledger.Batch, back time.Duration) (*ledger.Reply, error) {
	f.ctx = ctx
	if err := f.begin.Exec(); err != nil {
		return nil, f.failed(err)
	}
	reply, err := f.carryOut(b, back)
	if err == nil {
		err = f.commit.Exec()
	}
	if err == nil {
		// In a file that is not there any more nobody else sees what was granted: it was not.
		err = f.identity.check()
	}
	if err != nil {
		return nil, f.failed(err)
	}
	return reply, nil
}

func (f *file) carryOut(b *ledger.Batch, back time.Duration) (*ledger.Reply, error) {
	if !f.version.Step() {
		return nil, errors.Join(f.version.Err(), f.version.Reset())
	}
	v := f.version.ColumnInt64(0)
	if err := f.version.Reset(); err != nil {
		return nil, err
	}
	if v != f.seen {
		f.forget()
		f.seen = v
	}
	now := time.Now() // in the transaction: batches are in the order of their instants
	return f.book.Exchange(b, now, now.Add(-back))
}

func (f *file) forget() {
	for _, c := range f.caches {
		c.forget()
	}
}

// failed takes back what a batch has done.
func (f *file) failed(err error) error {
	if !f.conn.GetAutocommit() {
		if e := f.rollback.Exec(); e != nil {
			f.lost = true
		}
	}
	f.forget()
	f.book.Reset()
	if errors.Is(err, errReplaced) || damaged(err) {
		f.lost = true
	}
	if f.ctx.Err() != nil && errors.Is(err, sqlite3.BUSY) {
		return fmt.Errorf("ledger/sqlite: %s: locked by another process: %w", f.path, context.Cause(f.ctx))
	}
	return explain(f.path, err)
}

// damaged tells of errors after which a connection may know wrong things.
func damaged(err error) bool {
	for _, code := range []sqlite3.ErrorCode{sqlite3.CORRUPT, sqlite3.NOTADB, sqlite3.IOERR, sqlite3.CANTOPEN, sqlite3.READONLY, sqlite3.PROTOCOL} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// close closes the file, and clears away what is left of one that is lost.
func (f *file) close() error { return errors.Join(shut(f.conn), f.identity.clear()) }

// shut closes a connection; its statements have to be closed before.
func shut(c *sqlite3.Conn) error {
	var errs []error
	for _, s := range slices.Collect(c.Stmts()) {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.Close())...)
}
