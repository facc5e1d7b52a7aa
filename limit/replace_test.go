package limit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

func replace(t *testing.T, old *Rule, l provider.Limit, now Now) *Rule {
	r, err := Replace(old, l, now)
	require.NoError(t, err)
	return r
}

// TestReplaceKeepsHistoryAndHeld, and a lowered limit counts at once.
func TestReplaceKeepsHistoryAndHeld(t *testing.T) {
	for _, row := range []struct {
		limit      provider.Limit
		lower      int64
		free, less time.Duration // when one unit may go under Max 10, under lower
	}{
		{provider.Limit{Max: 10, Per: "1h", Algorithm: provider.SlidingWindow}, 5, 1, time.Hour + 1},
		{provider.Limit{Max: 10, Per: "1h", Algorithm: provider.SlidingWindow}, 2, 1, Never},
		{provider.Limit{Max: 10, Per: "1h", Algorithm: provider.FixedWindow}, 5, 1, time.Hour + time.Second - wallAhead},
		{provider.Limit{Max: 10, Per: "1h", Algorithm: provider.SlidingWindowCounter}, 5, 1, 80*time.Minute - wallAhead},
		{provider.Limit{Max: 10, Per: "1h", Algorithm: provider.LeakyBucket}, 5, 30 * time.Minute, time.Hour + 1},
		{provider.Limit{Max: 10, Per: "1h", Algorithm: provider.TokenBucket}, 5, 1, 12 * time.Minute},
		{provider.Limit{Max: 10, Algorithm: provider.InFlight}, 3, 1, 1},
		{provider.Limit{Max: 10, Algorithm: provider.InFlight}, 2, 1, Never},
	} {
		r := replace(t, nil, row.limit, at(0))
		r.Take(at(0), 5)
		r.Settle(at(0), at(0), 3, 3)
		require.Equal(t, row.free, r.Look(at(1), 1), "%v", row.limit)
		l := row.limit
		l.Max = row.lower
		low := replace(t, r, l, at(1))
		require.Equal(t, int64(2), low.Usage(at(1)).Held, "%v", l)
		got := low.Look(at(1), 1)
		if l.Algorithm == provider.TokenBucket {
			got++ // the nanosecond that has passed
		}
		require.Equal(t, row.less, got, "%v", l)
		require.Equal(t, row.lower, low.Heaviest())
		low.Settle(at(0), at(2), 2, 2)
		require.Zero(t, low.Usage(at(2)).Held)
		require.LessOrEqual(t, low.Look(at(2*time.Hour+time.Minute), 1), 2*time.Hour+time.Minute, "it drains")
		back := replace(t, low, row.limit, at(3))
		if l.Algorithm != provider.LeakyBucket && l.Algorithm != provider.InFlight {
			require.Equal(t, time.Duration(3), back.Look(at(3), 5), "%v", l)
			require.Greater(t, back.Look(at(3), 6), time.Duration(3), "%v", l)
		}
	}
}

// TestReplaceByAnotherAlgorithm charges now what counted, and lets calls of the old
// one settle on the new.
func TestReplaceByAnotherAlgorithm(t *testing.T) {
	now := at(500 * time.Millisecond)
	for _, old := range evenly {
		for _, old := range []provider.Limit{old, sent(old)} {
			for _, l := range evenly {
				for _, l := range []provider.Limit{l, sent(l)} {
					r := replace(t, nil, old, at(0))
					if old.Algorithm == l.Algorithm {
						continue
					}
					r.Take(at(0), 3)
					r.Settle(at(0), at(0), 2, 2)
					was := r.Usage(now)
					r = replace(t, r, l, now)
					want := was.Used
					if r.Sent() && (old.Counted == "" || old.Algorithm == provider.InFlight) {
						want += was.Held // sent, and never to be charged again
					}
					if l.Algorithm == provider.InFlight {
						want = 0
					}
					require.Equal(t, want, r.Usage(now).Used, "%v to %v", old, l)
					require.Equal(t, int64(1), r.Usage(now).Held)
					r.Settle(at(0), now, 1, 1)
					if !r.Sent() && l.Algorithm != provider.InFlight {
						want++
					}
					require.Equal(t, want, r.Usage(now).Used, "%v to %v", old, l)
					r.Settle(at(0), now, 1, 0)
					require.Zero(t, r.Usage(now).Held, "never below 0")
				}
			}
		}
	}
}

// TestReplaceWhereItCounts: what went uncharged is charged when the limit changes
// to counting what is sent.
func TestReplaceWhereItCounts(t *testing.T) {
	l := provider.Limit{Max: 10, Per: "1h", Algorithm: provider.SlidingWindow}
	r := replace(t, nil, l, at(0))
	r.Take(at(0), 4)
	r = replace(t, r, sent(l), at(1))
	require.Equal(t, Usage{Used: 4, Held: 4, ResetAt: time.Hour + 2}, r.Usage(at(1)))
	r.Settle(at(0), at(2), 4, 4)
	require.Equal(t, Usage{Used: 4, ResetAt: time.Hour + 2}, r.Usage(at(2)))
	r.Take(at(3), 2)
	r = replace(t, r, l, at(4))
	require.Equal(t, int64(6), r.Usage(at(4)).Used)
	require.Equal(t, int64(2), r.Usage(at(4)).Held)
}

