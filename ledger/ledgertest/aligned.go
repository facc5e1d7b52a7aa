package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

var alignedPlays = []play{
	{name: "fixed_window/aligned to the epoch, open after its guard", run: fixedPlay},
	{name: "fixed_window/one reset however many arrive at it", run: fixedOnce},
	{name: "fixed_window/held counts in every window", run: fixedHeld},
	{name: "fixed_window/charged when it went", run: fixedPast},
	{name: "fixed_window/counted sent", run: fixedSent},
	{name: "sliding_window_counter/the estimate of two windows", run: counterPlay},
	{name: "sliding_window_counter/the window before the last is forgotten", run: counterGone},
}

// guard is how long after its start a window of that length opens.
func guard(w time.Duration) time.Duration { return min(time.Second, w/100) }

func fixedPlay(r *rig) {
	l := r.limit(provider.FixedWindow, 4)
	a, b := r.process("a"), r.process("b")
	r.align(r.per(), r.units(1))
	next := r.now + r.units(4)
	a.went(l.n(1))
	r.pass(r.units(1))
	h := b.take(l.n(3)).granted()
	b.settle(h)
	b.take(l.n(1)).refused(0, next+guard(r.per())-r.now)
	r.until(next - r.units(0.75))
	b.take(l.n(1)).opens(0, next+guard(r.per()))
	b.take(l.n(3)).granted()
	b.take(l.n(1)).refused(0, ledger.Event)
}

func fixedOnce(r *rig) {
	l := r.limit(provider.FixedWindow, 4)
	all := []*process{r.process("a"), r.process("b"), r.process("c")}
	r.align(r.per(), r.units(3))
	all[0].went(l.n(4))
	next := r.now + r.units(2) + guard(r.per())
	r.until(next + r.slack())
	var went int
	for range 4 {
		for _, p := range all {
			a := p.take(l.n(1))
			if a.Hold != 0 {
				p.settle(a.Hold)
				went++
			}
		}
	}
	require.Equal(r.t, 4, went)
	all[0].take(l.n(1)).refused(0, next+r.per()-r.now)
}

func fixedHeld(r *rig) {
	l := r.limit(provider.FixedWindow, 3)
	a, b := r.process("a"), r.process("b")
	r.align(r.per(), r.units(4))
	next := r.now + r.units(1)
	h := a.take(l.n(2)).granted()
	r.until(next + r.units(1))
	b.take(l.n(2)).refused(0, ledger.Event)
	b.take(l.n(1)).granted()
	a.settle(h)
	b.used(l, 2, 1)
	b.take(l.n(1)).refused(0, next+r.per()+guard(r.per())-r.now)
}

func fixedPast(r *rig) {
	l := r.limit(provider.FixedWindow, 3)
	a, b := r.process("a"), r.process("b")
	r.align(r.per(), r.units(4))
	went := r.now
	a.went(l.n(1))
	h, late := a.take(l.n(1)).granted(), a.take(l.n(1)).granted()
	r.pass(r.units(2))
	a.settled(ledger.Settlement{Hold: h, At: r.at(went)}) // its answer came before the window began
	a.charge(l, went, 3)
	b.used(l, 0, 1)
	b.went(l.n(1))
	a.settled(ledger.Settlement{Hold: late, At: r.at(went)}) // and is told after it has been counted in
	b.used(l, 1, 0)
	b.take(l.n(2)).granted()
}

func fixedSent(r *rig) {
	l := r.limit(provider.FixedWindow, 3).sent()
	a, b := r.process("a"), r.process("b")
	r.align(r.per(), r.units(3))
	h := a.take(l.n(3)).granted()
	b.take(l.n(1)).refused(0, r.units(2)+guard(r.per()))
	r.pass(r.units(3))
	a.settle(h)
	b.take(l.n(3)).granted()
}

// The figures of the field: 80 before, 50 now, 40 s into 60 s make 76.7.
func counterPlay(r *rig) {
	l := r.limit(provider.SlidingWindowCounter, 100)
	a, b := r.process("a"), r.process("b")
	r.align(r.per(), r.units(2))
	a.went(l.n(80))
	r.align(r.per(), r.units(1))
	start := r.now - r.units(1)
	a.charge(l, r.now, 50)
	r.until(start + r.per()*2/3)
	if r.b.Virtual {
		b.used(l, 77, 0)
		b.take(l.n(24)).refused(0, r.per()*675/1000-r.per()*2/3)
	}
	b.take(l.n(40)).refused(0, r.per()*875/1000-r.per()*2/3)
	h := b.take(l.n(23)).granted()
	if r.b.Virtual {
		a.take(l.n(1)).refused(0, r.per()*675/1000-r.per()*2/3)
	}
	b.settle(h)
	// Then 73 are the window before: 50 more go when no more than 50 of them count.
	b.take(l.n(50)).opens(0, start+r.per()+r.per()-r.per()*50/73)
}

func counterGone(r *rig) {
	l := r.limit(provider.SlidingWindowCounter, 10)
	a, b := r.process("a"), r.process("b")
	r.align(r.per(), r.units(2))
	a.went(l.n(10))
	r.align(r.per(), r.units(2))
	a.take(l.n(6)).no()
	r.align(r.per(), r.units(1))
	b.take(l.n(10)).granted()
}
