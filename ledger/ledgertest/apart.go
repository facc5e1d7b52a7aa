package ledgertest

import (
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

var apartPlays = []play{
	{name: "apart/each key its own counter", run: apartKeys},
	{name: "apart/each endpoint its own counter", run: apartEndpoints},
	{name: "apart/each endpoint of each key", run: apartBoth},
	{name: "apart/a key's own size", run: apartSizes},
	{name: "apart/two providers", run: apartProviders},
	{name: "apart/odd names of limits, endpoints and keys", run: apartNames},
	{name: "apart/odd names of what is paused", run: apartPauses},
	{name: "apart/odd names of holders", run: apartHolders},
}

// oddNames are names that a store's own format must not trip over.
var oddNames = []string{
	"plain", "sl/ash", "sl%2Fash", "new\nline", "tab\tand space", `quo"ted`, "quo'ted", `back\slash`, "ünï-cödé ✓ 日本",
	"{brace}", "{acme}", "a:b", "a|b", "a,b", "*", "?", "%", "%s%d", "+", "0", "-1", "nil", "null", "*3\r\n$1", "\x00nul",
	"; DROP TABLE counters; --", strings.Repeat("long", 75), strings.Repeat("long", 75) + "er",
}

func apartKeys(r *rig) {
	one, two := r.window(1).scoped(provider.ScopeKey, "search", "one"), r.window(1).scoped(provider.ScopeKey, "other", "two")
	again := one.scoped(provider.ScopeKey, "elsewhere", "one") // the endpoint is not its scope
	a, b := r.process("a"), r.process("b")
	a.went(one.n(1))
	b.take(two.n(1)).granted()
	b.take(again.n(1)).refused(0, r.per()+1)
}

func apartEndpoints(r *rig) {
	one, two := r.window(1).scoped(provider.ScopeEndpoint, "search", "k"), r.window(1).scoped(provider.ScopeEndpoint, "host", "k")
	again := one.scoped(provider.ScopeEndpoint, "search", "l")
	a, b := r.process("a"), r.process("b")
	a.went(one.n(1))
	b.take(two.n(1)).granted()
	b.take(again.n(1)).refused(0, r.per()+1)
}

func apartBoth(r *rig) {
	a, b := r.process("a"), r.process("b")
	for _, at := range [][2]string{{"e", "k"}, {"e", "l"}, {"f", "k"}, {"", "k"}, {"e", ""}, {"e/k", ""}, {"", "e/k"}, {"k", "e"}} {
		l := r.window(1).scoped(provider.ScopeKeyEndpoint, at[0], at[1])
		a.went(l.n(1))
		b.take(l.n(1)).no()
	}
}

func apartSizes(r *rig) {
	l := r.window(2)
	l.limit.Keys = map[string]int64{"gold": 5}
	gold, tin := l.scoped(provider.ScopeKey, "", "gold"), l.scoped(provider.ScopeKey, "", "tin")
	a, b := r.process("a"), r.process("b")
	a.went(gold.n(4), tin.n(2))
	b.take(tin.n(1)).refused(0, r.per()+1)
	b.take(gold.n(1)).granted()
	b.take(gold.n(1)).refused(0, r.per()+1)
}

// Two providers with limits of the same name, also in one take.
func apartProviders(r *rig) {
	one, two := r.window(2), r.window(2).of("acme-two")
	a, b := r.process("a"), r.process("b")
	a.went(one.n(2))
	b.take(two.n(1)).granted()
	b.take(one.n(1)).refused(0, r.per()+1)
	answers := b.tryAll(b.ask(two.n(1)), b.ask(one.n(1)), b.ask(two.n(1)))
	answers[0].granted()
	answers[1].refused(0, r.per()+1)
	answers[2].refused(0, ledger.Event)
	b.used(one, 2, 0)
	b.used(two, 0, 2)
}

func apartNames(r *rig) {
	a, b := r.process("a"), r.process("b")
	for _, where := range []func(name string) *shared{
		func(name string) *shared { return r.window(2).called(name) },
		func(name string) *shared { return r.window(2).scoped(provider.ScopeKey, "", name) },
		func(name string) *shared { return r.window(2).scoped(provider.ScopeEndpoint, name, "") },
	} {
		all := map[string]*shared{}
		batch := ledger.Batch{}
		for _, name := range oddNames {
			all[name] = where(name)
			batch.Takes = append(batch.Takes, a.asked(a.ask(all[name].n(2))))
		}
		r.pass(r.units(0.25))
		for _, x := range a.answers(batch, a.say(batch)) {
			x.granted()
		}
		batch = ledger.Batch{}
		for _, name := range oddNames {
			batch.Takes = append(batch.Takes, b.asked(b.ask(all[name].n(1))))
			batch.Peek = append(batch.Peek, b.of(all[name]))
		}
		reply := b.say(batch)
		for i, x := range b.answers(batch, reply) {
			x.refused(0, ledger.Event)
			assert.EqualValues(r.t, 2, reply.Usages[i].Held, "%q", oddNames[i])
		}
	}
}

func apartPauses(r *rig) {
	a, b := r.process("a"), r.process("b")
	for _, scope := range []string{provider.ScopeEndpoint, provider.ScopeKey} {
		for _, name := range oddNames {
			p := r.pause(1000)
			p.Scope, p.Name, p.Why, p.Detail = scope, name, "why: "+name, "detail: "+name
			take := func(at string) ledger.Take {
				if scope == provider.ScopeKey {
					return ledger.Take{Provider: p.Provider, Key: at}
				}
				return ledger.Take{Provider: p.Provider, Endpoint: at}
			}
			r.pass(r.units(0.1))
			a.tell(ledger.News{Pause: &p})
			b.known = 0
			reply := b.say(ledger.Batch{Takes: []ledger.Asked{b.asked(take(name)), b.asked(take(name + "x")), b.asked(take(""))}})
			require.Len(r.t, reply.Pauses, 1)
			r.same(p, &reply.Pauses[0])
			require.Zero(r.t, reply.Grants[0].Hold)
			require.NotZero(r.t, reply.Grants[1].Hold, "%q is not paused", name+"x")
			require.NotZero(r.t, reply.Grants[2].Hold)
			b.tell(ledger.News{Resume: &ledger.Pause{Provider: p.Provider, Scope: scope, Name: name}})
		}
	}
}

func apartHolders(r *rig) {
	l := r.window(1000)
	l.limit.Per = r.period(100)
	watch := r.process("watch")
	for i, name := range oddNames {
		r.pass(r.units(0.25))
		p := r.process("holder " + name)
		h := p.take(l.n(2)).granted()
		watch.used(l, int64(i), 2)
		p.charged(h, 1)
	}
	require.Equal(r.t, len(oddNames)+1, watch.say(ledger.Batch{}).Replicas)
}
