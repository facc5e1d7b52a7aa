// Package ledgertest is the conformance suite of ledger stores: what a store must do
// that a coordinator can rely on, as named subtests, and a property test against a
// model that counts everything by brute force.
//
// It knows nothing of package limit: what the algorithms mean is written down here a
// second time, from docs/design.md. [Faulty] disturbs the way to a store, for tests
// of what stands above it.
package ledgertest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/ledger"
)

// Bench is a store under test, empty at first: how to reach it, and what can be done
// to it. Functions are called on the goroutine of the test.
type Bench struct {
	// Store opens a further connection to the same state. The suite closes it.
	Store func(t *testing.T) ledger.Store

	// Virtual says that the store follows this process's clock, so that it can be played
	// in a testing/synctest bubble, with minutes and days. Otherwise the suite waits in
	// real time, with windows of a fifth of a second.
	Virtual bool
	// Resolution is by how much a store may be later than the contract says, whose clock
	// or arithmetic is coarser than 1 ns. Never earlier.
	Resolution time.Duration
	// Exact is the largest number that it counts exactly; more may be taken for as much.
	// 0: all numbers are.
	Exact int64
	// NoRoom says that its answers never tell Grant.Room.
	NoRoom bool

	// Lose empties the state, as a server that is restarted without its data does.
	// Connections that are open stay usable. nil: its state cannot be lost.
	Lose func(t *testing.T)
	// Step sets the store's clock back by d. nil: it has no clock that could be set.
	Step func(t *testing.T, d time.Duration)
}

// A play is one subtest.
type play struct {
	name string
	days bool               // it lasts days: only in virtual time
	can  func(b Bench) bool // nil: always
	run  func(r *rig)
}

// Run plays the whole suite against a store. mk makes a new, empty one for each
// subtest, inside its bubble where the store is virtual; a first Bench, made outside
// all of them, only says whether it is. It may be called several times for one
// subtest: in real time a subtest that the machine delayed is played again, slower.
//
// Subtests that a store cannot be put to (it has no clock to set, or real time is too
// slow for them) are skipped, and say so.
func Run(t *testing.T, mk func(t *testing.T) Bench) {
	virtual := mk(t).Virtual
	for _, group := range groups {
		for _, p := range group {
			t.Run(p.name, func(t *testing.T) { p.start(t, virtual, mk) })
		}
	}
}

func (p play) start(t *testing.T, virtual bool, mk func(t *testing.T) Bench) {
	if virtual {
		synctest.Test(t, func(t *testing.T) { p.play(t, mk, virtualUnit) })
		return
	}
	if p.days {
		t.Skip("needs days, and this store's time is real")
	}
	for unit := realUnit; !p.play(t, mk, unit); unit *= 2 {
		if unit > slowest {
			t.Fatalf("the store, or this machine, is too slow to be judged: a step takes longer than %s", unit/2)
		}
	}
}

// play plays it once and tells whether it was on time.
func (p play) play(t *testing.T, mk func(t *testing.T) Bench, unit time.Duration) (played bool) {
	b := mk(t)
	if p.can != nil && !p.can(b) {
		t.Skip("this store cannot be put to it: see the fields of Bench that are not set")
	}
	defer func() {
		if x := recover(); x != nil {
			if _, is := x.(late); !is {
				panic(x)
			}
		}
	}()
	p.run(newRig(t, b, unit))
	return true
}

var groups = [][]play{
	windowPlays, alignedPlays, calendarPlays, spacedPlays, unitPlays, settlePlays, backPlays, chargePlays,
	changePlays, learnPlays, apartPlays, pausePlays, trialPlays, holderPlays, sayPlays, epochPlays, clockPlays,
	peekPlays, clientPlays, faultPlays, randomPlays,
}
