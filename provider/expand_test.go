package provider

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// defaults are what every expanded limit has unless it says otherwise.
func defaults(l Limit) Limit {
	l.Counted, l.Unit, l.Scope, l.Basis = CountedAnswered, Requests, ScopeProvider, BasisProvider
	return l
}

func TestExpandTheFieldsOwnTables(t *testing.T) {
	for _, c := range []struct {
		name string
		t    Throttle
		want []Limit
	}{
		{"shodan: spaced 1s, at most 30 a minute, 3 may wait", Throttle{RPS: 1, RPM: 30, Burst: 3, Algorithm: LeakyBucket}, []Limit{
			defaults(Limit{Name: "rps", Max: 1, Per: "1s", Burst: 3, Algorithm: LeakyBucket}),
			defaults(Limit{Name: "rpm", Max: 30, Per: "1m", Algorithm: SlidingWindow}),
		}},
		{"600 a minute, capacity 50", Throttle{RPM: 600, Burst: 50, Algorithm: TokenBucket}, []Limit{
			defaults(Limit{Name: "rpm", Max: 600, Per: "1m", Burst: 50, Algorithm: TokenBucket}),
		}},
		{"60 a minute, 10 in any second", Throttle{RPM: 60, Burst: 10, Algorithm: SlidingWindow}, []Limit{
			defaults(Limit{Name: "rpm", Max: 60, Per: "1m", Algorithm: SlidingWindow}),
			defaults(Limit{Name: "burst", Max: 10, Per: "1s", Algorithm: SlidingWindow}),
		}},
		{"5 a minute, one in 12s", Throttle{RPM: 5, Burst: 1, Algorithm: LeakyBucket}, []Limit{
			defaults(Limit{Name: "rpm", Max: 5, Per: "1m", Burst: 1, Algorithm: LeakyBucket}),
		}},
	} {
		got, err := c.t.Expand()
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, got, c.name)
	}
}

func TestExpandShapes(t *testing.T) {
	sliding := func(name string, n int64, per Period) Limit {
		return defaults(Limit{Name: name, Max: n, Per: per, Algorithm: SlidingWindow})
	}
	sent := sliding("rps", 2, "1s")
	sent.Counted = CountedSent
	for _, c := range []struct {
		name string
		t    Throttle
		want []Limit
	}{
		{"nothing", Throttle{}, nil},
		{"the default is an exact window", Throttle{RPS: 2}, []Limit{sliding("rps", 2, "1s")}},
		{"all rates, by period, the others as ceilings", Throttle{RPD: 500, RPH: 200, RPM: 100, RPS: 10, Algorithm: TokenBucket}, []Limit{
			defaults(Limit{Name: "rps", Max: 10, Per: "1s", Burst: 10, Algorithm: TokenBucket}),
			sliding("rpm", 100, "1m"), sliding("rph", 200, "1h"), sliding("rpd", 500, "24h"),
		}},
		{"the shortest given is shaped", Throttle{RPH: 100, RPD: 1000, Algorithm: FixedWindow}, []Limit{
			defaults(Limit{Name: "rph", Max: 100, Per: "1h", Algorithm: FixedWindow}), sliding("rpd", 1000, "24h"),
		}},
		{"the shortest by its name, however slow", Throttle{RPS: 0.001, RPM: 60, Algorithm: LeakyBucket}, []Limit{
			defaults(Limit{Name: "rps", Max: 1, Per: "16m40s", Algorithm: LeakyBucket}), sliding("rpm", 60, "1m"),
		}},
		{"gcra is a bucket", Throttle{RPS: 2, Burst: 4, Algorithm: GCRA}, []Limit{
			defaults(Limit{Name: "rps", Max: 2, Per: "1s", Burst: 4, Algorithm: TokenBucket}),
		}},
		{"a log is a window counted sent; its ceilings are not", Throttle{RPS: 2, RPM: 60, Burst: 1, Algorithm: SlidingLog}, []Limit{
			sent, sliding("rpm", 60, "1m"), sliding("burst", 1, "1s"),
		}},
		{"burst with the other windows", Throttle{RPM: 60, Burst: 2, Algorithm: SlidingWindowCounter}, []Limit{
			defaults(Limit{Name: "rpm", Max: 60, Per: "1m", Algorithm: SlidingWindowCounter}), sliding("burst", 2, "1s"),
		}},
		{"cap, then limits in their order, filled in", Throttle{MaxInFlight: 3, Limits: []Limit{
			{Name: "b", Max: 1, Per: Day, Scope: ScopeKey, Unit: Credits, Basis: BasisAssumed},
			{Name: "a", Max: 2, Per: "1s", Algorithm: GCRA, Counted: CountedSent},
			{Name: "c", Max: 2, Algorithm: InFlight},
		}}, []Limit{
			defaults(Limit{Name: "max_in_flight", Max: 3, Algorithm: InFlight}),
			{Name: "b", Max: 1, Per: Day, Zone: "UTC", Algorithm: FixedWindow, Counted: CountedAnswered, Unit: Credits, Scope: ScopeKey, Basis: BasisAssumed},
			{Name: "a", Max: 2, Per: "1s", Burst: 2, Algorithm: TokenBucket, Counted: CountedSent, Unit: Requests, Scope: ScopeProvider, Basis: BasisProvider},
			defaults(Limit{Name: "c", Max: 2, Algorithm: InFlight}),
		}},
		{"short form, burst, cap, limits", Throttle{RPS: 1, Burst: 1, MaxInFlight: 1, Limits: []Limit{{Name: "a", Max: 1, Per: "2s"}}}, []Limit{
			sliding("rps", 1, "1s"), sliding("burst", 1, "1s"), defaults(Limit{Name: "max_in_flight", Max: 1, Algorithm: InFlight}), sliding("a", 1, "2s"),
		}},
	} {
		got, err := c.t.Expand()
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, got, c.name)
	}
}

