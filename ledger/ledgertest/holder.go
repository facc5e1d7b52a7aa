package ledgertest

import (
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

var holderPlays = []play{
	{name: "holder/dies, what it held counts from its lease's end", run: holderDies},
	{name: "holder/dies, its slots are free", run: holderSlots},
	{name: "holder/dies, every algorithm", run: holderAll},
	{name: "holder/any batch renews its lease", run: holderRenews},
	{name: "holder/comes back from the dead", run: holderBack},
	{name: "holder/leaves, what it held counts from then on", run: holderLeaves},
	{name: "holder/how many there are, and which", run: holderReplicas},
}

func holderDies(r *rig) {
	l := r.window(3)
	a, b := r.process("a"), r.process("b")
	a.lease = r.units(3)
	a.take(l.n(2)).granted()
	a.take(l.n(1)).granted()
	r.until(r.units(2.25))
	b.take(l.n(1)).refused(0, ledger.Event)
	b.used(l, 0, 3)
	r.until(r.units(3.75))
	b.used(l, 3, 0)
	b.take(l.n(1)).opens(0, r.units(3)+r.per()+1)
}

func holderSlots(r *rig) {
	slots, l := r.flight(2), r.window(2)
	a, b := r.process("a"), r.process("b")
	a.lease = r.units(2)
	a.take(slots.n(2), l.n(2)).granted()
	b.take(slots.n(1)).refused(0, ledger.Event)
	r.until(r.units(2.75))
	b.take(slots.n(2)).granted()
	b.take(l.n(1)).refused(0, r.units(2)+r.per()+1-r.now)
}

// Nobody looks for a long time: what a dead holder held counted from the end of its
// lease, and not from when it is found.
func holderAll(r *rig) {
	b := r.process("b")
	for _, l := range []*shared{
		r.window(5), r.bucket(5, 5).called("bucket"), r.limit(provider.LeakyBucket, 5).called("leaky"),
		r.window(5).sent().called("sent"), r.limit(provider.FixedWindow, 5).called("fixed"),
	} {
		a := r.process("a " + l.limit.Name)
		a.lease = r.units(1)
		r.align(r.per(), r.units(0.5))
		began := r.now
		a.take(l.n(5)).granted()
		died := began + a.lease
		r.until(began + r.units(3) + r.slack())
		switch {
		case l.limit.Algorithm == provider.TokenBucket:
			b.take(l.n(4)).refused(0, died+r.units(4)-r.now)
			b.take(l.n(2)).granted()
		case l.limit.Algorithm == provider.FixedWindow:
			b.take(l.n(1)).refused(0, began+r.units(4.5)+guard(r.per())-r.now)
		case l.limit.Counted == provider.CountedSent:
			b.take(l.n(1)).refused(0, began+r.per()+1-r.now)
		default:
			b.take(l.n(1)).refused(0, died+r.per()+1-r.now)
		}
	}
}

func holderRenews(r *rig) {
	l := r.window(3)
	a, b := r.process("a"), r.process("b")
	a.lease = r.units(3)
	h := a.take(l.n(3)).granted()
	for range 4 {
		r.pass(r.units(2))
		a.say(ledger.Batch{})
		b.take(l.n(1)).refused(0, ledger.Event)
	}
	r.pass(r.units(2))
	a.again(ledger.Batch{}) // also one that was said before
	r.pass(r.units(2))
	b.take(l.n(1)).refused(0, ledger.Event)
	at := r.now
	a.settle(h)
	b.take(l.n(1)).refused(0, at+r.per()+1-r.now)
}

// What it held has counted from the end of its lease on; what it says of it now is
// of holds that are not known any more.
func holderBack(r *rig) {
	l, slots := r.window(3), r.flight(1)
	a, b := r.process("a"), r.process("b")
	a.lease = r.units(2)
	h := a.take(l.n(3), slots.n(1)).granted()
	r.until(r.units(3))
	g := b.take(slots.n(1)).granted()
	a.settle(h)
	b.used(l, 3, 0)
	b.used(slots, 0, 1)
	a.take(slots.n(1)).refused(0, ledger.Event)
	a.take(l.n(1)).refused(0, r.units(2)+r.per()+1-r.now)
	b.settle(g)
	a.take(slots.n(1)).granted() // it is as alive as it was
	r.until(r.units(4.25))
	b.used(slots, 0, 1)
}

func holderLeaves(r *rig) {
	l, slots := r.window(3), r.flight(1)
	a, b := r.process("a"), r.process("b")
	a.take(l.n(2), slots.n(1)).granted()
	r.pass(r.units(1))
	h := a.take(l.n(1)).granted()
	a.say(ledger.Batch{Gone: true, Settlements: []ledger.Settlement{{Hold: h, At: r.at(r.now), Back: true}}})
	b.used(l, 2, 0)
	b.take(slots.n(1), l.n(1)).granted()
	b.take(l.n(1)).refused(0, r.units(1)+r.per()+1-r.now)
	require.Equal(r.t, 1, b.say(ledger.Batch{}).Replicas)
}

func holderReplicas(r *rig) {
	are := func(p *process, replicas, rank int) {
		r.t.Helper()
		reply := p.say(ledger.Batch{})
		require.Equal(r.t, replicas, reply.Replicas, "replicas")
		require.Equal(r.t, rank, reply.Rank, "rank")
	}
	m, z, a := r.process("m"), r.process("z"), r.process("a")
	are(m, 1, 0)
	are(z, 2, 1)
	a.lease = r.units(2)
	are(a, 3, 0)
	are(m, 3, 1)
	are(z, 3, 2)
	r.until(r.units(2.75))
	are(z, 2, 1)
	are(m, 2, 0)
	are(a, 3, 0)
	m.say(ledger.Batch{Gone: true})
	are(z, 2, 1)
	are(a, 2, 0)
}
