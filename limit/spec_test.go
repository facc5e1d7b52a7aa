package limit

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

func TestNewTakesWhatExpandReturnsAndAliases(t *testing.T) {
	for _, row := range []struct {
		limit     provider.Limit
		algorithm provider.Algorithm
		sent      bool
		heaviest  int64
		aligned   bool
	}{
		{provider.Limit{Max: 3, Per: "1s"}, provider.SlidingWindow, false, 3, false},
		{provider.Limit{Max: 3, Per: "day"}, provider.FixedWindow, false, 3, true},
		{provider.Limit{Max: 3, Per: "1s", Algorithm: provider.SlidingLog}, provider.SlidingWindow, true, 3, false},
		{provider.Limit{Max: 3, Per: "1s", Algorithm: provider.GCRA}, provider.TokenBucket, false, 3, false},
		{provider.Limit{Max: 3, Per: "1s", Burst: 9, Algorithm: provider.GCRA, Counted: "sent"}, provider.TokenBucket, true, 9, false},
		{provider.Limit{Max: 3, Per: "1s", Burst: 9, Algorithm: provider.LeakyBucket}, provider.LeakyBucket, false, 3, false},
		{provider.Limit{Max: 3, Per: "1m", Algorithm: provider.SlidingWindowCounter}, provider.SlidingWindowCounter, false, 3, true},
		{provider.Limit{Max: 3, Algorithm: provider.InFlight, Counted: "answered"}, provider.InFlight, false, 3, false},
		// An empty one would fill for longer than a Duration can say.
		{provider.Limit{Max: 1, Per: "744h", Burst: math.MaxInt64, Algorithm: provider.TokenBucket}, provider.TokenBucket, false, 860, false},
	} {
		r, err := New(row.limit)
		require.NoError(t, err)
		require.Equal(t, row.algorithm, r.spec.algorithm, "%v", row.limit)
		require.Equal(t, row.sent, r.Sent(), "%v", row.limit)
		require.Equal(t, row.heaviest, r.Heaviest(), "%v", row.limit)
		require.Equal(t, row.aligned, r.Aligned(), "%v", row.limit)
		require.LessOrEqual(t, r.Look(at(5), row.heaviest), time.Duration(5), "%v", row.limit)
		require.Equal(t, Never, r.Look(at(5), row.heaviest+1), "%v", row.limit)
		require.True(t, r.Idle(at(5)))
		require.Zero(t, r.Usage(at(5)))
	}
}

func TestNewFromAThrottle(t *testing.T) {
	limits, err := provider.Throttle{RPS: 1, RPM: 30, Burst: 3, Algorithm: provider.LeakyBucket, MaxInFlight: 2, Limits: []provider.Limit{
		{Name: "quota", Max: 100, Per: "month", Zone: "Europe/Berlin", Anchor: "15 17:30"},
	}}.Expand()
	require.NoError(t, err)
	for _, l := range limits {
		_, err := New(l)
		require.NoError(t, err, "%v", l)
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	for _, row := range []struct {
		limit provider.Limit
		field string
	}{
		{provider.Limit{Per: "1s"}, "max"},
		{provider.Limit{Max: -1, Per: "1s"}, "max"},
		{provider.Limit{Max: 1}, "per"},
		{provider.Limit{Max: 1, Per: "0s"}, "per"},
		{provider.Limit{Max: 1, Per: "-1s"}, "per"},
		{provider.Limit{Max: 1, Per: "745h"}, "per"},
		{provider.Limit{Max: 1, Per: "week"}, "per"},
		{provider.Limit{Max: 1, Per: "1s", Algorithm: provider.InFlight}, "per"},
		{provider.Limit{Max: 1, Per: "day", Algorithm: provider.TokenBucket}, "algorithm"},
		{provider.Limit{Max: 1, Per: "1s", Algorithm: "quantum"}, "algorithm"},
		{provider.Limit{Max: 1, Per: "1s", Counted: "never"}, "counted"},
		{provider.Limit{Max: 1, Per: "1s", Burst: -1, Algorithm: provider.TokenBucket}, "burst"},
		{provider.Limit{Max: 1, Per: "day", Zone: "Mars/Olympus"}, "zone"},
		{provider.Limit{Max: 1, Per: "1h", Zone: "UTC"}, "zone"},
		{provider.Limit{Max: 1, Per: "day", Anchor: "25:00"}, "anchor"},
	} {
		row.limit.Name = "daily"
		r, err := New(row.limit)
		require.Nil(t, r)
		require.ErrorContains(t, err, row.field, "%v", row.limit)
		require.ErrorContains(t, err, `"daily"`)
	}
}

// TestRulesNeverTouchEachOther: two of one limit share what it says, not what they
// count.
func TestRulesNeverTouchEachOther(t *testing.T) {
	for _, l := range append(evenly, small...) {
		a, err := New(l)
		require.NoError(t, err)
		b := a.Fresh()
		a.Take(at(1), 1)
		a.Settle(at(1), at(1), 1, 1)
		a.Take(at(2), 1)
		require.True(t, b.Idle(at(3)))
		require.Equal(t, time.Duration(3), b.Look(at(3), b.Heaviest()))
	}
}

// TestLookChangesNothing, nor does any other question.
func TestLookChangesNothing(t *testing.T) {
	for _, l := range small {
		for _, l := range []provider.Limit{l, sent(l)} {
			p := newPlay(t, l)
			p.run([]byte{0, 9, 5, 0, 0, 1, 3, 7, 0, 0, 5, 1})
			twin := clone(p.rule)
			for d := range time.Duration(300) {
				p.rule.Look(at(p.now+d), 1)
				p.rule.When(at(p.now+d), 9)
				p.rule.Usage(at(p.now + d))
				p.rule.Idle(at(p.now + d))
			}
			require.Equal(t, twin.algo, p.rule.algo)
			require.Equal(t, twin.held, p.rule.held)
		}
	}
}

// TestIdleIsAsGoodAsNew: from when a Rule says so it answers as a fresh one does.
func TestIdleIsAsGoodAsNew(t *testing.T) {
	for i, l := range small {
		if l.Algorithm == provider.LeakyBucket {
			continue // may still have a lateness to catch up
		}
		for seed := range uint64(40) {
			rnd := newRand(seed + uint64(i)<<20)
			p := newPlay(t, l)
			for range 12 {
				p.step(byte(rnd.Uint32()), byte(rnd.Uint32()))
			}
			for len(p.flying) > 0 {
				p.settle(0, 1, 0)
			}
			for !p.rule.Idle(at(p.now)) {
				p.now++
			}
			fresh := p.rule.Fresh()
			for range 30 {
				n := rnd.Int64N(p.rule.Heaviest()) + 1
				require.Equal(t, fresh.Look(at(p.now), n), p.rule.Look(at(p.now), n))
				if fresh.Look(at(p.now), n) <= p.now {
					spend(t, fresh, at(p.now), n)
					spend(t, p.rule, at(p.now), n)
				}
				p.now += below(rnd, 9)
			}
		}
	}
}