func TestExpandRates(t *testing.T) {
	for _, c := range []struct {
		t   Throttle
		n   int64
		per time.Duration
	}{
		{Throttle{RPS: 0.5}, 1, 2 * time.Second},
		{Throttle{RPS: 2.5}, 2, 800 * time.Millisecond},
		{Throttle{RPS: 0.1}, 1, 10 * time.Second},
		{Throttle{RPS: 0.3}, 1, 3333333334},
		{Throttle{RPS: 1.0 / 3}, 1, 3000000001}, // its shortest decimal is a little below a third
		{Throttle{RPS: 1.1}, 1, 909090910},
		{Throttle{RPS: 0.7}, 1, 1428571429},
		{Throttle{RPS: 0.8}, 1, 1250 * time.Millisecond},
		{Throttle{RPS: 0.0032}, 1, 312500 * time.Millisecond},
		{Throttle{RPM: 0.6}, 1, 100 * time.Second},
		{Throttle{RPM: 7}, 7, time.Minute},
		{Throttle{RPH: 1.5}, 1, 40 * time.Minute},
		{Throttle{RPD: 1.0 / 31}, 1, 31*24*time.Hour - 0}, // 0.03225806451612903: see the next row
		{Throttle{RPD: 0.5}, 1, 48 * time.Hour},
		{Throttle{RPS: 1e9}, 1e9, time.Second},
		{Throttle{RPS: 9.2e18}, 9.2e18, time.Second},
		{Throttle{RPS: 1e15 + 0.5}, 1e15, time.Second}, // rounded up to the nanosecond
	} {
		if c.t.RPD == 1.0/31 {
			_, err := c.t.Expand()
			assert.ErrorContains(t, err, "rpd: 0.03225806451612903 is less than one in 744h")
			continue
		}
		got, err := c.t.Expand()
		require.NoError(t, err, "%+v", c.t)
		require.Len(t, got, 1)
		per, calendar := got[0].Per.Duration()
		assert.False(t, calendar)
		assert.Equal(t, c.n, got[0].Max, "%+v", c.t)
		assert.Equal(t, c.per, per, "%+v", c.t)
	}
}

// A rate with few decimals, as people write them, comes out exactly: never
// faster than it says, and slower by less than a nanosecond.
func TestExpandRatesAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := fmt.Sprintf("%d.%0*d", rapid.Int64Range(0, 1e6).Draw(t, "whole"), rapid.IntRange(1, 4).Draw(t, "places"), rapid.Int64Range(1, 9).Draw(t, "digit"))
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		limits, err := Throttle{RPM: value}.Expand()
		if err != nil {
			t.Fatal(err)
		}
		d, _ := limits[0].Per.Duration()
		r, _ := new(big.Rat).SetString(text)
		exact := new(big.Rat).Mul(big.NewRat(limits[0].Max, 1), big.NewRat(int64(time.Minute), 1)) // n × period
		told := new(big.Rat).Mul(r, new(big.Rat).SetInt64(int64(d)))                               // rate × per
		if told.Cmp(exact) < 0 {
			t.Fatalf("%s a minute is too fast: %d per %v", text, limits[0].Max, d)
		}
		if told.Sub(told, r).Cmp(exact) >= 0 {
			t.Fatalf("%s a minute is slower than it must be: %d per %v", text, limits[0].Max, d)
		}
		if whole := int64(math.Floor(value)); limits[0].Max != max(whole, 1) {
			t.Fatalf("%s a minute lets %d go at once", text, limits[0].Max)
		}
	})
}

func TestExpandRefusesWhatIsInvalid(t *testing.T) {
	limits, err := Throttle{RPS: -1, Limits: []Limit{{Name: "a"}}}.Expand()
	assert.Nil(t, limits)
	assert.ErrorContains(t, err, "rps: -1 is negative")
	assert.ErrorContains(t, err, "limits[0].max: 0 is too small")
}

func TestExpandSharesNothing(t *testing.T) {
	given := Throttle{Limits: []Limit{{Name: "a", Max: 1, Per: "1s", Endpoints: []string{"x"}, Charges: []Outcome{OK}}}}
	got, err := given.Expand()
	require.NoError(t, err)
	got[0].Endpoints[0], got[0].Charges[0] = "y", Failed
	got[0].Name = "b"
	assert.Equal(t, Limit{Name: "a", Max: 1, Per: "1s", Endpoints: []string{"x"}, Charges: []Outcome{OK}}, given.Limits[0])
}

// What Expand returns is a throttle again: the same limits, and valid.
func TestExpandOnceIsEnough(t *testing.T) {
	first, err := completeValue().Throttle.Expand()
	require.NoError(t, err)
	again, err := Throttle{Limits: first}.Expand()
	require.NoError(t, err)
	assert.Equal(t, first, again)
}
