package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

var spacedPlays = []play{
	{name: "token_bucket/a burst, then one after the other", run: bucketPlay},
	{name: "token_bucket/no fuller than full", run: bucketFull},
	{name: "token_bucket/held counts until it is settled", run: bucketHeld},
	{name: "token_bucket/a rate that is no whole number", run: bucketOdd},
	{name: "leaky_bucket/evenly spaced, the cost included", run: leakyPlay},
	{name: "leaky_bucket/late ones are caught up with", run: leakyLate},
	{name: "leaky_bucket/lateness beyond ten intervals is forgiven", days: true, run: leakyForgiven},
	{name: "leaky_bucket/never more than a window allows", run: leakyWindow},
}

func (r *rig) bucket(most, burst int64) *shared {
	l := r.limit(provider.TokenBucket, most)
	l.limit.Burst = burst
	return l
}

func bucketPlay(r *rig) {
	l := r.bucket(5, 3)
	a, b := r.process("a"), r.process("b")
	a.went(l.n(2))
	b.went(l.n(1))
	b.take(l.n(2)).refused(0, r.units(2))
	b.take(l.n(3)).refused(0, r.units(3))
	b.take(l.n(4)).refused(0, ledger.Event)
	b.used(l, 3, 0)
	b.settle(b.take(l.n(1)).opens(0, r.units(1)))
	b.take(l.n(2)).refused(0, r.units(3)-r.now)
	if r.b.Virtual {
		b.take(l.n(3)).opens(0, r.units(4))
	}
}

func bucketFull(r *rig) {
	l := r.bucket(5, 2)
	a, b := r.process("a"), r.process("b")
	a.went(l.n(2))
	r.pass(2 * r.per())
	b.used(l, 0, 0)
	now := r.now
	b.went(l.n(2))
	a.take(l.n(1)).refused(0, now+r.units(1)-r.now)
}

func bucketHeld(r *rig) {
	l := r.bucket(5, 2)
	a, b := r.process("a"), r.process("b")
	h := a.take(l.n(2)).granted()
	r.pass(r.units(6))
	b.take(l.n(1)).refused(0, ledger.Event)
	settled := r.now
	a.settle(h)
	b.take(l.n(1)).opens(0, settled+r.units(1))
}

// 7 in 5 units of time is one in 5/7, which is no whole number of nanoseconds.
func bucketOdd(r *rig) {
	l := r.bucket(7, 7)
	a, b := r.process("a"), r.process("b")
	for range 7 {
		a.went(l.n(1)) // what is left of each is not lost
	}
	for n := int64(1); n <= 7; n++ {
		b.take(l.n(n)).refused(0, ceil(r.per(), n, 7))
	}
	b.take(l.n(3)).opens(0, ceil(r.per(), 3, 7))
}

func leakyPlay(r *rig) {
	l := r.limit(provider.LeakyBucket, 5)
	a, b := r.process("a"), r.process("b")
	h := a.take(l.n(1)).granted()
	b.take(l.n(1)).refused(0, r.units(1)) // also while it is held
	a.settle(h)
	b.take(l.n(1)).refused(0, r.units(1))
	h = b.take(l.n(2)).opens(0, r.units(1))
	at := r.now
	b.settle(h)
	a.take(l.n(1)).refused(0, max(at+r.units(1.8), r.units(3))-r.now)
	a.take(l.n(6)).refused(0, ledger.Event)
}

func leakyLate(r *rig) {
	l := r.limit(provider.LeakyBucket, 5)
	a, b := r.process("a"), r.process("b")
	a.went(l.n(1))
	r.until(r.units(2.6))
	a.went(l.n(1))                          // scheduled at 1
	b.take(l.n(1)).refused(0, r.units(0.9)) // the next at 2, but no nearer than that
	b.settle(b.take(l.n(1)).opens(0, r.units(3.5)))
	at := r.now
	b.take(l.n(1)).refused(0, max(at+r.units(0.9), r.units(3))-r.now)
}

func leakyForgiven(r *rig) {
	const most, idle = 200, 1000
	l := r.limit(provider.LeakyBucket, most)
	step := r.per() / most
	a, b := r.process("a"), r.process("b")
	a.went(l.n(1))
	r.pass(idle * step)
	a.went(l.n(1))
	scheduled := (idle - 10) * step
	for range most - 20 { // a tenth of an interval is caught up with each
		next := max(r.now+step*9/10, scheduled+step)
		b.settle(b.take(l.n(1)).opens(0, next))
		scheduled += step
	}
	require.Equal(r.t, scheduled, r.now, "all has been caught up")
}

func leakyWindow(r *rig) {
	l := r.limit(provider.LeakyBucket, 5)
	a, b := r.process("a"), r.process("b")
	a.charge(l, r.now, 4) // without being asked for: not spaced
	a.went(l.n(1))
	b.take(l.n(1)).refused(0, r.per()+1)
	r.pass(r.units(2))
	b.take(l.n(1)).opens(0, r.per()+1)
}

// ceil is d×n/of, rounded up.
func ceil(d time.Duration, n, of int64) time.Duration {
	return time.Duration((int64(d)*n + of - 1) / of)
}
