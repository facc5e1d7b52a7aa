package limit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

// wall is a reading of the clock at a date, an hour after the program's start.
func wall(t testing.TB, date string) Now {
	at, err := time.Parse(time.RFC3339Nano, date)
	require.NoError(t, err)
	return Now{Mono: time.Hour, Wall: time.Duration(at.UnixNano())}
}

// after is the clock d later, put forward by step.
func (now Now) after(d, step time.Duration) Now {
	return Now{Mono: now.Mono + d, Wall: now.Wall + d + step}
}

// show is the date of an instant on the scale of Mono.
func show(t testing.TB, now Now, mono time.Duration, zone string) string {
	loc, err := time.LoadLocation(zone)
	require.NoError(t, err)
	return time.Unix(0, int64(now.Wall+mono-now.Mono)).In(loc).Format(time.RFC3339Nano)
}

// spend takes and settles n units now.
func spend(t testing.TB, r *Rule, now Now, n int64) {
	require.LessOrEqual(t, r.Look(now, n), now.Mono)
	r.Take(now, n)
	r.Settle(now, now, n, n)
}

func hourly(t testing.TB, algorithm provider.Algorithm) *Rule {
	r, err := New(provider.Limit{Max: 10, Per: "1h", Algorithm: algorithm})
	require.NoError(t, err)
	return r
}

// TestAnExhaustedWindowOpensAGuardAfterTheNextOne: the provider's clock may be
// behind.
func TestAnExhaustedWindowOpensAGuardAfterTheNextOne(t *testing.T) {
	for _, row := range []struct {
		per  provider.Period
		skew time.Duration
		want string
	}{
		{"1h", 0, "2024-05-01T11:00:01Z"},
		{"1h", 3 * time.Second, "2024-05-01T11:00:04Z"},
		{"1h", -3 * time.Second, "2024-05-01T11:00:04Z"},
		{"1h", time.Hour, "2024-05-01T11:00:36Z"}, // at most a hundredth
		{"10s", 0, "2024-05-01T10:20:10.1Z"},
		{"hour", 0, "2024-05-01T11:00:01Z"},
		{"minute", 0, "2024-05-01T10:21:00.6Z"},
		{"minute", 9 * time.Second, "2024-05-01T10:21:00.6Z"},
		{"day", 30 * time.Second, "2024-05-02T00:00:31Z"},
	} {
		r, err := New(provider.Limit{Max: 10, Per: row.per, Algorithm: provider.FixedWindow})
		require.NoError(t, err)
		r.SetSkew(row.skew)
		now := wall(t, "2024-05-01T10:20:00Z")
		spend(t, r, now, 10)
		require.Equal(t, row.want, show(t, now, r.Look(now, 1), "UTC"), "%+v", row)
		require.Equal(t, row.want, show(t, now, r.When(now, 10), "UTC"), "%+v", row)
		require.Equal(t, row.want, show(t, now, r.Usage(now).ResetAt, "UTC"), "%+v", row)
		opens := now.after(r.Look(now, 1)-now.Mono, 0)
		require.Greater(t, r.Look(opens.after(-1, 0), 1), opens.Mono-1)
		require.Equal(t, opens.Mono, r.Look(opens, 10))
		require.True(t, r.Idle(opens))
		require.False(t, r.Idle(opens.after(-1, 0)))
	}
}

// TestInTheGuardACallMustFitIntoBothWindows also without a guard of its own when
// the old window has room.
func TestInTheGuardACallMustFitIntoBothWindows(t *testing.T) {
	r := hourly(t, provider.FixedWindow)
	before := wall(t, "2024-05-01T10:59:59Z")
	spend(t, r, before, 6)
	in := before.after(1500*time.Millisecond, 0) // 11:00:00.5
	require.Equal(t, in.Mono, r.Look(in, 4))
	require.Equal(t, "2024-05-01T11:00:01Z", show(t, in, r.Look(in, 5), "UTC"))
	spend(t, r, in, 3)
	require.Equal(t, Usage{Used: 9, ResetAt: in.Mono + time.Second/2}, r.Usage(in))
	require.Equal(t, "2024-05-01T11:00:01Z", show(t, in, r.Look(in, 2), "UTC"))
	require.Equal(t, "2024-05-01T12:00:01Z", show(t, in, r.Look(in, 8), "UTC"), "3 of the new window are gone")
	open := in.after(time.Second/2, 0)
	require.Equal(t, open.Mono, r.Look(open, 7))
	require.Equal(t, int64(3), r.Usage(open).Used)
}

