package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Number shows three digits that count, thousands apart.
func Number(v float64) string {
	a := math.Abs(v)
	switch {
	case a == 0:
		return "0"
	case a < 0.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a < 99.95:
		return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	}
	return thousands(strconv.FormatFloat(v, 'f', 0, 64))
}

func thousands(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Percent shows a share. What is not nothing is not shown as 0.
func Percent(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 0.0005:
		return "< 0.1 %"
	case v < 0.0995:
		return fmt.Sprintf("%.1f %%", 100*v)
	}
	return fmt.Sprintf("%.0f %%", 100*v)
}

// Three shows a share with three places.
func Three(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

// Seconds shows a wait.
func Seconds(v float64) string {
	switch {
	case v < 0.0005:
		return "0"
	case v < 0.9995:
		return fmt.Sprintf("%.0f ms", 1000*v)
	case v < 99.95:
		return fmt.Sprintf("%.1f s", v)
	case v < 7200:
		return thousands(strconv.FormatFloat(v, 'f', 0, 64)) + " s"
	}
	return fmt.Sprintf("%.1f h", v/3600)
}

// Target is one thing that must hold.
type Target struct {
	Name     string
	Measured string
	Holds    bool
	Known    bool // false: it was not measured
}

// Verdict says whether it holds.
func (t Target) Verdict() string {
	switch {
	case !t.Known:
		return "not measured"
	case t.Holds:
		return "holds"
	}
	return "**does not hold**"
}
