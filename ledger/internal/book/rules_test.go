package book

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// A hold that is asked for again is the one that is there: nothing is taken twice.
func TestAskedAgain(t *testing.T) {
	s := newStage(t)
	c := counter(provider.Limit{Max: 5, Per: "1m"})
	first := s.take("a", 1, units(c, 2))
	again := s.take("a", 1, units(c, 2))
	require.Equal(t, first.Hold, again.Hold)
	other := s.take("b", 1, units(c, 2))
	require.NotZero(t, other.Hold, "a hold's name is its holder's")
	require.Equal(t, int64(4), s.say("a", ledger.Batch{Peek: []*ledger.Counter{c}}).Usages[0].Held)
}

// One counter named twice in a take is asked for both.
func TestOneCounterTwice(t *testing.T) {
	s := newStage(t)
	c := counter(provider.Limit{Max: 5, Per: "1m"})
	require.Equal(t, 1, s.take("a", 1, units(c, 3), units(c, 3)).By)
	require.Equal(t, ledger.Event, s.take("a", 1, units(c, 5), units(c, math.MaxInt64)).Wait, "sums saturate")
	require.Equal(t, 0, s.take("a", 1, units(c, 6), units(c, -1)).By, "nothing is below 0")
	g := s.take("a", 2, units(c, 3), units(c, 2))
	require.NotZero(t, g.Hold)
	require.Equal(t, []int64{0, 0}, g.Room)
	s.say("a", ledger.Batch{Settlements: []ledger.Settlement{{Hold: 2, At: s.t, Part: []ledger.Part{{Unit: 1, Charged: 0}}}}})
	require.Equal(t, int64(3), s.say("a", ledger.Batch{Peek: []*ledger.Counter{c}}).Usages[0].Held)
}

// A size that was learned ends: a cost that it never admits waits for that, not for an
// event, and exactly as long as the declared size then says.
func TestLearnedSizeEnds(t *testing.T) {
	s := newStage(t)
	c := counter(provider.Limit{Max: 10, Per: "1m"})
	learn := func(l ledger.Learnt) {
		l.Counter = c
		s.say("a", ledger.Batch{News: []ledger.News{{Learn: &l}}})
	}
	learn(ledger.Learnt{Max: 3, Until: s.t.Add(10 * time.Second)})
	require.Equal(t, 10*time.Second, s.take("a", 1, units(c, 4)).Wait)
	s.take("a", 2, units(c, 3))
	require.Equal(t, ledger.Event, s.take("a", 3, units(c, 8)).Wait, "the declared size does not admit it either")
	s.say("a", ledger.Batch{Settlements: []ledger.Settlement{{Hold: 2, At: s.t}}})
	require.Equal(t, time.Minute+1, s.take("a", 4, units(c, 8)).Wait, "3 have to leave")
	require.Equal(t, 10*time.Second, s.take("a", 5, units(c, 7)).Wait)
	s.pass(10 * time.Second)
	require.NotZero(t, s.take("a", 6, units(c, 7)).Hold)
	learn(ledger.Learnt{Max: 3})
	require.Equal(t, int64(3), s.say("a", ledger.Batch{Peek: []*ledger.Counter{c}}).Usages[0].Max, "without an end it stays")
	learn(ledger.Learnt{Max: 30})
	require.Equal(t, ledger.Event, s.take("a", 7, units(c, 11)).Wait, "a higher one than the declared is not in force")
}

// A trial that takes too long counts as Again, and has nothing to say any more.
func TestLongTrialEnds(t *testing.T) {
	s := newStage(t)
	s.say("a", ledger.Batch{News: []ledger.News{{Pause: &ledger.Pause{Provider: "acme", Scope: provider.ScopeProvider, Until: s.t}}}})
	require.True(t, s.take("a", 1).Alone)
	s.pass(longestTrial - 1)
	require.Equal(t, ledger.Event, s.take("b", 1).Wait)
	s.pass(1)
	require.True(t, s.take("b", 2).Alone)
	s.say("a", ledger.Batch{Settlements: []ledger.Settlement{{Hold: 1, Trial: ledger.Opens}}})
	require.Equal(t, ledger.Event, s.take("c", 1).Wait, "b's is the trial")
	s.say("b", ledger.Batch{Settlements: []ledger.Settlement{{Hold: 2, Trial: ledger.Opens}}})
	require.False(t, s.take("c", 2).Alone)
}

// A holder is dead at the instant at which its lease ends, and what it held counts
// from then on.
func TestLeaseEndsAtItsEnd(t *testing.T) {
	s := newStage(t)
	c := counter(provider.Limit{Max: 1, Per: "1m"})
	slot := counter(provider.Limit{Name: "slot", Max: 1, Algorithm: provider.InFlight})
	s.say("a", ledger.Batch{Lease: time.Second, Takes: []ledger.Asked{{Hold: 1, Take: ledger.Take{Units: []ledger.Units{units(c, 1), units(slot, 1)}}}}})
	s.pass(time.Second - 1)
	require.Equal(t, ledger.Event, s.take("b", 1, units(slot, 1)).Wait)
	s.pass(1)
	r := s.say("b", ledger.Batch{})
	require.Equal(t, 1, r.Replicas)
	require.NotZero(t, s.take("b", 2, units(slot, 1)).Hold)
	s.pass(time.Second)
	require.Equal(t, 59*time.Second+1, s.take("b", 3, units(c, 1)).Wait)
}

