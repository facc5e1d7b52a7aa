package ledgertest

import (
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

func canStep(b Bench) bool { return b.Step != nil }

var clockPlays = []play{
	{name: "clock/steps back, windows go on as before", can: canStep, run: clockWindows},
	{name: "clock/steps back, leases and pauses go on as before", can: canStep, run: clockLeases},
	{name: "clock/steps back again and again", can: canStep, run: clockOften},
}

func clockWindows(r *rig) {
	l, bucket := r.window(3), r.bucket(5, 5).called("bucket")
	leaky := r.limit(provider.LeakyBucket, 5).called("leaky")
	a, b := r.process("a"), r.process("b")
	a.went(l.n(3), bucket.n(5), leaky.n(1))
	r.pass(r.units(0.5))
	b.say(ledger.Batch{}) // what nobody has heard of the time may be lost
	r.b.Step(r.t, r.units(100))
	b.take(leaky.n(1)).refused(0, r.units(0.5))
	b.take(bucket.n(1)).refused(0, r.units(0.5))
	b.take(l.n(1)).refused(0, r.per()+1-r.now)
	r.pass(r.units(1))
	c := r.process("c") // which knows nothing of the time before
	c.take(l.n(1)).refused(0, r.per()+1-r.now)
	r.pass(r.units(1))
	c.take(l.n(1)).opens(0, r.per()+1)
	b.take(bucket.n(5), leaky.n(1)).granted()
}

func clockLeases(r *rig) {
	slots, l := r.flight(1), r.window(3)
	a, b := r.process("a"), r.process("b")
	a.lease = r.units(3)
	a.take(slots.n(1), l.n(1)).granted()
	p := r.pause(2)
	p.Scope, p.Name = provider.ScopeKey, "k"
	a.paused(p)
	r.pass(r.units(0.5))
	b.say(ledger.Batch{})
	r.b.Step(r.t, r.units(1000))
	b.try(ledger.Take{Provider: "acme", Key: "k"}).paused(p)
	b.take(slots.n(1)).refused(0, ledger.Event)
	b.try(ledger.Take{Provider: "acme", Key: "k"}).opensAlone(r.units(2))
	r.until(r.units(4))
	b.take(slots.n(1)).granted()
	b.used(l, 1, 0)
}

func clockOften(r *rig) {
	l := r.window(4)
	a, b := r.process("a"), r.process("b")
	for n := range 4 {
		a.went(l.n(1))
		b.used(l, int64(n+1), 0)
		r.b.Step(r.t, r.units(float64(n+1)))
		r.pass(r.units(1))
	}
	b.take(l.n(1)).opens(0, r.per()+1)
	b.take(l.n(1)).no()
}
