package ledgertest

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

var sayPlays = []play{
	{name: "said again/charges count once", run: againCharges},
	{name: "said again/an earlier number is skipped, too", run: againEarlier},
	{name: "said again/news is old", run: againNews},
	{name: "said again/settlements and holds", run: againSettled},
	{name: "said again/takes and peeks are answered", run: againTakes},
	{name: "said again/each holder has numbers of its own", run: againOthers},
	{name: "said again/over another connection", run: againElsewhere},
	{name: "forget/a provider's counters and what is held", run: forgetCounters},
	{name: "forget/a provider's pauses", run: forgetPauses},
	{name: "forget/no other provider", run: forgetOthers},
	{name: "forget/comes before all else of its batch", run: forgetFirst},
}

func againCharges(r *rig) {
	l := r.window(10)
	a, b := r.process("a"), r.process("b")
	batch := ledger.Batch{Charges: []ledger.Charge{{Counter: a.of(l), At: r.at(r.now), N: 3}}}
	a.say(batch)
	a.again(batch)
	b.used(l, 3, 0)
	a.again(batch)
	b.used(l, 3, 0)
	a.say(batch)
	b.used(l, 6, 0)
	batch.Charges[0].N = -2
	a.say(batch)
	a.again(batch)
	b.used(l, 4, 0)
}

func againEarlier(r *rig) {
	l := r.window(10)
	a, b := r.process("a"), r.process("b")
	batch := ledger.Batch{Charges: []ledger.Charge{{Counter: a.of(l), At: r.at(r.now), N: 1}}}
	a.seq = 41 // numbers need not be without gaps
	a.say(batch)
	b.used(l, 1, 0)
	a.seq = 7
	a.say(batch)
	b.used(l, 1, 0)
	a.seq = 42
	a.say(batch)
	b.used(l, 2, 0)
}

func againNews(r *rig) {
	l := r.window(10)
	a, b := r.process("a"), r.process("b")
	p := r.pause(50)
	batch := ledger.Batch{News: []ledger.News{
		{Pause: &p}, {Learn: &ledger.Learnt{Counter: a.of(l), NotBefore: r.at(r.units(40))}},
	}}
	a.say(batch)
	b.take(l.n(1)).paused(p)
	b.resume("", "")
	b.learn(l, 0, 0, 0)
	a.again(batch)
	b.take(l.n(1)).granted()
	// Nor does an old word end a pause.
	a.resume("", "")
	resume := ledger.Batch{News: []ledger.News{{Resume: &ledger.Pause{Provider: "acme"}}}}
	b.paused(p)
	a.again(resume)
	b.take(l.n(1)).paused(p)
}

func againSettled(r *rig) {
	l := r.window(10)
	a, b := r.process("a"), r.process("b")
	h, other := a.take(l.n(2)).granted(), a.take(l.n(3)).granted()
	batch := ledger.Batch{Settlements: []ledger.Settlement{
		{Hold: h, At: r.at(r.now)}, {Hold: other, At: r.at(r.now), Back: true},
	}}
	a.say(batch)
	a.again(batch)
	b.used(l, 2, 0)
	a.say(batch)
	b.used(l, 2, 0)
	held := ledger.Batch{Holds: []ledger.Held{{Hold: 1000, At: r.at(r.now), Take: a.ask(l.n(4))}}}
	a.say(held)
	a.again(held)
	a.say(held) // a hold is told by its name
	b.used(l, 2, 4)
	a.settle(1000)
	b.used(l, 6, 0)
}

func againTakes(r *rig) {
	l := r.window(3)
	a, b := r.process("a"), r.process("b")
	a.went(l.n(1))
	batch := ledger.Batch{Takes: []ledger.Asked{a.asked(a.ask(l.n(1)))}, Peek: []*ledger.Counter{a.of(l)}}
	reply := a.again(batch)
	a.answers(batch, reply)[0].granted()
	assert.EqualValues(r.t, 1, reply.Usages[0].Held)
	b.used(l, 1, 1)
	batch.Takes[0] = a.asked(a.ask(l.n(2)))
	a.answers(batch, a.again(batch))[0].refused(0, r.per()+1)
	reply = a.again(ledger.Batch{Forget: []string{"acme"}})
	require.NotNil(r.t, reply)
	b.used(l, 0, 0)
}

