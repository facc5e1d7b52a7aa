package ledgertest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
)

var learnPlays = []play{
	{name: "learn/spent until an instant, by all", run: learnSpent},
	{name: "learn/what is learned replaces, earlier as well as later", run: learnReplaces},
	{name: "learn/a lower size counts at once, and until it ends", run: learnSize},
	{name: "learn/a size above the declared one is none", run: learnRaise},
	{name: "learn/a size that ends sooner opens sooner", run: learnOpens},
	{name: "learn/one counter, and not its neighbours", run: learnApart},
	{name: "learn/told by usage", run: learnPeek},
}

// learn tells what was learned of a limit; instants of the play, 0: none.
func (p *process) learn(l *shared, notBefore time.Duration, most int64, until time.Duration) {
	p.t.Helper()
	learnt := &ledger.Learnt{Counter: p.of(l), Max: most}
	if notBefore > 0 {
		learnt.NotBefore = p.at(notBefore)
	}
	if until > 0 {
		learnt.Until = p.at(until)
	}
	p.tell(ledger.News{Learn: learnt})
}

func learnSpent(r *rig) {
	l, other := r.window(5), r.window(5).called("other")
	a, b := r.process("a"), r.process("b")
	a.went(l.n(1))
	a.learn(l, r.units(3), 0, 0)
	b.take(l.n(1)).refused(0, r.units(3))
	b.take(other.n(1), l.n(1)).refused(1, r.units(3))
	b.used(other, 0, 0)
	b.take(l.n(5)).refused(0, r.per()+1) // the window opens later
	b.take(l.n(4)).opens(0, r.units(3))
}

func learnReplaces(r *rig) {
	l := r.window(5)
	a, b := r.process("a"), r.process("b")
	a.learn(l, r.units(3), 0, 0)
	b.learn(l, r.units(8), 0, 0)
	a.take(l.n(1)).refused(0, r.units(8))
	b.learn(l, r.units(2), 0, 0)
	a.take(l.n(1)).refused(0, r.units(2))
	a.learn(l, 0, 0, 0)
	b.take(l.n(1)).granted()
	b.learn(l, r.units(1), 0, 0)
	a.take(l.n(1)).opens(0, r.units(1))
}

func learnSize(r *rig) {
	l := r.window(6)
	a, b := r.process("a"), r.process("b")
	a.went(l.n(3))
	a.learn(l, 0, 4, r.units(20))
	b.take(l.n(2)).refused(0, r.per()+1)
	b.take(l.n(1)).granted()
	b.learn(l, 0, 5, r.units(20)) // both ways
	a.take(l.n(2)).refused(0, r.per()+1)
	a.learn(l, 0, 3, r.units(3))
	b.take(l.n(1)).refused(0, r.units(3))
	r.until(r.units(3.5)) // it has ended: three count, one is held
	b.take(l.n(3)).refused(0, r.per()+1-r.now)
	b.take(l.n(2)).granted()
}

func learnRaise(r *rig) {
	l := r.window(3)
	a, b := r.process("a"), r.process("b")
	a.learn(l, 0, 50, r.units(20))
	b.take(l.n(4)).refused(0, ledger.Event)
	b.take(l.n(3)).granted()
	a.learn(l, 0, 0, 0)
	b.take(l.n(1)).refused(0, ledger.Event)
}

// A refusal's wait is a promise that it will not go before: the size ends first.
func learnOpens(r *rig) {
	l := r.window(6)
	a, b := r.process("a"), r.process("b")
	a.went(l.n(2))
	a.learn(l, 0, 2, r.units(2))
	b.take(l.n(1)).opensWithin(0, r.units(2), 1).granted() // it may be in force at its last instant
	b.learn(l, 0, 1, r.units(4))
	b.take(l.n(2)).opensWithin(0, r.units(4), 1).granted() // heavier than what it may hold
}

func learnApart(r *rig) {
	l := r.window(3).scoped("key", "", "one")
	other, away := r.window(3).scoped("key", "", "two"), l.of("other")
	a, b := r.process("a"), r.process("b")
	a.learn(l, r.units(3), 0, 0)
	b.take(l.n(1)).refused(0, r.units(3))
	b.take(other.n(1)).granted()
	b.take(away.n(1)).granted()
}

func learnPeek(r *rig) {
	l := r.window(6)
	a, b := r.process("a"), r.process("b")
	u := b.peek(l)
	assert.Zero(r.t, u.Max)
	assert.True(r.t, u.NotBefore.IsZero())
	a.learn(l, r.units(3), 4, r.units(7))
	u = b.peek(l)
	require.EqualValues(r.t, 4, u.Max)
	r.near(r.units(3), u.NotBefore.Sub(r.start), 0, "not before")
	r.until(r.units(7.75))
	u = b.peek(l)
	assert.Zero(r.t, u.Max, "it has ended")
	assert.True(r.t, u.NotBefore.IsZero())
	a.learn(l, r.units(13), 4, r.units(17))
	a.learn(l, 0, 0, 0)
	u = b.peek(l)
	assert.Zero(r.t, u.Max)
	assert.True(r.t, u.NotBefore.IsZero())
}
