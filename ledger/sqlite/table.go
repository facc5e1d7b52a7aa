package sqlite

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// table is a book.Table in a table of the file. What it has read it keeps for as long
// as nobody else writes (PRAGMA data_version tells), as the values that the book works
// on.
type table[V any, P value[V]] struct {
	name                     string
	get, put, del, scan, few *sqlite3.Stmt
	cache                    map[string]*V // nil values: known not to be there
	after                    string        // where Some goes on
	buf                      []byte
}

// value is a V that can be written as bytes.
type value[V any] interface {
	*V
	AppendBinary(b []byte) ([]byte, error)
	UnmarshalBinary(data []byte) error
}

// cached bounds the number of values that are kept.
const cached = 10_000

func newTable[V any, P value[V]](p *preparer, f *file, name string) *table[V, P] {
	t := &table[V, P]{name: name, cache: map[string]*V{}}
	t.get = p.stmt("SELECT value FROM " + name + " WHERE key = ?")
	t.put = p.stmt("INSERT INTO " + name + " VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value")
	t.del = p.stmt("DELETE FROM " + name + " WHERE key = ?")
	t.scan = p.stmt("SELECT key, value FROM " + name + " WHERE key >= ? AND key < ?")
	t.few = p.stmt("SELECT key FROM " + name + " WHERE key > ? ORDER BY key LIMIT ?")
	f.caches = append(f.caches, t)
	return t
}

func (t *table[V, P]) forget() { clear(t.cache) }

func (t *table[V, P]) remember(key string, v *V) {
	if len(t.cache) >= cached {
		// What the book holds of it in this batch stays true: it is what it writes.
		clear(t.cache)
	}
	t.cache[key] = v
}

// read decodes a value.
func (t *table[V, P]) read(key string, data []byte) (*V, error) {
	v := new(V)
	if err := P(v).UnmarshalBinary(data); err != nil {
		return nil, fmt.Errorf("the %s %q cannot be read: %w", t.name, key, err)
	}
	return v, nil
}

// done ends a statement's run.
func done(s *sqlite3.Stmt, err error) error {
	return errors.Join(err, s.Err(), s.Reset())
}

func (t *table[V, P]) Get(key string) (v *V, err error) {
	if v, ok := t.cache[key]; ok {
		return v, nil
	}
	if err := t.get.BindText(1, key); err != nil {
		return nil, err
	}
	if t.get.Step() {
		v, err = t.read(key, t.get.ColumnRawBlob(0))
	}
	if err := done(t.get, err); err != nil {
		return nil, err
	}
	t.remember(key, v)
	return v, nil
}

func (t *table[V, P]) Put(key string, v *V) (err error) {
	if t.buf, err = P(v).AppendBinary(t.buf[:0]); err != nil {
		return err
	}
	if err := errors.Join(t.put.BindText(1, key), t.put.BindBlob(2, t.buf)); err != nil {
		return err
	}
	t.remember(key, v)
	return t.put.Exec()
}

func (t *table[V, P]) Delete(key string) error {
	if err := t.del.BindText(1, key); err != nil {
		return err
	}
	delete(t.cache, key)
	return t.del.Exec()
}

func (t *table[V, P]) Scan(prefix string, f func(string, *V)) (err error) {
	if err := errors.Join(t.scan.BindText(1, prefix), t.scan.BindText(2, after(prefix))); err != nil {
		return err
	}
	for err == nil && t.scan.Step() {
		key := t.scan.ColumnText(0)
		v := t.cache[key]
		if v == nil {
			v, err = t.read(key, t.scan.ColumnRawBlob(1))
		}
		if err == nil {
			t.remember(key, v)
			f(key, v)
		}
	}
	return done(t.scan, err)
}

// after is a text that is greater than all that begin with prefix, and no other one.
// Prefixes end in ASCII.
func after(prefix string) string {
	if prefix == "" {
		return "\xff\xff\xff\xff"
	}
	last := len(prefix) - 1
	return prefix[:last] + string(prefix[last]+1)
}

func (t *table[V, P]) Some(n int) (keys []string, err error) {
	if err := errors.Join(t.few.BindText(1, t.after), t.few.BindInt(2, n)); err != nil {
		return nil, err
	}
	for t.few.Step() {
		keys = append(keys, t.few.ColumnText(0))
	}
	if t.after = ""; len(keys) == n {
		t.after = keys[n-1]
	}
	return keys, done(t.few, nil)
}
