package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

var trialPlays = []play{
	{name: "trial/one goes alone, its answer opens", run: trialOpens},
	{name: "trial/an answer that tells nothing lets the next go alone", run: trialAgain},
	{name: "trial/a refusal pauses again", run: trialPauses},
	{name: "trial/given back, the next goes alone", run: trialBack},
	{name: "trial/of many in one batch one goes", run: trialMany},
	{name: "trial/an answer from before a pause does not end it", run: trialOld},
	{name: "trial/its holder dies", run: trialDies},
	{name: "trial/its holder leaves", run: trialGone},
	{name: "trial/one that tells nothing for a minute told nothing", days: true, run: trialHangs},
	{name: "trial/without units", run: trialNoUnits},
	{name: "trial/of two scopes at once", run: trialScopes},
	{name: "trial/only its own scope", run: trialApart},
	{name: "trial/resumed while it is out", run: trialResumed},
}

// trial brings a provider to the end of a pause and one call out alone.
func (p *process) trial(l *shared, pause ledger.Pause) ledger.Hold {
	p.t.Helper()
	p.paused(pause)
	p.until(pause.Until.Sub(p.start) + p.slack())
	return p.take(l.n(1)).alone()
}

func trialOpens(r *rig) {
	l := r.window(9)
	a, b := r.process("a"), r.process("b")
	pause := r.pause(1)
	h := a.trial(l, pause)
	b.take(l.n(1)).trying(pause)
	a.take(l.n(1)).trying(pause)
	r.pass(r.units(2))
	b.take(l.n(1)).trying(pause)
	version := b.known
	a.settled(ledger.Settlement{Hold: h, Trial: ledger.Opens})
	b.take(l.n(1)).granted()
	a.take(l.n(1)).granted()
	require.NotEqual(r.t, version, b.known, "a pause has ended")
	b.known = 0
	require.Empty(r.t, b.say(ledger.Batch{}).Pauses)
	b.used(l, 1, 2)
}

func trialAgain(r *rig) {
	l := r.window(9)
	a, b := r.process("a"), r.process("b")
	pause := r.pause(1)
	h := a.trial(l, pause)
	a.settled(ledger.Settlement{Hold: h, Trial: ledger.Again})
	h = b.take(l.n(1)).alone()
	a.take(l.n(1)).trying(pause)
	b.settled(ledger.Settlement{Hold: h}) // saying nothing is the same
	h = a.take(l.n(1)).alone()
	b.take(l.n(1)).trying(pause)
	a.settled(ledger.Settlement{Hold: h, Trial: ledger.Opens})
	b.take(l.n(1)).granted()
	b.used(l, 3, 1)
}

func trialPauses(r *rig) {
	l := r.window(9)
	a, b := r.process("a"), r.process("b")
	h := a.trial(l, r.pause(1))
	again := r.pause(4)
	a.say(ledger.Batch{
		Settlements: []ledger.Settlement{{Hold: h, At: r.at(r.now)}},
		News:        []ledger.News{{Pause: &again}},
	})
	b.take(l.n(1)).paused(again)
	b.take(l.n(1)).opensAlone(r.units(4))
	a.take(l.n(1)).trying(again)
}

func trialBack(r *rig) {
	l := r.window(9)
	a, b := r.process("a"), r.process("b")
	pause := r.pause(1)
	h := a.trial(l, pause)
	a.back(h)
	b.take(l.n(1)).alone()
	a.take(l.n(1)).trying(pause)
	b.used(l, 0, 1)
}

func trialMany(r *rig) {
	l := r.window(9)
	a, b := r.process("a"), r.process("b")
	pause := r.pause(1)
	a.paused(pause)
	r.until(r.units(1) + r.slack())
	answers := b.tryAll(b.ask(l.n(1)), b.ask(l.n(1)), b.ask(l.n(1)))
	answers[0].alone()
	answers[1].trying(pause)
	answers[2].trying(pause)
	b.used(l, 0, 1)
}

