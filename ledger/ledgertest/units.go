package ledgertest

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

var unitPlays = []play{
	{name: "units/several limits, all or nothing", run: unitsAll},
	{name: "units/every algorithm is left untouched by a refusal", run: unitsUntouched},
	{name: "units/a refusal names the limit that opens last", run: unitsLast},
	{name: "units/one counter twice in a take", run: unitsTwice},
	{name: "units/takes of one batch are served in their order", run: unitsOrder},
	{name: "units/no units ask only for pauses", run: unitsNone},
	{name: "units/large costs", run: unitsLarge},
	{name: "units/to the largest number", run: unitsLargest},
	{name: "units/sums saturate", run: unitsSaturate},
	{name: "units/room", can: func(b Bench) bool { return !b.NoRoom }, run: unitsRoom},
}

func unitsAll(r *rig) {
	calls, tokens := r.window(3), r.window(100).called("tokens")
	a, b := r.process("a"), r.process("b")
	h := a.take(calls.n(1), tokens.n(80)).granted()
	b.take(calls.n(1), tokens.n(30)).refused(1, ledger.Event)
	b.used(calls, 0, 1)
	b.used(tokens, 0, 80)
	a.settle(h)
	b.take(tokens.n(30), calls.n(1)).refused(0, r.per()+1)
	b.used(calls, 1, 0)
	b.take(calls.n(2), tokens.n(20)).granted()
	b.used(calls, 1, 2)
	b.used(tokens, 80, 20)
}

// A limit that would have admitted a call is as if it had never been asked: its
// spacing, too.
func unitsUntouched(r *rig) {
	full := r.flight(1)
	a, b := r.process("a"), r.process("b")
	a.take(full.n(1)).granted()
	for _, l := range []*shared{
		r.window(2), r.window(2).sent().called("sent"),
		r.limit(provider.FixedWindow, 2).called("fixed"), r.limit(provider.FixedWindow, 2).sent().called("fixed sent"),
		r.limit(provider.SlidingWindowCounter, 2).called("counter"),
		r.bucket(2, 2).called("bucket"), r.bucket(2, 2).sent().called("bucket sent"),
		r.limit(provider.LeakyBucket, 2).called("leaky"), r.flight(2).called("slots"),
	} {
		for range 3 {
			b.take(l.n(1), full.n(1)).refused(1, ledger.Event)
			b.take(full.n(1), l.n(2)).refused(0, ledger.Event)
		}
		b.used(l, 0, 0)
		a.take(l.n(2)).granted()
	}
}

func unitsLast(r *rig) {
	early, late, never := r.window(1), r.window(1).called("late"), r.flight(1)
	a, b := r.process("a"), r.process("b")
	a.went(early.n(1))
	r.pass(r.units(2))
	a.went(late.n(1))
	b.take(early.n(1), late.n(1)).refused(1, r.per()+1)
	b.take(late.n(1), early.n(1)).refused(0, r.per()+1)
	b.take(early.n(1), never.n(1)).refused(0, r.per()+1-r.units(2))
	a.take(never.n(1)).granted()
	b.take(early.n(1), never.n(1), late.n(1)).refused(1, ledger.Event)
}

func unitsTwice(r *rig) {
	l := r.window(3)
	a, b := r.process("a"), r.process("b")
	b.take(l.n(2), l.n(2)).no()
	b.used(l, 0, 0)
	h := a.take(l.n(1), l.n(2)).granted()
	b.used(l, 0, 3)
	a.settle(h)
	b.used(l, 3, 0)
}

func unitsOrder(r *rig) {
	l := r.window(3)
	a, b := r.process("a"), r.process("b")
	answers := a.tryAll(a.ask(l.n(2)), a.ask(l.n(2)), a.ask(l.n(1)), a.ask(l.n(1)))
	h := answers[0].granted()
	answers[1].refused(0, ledger.Event)
	answers[2].granted()
	answers[3].refused(0, ledger.Event)
	b.used(l, 0, 3)
	// What is settled in a batch is settled before its takes; what is peeked is after.
	batch := ledger.Batch{
		Settlements: []ledger.Settlement{{Hold: h, At: r.at(r.now), Part: []ledger.Part{{Unit: 0, Charged: 1}}}},
		Takes:       []ledger.Asked{a.asked(a.ask(l.n(1)))},
		Peek:        []*ledger.Counter{a.of(l)},
	}
	reply := a.say(batch)
	a.answers(batch, reply)[0].granted()
	require.EqualValues(r.t, 1, reply.Usages[0].Used)
	require.EqualValues(r.t, 2, reply.Usages[0].Held)
}