// TestAHeldCallCountsInEveryWindowItMayArriveIn, and is charged where it settles.
func TestAHeldCallCountsInEveryWindowItMayArriveIn(t *testing.T) {
	r := hourly(t, provider.FixedWindow)
	now := wall(t, "2024-05-01T10:59:00Z")
	spend(t, r, now, 2)
	r.Take(now, 4)
	next := now.after(2*time.Minute, 0)
	require.Equal(t, next.Mono, r.Look(next, 6))
	require.Equal(t, Never, r.Look(next, 7))
	// Its answer came before the hour was over but is settled only now: it counts
	// in the old one.
	late := now.after(30*time.Second, 0)
	spend(t, r, next, 1)
	r.Settle(now, late, 4, 4)
	require.Equal(t, next.Mono, r.Look(next, 9))
	require.Equal(t, int64(1), r.Usage(next).Used)
}

// TestCase23_OneReset: however many calls arrive at a reset, there is one.
func TestCase23_OneReset(t *testing.T) {
	for _, algorithm := range []provider.Algorithm{provider.FixedWindow, provider.SlidingWindowCounter} {
		r := hourly(t, algorithm)
		now := wall(t, "2024-05-01T10:30:00Z")
		spend(t, r, now, 10)
		reset := now.after(2*time.Hour, 0)
		var went int64
		for range 1000 {
			if r.Look(reset, 1) <= reset.Mono {
				r.Take(reset, 1)
				r.Settle(reset, reset, 1, 1)
				went++
			}
		}
		require.Equal(t, int64(10), went, algorithm)
	}
}

// TestAClockThatWaversAtAResetResetsOnce.
func TestAClockThatWaversAtAResetResetsOnce(t *testing.T) {
	for _, l := range []provider.Limit{
		{Max: 10, Per: "1h", Algorithm: provider.FixedWindow},
		{Max: 10, Per: "hour", Algorithm: provider.FixedWindow},
		{Max: 10, Per: "1h", Algorithm: provider.SlidingWindowCounter},
	} {
		r, err := New(l)
		require.NoError(t, err)
		now := wall(t, "2024-05-01T10:59:59.99Z")
		spend(t, r, now, 5)
		now = now.after(11*time.Millisecond, 0)
		spend(t, r, now, 3)
		for range 5 {
			now = now.after(time.Millisecond, -10*time.Millisecond) // before the hour
			require.Equal(t, int64(8), r.Usage(now).Used, "%v", l)
			require.Equal(t, now.Mono, r.Look(now, 2))
			require.Greater(t, r.Look(now, 3), now.Mono)
			spend(t, r, now, 1)
			r.Correct(now, now, -1)
			now = now.after(time.Millisecond, 10*time.Millisecond)
		}
		now = now.after(30*time.Minute, 0)
		want := int64(3)
		if l.Algorithm == provider.SlidingWindowCounter {
			want += 3 // half of 5
		}
		require.Equal(t, want, r.Usage(now).Used, "%v", l)
	}
}

// TestTheWallClockMayBeSetBack: what was charged under the wrong date counts under
// the corrected one, and the next reset is the corrected clock's.
func TestTheWallClockMayBeSetBack(t *testing.T) {
	r := hourly(t, provider.FixedWindow)
	wrong := wall(t, "2024-05-01T11:05:00Z") // it is 10:05
	spend(t, r, wrong, 6)
	right := wrong.after(time.Minute, -time.Hour)
	require.Equal(t, right.Mono, r.Look(right, 4))
	require.Equal(t, "2024-05-01T11:00:01Z", show(t, right, r.Look(right, 5), "UTC"))
	require.Equal(t, int64(6), r.Usage(right).Used)
	spend(t, r, right, 4)
	require.Equal(t, "2024-05-01T11:00:01Z", show(t, right, r.Look(right, 1), "UTC"))
	spend(t, r, right.after(55*time.Minute, 0), 10)
}

// TestTheWallClockMayBeSetForward: the reset that it skips is one, and what counts
// is found again when it was a mistake.
func TestTheWallClockMayBeSetForward(t *testing.T) {
	r := hourly(t, provider.FixedWindow)
	now := wall(t, "2024-05-01T10:05:00Z")
	spend(t, r, now, 6)
	ahead := now.after(time.Minute, 3*time.Hour)
	spend(t, r, ahead, 2)
	require.Equal(t, ahead.Mono, r.Look(ahead, 8))
	back := ahead.after(time.Minute, -3*time.Hour)
	require.Equal(t, int64(8), r.Usage(back).Used)
	require.Equal(t, back.Mono, r.Look(back, 2))
	require.Equal(t, "2024-05-01T11:00:01Z", show(t, back, r.Look(back, 3), "UTC"))
}

