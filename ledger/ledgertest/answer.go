package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
)

// answer is what a store said to a Take.
type answer struct {
	p    *process
	take ledger.Take
	ledger.Grant
}

// granted asserts that all units are held now.
func (a answer) granted() ledger.Hold {
	a.p.t.Helper()
	require.NotZero(a.p.t, a.Hold, "refused, by %d, for %s", a.By, a.Wait)
	require.False(a.p.t, a.Alone, "nothing is paused")
	return a.Hold
}

// alone asserts that it is the one call after a pause.
func (a answer) alone() ledger.Hold {
	a.p.t.Helper()
	require.NotZero(a.p.t, a.Hold, "refused, by %d, for %s", a.By, a.Wait)
	require.True(a.p.t, a.Alone, "the first call after a pause goes alone")
	return a.Hold
}

// refused asserts a refusal for so long, by one of the units (-1: by a pause).
func (a answer) refused(by int, wait time.Duration) {
	a.p.t.Helper()
	a.within(by, wait, 0)
}

// within is refused, by a store that may be late by extra.

func (a answer) within(by int, wait, extra time.Duration) {
	a.p.t.Helper()
	require.Zero(a.p.t, a.Hold, "granted")
	require.Equal(a.p.t, by, a.By, "the place of the counter that opens last")
	a.p.near(wait, a.Wait, extra, "wait")
}

// no asserts a refusal, for whatever reason.
func (a answer) no() answer {
	a.p.t.Helper()
	require.Zero(a.p.t, a.Hold, "granted")
	return a
}

// paused asserts a refusal by a pause until an instant of the play.
func (a answer) paused(p ledger.Pause) {
	a.p.t.Helper()
	a.refused(-1, p.Until.Sub(a.p.at(a.p.now)))
	a.p.same(p, a.Pause)
}

// trying asserts a refusal because another call is the one that goes alone.
func (a answer) trying(p ledger.Pause) {
	a.p.t.Helper()
	require.Zero(a.p.t, a.Hold, "one call goes alone")
	require.Equal(a.p.t, -1, a.By, "a pause refuses")
	a.p.same(p, a.Pause)
}

// same asserts that a pause is the one that was told.
func (r *rig) same(want ledger.Pause, got *ledger.Pause) {
	r.t.Helper()
	require.NotNil(r.t, got, "the pause that refuses")
	r.near(want.Until.Sub(r.start), got.Until.Sub(r.start), 0, "until")
	g := *got
	g.Until = want.Until
	require.Equal(r.t, want, g)
}

// opens asserts a refusal until an instant of the play, by one of the units, and that
// it is granted then: at once, where time is virtual, and not a nanosecond before.
func (a answer) opens(by int, at time.Duration) ledger.Hold {
	a.p.t.Helper()
	return a.opensWithin(by, at, 0).granted()
}

// opensAlone is opens after a pause.
func (a answer) opensAlone(at time.Duration) ledger.Hold {
	a.p.t.Helper()
	return a.opensWithin(-1, at, 0).alone()
}

// opensWithin lets the store be late by extra.
func (a answer) opensWithin(by int, at, extra time.Duration) answer {
	a.p.t.Helper()
	a.within(by, at-a.p.now, extra)
	told := a.p.now + a.Wait
	if a.p.b.Virtual {
		a.p.until(at - 1)
		a.p.try(a.take).within(by, 1, extra)
		a.p.until(told)
		return a.p.try(a.take)
	}
	if early := at - a.p.units(0.75); early > a.p.now {
		a.p.until(early)
		a.p.try(a.take).within(by, at-early, extra)
	}
	a.p.until(at + a.p.units(0.75))
	return a.p.try(a.take)
}
