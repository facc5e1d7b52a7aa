package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// percentile is the nearest-rank one of sorted values; 0 where there are none.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(float64(p) / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// percent rounds down: 100 % is all of it. It is never more: a run that meets the
// end of a real provider's calendar period can beat an ideal that counts periods
// from its own begin.
func percent(part, whole time.Duration) string {
	if whole <= 0 {
		return "–"
	}
	return fmt.Sprintf("%d %%", int64(float64(min(part, whole))*100/float64(whole)))
}

// short writes a duration with three digits or so.
func short(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + "s"
	}
	return d.Round(time.Second).String()
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// align writes a table: the first and the last column to the left, numbers to the
// right.
func align(w io.Writer, table [][]string) {
	write(w, table, func(i, last int) bool { return i == 0 || i == last })
}

// columns writes a table of texts, all to the left.
func columns(w io.Writer, table [][]string) {
	write(w, table, func(int, int) bool { return true })
}

func write(w io.Writer, table [][]string, left func(i, last int) bool) {
	widths := make([]int, len(table[0]))
	for _, cells := range table {
		for i, c := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for _, cells := range table {
		var b strings.Builder
		for i, c := range cells {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if i > 0 {
				b.WriteString("  ")
			}
			switch last := len(cells) - 1; {
			case i == last:
				b.WriteString(c)
			case left(i, last):
				b.WriteString(c + space)
			default:
				b.WriteString(space + c)
			}
		}
		fmt.Fprintln(w, b.String())
	}
}
