package limit

import (
	"math"
	"math/bits"
	"time"
)

// add is a+b, kept at the ends of the range.
func add[T ~int64](a, b T) T {
	sum := a + b
	if (a^sum)&(b^sum) < 0 {
		if a < 0 {
			return math.MinInt64
		}
		return math.MaxInt64
	}
	return sum
}

// sub is a-b, kept at the ends of the range.
func sub[T ~int64](a, b T) T {
	diff := a - b
	if (a^b)&(a^diff) < 0 {
		if a < 0 {
			return math.MinInt64
		}
		return math.MaxInt64
	}
	return diff
}

// divide is a×b/c in 128 bits: quotient and remainder, at most MaxInt64 with
// remainder 0. None of a, b is below 0; c is above 0.
func divide(a, b, c int64) (quo, rem int64) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64, 0
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	if q > math.MaxInt64 {
		return math.MaxInt64, 0
	}
	return int64(q), int64(r)
}

// down is a×b/c rounded down; up is rounded up.
func down(a, b, c int64) int64 {
	q, _ := divide(a, b, c)
	return q
}

func up(a, b, c int64) int64 {
	q, r := divide(a, b, c)
	if r > 0 && q < math.MaxInt64 {
		q++
	}
	return q
}

// times is d×n, at most MaxInt64. Neither is below 0.
func times(d time.Duration, n int64) time.Duration {
	return time.Duration(down(int64(d), n, 1))
}

// floor is the largest multiple of step at or below t; ceil the least at or
// above it.
func floor(t, step time.Duration) time.Duration {
	return t - mod(t, step)
}

func ceil(t, step time.Duration) time.Duration {
	if rest := mod(t, step); rest > 0 {
		return add(t, step-rest)
	}
	return t
}

// mod is the remainder in [0, step), below 0 too.
func mod(t, step time.Duration) time.Duration {
	rest := t % step
	if rest < 0 {
		rest += step
	}
	return rest
}
