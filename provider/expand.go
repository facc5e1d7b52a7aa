package provider

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"time"
)

// Expand writes the short form out and returns every limit of t, in this order:
// "rps", "rpm", "rph" and "rpd" as far as given, "burst", "max_in_flight", then
// Limits. Each has its defaults filled in and its aliases resolved, as
// [Limit.WithDefaults] does, and shares no memory with t.
//
//   - Of the rates given, the one with the shortest period is shaped by
//     Algorithm and Burst. Each of the others is a ceiling: an exact sliding
//     window, counted at the answer.
//   - Burst is the capacity of a token_bucket (default N), how many may wait
//     under reject for a leaky_bucket (default 0), and for the window algorithms
//     a further ceiling of so many in any second.
//   - A rate R is N = ⌊R⌋, at least 1, per N/R of its period, rounded up to the
//     nanosecond: 0.5 a second is 1 per 2s, 2.5 a second 2 per 800ms. R counts as
//     the shortest decimal that names it, so 0.1 a second is exactly 1 per 10s.
//
// The error is that of [Throttle.Validate].
func (t Throttle) Expand() ([]Limit, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	limits := append(t.short(), t.Limits...)
	for i, l := range limits {
		l.Endpoints, l.Charges, l.Keys = slices.Clone(l.Endpoints), slices.Clone(l.Charges), maps.Clone(l.Keys)
		limits[i] = l.WithDefaults()
	}
	return limits, nil
}

// rate is one of the short form's rates.
type rate struct {
	key    string
	value  float64
	period time.Duration
}

func (t Throttle) rates() []rate { // by period: the first that is given is shaped
	return []rate{
		{"rps", t.RPS, time.Second},
		{"rpm", t.RPM, time.Minute},
		{"rph", t.RPH, time.Hour},
		{"rpd", t.RPD, 24 * time.Hour},
	}
}

// short returns the limits of the short form, leaving out what is not valid.
func (t Throttle) short() []Limit {
	var limits []Limit
	for _, r := range t.rates() {
		n, per, problem := r.limit()
		if r.value == 0 || problem != "" {
			continue
		}
		l := Limit{Name: r.key, Max: n, Per: Period(durationText(per))}
		if len(limits) == 0 {
			l.Algorithm = t.Algorithm
			if l.hasBurst() {
				l.Burst = t.Burst
			}
		}
		limits = append(limits, l)
	}
	if len(limits) > 0 && t.Burst > 0 && !limits[0].hasBurst() {
		limits = append(limits, Limit{Name: "burst", Max: t.Burst, Per: "1s"})
	}
	if t.MaxInFlight > 0 {
		limits = append(limits, Limit{Name: "max_in_flight", Max: int64(t.MaxInFlight), Algorithm: InFlight})
	}
	return limits
}

// hasBurst tells whether the limit's algorithm knows a burst.
func (l Limit) hasBurst() bool {
	a := l.algorithm()
	return a == TokenBucket || a == LeakyBucket
}

// limit turns a rate into n per so long, or says what is wrong with it. It goes
// through the decimal that the number was written as: as a binary fraction 0.1
// is a little more, and a period one nanosecond off would never be noticed until
// two limits that should agree do not.
func (r rate) limit() (n int64, per time.Duration, problem string) {
	switch {
	case math.IsNaN(r.value) || math.IsInf(r.value, 0):
		return 0, 0, "must be a number"
	case r.value < 0:
		return 0, 0, fmt.Sprintf("%v is negative: write a number above 0, or leave it out", r.value)
	case r.value == 0:
		return 0, 0, ""
	case r.value >= math.MaxInt64:
		return 0, 0, fmt.Sprintf("%v is too large: it must be below %v", r.value, float64(math.MaxInt64))
	}
	exact, _ := new(big.Rat).SetString(strconv.FormatFloat(r.value, 'g', -1, 64))
	whole := new(big.Int).Quo(exact.Num(), exact.Denom())
	if whole.Sign() == 0 {
		whole.SetInt64(1)
	}
	length := new(big.Rat).SetFrac(new(big.Int).Mul(whole, big.NewInt(int64(r.period))), big.NewInt(1))
	length.Quo(length, exact)
	ns, rest := new(big.Int).QuoRem(length.Num(), length.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		ns.Add(ns, big.NewInt(1))
	}
	if ns.Cmp(big.NewInt(int64(maxPeriod))) > 0 {
		return 0, 0, fmt.Sprintf("%v is less than one in 744h: write a limit with per: month", r.value)
	}
	return whole.Int64(), time.Duration(ns.Int64()), ""
}
