package redis

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
)

func specFor(t *testing.T, l provider.Limit) *spec {
	t.Helper()
	l.Name = "x"
	s := specOf(ledger.NewCounter("acme", l, "", ""))
	require.NoError(t, s.err)
	return s
}

func TestSpec(t *testing.T) {
	for text, l := range map[string]provider.Limit{
		"w 0 5 5 60000000 58594 -":                            {Max: 5, Per: "1m"},
		"w 1 5 5 60000000 58594 -":                            {Max: 5, Per: "1m", Algorithm: provider.SlidingLog},
		"w 0 5 5 1 1 -":                                       {Max: 5, Per: "1ns"}, // rounded up
		"w 0 4503599627370496 4503599627370496 1000000 977 -": {Max: 1<<63 - 1, Per: "1s"},
		"b 0 5 3 1000000 977 -":                               {Max: 5, Per: "1s", Burst: 3, Algorithm: provider.GCRA},
		"b 0 1 840 2678400000000 2615625000 -":                {Max: 1, Per: "744h", Burst: 1 << 40, Algorithm: provider.TokenBucket},
		"l 0 5 5 1000000 977 -":                               {Max: 5, Per: "1s", Algorithm: provider.LeakyBucket},
		"c 0 5 5 1000000 977 -":                               {Max: 5, Per: "1s", Algorithm: provider.SlidingWindowCounter},
		"n 0 5 5 0 0 -":                                       {Max: 5, Algorithm: provider.InFlight},
		"f 0 5 5 1000000 977 -":                               {Max: 5, Per: "1s", Algorithm: provider.FixedWindow},
		"f 0 5 5 333334 326 333333333ns++":                    {Max: 5, Per: "333333333ns", Algorithm: provider.FixedWindow},
		"f 0 5 5 86400000000 84375000 day+UTC+09%3A30":        {Max: 5, Per: provider.Day, Anchor: "09:30"},
	} {
		require.Equal(t, text, specFor(t, l).text)
	}
	wrong := specOf(ledger.NewCounter("acme", provider.Limit{Name: "x", Max: 0, Per: "1s"}, "", ""))
	require.ErrorContains(t, wrong.err, `redis: limit "x" of "acme"`)
}

// Bounds are where package limit has windows begin and end, on the days that clocks change,
// too.
func TestBounds(t *testing.T) {
	for _, l := range []provider.Limit{
		{Max: 1, Per: provider.Minute, Anchor: "30s"}, {Max: 1, Per: provider.Hour, Zone: "Australia/Lord_Howe", Anchor: "15m"},
		{Max: 1, Per: provider.Day, Zone: "Europe/Berlin", Anchor: "02:30"}, {Max: 1, Per: provider.Day, Zone: "America/Sao_Paulo"},
		{Max: 1, Per: provider.Month, Zone: "Asia/Tokyo", Anchor: "31 23:59"}, {Max: 1, Per: "333333333ns", Algorithm: provider.FixedWindow},
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		s := specFor(t, l)
		l.Name = "x"
		rule, err := limit.New(l)
		require.NoError(t, err)
		for range 60 {
			at := time.Duration(rng.Int64N(3e18))
			if rng.IntN(2) == 0 { // near a change
				at = time.Duration(time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC).UnixNano() + rng.Int64N(5e13))
			}
			var b []int64
			for _, x := range numbersOf(t, s.bounds(time.Unix(0, int64(at)))) {
				b = append(b, x*1000)
			}
			require.Len(t, b, 5)
			require.LessOrEqual(t, b[1], int64(at)+999)
			require.Greater(t, b[2], int64(at))
			for i := range 4 {
				opens, _ := rule.Boundary(limit.Now{Wall: time.Duration(b[i]), Mono: time.Duration(b[i])})
				require.Greater(t, b[i+1], b[i])
				require.LessOrEqual(t, b[i+1], int64(opens)+999)
				require.LessOrEqual(t, int64(opens), b[i+1]+int64(time.Second))
				before, _ := rule.Boundary(limit.Now{Wall: time.Duration(b[i+1] - 1000), Mono: time.Duration(b[i+1] - 1000)})
				after, _ := rule.Boundary(limit.Now{Wall: time.Duration(b[i+1]), Mono: time.Duration(b[i+1])})
				require.Equal(t, opens, before, "the same window up to the bound")
				require.Greater(t, after, opens, "another one from the bound on")
			}
		}
	}
}

func numbersOf(t *testing.T, text string) []int64 {
	t.Helper()
	r := []int64{}
	for _, w := range strings.Fields(text) {
		var n int64
		for _, c := range w {
			require.True(t, '0' <= c && c <= '9', text)
			n = 10*n + int64(c-'0')
		}
		r = append(r, n)
	}
	return r
}

// A client that does not know the server's date is told, and sends other windows.
func TestCalendarOfAnotherClock(t *testing.T) {
	srv, c := clockwork(t, "redis-server")
	c.step(t, -100*24*time.Hour)
	s := open(t, srv.url(""))
	a := hand{t: t, s: s, name: "a"}
	l := ledger.NewCounter("acme", provider.Limit{Name: "day", Max: 2, Per: provider.Day}, "", "")
	a.settle(a.take(l, 2).granted())
	require.LessOrEqual(t, a.take(l, 1).refused().Wait, 25*time.Hour)
}

func TestHeard(t *testing.T) {
	var h heard
	now := started.Add(time.Hour)
	require.Zero(t, h.least(now))
	require.Equal(t, ruler{now: now}, h.ruler(now))
	h.told(5_000_000_000, now.Add(-10*time.Millisecond), now) // it may be ahead by 10 ms less
	require.EqualValues(t, 5_000_000_000, h.least(now))
	require.EqualValues(t, 5_000_999_000, h.least(now.Add(time.Second)))
	require.EqualValues(t, 5_000_010_000, h.ruler(now).at(now))
	require.EqualValues(t, 4_999_010_000, h.ruler(now).at(now.Add(-time.Second)))
	now = now.Add(time.Second)
	h.told(5_001_000_000, now.Add(-time.Millisecond), now) // a quicker answer knows better
	require.EqualValues(t, 5_001_001_000, h.ruler(now).at(now))
	h.told(5_001_000_500, now.Add(-time.Second), now) // a slower one does not
	require.EqualValues(t, 5_001_001_000, h.ruler(now).at(now))
	h.told(6_000_000_000, now.Add(-time.Second), now) // but the clock has been set forward
	require.EqualValues(t, 6_001_000_000, h.ruler(now).at(now))
}
