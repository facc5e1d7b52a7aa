package sqlite

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"

	"github.com/headgate/headgate/ledger/internal/book"
)

const (
	// application marks the file as ours (PRAGMA application_id): "HgLd".
	application = 0x48674c64
	// checked is up to which size a file is looked through as it is opened, in pages.
	checked = 4096
)

// migrations lead from each version of the schema (PRAGMA user_version) to the next.
// The version is also that of how values are written: a program that writes them in
// another way needs a further one.
var migrations = []string{
	`CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
	 CREATE TABLE holder (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
	 CREATE TABLE record (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
	 CREATE TABLE hold (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
	 CREATE TABLE pause (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;`,
}

// pragmas puts in force what a connection has to know of.
func (f *file) pragmas(o Options) error {
	level := "NORMAL"
	if o.Full {
		level = "FULL"
	}
	if err := f.conn.Exec("PRAGMA synchronous = " + level); err != nil {
		return err
	}
	if o.MaxBytes > 0 {
		size, err := f.pragma("page_size")
		if err == nil {
			_, err = f.pragma(fmt.Sprintf("max_page_count = %d", max(o.MaxBytes/max(size, 1), 1)))
		}
		return err
	}
	return nil
}

// logMode goes over to WAL mode, after the schema is there: so the file itself, and not
// only its log, tells from the first that it is ours. SQLite does not wait by itself
// for others who do the same.
func (f *file) logMode() error {
	for tries := 0; ; tries++ {
		mode, err := f.pragmaText("journal_mode = WAL")
		switch {
		case errors.Is(err, sqlite3.BUSY) && f.wait(f.ctx, tries):
		case err != nil:
			return err
		case mode != "wal":
			return fmt.Errorf("its file system cannot share memory between processes (journal mode %q instead of wal): choose another one", mode)
		default:
			return nil
		}
	}
}

// look is recognise at one instant: others may be making the file.
func (f *file) look() error {
	tx := f.conn.Begin()
	return errors.Join(f.recognise(), tx.Rollback())
}

// recognise is an error where the file is another's, or newer than this program.
func (f *file) recognise() error {
	id, err := f.pragma("application_id")
	if err != nil {
		return err
	}
	version, err := f.pragma("user_version")
	if err != nil {
		return err
	}
	tables, err := f.number("SELECT count(*) FROM sqlite_schema")
	switch {
	case err != nil:
		return err
	case id == 0 && version == 0 && tables == 0:
		return nil // new
	case id != application:
		return errForeign
	case version > int64(len(migrations)):
		return fmt.Errorf("it was written by a newer version (its schema is %d, this program knows up to %d): update this program", version, len(migrations))
	}
	return f.lookThrough()
}

// lookThrough finds damage in a file that is small enough.
func (f *file) lookThrough() error {
	pages, err := f.pragma("page_count")
	if err != nil || pages > checked {
		return err
	}
	found, err := f.pragmaText("quick_check(1)")
	if err == nil && found != "ok" {
		return sqlite3.CORRUPT
	}
	return err
}

// schema makes or migrates the tables, one process at a time.
func (f *file) schema() (err error) {
	tx, err := f.conn.BeginImmediate()
	if err != nil {
		return err
	}
	defer tx.End(&err)
	if err := f.recognise(); err != nil {
		return err
	}
	version, err := f.pragma("user_version")
	if err != nil || version == int64(len(migrations)) {
		return err
	}
	for _, sql := range migrations[version:] {
		if err := f.conn.Exec(sql); err != nil {
			return err
		}
	}
	return f.conn.Exec(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", application, len(migrations)))
}

// prepare makes the statements of a batch.
func (f *file) prepare() error {
	p := &preparer{conn: f.conn}
	f.begin, f.commit, f.rollback = p.stmt("BEGIN IMMEDIATE"), p.stmt("COMMIT"), p.stmt("ROLLBACK")
	f.version = p.stmt("PRAGMA data_version")
	s := book.Storage{
		Meta: newTable[book.Meta](p, f, "meta"), Holders: newTable[book.Holder](p, f, "holder"),
		Records: newTable[book.Record](p, f, "record"), Holds: newTable[book.Hold](p, f, "hold"),
		Pauses: newTable[book.Pause](p, f, "pause"),
	}
	f.book = book.New(s)
	return p.err
}

// preparer prepares statements until its first error.
type preparer struct {
	conn *sqlite3.Conn
	err  error
}

func (p *preparer) stmt(sql string) *sqlite3.Stmt {
	if p.err != nil {
		return nil
	}
	s, _, err := p.conn.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	p.err = err
	return s
}

func (f *file) pragma(what string) (int64, error) { return f.number("PRAGMA " + what) }

func (f *file) pragmaText(what string) (text string, err error) {
	err = f.query("PRAGMA "+what, func(s *sqlite3.Stmt) { text = s.ColumnText(0) })
	return text, err
}

func (f *file) number(sql string) (n int64, err error) {
	err = f.query(sql, func(s *sqlite3.Stmt) { n = s.ColumnInt64(0) })
	return n, err
}

// query calls row with the first row of an answer.
func (f *file) query(sql string, row func(*sqlite3.Stmt)) error {
	s, _, err := f.conn.Prepare(sql)
	if err != nil {
		return err
	}
	if s.Step() {
		row(s)
	}
	return errors.Join(s.Err(), s.Close())
}
