package coordinator

import (
	"context"
	"sync"
)

// The memory of a call that went well at once is used again: without that a busy
// program collects garbage all the time. It must not be while anybody may still have
// the call's Lease. Its function can only have it from its context (LeaseFrom), which
// marks it as lent: such a lease is never used again. The context itself, which may
// outlive the call in whatever was derived from it, knows which life of the lease was
// its own, and gives out no other.
var walks = sync.Pool{New: func() any { return new(walk) }}

// lent, in Lease.life, says that somebody has the lease. The rest is the number of the
// call that it belongs to; 0: to none.
const lent = 1

// newWalk begins a call whose memory may be used again.
func newWalk(ctx context.Context, call Call) *walk {
	w := walks.Get().(*walk)
	w.life++
	w.ctx, w.call = ctx, call
	w.first.life.Store(w.life << 1)
	return w
}

// lend gives the lease out, unless the call that asks has ended and its lease is
// another's, or nobody's.
func (ls *Lease) lend(life uint64) bool {
	return ls.life.Load() == life<<1|lent || ls.life.CompareAndSwap(life<<1, life<<1|lent)
}

// reuse ends a call that may have left nothing behind but numbers: its first attempt
// was ok, and nobody has learned anything from it that names its lease.
func (w *walk) reuse() {
	ls := &w.first
	if w.attempts != 1 || w.failed != nil || w.outer != nil || ls.state != over || ls.f != plainOK || ls.rare != nil {
		return
	}
	if !ls.life.CompareAndSwap(w.life<<1, 0) {
		return // lent
	}
	// What the next call writes before it reads stays as it is: clearing all of it would
	// cost as much as new memory.
	w.ctx, w.l, w.root, w.last, w.waited, w.attempts, w.sheltered, w.back = nil, nil, nil, nil, 0, 0, false, false
	ls.route, ls.cost, ls.f, ls.wait, ls.ctx = nil, nil, nil, nil, nil
	ls.waited, ls.state, ls.again, ls.running, ls.went = 0, waiting, false, false, false
	ls.settled = 0 // which release asks for, of a call whose units are settled later
	walks.Put(w)
}