func unitsNone(r *rig) {
	a := r.process("a")
	a.try(ledger.Take{Provider: "acme"}).granted()
	pause := r.pause(2)
	a.tell(ledger.News{Pause: &pause})
	a.try(ledger.Take{Provider: "acme"}).paused(pause)
	a.try(ledger.Take{Provider: "other"}).granted()
}

func unitsLarge(r *rig) {
	const trillion = 1_000_000_000_000
	a, b := r.process("a"), r.process("b")
	for _, l := range []*shared{
		r.window(5 * trillion), r.bucket(5*trillion, 5*trillion).called("bucket"),
		r.limit(provider.FixedWindow, 5*trillion).called("fixed"), r.limit(provider.SlidingWindowCounter, 5*trillion).called("counter"),
		r.limit(provider.LeakyBucket, 5*trillion).called("leaky"), r.flight(5 * trillion).called("slots"),
	} {
		h := a.take(l.n(5*trillion - 1)).granted()
		if l.limit.Algorithm != provider.LeakyBucket { // it keeps its distance
			b.take(l.n(1)).granted()
		}
		b.take(l.n(2)).no()
		if l.limit.Algorithm != provider.InFlight {
			a.settled(ledger.Settlement{Hold: h, Part: []ledger.Part{{Unit: 0, Charged: 4 * trillion}}})
			used := b.peek(l).Used
			require.True(r.t, used == 4*trillion || !r.b.Virtual && used > trillion, "used: %d", used)
		}
	}
}

func unitsLargest(r *rig) {
	most := r.b.Exact
	if most == 0 {
		most = math.MaxInt64
	}
	a, b := r.process("a"), r.process("b")
	for _, l := range []*shared{r.window(most), r.window(most).sent().called("sent"), r.flight(most)} {
		h := a.take(l.n(most - 5)).granted()
		b.take(l.n(6)).no()
		b.take(l.n(5)).granted()
		b.take(l.n(1)).no()
		a.back(h)
		b.take(l.n(most - 4)).no()
		b.take(l.n(most - 5)).granted()
	}
}

// Sums that no number holds are still too much.
func unitsSaturate(r *rig) {
	a, b := r.process("a"), r.process("b")
	r.align(r.per(), r.units(1))
	for _, l := range []*shared{
		r.window(math.MaxInt64), r.window(math.MaxInt64).sent().called("sent"),
		r.bucket(math.MaxInt64, math.MaxInt64/4).called("bucket"), r.limit(provider.FixedWindow, math.MaxInt64).called("fixed"),
		r.limit(provider.SlidingWindowCounter, math.MaxInt64).called("counter"),
		r.limit(provider.LeakyBucket, math.MaxInt64).called("leaky"), r.flight(math.MaxInt64).called("slots"),
	} {
		r.pass(r.units(0.25))
		first := a.take(l.n(math.MaxInt64 / 8)).granted()
		if l.limit.Algorithm == provider.InFlight {
			b.take(l.n(math.MaxInt64)).refused(0, ledger.Event)
			continue
		}
		a.settled(ledger.Settlement{Hold: first, Part: []ledger.Part{{Unit: 0, Charged: math.MaxInt64}}})
		for range 3 {
			a.charge(l, r.now, math.MaxInt64)
		}
		b.take(l.n(math.MaxInt64)).no()
		b.take(l.n(math.MaxInt64 / 8)).no()
		require.Positive(r.t, b.peek(l).Used)
	}
}

// Room is how many more go now, after a grant and after a refusal.
func unitsRoom(r *rig) {
	calls, slots, bucket := r.window(10), r.flight(3), r.bucket(5, 4).called("bucket")
	a, b := r.process("a"), r.process("b")
	ask := func(p *process, n int64) []int64 {
		r.t.Helper()
		g := p.take(calls.n(n), slots.n(1), bucket.n(1))
		require.NotNil(r.t, g.Room)
		return g.Room
	}
	require.Equal(r.t, []int64{8, 2, 3}, ask(a, 2))
	require.Equal(r.t, []int64{3, 1, 2}, ask(b, 5))
	require.Equal(r.t, []int64{3, 1, 2}, ask(b, 4), "of a refusal, too")
	require.Equal(r.t, []int64{0, 0, 1}, ask(b, 3))
	require.Equal(r.t, []int64{0, 0, 1}, ask(a, 1))
	a.settle(1)
	require.Equal(r.t, []int64{0, 1, 1}, ask(b, 1))
}