func againOthers(r *rig) {
	l := r.window(10)
	a, b := r.process("a"), r.process("b")
	for _, p := range []*process{a, b} {
		p.say(ledger.Batch{Charges: []ledger.Charge{{Counter: p.of(l), At: r.at(r.now), N: 2}}})
	}
	b.used(l, 4, 0)
}

// The holder is the client, not its connection.
func againElsewhere(r *rig) {
	l := r.window(10)
	a, other := r.process("a"), r.process("a")
	h := a.take(l.n(1)).granted()
	batch := ledger.Batch{Charges: []ledger.Charge{{Counter: a.of(l), At: r.at(r.now), N: 3}}}
	a.say(batch)
	batch.Charges[0].Counter = other.of(l)
	other.seq = a.seq
	other.again(batch)
	other.used(l, 3, 1)
	other.settle(h)
	other.used(l, 4, 0)
}

func forgetCounters(r *rig) {
	calls, slots := r.window(3), r.flight(2)
	leaky := r.limit(provider.LeakyBucket, 3).called("leaky")
	a, b := r.process("a"), r.process("b")
	a.went(calls.n(2))
	h := a.take(calls.n(1), slots.n(2), leaky.n(1)).granted()
	b.learn(calls, r.units(30), 1, r.units(30))
	b.say(ledger.Batch{Forget: []string{"acme"}})
	b.used(calls, 0, 0)
	a.used(slots, 0, 0)
	g := b.take(calls.n(3), slots.n(2), leaky.n(1)).granted()
	a.settle(h) // it is not known any more
	b.used(calls, 0, 3)
	b.used(slots, 0, 2)
	b.settle(g)
	b.used(calls, 3, 0)
	b.used(slots, 0, 0)
}

func forgetPauses(r *rig) {
	l := r.window(3)
	a, b := r.process("a"), r.process("b")
	p := r.pause(9)
	a.paused(p)
	b.take(l.n(1)).paused(p)
	version := b.known
	a.say(ledger.Batch{Forget: []string{"acme"}})
	b.take(l.n(1)).granted()
	require.NotEqual(r.t, version, b.known)
	b.known = version
	require.Empty(r.t, b.say(ledger.Batch{}).Pauses)
}

func forgetOthers(r *rig) {
	one, two := r.window(3), r.window(3).of("acme-two")
	a, b := r.process("a"), r.process("b")
	a.went(two.n(2))
	h := a.take(two.n(1), one.n(3)).granted()
	p := r.pause(9)
	p.Provider, p.Scope, p.Name = "acme-two", provider.ScopeKey, "k"
	a.paused(p)
	a.say(ledger.Batch{Forget: []string{"acme", "acm", "no-such"}})
	b.used(two, 2, 1)
	b.used(one, 0, 0)
	b.try(ledger.Take{Provider: "acme-two", Key: "k"}).paused(p)
	a.settle(h)
	b.used(two, 3, 0)
	b.used(one, 0, 0)
}

func forgetFirst(r *rig) {
	l := r.window(3)
	a := r.process("a")
	a.went(l.n(3))
	batch := ledger.Batch{
		Forget:  []string{"acme"},
		Charges: []ledger.Charge{{Counter: a.of(l), At: r.at(r.now), N: 1}},
		Takes:   []ledger.Asked{a.asked(a.ask(l.n(3))), a.asked(a.ask(l.n(2)))},
	}
	answers := a.answers(batch, a.say(batch))
	answers[0].refused(0, r.per()+1)
	answers[1].granted()
	a.used(l, 1, 2)
}
