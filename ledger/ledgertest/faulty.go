package ledgertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/headgate/headgate/ledger"
)

// ErrCut is what a Faulty store answers that is cut off.
var ErrCut = errors.New("ledgertest: cut off")

// Faulty is the way of one process to a Store, which can be disturbed while it is in
// use. The zero Fault disturbs nothing. It is safe for concurrent use.
type Faulty struct {
	ledger.Store

	mu    sync.Mutex
	fault Fault
	stats Stats
}

// Fault is what is wrong with the way to a store. Several may be at once.
type Fault struct {
	Cut  bool // batches do not arrive; the error comes at once
	Hang bool // batches do not arrive, and nothing comes until the caller gives up
	Deaf bool // batches are carried out, but their answers are lost: an error comes

	There time.Duration // how long a batch is under way
	Back  time.Duration // how long its answer is
	// Skew has the process's instants be wrong: those that it tells lie so much later than
	// it means, those that it is told so much earlier than they are.
	Skew time.Duration
}

// Stats is what has become of the batches so far.
type Stats struct {
	Said    int // batches that were said
	Carried int // those that the store has carried out
	Lost    int // those whose answer was lost, or came when nobody waited for it any more
}

// Set puts a fault in the place of the one there was, from the next batch on. Batches
// under way keep theirs.
func (f *Faulty) Set(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// Stats returns the counts.
func (f *Faulty) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats
}

func (f *Faulty) count(n *int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*n++
}

func (f *Faulty) now() Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fault
}

// Exchange implements ledger.Store.
func (f *Faulty) Exchange(ctx context.Context, b *ledger.Batch) (*ledger.Reply, error) {
	fault := f.now()
	f.count(&f.stats.Said)
	if fault.Hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := rest(ctx, fault.There); err != nil {
		return nil, err
	}
	if fault.Cut {
		return nil, ErrCut
	}
	r, err := f.Store.Exchange(ctx, skewed(b, fault.Skew))
	if err != nil {
		return nil, err
	}
	f.count(&f.stats.Carried)
	if fault.Deaf {
		f.count(&f.stats.Lost)
		return nil, ErrCut
	}
	if err := rest(ctx, fault.Back); err != nil {
		f.count(&f.stats.Lost)
		return nil, err
	}
	return skewedReply(r, -fault.Skew), nil
}

// rest waits.
func rest(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// skewed is b with all its instants moved.
func skewed(b *ledger.Batch, d time.Duration) *ledger.Batch {
	if d == 0 {
		return b
	}
	c := *b
	c.Holds = moved(b.Holds, func(h *ledger.Held) { h.At = h.At.Add(d) })
	c.Charges = moved(b.Charges, func(x *ledger.Charge) { x.At = x.At.Add(d) })
	c.Settlements = moved(b.Settlements, func(s *ledger.Settlement) { s.At = s.At.Add(d) })
	c.News = moved(b.News, func(n *ledger.News) {
		if n.Pause != nil {
			p := *n.Pause
			move(&p.Until, d)
			n.Pause = &p
		}
		if n.Learn != nil {
			l := *n.Learn
			move(&l.NotBefore, d)
			move(&l.Until, d)
			n.Learn = &l
		}
	})
	return &c
}

// skewedReply is r with all its instants moved.
func skewedReply(r *ledger.Reply, d time.Duration) *ledger.Reply {
	if d == 0 {
		return r
	}
	c := *r
	c.Pauses = moved(r.Pauses, func(p *ledger.Pause) { move(&p.Until, d) })
	c.Usages = moved(r.Usages, func(u *ledger.Usage) {
		move(&u.ResetAt, d)
		move(&u.NotBefore, d)
	})
	c.Grants = moved(r.Grants, func(g *ledger.Grant) {
		if g.Pause != nil {
			p := *g.Pause
			move(&p.Until, d)
			g.Pause = &p
		}
	})
	return &c
}

// move moves an instant that is one.
func move(t *time.Time, d time.Duration) {
	if !t.IsZero() {
		*t = t.Add(d)
	}
}

// moved is a copy of a list, each of it changed.
func moved[T any](list []T, change func(*T)) []T {
	out := append([]T(nil), list...)
	for i := range out {
		change(&out[i])
	}
	return out
}
