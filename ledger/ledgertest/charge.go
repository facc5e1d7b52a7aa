package ledgertest

import (
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

var chargePlays = []play{
	{name: "charge/units that went without asking", run: chargePlus},
	{name: "charge/below 0 takes back what was charged then, and no more", run: chargeMinus},
	{name: "charge/below 0 takes back what a settlement charged", run: chargeCorrects},
	{name: "charge/below 0 leaves what counts no more", run: chargeGone},
	{name: "charge/every algorithm", run: chargeAll},
}

func chargePlus(r *rig) {
	l := r.window(5)
	a, b := r.process("a"), r.process("b")
	r.pass(r.units(3))
	a.charge(l, r.units(1), 4)
	a.charge(l, r.units(2), 3) // more than the limit: it was not asked
	b.used(l, 7, 0)
	b.take(l.n(1)).refused(0, r.units(1)+r.per()+1-r.now)
	b.take(l.n(2)).opens(0, r.units(1)+r.per()+1)
}

func chargeMinus(r *rig) {
	l := r.window(20)
	a, b := r.process("a"), r.process("b")
	r.pass(r.units(4))
	a.charge(l, r.units(1), 4)
	b.charge(l, r.units(3), 5)
	a.charge(l, r.units(1), -1)
	b.used(l, 8, 0)
	a.charge(l, r.units(1), -100)
	b.used(l, 5, 0)
	a.charge(l, r.units(1), -100)
	a.charge(l, r.units(2), -100) // nothing went then
	b.used(l, 5, 0)
	b.take(l.n(16)).refused(0, r.units(3)+r.per()+1-r.now)
}

func chargeCorrects(r *rig) {
	l := r.window(20)
	a, b := r.process("a"), r.process("b")
	h := a.take(l.n(9)).granted()
	r.pass(r.units(1))
	at := r.now
	a.settle(h)
	r.pass(r.units(1))
	b.charge(l, r.now, 2)
	a.charge(l, at, -4)
	b.used(l, 7, 0)
	b.take(l.n(18)).refused(0, at+r.per()+1-r.now)
}

func chargeGone(r *rig) {
	l := r.window(5)
	a, b := r.process("a"), r.process("b")
	a.charge(l, r.now, 5)
	r.pass(r.units(5.9))
	b.charge(l, r.now, 3)
	a.charge(l, 0, -5)
	b.used(l, 3, 0)
}

func chargeAll(r *rig) {
	a, b := r.process("a"), r.process("b")
	r.align(r.per(), r.units(1))
	for _, l := range []*shared{
		r.window(50).sent(), r.limit(provider.FixedWindow, 50).called("fixed"),
		r.limit(provider.SlidingWindowCounter, 50).called("counter"),
		r.limit(provider.LeakyBucket, 50).called("leaky"), r.bucket(5, 50).called("bucket"),
	} {
		r.pass(r.units(0.25))
		a.charge(l, r.now, 40)
		b.used(l, 40, 0)
		b.take(l.n(11)).no()
		a.charge(l, r.now, -10)
		b.used(l, 30, 0)
		a.charge(l, r.now, 30)
		b.take(l.n(1)).no()
	}
	slots := r.flight(5)
	a.charge(slots, r.now, 40) // nothing ever counts there
	b.take(slots.n(5)).granted()
	b.take(slots.n(1)).refused(0, ledger.Event)
}
