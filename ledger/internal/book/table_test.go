package book

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// live is a table of the values themselves, stored one of bytes: a Book must not be
// able to tell them apart.
type live[V any] struct{ rows map[string]*V }

func (t live[V]) Get(key string) (*V, error) { return t.rows[key], nil }

func (t live[V]) Put(key string, v *V) error { t.rows[key] = v; return nil }

func (t live[V]) Delete(key string) error { delete(t.rows, key); return nil }

func (t live[V]) Scan(prefix string, f func(string, *V)) error {
	for key, v := range t.rows {
		if strings.HasPrefix(key, prefix) {
			f(key, v)
		}
	}
	return nil
}

func (t live[V]) Some(n int) (keys []string, _ error) {
	for key := range t.rows {
		if keys = append(keys, key); len(keys) >= n {
			break
		}
	}
	return keys, nil
}

type value[V any] interface {
	*V
	AppendBinary(b []byte) ([]byte, error)
	UnmarshalBinary(data []byte) error
}

type stored[V any, P value[V]] struct {
	rows map[string][]byte
	next *int
}

func (t stored[V, P]) Get(key string) (*V, error) {
	b, ok := t.rows[key]
	if !ok {
		return nil, nil
	}
	v := new(V)
	return v, P(v).UnmarshalBinary(b)
}

func (t stored[V, P]) Put(key string, v *V) (err error) {
	t.rows[key], err = P(v).AppendBinary(nil)
	return err
}

func (t stored[V, P]) Delete(key string) error { delete(t.rows, key); return nil }

func (t stored[V, P]) Scan(prefix string, f func(string, *V)) error {
	for key := range t.rows {
		v, err := t.Get(key)
		if err != nil {
			return err
		}
		if strings.HasPrefix(key, prefix) {
			f(key, v)
		}
	}
	return nil
}

func (t stored[V, P]) Some(n int) (keys []string, _ error) {
	for key := range t.rows {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	if len(keys) == 0 {
		return nil, nil
	}
	all := append(keys, keys...)
	from := *t.next % len(keys)
	*t.next += n
	return all[from : from+min(n, len(keys))], nil
}

func newLive() (Storage, *Book) {
	s := Storage{
		Meta: live[Meta]{map[string]*Meta{}}, Holders: live[Holder]{map[string]*Holder{}}, Records: live[Record]{map[string]*Record{}},
		Holds: live[Hold]{map[string]*Hold{}}, Pauses: live[Pause]{map[string]*Pause{}},
	}
	return s, New(s)
}

func newStored() (Storage, *Book) {
	s := Storage{
		Meta: stored[Meta, *Meta]{map[string][]byte{}, new(int)}, Holders: stored[Holder, *Holder]{map[string][]byte{}, new(int)},
		Records: stored[Record, *Record]{map[string][]byte{}, new(int)}, Holds: stored[Hold, *Hold]{map[string][]byte{}, new(int)},
		Pauses: stored[Pause, *Pause]{map[string][]byte{}, new(int)},
	}
	return s, New(s)
}

var errBroken = errors.New("broken")

// broken fails at the nth call.
type broken[V any] struct {
	Table[V]
	calls *int
}

func (t broken[V]) fails() bool { *t.calls--; return *t.calls < 0 }

func (t broken[V]) Get(key string) (*V, error) {
	if t.fails() {
		return nil, errBroken
	}
	return t.Table.Get(key)
}

func (t broken[V]) Put(key string, v *V) error {
	if t.fails() {
		return errBroken
	}
	return t.Table.Put(key, v)
}

func (t broken[V]) Delete(key string) error {
	if t.fails() {
		return errBroken
	}
	return t.Table.Delete(key)
}

func (t broken[V]) Scan(prefix string, f func(string, *V)) error {
	if t.fails() {
		return errBroken
	}
	return t.Table.Scan(prefix, f)
}

func (t broken[V]) Some(n int) ([]string, error) {
	if t.fails() {
		return nil, errBroken
	}
	return t.Table.Some(n)
}

func breaking(s Storage, calls *int) Storage {
	return Storage{
		Meta: broken[Meta]{s.Meta, calls}, Holders: broken[Holder]{s.Holders, calls}, Records: broken[Record]{s.Records, calls},
		Holds: broken[Hold]{s.Holds, calls}, Pauses: broken[Pause]{s.Pauses, calls},
	}
}

// stage is a Book whose time the test sets.
type stage struct {
	*testing.T
	s    Storage
	k    *Book
	t    time.Time
	back time.Duration
}

func newStage(t *testing.T) *stage {
	s, k := newStored()
	return &stage{T: t, s: s, k: k, t: time.Now()}
}

func (s *stage) pass(d time.Duration) { s.t = s.t.Add(d) }

func (s *stage) say(holder string, b ledger.Batch) *ledger.Reply {
	s.Helper()
	b.Holder = holder
	if b.Lease == 0 {
		b.Lease = 100 * 24 * time.Hour
	}
	r, err := s.k.Exchange(&b, s.t, s.t.Add(-s.back))
	require.NoError(s, err)
	return r
}

func (s *stage) take(holder string, hold ledger.Hold, units ...ledger.Units) ledger.Grant {
	s.Helper()
	return s.say(holder, ledger.Batch{Takes: []ledger.Asked{{Hold: hold, Take: ledger.Take{Provider: "acme", Units: units}}}}).Grants[0]
}

func counter(l provider.Limit) *ledger.Counter {
	if l.Name == "" {
		l.Name = "calls"
	}
	return ledger.NewCounter("acme", l, "", "")
}

func units(c *ledger.Counter, n int64) ledger.Units { return ledger.Units{Counter: c, N: n} }
