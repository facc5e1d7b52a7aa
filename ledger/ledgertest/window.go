package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

var windowPlays = []play{
	{name: "sliding_window/free strictly after settle and window", run: windowFree},
	{name: "sliding_window/held counts until it is settled", run: windowHeld},
	{name: "sliding_window/units come back one by one", run: windowOneByOne},
	{name: "sliding_window/what is held and what counts are added", run: windowMixed},
	{name: "sliding_window/counted sent", run: windowSent},
	{name: "sliding_window/more than 1024 entries", run: windowMany},
	{name: "in_flight/so many at once and no more", run: flightPlay},
	{name: "in_flight/beside a window", run: flightBeside},
}

func windowFree(r *rig) {
	l := r.window(3)
	a, b := r.process("a"), r.process("b")
	first, second := a.take(l.n(2)).granted(), b.take(l.n(1)).granted()
	r.pass(r.units(1))
	a.settle(first)
	r.pass(r.units(1))
	b.settle(second)
	r.pass(r.units(1))
	b.take(l.n(1)).opens(0, r.units(1)+r.per()+1)
	b.take(l.n(1)).granted() // the other of the two
	b.take(l.n(1)).refused(0, r.units(2)+r.per()+1-r.now)
}

func windowHeld(r *rig) {
	l := r.window(2)
	a, b := r.process("a"), r.process("b")
	h := a.take(l.n(2)).granted()
	b.take(l.n(1)).refused(0, ledger.Event)
	r.pass(r.units(6))
	b.take(l.n(1)).refused(0, ledger.Event)
	b.used(l, 0, 2)
	settled := r.now
	a.settle(h)
	b.used(l, 2, 0)
	b.take(l.n(2)).opens(0, settled+r.per()+1)
}

func windowOneByOne(r *rig) {
	l := r.window(3)
	a, b := r.process("a"), r.process("b")
	for range 3 {
		a.went(l.n(1))
		r.pass(r.units(1))
	}
	for n := range 3 {
		b.take(l.n(int64(n+1))).refused(0, r.units(float64(n))+r.per()+1-r.now)
	}
	b.take(l.n(1)).opens(0, r.per()+1)
}

func windowMixed(r *rig) {
	l := r.window(5)
	a, b := r.process("a"), r.process("b")
	a.went(l.n(2))
	h := a.take(l.n(2)).granted()
	r.pass(r.units(1))
	b.take(l.n(2)).refused(0, r.per()+1-r.now)         // the two that count leave room for it
	b.take(l.n(3)).refused(0, r.per()+1-r.now)         // just so
	b.take(l.n(4)).refused(0, ledger.Event)            // what is held has to be settled
	b.take(l.n(6)).refused(0, ledger.Event)            // it can never go
	b.settled(ledger.Settlement{Hold: h, At: r.at(0)}) // not b's
	b.take(l.n(4)).refused(0, ledger.Event)
	a.settle(h)
	b.take(l.n(4)).opens(0, r.units(1)+r.per()+1)
}

func windowSent(r *rig) {
	l := r.window(2).sent()
	a, b := r.process("a"), r.process("b")
	h := a.take(l.n(2)).granted()
	b.take(l.n(1)).refused(0, r.per()+1)
	r.pass(r.units(2))
	a.settle(h)
	b.take(l.n(2)).opens(0, r.per()+1)
}

// Above 1,024 entries a store may count in slots of a 1,024th of the window, later
// than true and never earlier.
func windowMany(r *rig) {
	const entries, apart = 1500, 2000
	l := r.window(entries)
	a, b := r.process("a"), r.process("b")
	r.pass(r.per())
	first := r.now - r.per()*entries/apart
	for i := 0; i < entries; i += 300 {
		var batch ledger.Batch
		for k := i; k < i+300; k++ {
			at := first + r.per()*time.Duration(k)/apart
			batch.Charges = append(batch.Charges, ledger.Charge{Counter: a.of(l), At: r.at(at), N: 1})
		}
		a.say(batch)
	}
	slot := r.per()/1024 + 1
	b.used(l, entries, 0)
	b.take(l.n(1)).opensWithin(0, first+r.per()+1, slot).granted()
	// What was charged before is free, no more and nearly no less, also of what came
	// when the slots were there.
	for k := time.Duration(1050); k < 1400; k += 7 {
		at := first + r.per()*k/apart + r.per() + 1 // the instant at which k+1 are free
		if r.b.Virtual {
			r.until(at)
			b.take(l.n(int64(k)+1)).within(0, r.per()/apart, slot) // one is held
		}
	}
	r.until(first + r.per() + r.per()*3/4)
	b.take(l.n(entries - 5 - int64(2*r.slack()*apart/r.per()))).granted()
}

func flightPlay(r *rig) {
	l := r.flight(3)
	a, b := r.process("a"), r.process("b")
	h := a.take(l.n(2)).granted()
	b.take(l.n(2)).refused(0, ledger.Event)
	b.take(l.n(1)).granted()
	b.take(l.n(1)).refused(0, ledger.Event)
	r.pass(r.units(6))
	b.take(l.n(1)).refused(0, ledger.Event)
	a.settled(ledger.Settlement{Hold: h, Part: []ledger.Part{{Unit: 0, Charged: 100}}})
	b.used(l, 0, 1) // nothing ever counts
	b.take(l.n(3)).no()
	b.take(l.n(2)).granted()
}

func flightBeside(r *rig) {
	f, l := r.flight(1), r.window(2)
	a, b := r.process("a"), r.process("b")
	h := a.take(f.n(1), l.n(1)).granted()
	b.take(f.n(1), l.n(1)).refused(0, ledger.Event)
	a.settled(ledger.Settlement{Hold: h, Part: []ledger.Part{{Unit: 0}}}) // the slot first
	b.take(f.n(1), l.n(1)).granted()
	b.take(l.n(1)).refused(0, ledger.Event)
	a.settled(ledger.Settlement{Hold: h}) // then what is left of it
	require.EqualValues(r.t, 1, b.peek(l).Used)
	require.Equal(r.t, provider.InFlight, f.limit.Algorithm)
}
