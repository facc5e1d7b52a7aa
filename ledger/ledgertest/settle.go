package ledgertest

import (
	"github.com/stretchr/testify/assert"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

var settlePlays = []play{
	{name: "settle/less, more and nothing are charged", run: settleOther},
	{name: "settle/in parts", run: settleParts},
	{name: "settle/parts that name nothing settle nothing", run: settleNoParts},
	{name: "settle/twice counts once", run: settleTwice},
	{name: "settle/a hold that is not known is ignored", run: settleUnknown},
	{name: "settle/a hold is its holder's", run: settleForeign},
	{name: "settle/counts from the instant that is told", run: settlePast},
	{name: "settle/so long ago that it counts no more", run: settleOld},
	{name: "settle/counted sent corrects the difference", run: settleSent},
	{name: "settle/a bucket's estimate was too low", run: settleBucket},
}

// charged ends a hold of one unit with another number.
func (p *process) charged(h ledger.Hold, n int64) {
	p.t.Helper()
	p.settled(ledger.Settlement{Hold: h, Part: []ledger.Part{{Unit: 0, Charged: n}}})
}

func settleOther(r *rig) {
	l := r.window(10)
	a, b := r.process("a"), r.process("b")
	less, more, nothing := a.take(l.n(4)).granted(), a.take(l.n(2)).granted(), a.take(l.n(4)).granted()
	b.take(l.n(1)).refused(0, ledger.Event)
	a.charged(less, 1)
	b.used(l, 1, 6)
	a.charged(nothing, 0)
	b.used(l, 1, 2)
	a.charged(more, 12)
	b.used(l, 13, 0) // charged in full, and over until it has drained
	b.take(l.n(1)).opens(0, r.per()+1)
}

func settleParts(r *rig) {
	calls, tokens, slots := r.window(5), r.window(100).called("tokens"), r.flight(1)
	a, b := r.process("a"), r.process("b")
	h := a.take(slots.n(1), calls.n(2), tokens.n(60)).granted()
	r.pass(r.units(1))
	a.settled(ledger.Settlement{Hold: h, Part: []ledger.Part{{Unit: 1, Charged: 1}, {Unit: 0, Charged: 1}}})
	b.used(slots, 0, 0)
	b.used(calls, 1, 0)
	b.used(tokens, 0, 60)
	r.pass(r.units(1))
	a.settled(ledger.Settlement{Hold: h, Part: []ledger.Part{{Unit: 1, Charged: 4}, {Unit: 2, Charged: 70}}})
	b.used(calls, 1, 0) // it was settled before
	b.used(tokens, 70, 0)
	a.settled(ledger.Settlement{Hold: h})
	b.used(tokens, 70, 0)
	b.take(tokens.n(31), calls.n(5)).refused(0, r.units(2)+r.per()+1-r.now)
	b.take(tokens.n(30), calls.n(5)).opens(1, r.units(1)+r.per()+1)
}

func settleNoParts(r *rig) {
	l := r.window(5)
	a, b := r.process("a"), r.process("b")
	h := a.trial(l, r.pause(1))
	a.settled(ledger.Settlement{Hold: h, Part: []ledger.Part{}, Trial: ledger.Opens})
	b.used(l, 0, 1)
	b.take(l.n(1)).granted()
	a.settle(h)
	b.used(l, 1, 1)
}

func settleTwice(r *rig) {
	l := r.window(4)
	a, b := r.process("a"), r.process("b")
	h := a.take(l.n(2)).granted()
	other := a.take(l.n(1)).granted()
	a.charged(h, 1)
	a.settle(h)
	a.charged(h, 3)
	a.settled(ledger.Settlement{Hold: h, Back: true})
	b.used(l, 1, 1)
	// In one batch as well.
	s := ledger.Settlement{Hold: other, At: r.at(r.now)}
	a.say(ledger.Batch{Settlements: []ledger.Settlement{s, s, s}})
	b.used(l, 2, 0)
}

func settleUnknown(r *rig) {
	l := r.window(4)
	a, b := r.process("a"), r.process("b")
	h := a.take(l.n(2)).granted()
	a.settle(h+100, 12345678901234567890)
	a.settled(ledger.Settlement{Hold: h + 7, Back: true, Trial: ledger.Opens})
	b.used(l, 0, 2)
	refused := a.take(l.n(3)).no()
	a.settle(a.hold) // the name that the refused one would have had
	assert.NotNil(r.t, refused.take.Units)
	b.used(l, 0, 2)
}

// Two holders name their holds alike.
func settleForeign(r *rig) {
	l := r.window(10)
	a, b := r.process("a"), r.process("b")
	h, g := a.take(l.n(4)).granted(), b.take(l.n(3)).granted()
	assert.Equal(r.t, h, g, "the suite gives both the same name")
	b.settle(g)
	b.used(l, 3, 4)
	b.settle(g)
	b.settled(ledger.Settlement{Hold: g, Back: true})
	b.used(l, 3, 4)
	a.settled(ledger.Settlement{Hold: h, Back: true})
	b.used(l, 3, 0)
}

func settlePast(r *rig) {
	l := r.window(2)
	a, b := r.process("a"), r.process("b")
	first, second := a.take(l.n(1)).granted(), a.take(l.n(1)).granted()
	r.pass(r.units(3))
	// Heard out of order, both after the fact.
	a.settled(ledger.Settlement{Hold: second, At: r.at(r.units(2))})
	a.settled(ledger.Settlement{Hold: first, At: r.at(r.units(1))})
	b.take(l.n(2)).refused(0, r.units(2)+r.per()+1-r.now)
	b.take(l.n(1)).opens(0, r.units(1)+r.per()+1)
}

func settleOld(r *rig) {
	l := r.window(2)
	a, b := r.process("a"), r.process("b")
	h := a.take(l.n(2)).granted()
	r.pass(r.units(7))
	a.settled(ledger.Settlement{Hold: h, At: r.at(r.units(1))})
	b.used(l, 0, 0)
	b.take(l.n(2)).granted()
}

// What is too little counts from the answer on; what is too much comes back.
func settleSent(r *rig) {
	for i, l := range []*shared{
		r.window(10).sent(), r.limit(provider.FixedWindow, 10).sent().called("fixed"),
		r.limit(provider.LeakyBucket, 10).sent().called("leaky"),
	} {
		a, b := r.process("a"+l.limit.Name), r.process("b"+l.limit.Name)
		r.align(r.per(), r.units(0.5))
		at := r.now
		h := a.take(l.n(4)).granted()
		r.until(at + r.units(2.5)) // beyond a leaky bucket's spacing
		a.charged(h, 1)
		b.used(l, 1, 0)
		h = a.take(l.n(2)).granted()
		a.charged(h, 9)
		b.used(l, 10, 0)
		b.take(l.n(1)).no()
		if i == 0 {
			b.take(l.n(1)).refused(0, at+r.per()+1-r.now)
			b.take(l.n(4)).refused(0, at+r.units(2.5)+r.per()+1-r.now)
		}
	}
}

func settleBucket(r *rig) {
	l := r.bucket(5, 5)
	a, b := r.process("a"), r.process("b")
	h := a.take(l.n(1)).granted()
	a.charged(h, 12) // seven more than it holds
	b.take(l.n(5)).refused(0, r.units(12))
	b.take(l.n(1)).opens(0, r.units(8))
}
