package ledgertest

import (
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

func canLose(b Bench) bool { return b.Lose != nil }

var epochPlays = []play{
	{name: "epoch/one for all", run: epochOne},
	{name: "epoch/who knows another is told so, and nothing else happens", run: epochForeign},
	{name: "epoch/a foreign one means a time of grace, once", run: epochGrace},
	{name: "epoch/lost state is another", can: canLose, run: epochLost},
	{name: "epoch/what was held and charged is told again", can: canLose, run: epochTold},
	{name: "epoch/every algorithm is told again", can: canLose, run: epochAll},
	{name: "epoch/a hold of which a part is left", can: canLose, run: epochParts},
}

func epochOne(r *rig) {
	a, b := r.process("a"), r.process("b")
	a.say(ledger.Batch{})
	b.say(ledger.Batch{})
	require.Equal(r.t, a.epoch, b.epoch)
	r.pass(r.units(20))
	a.say(ledger.Batch{})
	b.say(ledger.Batch{Gone: true})
	require.Equal(r.t, a.epoch, r.process("c").say(ledger.Batch{}).Epoch)
}

// stranger says a batch from another state.
func (p *process) stranger(b ledger.Batch) *ledger.Reply {
	p.t.Helper()
	p.seq++
	b.Epoch = "no such state"
	return p.exchange(b)
}

func epochForeign(r *rig) {
	l := r.window(9)
	a, b := r.process("a"), r.process("b")
	a.went(l.n(2))
	h := a.take(l.n(1)).granted()
	pause := r.pause(9)
	batch := ledger.Batch{
		Forget:      []string{"acme"},
		Holds:       []ledger.Held{{Hold: 77, At: r.at(0), Take: a.ask(l.n(1))}},
		Charges:     []ledger.Charge{{Counter: a.of(l), At: r.at(0), N: 1}},
		Settlements: []ledger.Settlement{{Hold: h, At: r.at(0)}},
		News:        []ledger.News{{Pause: &pause}},
		Takes:       []ledger.Asked{a.asked(a.ask(l.n(1)))},
		Gone:        true,
	}
	reply := a.stranger(batch)
	require.Equal(r.t, a.epoch, reply.Epoch)
	for _, g := range reply.Grants {
		require.Zero(r.t, g.Hold, "nothing is carried out")
	}
	b.used(l, 2, 1)
	require.Empty(r.t, b.say(ledger.Batch{}).Pauses)
	// Its number has not been carried out: said again with the right state, it is.
	batch.Forget, batch.News, batch.Gone, batch.Takes = nil, nil, false, nil
	a.again(batch)
	b.used(l, 4, 1)
}

func epochGrace(r *rig) {
	l := r.window(9)
	a, b, c := r.process("a"), r.process("b"), r.process("c")
	h := a.take(l.n(1)).granted()
	b.stranger(ledger.Batch{})
	over := r.now + ledger.Grace
	refused := a.take(l.n(1)).no()
	r.near(over-r.now, refused.Wait, 0, "wait")
	a.settle(h) // everything else is carried out
	a.used(l, 1, 0)
	r.pass(ledger.Grace / 2)
	c.stranger(ledger.Batch{}) // the second does not make it longer
	refused = c.take(l.n(1)).no()
	r.near(over-r.now, refused.Wait, 0, "wait")
	r.until(over + r.slack())
	b.take(l.n(1)).granted()
	c.take(l.n(1)).granted()
	c.stranger(ledger.Batch{}) // nor does it begin anew
	a.take(l.n(1)).granted()
}

func epochLost(r *rig) {
	l := r.window(9)
	a, b := r.process("a"), r.process("b")
	a.went(l.n(2))
	a.take(l.n(1)).granted()
	b.say(ledger.Batch{})
	r.b.Lose(r.t)
	a.seq++
	reply := a.exchange(ledger.Batch{Epoch: a.epoch, Takes: []ledger.Asked{a.asked(a.ask(l.n(1)))}})
	require.NotEqual(r.t, a.epoch, reply.Epoch)
	for _, g := range reply.Grants {
		require.Zero(r.t, g.Hold)
	}
	a.epoch = reply.Epoch
	a.used(l, 0, 0)
	reply = b.exchange(ledger.Batch{Epoch: b.epoch})
	require.Equal(r.t, a.epoch, reply.Epoch)
}

// loses empties the store and lets all processes see it.
func (r *rig) loses(all ...*process) {
	r.t.Helper()
	r.b.Lose(r.t)
	for _, p := range all {
		reply := p.exchange(ledger.Batch{Epoch: p.epoch})
		require.NotEqual(r.t, p.epoch, reply.Epoch)
		p.epoch = reply.Epoch
	}
}

func epochTold(r *rig) {
	l := r.window(9)
	a, b := r.process("a"), r.process("b")
	r.pass(r.units(1))
	a.went(l.n(2))
	b.went(l.n(3))
	r.pass(r.units(0.5))
	take := a.ask(l.n(3))
	h := a.try(take).granted()
	r.pass(r.units(0.5))
	r.loses(a, b)
	over := r.now + ledger.Grace
	batch := ledger.Batch{
		Holds:   []ledger.Held{{Hold: h, At: r.at(r.units(1.5)), Take: take}},
		Charges: []ledger.Charge{{Counter: a.of(l), At: r.at(r.units(1)), N: 2}},
	}
	a.say(batch)
	a.again(batch)
	b.charge(l, r.units(1), 3)
	b.used(l, 5, 3)
	opens := max(over, r.units(1)+r.per()+1)
	r.until(opens + r.slack())
	a.settle(h)
	b.used(l, 3, 0)
	b.take(l.n(7)).refused(0, opens+r.slack()+r.per()+1-r.now)
	b.take(l.n(6)).granted()
}

// What is told of a hold is what the store would know had it not lost it.
func epochAll(r *rig) {
	a, b := r.process("a"), r.process("b")
	r.align(r.per(), r.units(1))
	all := []*shared{
		r.window(3), r.window(3).sent().called("sent"), r.bucket(3, 3).called("bucket"), r.flight(3),
		r.limit(provider.FixedWindow, 3).called("fixed"), r.limit(provider.LeakyBucket, 3).called("leaky"),
	}
	var held []ledger.Held
	at := r.now
	for _, l := range all {
		take := a.ask(l.n(2))
		held = append(held, ledger.Held{Hold: a.try(take).granted(), At: r.at(at), Take: take})
	}
	r.pass(r.units(0.25))
	r.loses(a, b)
	a.say(ledger.Batch{Holds: held})
	r.pass(ledger.Grace + r.slack())
	for i, l := range all {
		sent, leaky := l.limit.Counted == provider.CountedSent, l.limit.Algorithm == provider.LeakyBucket
		switch {
		case (sent || leaky) && ledger.Grace > r.units(3):
			continue // it has gone meanwhile, where time is real
		case sent:
			b.take(l.n(2)).refused(0, at+r.per()+1-r.now)
		case leaky:
			b.take(l.n(1)).refused(0, at+r.per()*2/3-r.now)
		default:
			b.take(l.n(2)).refused(0, ledger.Event)
		}
		a.back(held[i].Hold)
		b.take(l.n(2)).granted()
	}
}

func epochParts(r *rig) {
	calls, tokens := r.window(9), r.window(100).called("tokens")
	a, b := r.process("a"), r.process("b")
	take := a.ask(calls.n(2), tokens.n(50))
	h := a.try(take).granted()
	a.charged(h, 2)
	r.loses(a, b)
	a.say(ledger.Batch{
		Holds:   []ledger.Held{{Hold: h, At: r.at(0), Take: take, Part: []int{1}}},
		Charges: []ledger.Charge{{Counter: a.of(calls), At: r.at(0), N: 2}},
	})
	b.used(calls, 2, 0)
	b.used(tokens, 0, 50)
	a.settle(h)
	b.used(calls, 2, 0)
	b.used(tokens, 50, 0)
}