// A pause that is told again as it is changes nothing: not for those who watch, and not
// for the call that goes alone.
func TestPauseToldAgain(t *testing.T) {
	s := newStage(t)
	p := ledger.Pause{Provider: "acme", Scope: provider.ScopeProvider, Until: s.t}
	first := s.say("a", ledger.Batch{News: []ledger.News{{Pause: &p}}})
	require.Len(t, first.Pauses, 1)
	require.True(t, s.take("a", 1).Alone)
	again := s.say("b", ledger.Batch{News: []ledger.News{{Pause: &p}}, Known: first.Version})
	require.Equal(t, first.Version, again.Version)
	require.Empty(t, again.Pauses)
	require.Equal(t, ledger.Event, s.take("b", 1).Wait)
}

// Versions of one state are none of the next one's.
func TestVersionsOfStatesDiffer(t *testing.T) {
	s := newStage(t)
	first := s.say("a", ledger.Batch{})
	s.s, s.k = newStored()
	s.pass(time.Second)
	second := s.say("a", ledger.Batch{})
	require.NotEqual(t, first.Epoch, second.Epoch)
	require.Greater(t, second.Version, first.Version)
}

// An instant that is yet to come is taken for now.
func TestSettledInTheFuture(t *testing.T) {
	s := newStage(t)
	c := counter(provider.Limit{Max: 1, Per: "1m"})
	s.take("a", 1, units(c, 1))
	s.say("a", ledger.Batch{Settlements: []ledger.Settlement{{Hold: 1, At: s.t.Add(time.Hour)}}})
	require.Equal(t, time.Minute+1, s.take("a", 2, units(c, 1)).Wait)
}

// What is of no use any more goes, and nothing else.
func TestOldThingsGo(t *testing.T) {
	s := newStage(t)
	limit := func(i int) *ledger.Counter { return counter(provider.Limit{Name: fmt.Sprint(i), Max: 5, Per: "1m"}) }
	for i := range 100 {
		s.say("a", ledger.Batch{Charges: []ledger.Charge{{Counter: limit(i), At: s.t, N: 1}}})
	}
	p := ledger.Pause{Provider: "acme", Scope: provider.ScopeKey, Until: s.t}
	for i := range 5 {
		p.Name = fmt.Sprint(i)
		s.say("a", ledger.Batch{News: []ledger.News{{Pause: &p}}})
	}
	learnt := limit(1)
	s.say("a", ledger.Batch{News: []ledger.News{{Learn: &ledger.Learnt{Counter: learnt, NotBefore: s.t.Add(72 * time.Hour)}}}})
	require.NotZero(t, s.take("a", 1, units(limit(2), 1)).Hold)
	s.say("gone", ledger.Batch{Gone: true})
	require.Len(t, s.s.Records.(stored[Record, *Record]).rows, 100)
	require.Len(t, s.s.Holders.(stored[Holder, *Holder]).rows, 2)

	s.pass(time.Minute + 1)
	for range 100 {
		s.say("a", ledger.Batch{})
	}
	require.Len(t, s.s.Records.(stored[Record, *Record]).rows, 100, "they have been idle for no window yet")
	s.pass(time.Minute + 1)
	version := uint64(0)
	for range 100 {
		version = s.say("a", ledger.Batch{}).Version
	}
	require.Len(t, s.s.Records.(stored[Record, *Record]).rows, 2, "one is learned, of one something is held")
	require.Len(t, s.s.Holders.(stored[Holder, *Holder]).rows, 1)
	require.Len(t, s.s.Pauses.(stored[Pause, *Pause]).rows, 5)

	s.pass(stale)
	for range 20 {
		s.say("a", ledger.Batch{})
	}
	require.Empty(t, s.s.Pauses.(stored[Pause, *Pause]).rows, "nobody has tried them")
	require.Greater(t, s.say("a", ledger.Batch{}).Version, version)
}

// A person is told of a step, for an hour; not of what a time service does all day.
func TestStepIsTold(t *testing.T) {
	s := newStage(t)
	require.Empty(t, s.say("a", ledger.Batch{}).Warning)
	s.back += slewed
	require.Empty(t, s.say("a", ledger.Batch{}).Warning)
	s.back += 2 * time.Second
	require.Equal(t, "the clock has stepped back by 2s: calendar windows follow it", s.say("a", ledger.Batch{}).Warning)
	s.pass(time.Hour)
	require.NotEmpty(t, s.say("a", ledger.Batch{}).Warning)
	s.pass(1)
	require.Empty(t, s.say("a", ledger.Batch{}).Warning)
}

// Time that has passed before a step is not lost where the process has counted it;
// another one knows at least the last batch.
func TestStepLosesNoTime(t *testing.T) {
	for _, again := range []bool{false, true} {
		s := newStage(t)
		c := counter(provider.Limit{Max: 1, Per: "1m"})
		s.say("a", ledger.Batch{Charges: []ledger.Charge{{Counter: c, At: s.t, N: 1}}})
		s.pass(20 * time.Second)
		s.back = time.Hour
		want := 40*time.Second + 1
		if again {
			s.k = New(s.s) // a process that has just started
			want += 20 * time.Second
		}
		require.Equal(t, want, s.take("a", 1, units(c, 1)).Wait)
		s.pass(want)
		require.NotZero(t, s.take("a", 2, units(c, 1)).Hold)
	}
}

// A charge is found again in another batch, though clocks differ a little in how they
// count the time between.
func TestChargeIsFoundAgain(t *testing.T) {
	s := newStage(t)
	c := counter(provider.Limit{Max: 5, Per: "1m"})
	at := s.t
	s.say("a", ledger.Batch{Charges: []ledger.Charge{{Counter: c, At: at, N: 3}}})
	s.pass(10 * time.Second)
	s.back = -3 * time.Millisecond
	s.say("a", ledger.Batch{Charges: []ledger.Charge{{Counter: c, At: at, N: -2}}})
	u := s.say("a", ledger.Batch{Peek: []*ledger.Counter{c}}).Usages[0]
	assert.Equal(t, int64(1), u.Used)
}