// Its scope was paused anew while it was out: what it found is no longer news.
func trialOld(r *rig) {
	l := r.window(9)
	a, b := r.process("a"), r.process("b")
	h := a.trial(l, r.pause(1))
	longer := r.pause(4)
	b.paused(longer)
	a.settled(ledger.Settlement{Hold: h, Trial: ledger.Opens})
	b.take(l.n(1)).paused(longer)
	b.take(l.n(1)).opensAlone(r.units(4))
	a.take(l.n(1)).trying(longer)
}

func trialDies(r *rig) {
	l := r.window(9)
	a, b := r.process("a"), r.process("b")
	pause := r.pause(1)
	a.lease = r.units(3)
	a.trial(l, pause)
	died := r.now
	b.take(l.n(1)).trying(pause)
	r.until(died + r.units(2.25))
	b.take(l.n(1)).trying(pause)
	r.until(died + r.units(3.25) + r.slack())
	b.take(l.n(1)).alone()
	b.used(l, 1, 1)
}

func trialGone(r *rig) {
	l := r.window(9)
	a, b := r.process("a"), r.process("b")
	pause := r.pause(1)
	a.trial(l, pause)
	b.take(l.n(1)).trying(pause)
	a.say(ledger.Batch{Gone: true})
	b.take(l.n(1)).alone()
	b.used(l, 1, 1)
}

func trialHangs(r *rig) {
	l := r.window(9)
	a, b := r.process("a"), r.process("b")
	pause := r.pause(1)
	h := a.trial(l, pause)
	r.pass(59 * time.Second)
	b.take(l.n(1)).trying(pause)
	r.pass(2 * time.Second)
	g := b.take(l.n(1)).alone()
	a.settled(ledger.Settlement{Hold: h, Trial: ledger.Opens}) // another one is out
	a.take(l.n(1)).trying(pause)
	b.settled(ledger.Settlement{Hold: g, Trial: ledger.Opens})
	a.take(l.n(1)).granted()
}

func trialNoUnits(r *rig) {
	a, b := r.process("a"), r.process("b")
	pause := r.pause(1)
	a.paused(pause)
	take := ledger.Take{Provider: "acme"}
	h := a.try(take).opensAlone(r.units(1))
	b.try(take).trying(pause)
	a.settled(ledger.Settlement{Hold: h, Trial: ledger.Again})
	h = b.try(take).alone()
	a.try(take).trying(pause)
	b.settled(ledger.Settlement{Hold: h, Trial: ledger.Opens})
	a.try(take).granted()
}

func trialScopes(r *rig) {
	a, b := r.process("a"), r.process("b")
	whole, key := r.pause(1), r.pause(2)
	key.Scope, key.Name = provider.ScopeKey, "k"
	a.paused(whole)
	a.paused(key)
	take := ledger.Take{Provider: "acme", Key: "k"}
	h := a.try(take).opensAlone(r.units(2))
	b.try(ledger.Take{Provider: "acme", Key: "l"}).trying(whole)
	b.try(take).no()
	a.settled(ledger.Settlement{Hold: h, Trial: ledger.Opens})
	b.try(take).granted()
	b.try(ledger.Take{Provider: "acme", Key: "l"}).granted()
}

func trialApart(r *rig) {
	a, b := r.process("a"), r.process("b")
	pause := r.pause(1)
	pause.Scope, pause.Name = provider.ScopeKey, "k"
	a.paused(pause)
	take := ledger.Take{Provider: "acme", Key: "k"}
	h := a.try(take).opensAlone(r.units(1))
	other := b.try(ledger.Take{Provider: "acme", Key: "l"}).granted()
	b.settled(ledger.Settlement{Hold: other, Trial: ledger.Opens}) // it was no trial
	b.try(take).trying(pause)
	a.settled(ledger.Settlement{Hold: h, Trial: ledger.Opens})
	b.try(take).granted()
}

func trialResumed(r *rig) {
	l := r.window(9)
	a, b := r.process("a"), r.process("b")
	h := a.trial(l, r.pause(1))
	b.resume(provider.ScopeProvider, "")
	b.take(l.n(1)).granted()
	b.paused(r.pause(9))
	a.settled(ledger.Settlement{Hold: h, Trial: ledger.Opens}) // of a pause that is over
	b.take(l.n(1)).paused(r.pause(9))
}
