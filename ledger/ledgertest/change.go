package ledgertest

import (
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

var changePlays = []play{
	{name: "change/declared again, nothing is refilled", run: changeNothing},
	{name: "change/a lowered limit counts at once", run: changeLower},
	{name: "change/a raised limit keeps what it has counted", run: changeRaise},
	{name: "change/every algorithm keeps what it has counted", run: changeAll},
	{name: "change/what is held stays held", run: changeHeld},
	{name: "change/a longer and a shorter window", run: changePer},
}

func changeNothing(r *rig) {
	l := r.window(3)
	a := r.process("a")
	a.went(l.n(3))
	r.pass(r.units(1))
	for _, name := range []string{"b", "c"} {
		again := *l
		p := r.process(name)
		p.take(again.n(1)).refused(0, r.per()+1-r.now)
		p.used(&again, 3, 0)
	}
	a.say(ledger.Batch{Gone: true})
	r.process("d").take(l.n(1)).opens(0, r.per()+1)
}

func changeLower(r *rig) {
	l := r.window(6)
	a, b := r.process("a"), r.process("b")
	a.went(l.n(2))
	r.pass(r.units(1))
	a.went(l.n(2))
	lower := l.sized(3)
	b.take(lower.n(1)).refused(0, r.per()+1-r.now)
	b.take(lower.n(2)).refused(0, r.units(1)+r.per()+1-r.now)
	b.take(lower.n(4)).refused(0, ledger.Event)
	b.used(lower, 4, 0)
	b.take(lower.n(1)).opens(0, r.per()+1)
}

func changeRaise(r *rig) {
	l := r.window(3)
	a, b := r.process("a"), r.process("b")
	a.went(l.n(3))
	more := l.sized(5)
	b.take(more.n(3)).refused(0, r.per()+1)
	b.take(more.n(2)).granted()
	b.used(more, 3, 2)
	b.take(more.n(1)).refused(0, r.per()+1)
}

func changeAll(r *rig) {
	a, b := r.process("a"), r.process("b")
	r.align(r.per(), r.units(1))
	for _, l := range []*shared{
		r.window(10).sent(), r.limit(provider.FixedWindow, 10).called("fixed"),
		r.limit(provider.SlidingWindowCounter, 10).called("counter"),
		r.limit(provider.LeakyBucket, 10).called("leaky"), r.bucket(10, 10).called("bucket"),
	} {
		r.pass(r.units(0.25))
		a.went(l.n(6))
		lower, more := l.sized(6), l.sized(12)
		if l.limit.Algorithm == provider.TokenBucket {
			lower.limit.Burst, more.limit.Burst = 6, 12
		}
		b.take(lower.n(1)).no()
		b.used(lower, 6, 0)
		b.take(more.n(7)).no()
		if l.limit.Algorithm != provider.LeakyBucket {
			b.take(more.n(6)).granted()
		}
		b.take(more.n(1)).no()
	}
}

func changeHeld(r *rig) {
	l, slots := r.window(5), r.flight(5)
	a, b := r.process("a"), r.process("b")
	h := a.take(l.n(4), slots.n(4)).granted()
	lower, fewer := l.sized(4), slots.sized(4)
	b.take(lower.n(1)).refused(0, ledger.Event)
	b.take(fewer.n(1)).refused(0, ledger.Event)
	b.used(lower, 0, 4)
	a.settle(h)
	b.used(lower, 4, 0)
	b.take(fewer.n(4)).granted()
}

// A window that becomes longer need not know what had left the shorter one.
func changePer(r *rig) {
	l := r.window(4)
	a, b := r.process("a"), r.process("b")
	a.went(l.n(2))
	r.pass(r.units(2))
	a.went(l.n(2))
	long, short := *l, *l
	long.limit.Per, short.limit.Per = r.period(10), r.period(1)
	b.take(long.n(1)).refused(0, r.units(10)+1-r.now)
	r.pass(r.units(0.5))
	b.take(short.n(3)).refused(0, r.units(3)+1-r.now)
	b.take(short.n(2)).granted()
}
