package ledgertest

import (
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

var backPlays = []play{
	{name: "give back/every algorithm, as if it had never been taken", run: backAll},
	{name: "give back/a leaky bucket's schedule", run: backLeaky},
	{name: "give back/no schedule where another has followed", run: backFollowed},
	{name: "give back/in parts", run: backParts},
	{name: "give back/what was settled stays", run: backSettled},
}

func (p *process) back(h ledger.Hold, parts ...ledger.Part) {
	p.t.Helper()
	p.settled(ledger.Settlement{Hold: h, Back: true, Part: parts})
}

func backAll(r *rig) {
	a, b := r.process("a"), r.process("b")
	r.align(r.per(), r.units(1))
	for _, l := range []*shared{
		r.window(3), r.window(3).sent().called("sent"),
		r.limit(provider.FixedWindow, 3).called("fixed"), r.limit(provider.FixedWindow, 3).sent().called("fixed sent"),
		r.limit(provider.SlidingWindowCounter, 3).called("counter"), r.limit(provider.SlidingWindowCounter, 3).sent().called("counter sent"),
		r.bucket(3, 3).called("bucket"), r.bucket(3, 3).sent().called("bucket sent"),
		r.limit(provider.LeakyBucket, 3).called("leaky"), r.limit(provider.LeakyBucket, 3).sent().called("leaky sent"),
		r.flight(3).called("slots"),
	} {
		r.pass(r.units(0.25))
		h := a.take(l.n(2)).granted()
		b.take(l.n(2)).no()
		a.back(h)
		b.used(l, 0, 0)
		b.take(l.n(3)).granted()
	}
}

func backLeaky(r *rig) {
	l := r.limit(provider.LeakyBucket, 5)
	a, b := r.process("a"), r.process("b")
	a.went(l.n(1))
	h := b.take(l.n(2)).opens(0, r.units(1))
	b.take(l.n(1)).no()
	b.back(h)
	a.take(l.n(1)).granted() // the schedule is that of before: its turn was at 1
}

func backFollowed(r *rig) {
	l := r.limit(provider.LeakyBucket, 5)
	a, b := r.process("a"), r.process("b")
	h := a.take(l.n(1)).granted()
	b.take(l.n(1)).opens(0, r.units(1))
	at := r.now
	a.back(h)
	b.take(l.n(1)).refused(0, max(at+r.units(0.9), r.units(2))-r.now)
	b.used(l, 0, 1)
}

func backParts(r *rig) {
	calls, tokens := r.window(3).sent(), r.window(100).called("tokens")
	a, b := r.process("a"), r.process("b")
	h := a.take(calls.n(2), tokens.n(60)).granted()
	a.back(h, ledger.Part{Unit: 0})
	b.used(calls, 0, 0)
	b.used(tokens, 0, 60)
	a.back(h, ledger.Part{Unit: 0})
	a.settle(h)
	b.used(calls, 0, 0)
	b.used(tokens, 60, 0)
	b.take(calls.n(3)).granted()
}

func backSettled(r *rig) {
	calls, tokens := r.window(3), r.window(100).called("tokens")
	a, b := r.process("a"), r.process("b")
	h := a.take(calls.n(2), tokens.n(60)).granted()
	a.charged(h, 2)
	a.back(h)
	b.used(calls, 2, 0)
	b.used(tokens, 0, 0)
}