// TestReplaceOfWindows: a longer aligned window takes what the old one had in it.
func TestReplaceOfWindows(t *testing.T) {
	now := wall(t, "2024-05-01T10:59:00Z")
	r := replace(t, nil, provider.Limit{Max: 10, Per: "hour", Algorithm: provider.FixedWindow}, now)
	r.SetSkew(4 * time.Second)
	spend(t, r, now, 6)
	now = now.after(2*time.Minute, 0)
	spend(t, r, now, 3)
	day := replace(t, r, provider.Limit{Max: 10, Per: "day", Algorithm: provider.FixedWindow}, now)
	require.Equal(t, int64(9), day.Usage(now).Used)
	require.Equal(t, "2024-05-02T00:00:05Z", show(t, now, day.Look(now, 2), "UTC"))
	same := replace(t, day, provider.Limit{Max: 10, Per: "day", Zone: "UTC", Anchor: "00:00", Algorithm: provider.FixedWindow}, now)
	require.Equal(t, day.Usage(now), same.Usage(now))
	tokyo := replace(t, same, provider.Limit{Max: 10, Per: "day", Zone: "Asia/Tokyo", Algorithm: provider.FixedWindow}, now)
	require.Equal(t, int64(9), tokyo.Usage(now).Used)
	require.Equal(t, "2024-05-01T15:00:05Z", show(t, now, tokyo.Look(now, 2), "UTC"))
	minute := replace(t, tokyo, provider.Limit{Max: 10, Per: "1m", Algorithm: provider.FixedWindow}, now)
	require.Equal(t, int64(9), minute.Usage(now).Used)
	require.Equal(t, "2024-05-01T11:02:00.6Z", show(t, now, minute.Look(now, 2), "UTC"))
}

// TestReplaceInSlots: slots of another length take everything along, on the strict
// side, in the same memory.
func TestReplaceInSlots(t *testing.T) {
	for _, algorithm := range []provider.Algorithm{provider.SlidingWindow, provider.LeakyBucket} {
		r := replace(t, nil, provider.Limit{Max: 3000, Per: "3s", Algorithm: algorithm}, at(0))
		now := time.Duration(0)
		for range 2000 {
			now += time.Millisecond
			spend(t, r, at(now), 1)
		}
		for _, per := range []provider.Period{"5s", "1h", "5s", "4s"} {
			r = replace(t, r, provider.Limit{Max: 3000, Per: per, Algorithm: algorithm}, at(now))
			require.Equal(t, int64(2000), r.Usage(at(now)).Used, per)
			require.GreaterOrEqual(t, r.When(at(now), 1001), time.Millisecond+r.spec.per+1, "the first of the 2000 leaves no sooner")
			r.Correct(at(now), at(now), -1)
			require.Equal(t, int64(1999), r.Usage(at(now)).Used, "the last is found again")
			r.Correct(at(now), at(now), 1)
		}
		for range 3000 {
			now += 2 * time.Millisecond
			require.LessOrEqual(t, r.Usage(at(now)).Used, int64(3000))
			if r.Look(at(now), 1) <= now {
				spend(t, r, at(now), 1)
			}
		}
	}
}

// TestReplaceOfABucketKeepsItsUnits in the time that they cost now.
func TestReplaceOfABucketKeepsItsUnits(t *testing.T) {
	l := provider.Limit{Max: 10, Per: "10s", Algorithm: provider.TokenBucket, Counted: provider.CountedSent}
	r := replace(t, nil, l, at(0))
	r.Take(at(0), 6)
	r.Take(at(time.Second), 1)
	l.Max, l.Burst = 20, 10
	r = replace(t, r, l, at(time.Second))
	require.Equal(t, int64(6), r.Usage(at(time.Second)).Used)
	require.Equal(t, 4*time.Second, r.When(at(time.Second), 10))
	r.GiveBack(at(0), at(time.Second), 6)
	require.Equal(t, int64(1), r.Usage(at(time.Second)).Used, "5 of the 6 had not come back by themselves")
}

// TestReplaceChangesNothingOnAnError.
func TestReplaceChangesNothingOnAnError(t *testing.T) {
	l := provider.Limit{Max: 10, Per: "10s", Algorithm: provider.SlidingWindow}
	r := replace(t, nil, l, at(0))
	spend(t, r, at(0), 4)
	l.Max = 0
	_, err := Replace(r, l, at(1))
	require.ErrorContains(t, err, "max")
	require.Equal(t, int64(4), r.Usage(at(1)).Used)
}
