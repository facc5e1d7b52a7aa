package ledgertest

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

var peekPlays = []play{
	{name: "peek/what all hold and what counts", run: peekUsed},
	{name: "peek/when the next unit comes back", run: peekReset},
	{name: "peek/what nobody has asked for", run: peekNothing},
	{name: "peek/in their order", run: peekOrder},
}

func peekUsed(r *rig) {
	l := r.window(9)
	a, b := r.process("a"), r.process("b")
	a.went(l.n(2))
	a.take(l.n(1)).granted()
	b.take(l.n(3)).granted()
	b.take(l.n(4)).no()
	a.used(l, 2, 4)
	b.used(l, 2, 4)
	r.pass(r.units(5.75))
	a.used(l, 0, 4)
}

func peekReset(r *rig) {
	a, b := r.process("a"), r.process("b")
	r.align(r.per(), r.units(1))
	began := r.now
	l, fixed, bucket := r.window(9), r.limit(provider.FixedWindow, 9).called("fixed"), r.bucket(5, 9).called("bucket")
	a.went(l.n(2), fixed.n(2), bucket.n(2))
	r.pass(r.units(0.5))
	a.went(l.n(2))
	a.take(l.n(2)).granted()
	r.near(began+r.per()+1, b.peek(l).ResetAt.Sub(r.start), 0, "reset")
	r.near(began+r.units(1), b.peek(bucket).ResetAt.Sub(r.start), 0, "reset")
	r.near(began+r.units(4)+guard(r.per()), b.peek(fixed).ResetAt.Sub(r.start), 0, "reset")
}

func peekNothing(r *rig) {
	a := r.process("a")
	for _, l := range []*shared{r.window(9), r.flight(9), r.bucket(5, 9).called("bucket"), r.limit(provider.LeakyBucket, 5).called("leaky")} {
		require.Zero(r.t, a.peek(l))
	}
	l := r.window(9)
	a.take(l.n(3)).granted()
	u := a.peek(l)
	assert.True(r.t, u.ResetAt.IsZero(), "nothing is out that time brings back")
	slots := r.flight(9)
	a.went(slots.n(1))
	require.Zero(r.t, a.peek(slots))
}

func peekOrder(r *rig) {
	one, two, three := r.window(9), r.window(9).called("two"), r.window(9).of("acme-two")
	a := r.process("a")
	a.went(one.n(1), two.n(2))
	a.went(three.n(3))
	reply := a.say(ledger.Batch{Peek: []*ledger.Counter{a.of(three), a.of(one), a.of(three), a.of(two)}})
	var used []int64
	for _, u := range reply.Usages {
		used = append(used, u.Used)
	}
	require.Equal(r.t, []int64{3, 1, 3, 2}, used)
}
