package coordinator

import "sync"

// The lease of a call that went well is used again: without that a busy program
// collects garbage all the time. It must not be while anybody may still have it. The
// call's function can only have it from its context (LeaseFrom), which marks it as
// lent: such a lease is never used again. The context itself, which may outlive the
// call in whatever was derived from it, knows which life of the lease was its own, and
// gives out no other.
var leases = sync.Pool{New: func() any { return new(Lease) }}

// Lease.life is the number of the call that the lease belongs to, and two marks.
const (
	lent  = 1 << iota // somebody has the lease
	ended             // it belongs to no call any more
	marks = iota
)

// newLease is a lease for one attempt of a call.
func newLease() *Lease {
	ls := leases.Get().(*Lease)
	ls.life.Store((ls.number() + 1) << marks)
	return ls
}

// number is that of the lease's call.
func (ls *Lease) number() uint64 { return ls.life.Load() >> marks }

// lend gives the lease out, unless the call that asks has ended and its lease is
// another's, or nobody's.
func (ls *Lease) lend(number uint64) bool {
	mine := number << marks
	return ls.life.Load() == mine|lent || ls.life.CompareAndSwap(mine, mine|lent)
}

// reuse ends an attempt that may have left nothing behind but numbers: it was ok, and
// nobody has learned anything from it that names its lease.
func (ls *Lease) reuse() {
	mine := ls.number() << marks
	if !ls.life.CompareAndSwap(mine, mine|ended) {
		return // lent: who has it may change it now
	}
	if ls.state != over || ls.f != plainOK || ls.rare != nil {
		return
	}
	ls.terms = terms{}
	leases.Put(ls)
}