// TestAGiveBackFindsItsWindowAfterAStep: what was charged before a step of the
// clock is not taken from what was charged after it.
func TestAGiveBackFindsItsWindowAfterAStep(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, 3 * time.Hour, -time.Hour, -3 * time.Hour} {
		for _, algorithm := range []provider.Algorithm{provider.FixedWindow, provider.SlidingWindowCounter} {
			r, err := New(provider.Limit{Max: 10, Per: "1h", Algorithm: algorithm, Counted: provider.CountedSent})
			require.NoError(t, err)
			early := wall(t, "2024-05-01T10:35:00Z")
			r.Take(early, 3)
			later := early.after(time.Minute, step)
			r.Take(later, 4)
			r.GiveBack(early, later.after(time.Minute, 0), 3)
			require.Equal(t, int64(4), r.Usage(later.after(time.Minute, 0)).Used, "%s %s", algorithm, step)
			r.GiveBack(later, later.after(time.Minute, 0), 4)
			require.Zero(t, r.Usage(later.after(time.Minute, 0)).Used, "%s %s", algorithm, step)
		}
	}
}

// TestTheClockMayStepAtRandom: an hour either way at any time, no panic, nothing
// below 0, nothing for ever, and windows on the monotonic clock do not notice.
func TestTheClockMayStepAtRandom(t *testing.T) {
	for i, l := range small {
		for _, l := range []provider.Limit{l, sent(l)} {
			steady, err := New(l)
			require.NoError(t, err)
			stepped := steady.Fresh()
			rnd := newRand(uint64(i))
			mono, ahead := time.Duration(1000), time.Duration(0)
			for range 2000 {
				mono += below(rnd, 30)
				if rnd.IntN(10) == 0 {
					ahead = time.Duration(rnd.IntN(3)-1) * time.Hour
				}
				now := Now{Mono: mono, Wall: mono + wallAhead + ahead}
				free := stepped.Look(now, 1)
				if !stepped.Aligned() {
					require.Equal(t, steady.Look(at(mono), 1), free)
				}
				u := stepped.Usage(now)
				if free != Never && free > mono+3*stepped.spec.per+10 || u.Used < 0 || u.Used+u.Held > 2*l.Max+l.Burst {
					require.Fail(t, "out of bounds", "%v: free at %d, %+v at %d", l, free, u, mono)
				}
				if free > mono {
					continue
				}
				for _, r := range []*Rule{steady, stepped} {
					r.Take(now, 1)
					switch {
					case i%2 == 0:
						r.Settle(now, now.after(3, 0), 1, 1)
					default:
						r.Settle(now, now, 1, 1)
						r.Correct(now, now, -1)
						r.Correct(now, now, 1)
					}
				}
			}
		}
	}
}

// TestTheCountersEstimate is the field's example, to the nanosecond: 80 before, 50
// now, 40 s into 60 s is 76.67.
func TestTheCountersEstimate(t *testing.T) {
	r, err := New(provider.Limit{Max: 100, Per: "1m", Algorithm: provider.SlidingWindowCounter})
	require.NoError(t, err)
	now := wall(t, "2024-05-01T10:00:10Z")
	spend(t, r, now, 80)
	spend(t, r, now.after(85*time.Second, 0), 50)
	now = now.after(90*time.Second, 0)
	require.Equal(t, int64(77), r.Usage(now).Used)
	require.Equal(t, now.Mono, r.Look(now, 23))
	// 80 × (1 − e) + 50 + 24 ≤ 100 from e = 0.675 on: 500 ms later.
	require.Equal(t, now.Mono+500*time.Millisecond, r.Look(now, 24))
	// 50 + 51 is too much in this window; in the next one 50 × (1 − e) + 51 ≤ 100
	// from e = 0.02 on.
	require.Equal(t, "2024-05-01T10:02:01.2Z", show(t, now, r.Look(now, 51), "UTC"))
	require.Equal(t, "2024-05-01T10:03:00Z", show(t, now, r.Look(now, 100), "UTC"))
}

// TestBoundary is when an exhausted window opens, whether it is exhausted or not.
func TestBoundary(t *testing.T) {
	r := hourly(t, provider.FixedWindow)
	for _, date := range []string{"2024-05-01T10:20:00Z", "2024-05-01T10:59:59.9Z", "2024-05-01T11:00:00.5Z"} {
		now := wall(t, date)
		got, ok := r.Fresh().Boundary(now)
		require.True(t, ok)
		full := r.Fresh()
		spend(t, full, now, 10)
		require.Equal(t, full.Look(now, 1), got)
		again, _ := full.Boundary(now)
		require.Equal(t, got, again)
	}
	_, ok := newWindow(t, provider.Limit{Max: 1, Per: "1h"}).Boundary(at(1))
	require.False(t, ok)
}
