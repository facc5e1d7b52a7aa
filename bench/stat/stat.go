// Package stat has the few statistics that the benchmarks need.
package stat

import (
	"cmp"
	"math"
	"slices"
)

// Median returns the middle of xs, between two the mean of both; NaN of none.
// It leaves xs as it is.
func Median(xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(xs))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Ratio returns the median of a over b, run by run: what slows a machine down for a
// while slows both down. It is NaN unless both have the same runs, at least one.
func Ratio(a, b []float64) float64 {
	if len(a) != len(b) {
		return math.NaN()
	}
	r := make([]float64, len(a))
	for i := range a {
		r[i] = a[i] / b[i]
	}
	return Median(r)
}

// Quantile returns the smallest of the sorted values that at least a share p of them
// does not exceed; the zero value of none.
func Quantile[T cmp.Ordered](sorted []T, p float64) (q T) {
	if len(sorted) == 0 {
		return q
	}
	i := int(math.Ceil(p*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
