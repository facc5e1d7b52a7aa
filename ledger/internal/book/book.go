// Package book is what a store does with a batch: the arithmetic of a shared budget,
// over package limit. It has no clock and no lock; where it is kept is its user's
// business, who also sees to it that a batch is undivided.
//
// Not in it: when a batch is said, and what becomes of its answer (package ledger);
// files and servers.
package book

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/limit"
)

// Book carries out batches over a Storage. It is not safe for concurrent use. After an
// error of Exchange what it has changed must be taken back, and Reset be called.
type Book struct {
	s      Storage
	epoch  string            // of the state that the rest is of
	pauses map[string]*Pause // as stored at revision rev; nil: not read
	rev    uint64
	last   time.Duration // the last batch of this Book, on the ledger's scale
	lastAt time.Time     // and as the process counts time
}

// New returns a Book that is kept in s.
func New(s Storage) *Book { return &Book{s: s} }

// Reset forgets everything that was read, but for what the Storage itself keeps.
func (k *Book) Reset() { k.pauses = nil }

// turn is one batch being carried out.
type turn struct {
	*Book
	b       *ledger.Batch
	t       time.Time // its instant, as the process counts time
	wall    time.Time // as the machine's clock shows it
	now     limit.Now // on the ledger's own scale
	meta    *Meta
	holder  *Holder
	others  []string           // holders whose lease runs, but for this one
	records map[string]*Record // those that were looked at; nil: there is none
	made    int                // records that are new
}

// Exchange carries out a batch at an instant: t has a monotonic reading where the
// caller's instants have one, and wall is what the machine's clock shows, which only a
// test makes differ from t. A limit that is none fails the whole batch, before anything
// has changed.
func (k *Book) Exchange(b *ledger.Batch, t, wall time.Time) (*ledger.Reply, error) {
	if err := check(b); err != nil {
		return nil, err
	}
	x := &turn{Book: k, b: b, t: t, wall: wall, records: map[string]*Record{}}
	if err := x.begin(); err != nil {
		return nil, err
	}
	reply := &ledger.Reply{Epoch: x.meta.Epoch, Warning: x.meta.warning()}
	err := x.carryOut(reply)
	if err == nil {
		err = x.s.Meta.Put("", x.meta)
	}
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// check finds what is wrong with a batch.
func check(b *ledger.Batch) error {
	if b.Holder == "" {
		return fmt.Errorf("ledger: a batch without a holder")
	}
	for c := range counters(b) {
		if p := prepare(c); p.err != nil {
			return fmt.Errorf("ledger: counter %q: %w", c.ID(), p.err)
		}
	}
	return nil
}

// begin reads the clock, and makes a state where there is none.
func (x *turn) begin() error {
	meta, err := x.s.Meta.Get("")
	if err != nil {
		return err
	}
	if meta == nil {
		// Versions of different states must differ, or a client took one for the other.
		meta = &Meta{Epoch: rand.Text(), Version: uint64(max(x.wall.UnixNano(), 1))}
	}
	if x.epoch != meta.Epoch || x.rev != meta.Rev {
		x.pauses = nil
	}
	x.meta, x.now = meta, x.read(meta, x.t, x.wall)
	return nil
}

func (x *turn) carryOut(reply *ledger.Reply) error {
	if x.b.Epoch != "" && x.b.Epoch != x.meta.Epoch {
		if x.meta.Grace == 0 {
			x.meta.Grace = x.now.Mono + ledger.Grace
		}
		return nil
	}
	for _, step := range []func(*ledger.Reply) error{
		x.readPauses, x.bury, x.greet, x.hear, x.answer, x.leave, x.tidy, x.flush, x.count, x.tellPauses,
	} {
		if err := step(reply); err != nil {
			return err
		}
	}
	return nil
}

// hear carries out everything that asks for no answer.
func (x *turn) hear(*ledger.Reply) error {
	for _, slug := range x.b.Forget {
		if err := x.forget(slug); err != nil {
			return err
		}
	}
	if x.b.Seq > 0 && x.b.Seq <= x.holder.Seq {
		return nil
	}
	x.holder.Seq = x.b.Seq
	for i := range x.b.Holds {
		if err := x.restore(&x.b.Holds[i]); err != nil {
			return err
		}
	}
	for i := range x.b.Charges {
		if err := x.charge(&x.b.Charges[i]); err != nil {
			return err
		}
	}
	for i := range x.b.Settlements {
		if err := x.settle(&x.b.Settlements[i]); err != nil {
			return err
		}
	}
	for i := range x.b.News {
		if err := x.tell(&x.b.News[i]); err != nil {
			return err
		}
	}
	return nil
}

// answer carries out what asks for one.
func (x *turn) answer(reply *ledger.Reply) error {
	if n := len(x.b.Takes); n > 0 {
		reply.Grants = make([]ledger.Grant, n)
	}
	for i := range x.b.Takes {
		if err := x.take(&x.b.Takes[i], &reply.Grants[i]); err != nil {
			return err
		}
	}
	for _, c := range x.b.Peek {
		u, err := x.peek(c)
		if err != nil {
			return err
		}
		reply.Usages = append(reply.Usages, u)
	}
	return nil
}
