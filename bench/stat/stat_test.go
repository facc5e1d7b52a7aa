package stat

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	xs := []float64{3, 1, 2}
	require.Equal(t, 2.0, Median(xs))
	require.Equal(t, []float64{3, 1, 2}, xs, "it must not sort what it was given")
	require.Equal(t, 2.5, Median([]float64{4, 1, 2, 3}))
	require.True(t, math.IsNaN(Median(nil)))
}

func TestRatioIsOfRunsThatBelongTogether(t *testing.T) {
	// The second run was five times as slow for both.
	require.Equal(t, 2.0, Ratio([]float64{2, 10, 2}, []float64{1, 5, 1}))
	require.Equal(t, 2.0, Ratio([]float64{2, 10, 3}, []float64{1, 2, 3}), "not that of the medians")
	require.Equal(t, 0.5, Ratio([]float64{1}, []float64{2}))
	require.True(t, math.IsNaN(Ratio([]float64{1}, []float64{1, 2})))
	require.True(t, math.IsNaN(Ratio(nil, nil)))
}

func TestQuantile(t *testing.T) {
	var hundred []int
	for i := range 100 {
		hundred = append(hundred, i+1)
	}
	for p, want := range map[float64]int{0: 1, 0.005: 1, 0.01: 1, 0.011: 2, 0.5: 50, 0.99: 99, 1: 100} {
		require.Equal(t, want, Quantile(hundred, p), p)
	}
	require.Equal(t, 7, Quantile([]int{7}, 0.99))
	require.Zero(t, Quantile([]int(nil), 0.5))
}
