package limit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

// simulate is what When estimates: everything held is settled now, then n calls of
// one unit go as soon as they may, each settled at once. The instant of each.
func simulate(r *Rule, now time.Duration, n int) []time.Duration {
	r = clone(r)
	r.Settle(at(now), at(now), r.held, r.held)
	went := make([]time.Duration, n)
	for i := range went {
		now = max(now, r.Look(at(now), 1))
		r.Take(at(now), 1)
		r.Settle(at(now), at(now), 1, 1)
		went[i] = now
	}
	return went
}

// TestWhenIsWhatHappens: after any history When is the very instant for windows
// and buckets, and never later than it for a leaky bucket.
func TestWhenIsWhatHappens(t *testing.T) {
	for i, l := range small {
		for _, l := range []provider.Limit{l, sent(l)} {
			t.Run(fmt.Sprintf("%s %d per %s %s", l.Algorithm, l.Max, l.Per, l.Counted), func(t *testing.T) {
				for seed := range uint64(60) {
					rnd := rand.New(rand.NewPCG(seed, uint64(i)))
					p := newPlay(t, l)
					for range 1 + rnd.IntN(30) {
						p.step(byte(rnd.Uint32()), byte(rnd.Uint32()))
					}
					for k, want := range simulate(p.rule, p.now, 40) {
						got := p.rule.When(at(p.now), int64(k+1))
						require.LessOrEqual(t, got, want, "call %d from %d", k+1, p.now)
						switch per, _ := l.Per.Duration(); {
						case l.Algorithm == provider.LeakyBucket:
						case l.Algorithm == provider.TokenBucket && l.Max > int64(per):
							// More than one unit a nanosecond: the bucket is full between two ticks.
							require.LessOrEqual(t, want-got, time.Duration(k+1))
						default:
							require.Equal(t, want, got, "call %d from %d", k+1, p.now)
						}
					}
				}
			})
		}
	}
}

// TestWhenOfALeakyBucketIsNotEarly: with calls under way and behind, it is true to
// a nanosecond a call as long as no unit is held up that the estimate does not see.
func TestWhenOfALeakyBucketIsNotEarly(t *testing.T) {
	for _, l := range []provider.Limit{
		{Max: 60, Per: "1m", Algorithm: provider.LeakyBucket},
		{Max: 7, Per: "1s", Algorithm: provider.LeakyBucket},
		{Max: 300, Per: "1m", Algorithm: provider.LeakyBucket},
	} {
		for _, late := range []time.Duration{0, 3, 30} { // tenths of an interval, at each call
			r, err := New(l)
			require.NoError(t, err)
			step := interval(r.spec, 1)
			now := time.Minute
			for range 100 {
				now = max(now, r.Look(at(now), 1)) + late*step/10
				if r.Look(at(now), 1) > now {
					continue
				}
				r.Take(at(now), 1)
				r.Settle(at(now), at(now), 1, 1)
			}
			for k, want := range simulate(r, now, 1000) {
				got := r.When(at(now), int64(k+1))
				require.LessOrEqual(t, got, want)
				require.LessOrEqual(t, want-got, time.Duration(k)+3*step, "call %d of %v, %d/10 late", k+1, l, late)
			}
		}
	}
}

// TestWhenAcrossCalendarPeriods counts whole months and days, and the days on
// which the clock changes.
func TestWhenAcrossCalendarPeriods(t *testing.T) {
	r, err := New(provider.Limit{Max: 10, Per: "month", Zone: "America/New_York", Algorithm: provider.FixedWindow})
	require.NoError(t, err)
	now := wall(t, "2024-01-30T12:00:00-05:00")
	r.Take(now, 4)
	r.Settle(now, now, 4, 4)
	for n, want := range map[int64]string{
		6:  "2024-01-30T12:00:00-05:00",
		7:  "2024-02-01T00:00:01-05:00",
		16: "2024-02-01T00:00:01-05:00",
		17: "2024-03-01T00:00:01-05:00",
		27: "2024-04-01T00:00:01-04:00",
	} {
		require.Equal(t, want, show(t, now, r.When(now, n), "America/New_York"), "%d more", n)
	}
	// A batch of 386 with 240 left: 240 start, the rest is told its day.
	day, err := New(provider.Limit{Max: 500, Per: "day", Zone: "America/New_York", Algorithm: provider.FixedWindow})
	require.NoError(t, err)
	day.Take(now, 260)
	day.Settle(now, now, 260, 260)
	require.Equal(t, now.Mono, day.When(now, 240))
	require.Equal(t, "2024-01-31T00:00:01-05:00", show(t, now, day.When(now, 241), "America/New_York"))
	require.Equal(t, "2024-01-31T00:00:01-05:00", show(t, now, day.When(now, 386), "America/New_York"))
}

// TestWhenSaturates: any n has an answer, in no time, and none is before another.
func TestWhenSaturates(t *testing.T) {
	limits := append([]provider.Limit{
		{Max: math.MaxInt64, Per: "1s", Algorithm: provider.SlidingWindow},
		{Max: math.MaxInt64, Per: "1ns", Algorithm: provider.SlidingWindowCounter},
		{Max: 1, Per: "744h", Algorithm: provider.SlidingWindowCounter},
		{Max: math.MaxInt64, Per: "744h", Algorithm: provider.TokenBucket},
		{Max: 1, Per: "744h", Algorithm: provider.LeakyBucket},
		{Max: 1, Per: "month", Algorithm: provider.FixedWindow},
		{Max: 1, Per: "day", Zone: "Europe/Berlin", Algorithm: provider.FixedWindow},
		{Max: 1, Per: "hour", Zone: "Australia/Lord_Howe", Algorithm: provider.FixedWindow},
	}, small...)
	for _, l := range limits {
		r, err := New(l)
		require.NoError(t, err)
		last := time.Duration(0)
		for n := int64(1); n > 0; n *= 3 {
			got := r.When(at(1000), n)
			require.GreaterOrEqual(t, got, last, "%d of %v", n, l)
			last = got
		}
		require.GreaterOrEqual(t, r.When(at(1000), math.MaxInt64), last)
	}
}
