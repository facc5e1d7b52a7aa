package ledgertest

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

var pausePlays = []play{
	{name: "pause/nothing goes before it is over", run: pauseBegins},
	{name: "pause/a longer one extends it, a shorter one changes nothing", run: pauseExtends},
	{name: "pause/resumed, one scope or all", run: pauseResumed},
	{name: "pause/its scope and no other", run: pauseScopes},
	{name: "pause/a limit that opens later is what refuses", run: pauseAndLimit},
	{name: "pause/all that there are, when they change", run: pauseVersion},
	{name: "pause/two providers", run: pauseProviders},
}

// pause is one of the whole provider, so many units after the play's begin.
func (r *rig) pause(units float64) ledger.Pause {
	return ledger.Pause{
		Provider: "acme", Scope: provider.ScopeProvider, Until: r.at(r.units(units)), Why: "rate_limited", Detail: "status 429",
	}
}

func (p *process) paused(x ledger.Pause) {
	p.t.Helper()
	p.tell(ledger.News{Pause: &x})
}

func (p *process) resume(scope, name string) {
	p.t.Helper()
	p.tell(ledger.News{Resume: &ledger.Pause{Provider: "acme", Scope: scope, Name: name}})
}

func pauseBegins(r *rig) {
	l := r.window(5)
	a, b := r.process("a"), r.process("b")
	h := a.take(l.n(1)).granted()
	p := r.pause(3)
	a.paused(p)
	b.take(l.n(1)).paused(p)
	a.take(l.n(1)).paused(p)
	a.settled(ledger.Settlement{Hold: h, Trial: ledger.Opens}) // it was no trial
	b.used(l, 1, 0)
	b.take(l.n(1)).opensAlone(r.units(3))
}

func pauseExtends(r *rig) {
	l := r.window(5)
	a, b := r.process("a"), r.process("b")
	p := r.pause(2)
	a.paused(p)
	longer := r.pause(4)
	longer.Why, longer.Detail = "banned", "status 403"
	b.paused(longer)
	a.take(l.n(1)).paused(longer)
	a.paused(p)
	b.take(l.n(1)).paused(longer)
	r.until(r.units(3))
	b.take(l.n(1)).paused(longer)
	b.take(l.n(1)).opensAlone(r.units(4))
}

func pauseResumed(r *rig) {
	l := r.window(5)
	key, endpoint := l.scoped(provider.ScopeKey, "", "k"), l.scoped(provider.ScopeEndpoint, "e", "")
	a, b := r.process("a"), r.process("b")
	p := r.pause(50)
	whole := p
	a.paused(p)
	p.Scope, p.Name = provider.ScopeKey, "k"
	a.paused(p)
	p.Scope, p.Name = provider.ScopeEndpoint, "e"
	a.paused(p)
	b.resume(provider.ScopeEndpoint, "no such")
	b.resume(provider.ScopeEndpoint, "e")
	b.take(endpoint.n(1)).paused(whole)
	b.resume(provider.ScopeProvider, "")
	b.take(endpoint.n(1)).granted()
	b.take(key.n(1)).refused(-1, r.units(50))
	a.paused(p)
	b.resume("", "")
	b.take(key.n(1)).granted()
	b.take(endpoint.n(1)).granted()
	b.take(l.n(1)).granted()
}

func pauseScopes(r *rig) {
	a, b := r.process("a"), r.process("b")
	p := r.pause(50)
	p.Scope, p.Name = provider.ScopeEndpoint, "e"
	a.paused(p)
	b.try(ledger.Take{Provider: "acme", Endpoint: "e", Key: "k"}).paused(p)
	b.try(ledger.Take{Provider: "acme", Endpoint: "f", Key: "e"}).granted()
	b.try(ledger.Take{Provider: "acme", Key: "e"}).granted()
	b.try(ledger.Take{Provider: "acme"}).granted()
	q := r.pause(60)
	q.Scope, q.Name = provider.ScopeKey, "k"
	a.paused(q)
	b.try(ledger.Take{Provider: "acme", Endpoint: "e", Key: "k"}).paused(q) // the later of the two
	b.try(ledger.Take{Provider: "acme", Endpoint: "e", Key: "l"}).paused(p)
	b.try(ledger.Take{Provider: "acme", Endpoint: "k", Key: "e"}).granted()
}

func pauseAndLimit(r *rig) {
	l := r.window(1)
	a, b := r.process("a"), r.process("b")
	a.went(l.n(1))
	p := r.pause(2)
	a.paused(p)
	b.take(l.n(1)).refused(0, r.per()+1)
	longer := r.pause(7)
	a.paused(longer)
	b.take(l.n(1)).paused(longer)
	// A refusal of a limit is no trial.
	a.resume(provider.ScopeProvider, "")
	a.paused(p)
	r.until(r.units(3))
	b.take(l.n(1)).refused(0, r.per()+1-r.now)
	b.take(l.n(1)).no()
	b.try(ledger.Take{Provider: "acme"}).alone()
}

func pauseVersion(r *rig) {
	a, b := r.process("a"), r.process("b")
	hear := func(p *process) []ledger.Pause { r.t.Helper(); return p.say(ledger.Batch{}).Pauses }
	require.Empty(r.t, hear(b))
	p := r.pause(20)
	a.paused(p)
	got := hear(b)
	require.Len(r.t, got, 1)
	r.same(p, &got[0])
	version := b.known
	require.Empty(r.t, hear(b), "nothing has changed")
	shorter := r.pause(10)
	a.paused(shorter)
	require.Empty(r.t, hear(b), "a shorter one changes nothing")
	require.Equal(r.t, version, b.known)
	b.known = 0
	require.Len(r.t, hear(b), 1, "who knows nothing hears all")

	q := r.pause(30)
	q.Scope, q.Name = provider.ScopeKey, "k"
	a.paused(q)
	require.Len(r.t, hear(b), 2)
	p = r.pause(25)
	a.paused(p)
	for _, x := range hear(b) {
		if x.Scope == provider.ScopeProvider {
			r.same(p, &x)
		}
	}
	a.resume(provider.ScopeKey, "k")
	got = hear(b)
	require.Len(r.t, got, 1)
	r.same(p, &got[0])
	a.resume("", "")
	b.say(ledger.Batch{})
	assert.NotEqual(r.t, version, b.known)
	a.known = 0
	require.Empty(r.t, hear(a))
	require.Equal(r.t, b.known, a.known, "the version is the store's")
}

func pauseProviders(r *rig) {
	one, two := r.window(5), r.window(5).of("acme-two")
	a, b := r.process("a"), r.process("b")
	p := r.pause(50)
	a.paused(p)
	b.take(one.n(1)).paused(p)
	b.take(two.n(1)).granted()
	q := p
	q.Provider = "acme-two"
	a.paused(q)
	a.resume("", "")
	b.take(one.n(1)).granted()
	b.take(two.n(1)).paused(q)
}
