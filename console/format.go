package console

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// count is a number with its thousands apart: 15,500.
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

// short is a number where there is little room: exact below 100,000, then 123k, 1.5M, 2G.
func short(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n >= 100_000 && n >= unit.size {
			x := float64(n) / float64(unit.size)
			if x >= 100 {
				return trim(x, 0) + unit.name
			}
			return trim(x, 1) + unit.name
		}
	}
	return count(n)
}

// plural is "1 call", "2 calls".
func plural(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return count(n) + " " + noun
}

// words is an outcome or a reason for people: "rate limited".
func words[T ~string](s T) string { return strings.ReplaceAll(string(s), "_", " ") }

// span is a length of time in seconds, as exact as matters: "340 ms", "12 s",
// "4 min 10 s", "27 min", "2 h 5 min", "3 d 4 h".
func span(secs float64) string {
	if math.IsNaN(secs) || secs < 0 {
		secs = 0
	}
	switch s := int64(math.Round(secs)); {
	case secs < 0.0005:
		return "0 s"
	case secs < 1:
		return strconv.Itoa(int(math.Round(secs*1000))) + " ms"
	case secs < 10 && secs != math.Trunc(secs):
		return strconv.FormatFloat(secs, 'f', 1, 64) + " s"
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return two(s/60, "min", s%60, "s")
	case s < 86400:
		return two(s/3600, "h", s%3600/60, "min")
	default:
		return two(s/86400, "d", s%86400/3600, "h")
	}
}

func two(a int64, unitA string, b int64, unitB string) string {
	if b == 0 || a >= 10 {
		return fmt.Sprintf("%d %s", a, unitA)
	}
	return fmt.Sprintf("%d %s %d %s", a, unitA, b, unitB)
}

// perSecond is a rate: "4.2/s"; below one a second, by the minute.
func perSecond(rate float64) string {
	switch {
	case rate <= 0:
		return "0"
	case rate < 1:
		return trim(rate*60, 1) + "/min"
	case rate < 100:
		return trim(rate, 1) + "/s"
	default:
		return count(int64(math.Round(rate))) + "/s"
	}
}

func trim(x float64, digits int) string {
	return strings.TrimSuffix(strconv.FormatFloat(x, 'f', digits, 64), ".0")
}

// percent is a share: "2 %"; what is not nothing is not called 0 %.
func percent(share float64) string {
	if share > 0 && share < 0.01 {
		return "< 1 %"
	}
	return strconv.Itoa(int(math.Round(share*100))) + " %"
}

// clock is an instant in UTC: its time of day, with the date where that is another
// day's.
func clock(t time.Time) string {
	if away := time.Until(t).Abs(); away > 18*time.Hour {
		return t.UTC().Format("Jan 2 15:04")
	}
	return t.UTC().Format("15:04:05")
}

// per is a limit's window for people: "per minute", "per 30 s"; "at once".
func per(period string) string {
	switch period {
	case "":
		return "at once"
	case "minute", "hour", "day", "month":
		return "per " + period
	}
	switch d, err := time.ParseDuration(period); {
	case err != nil:
		return "per " + period
	case d == time.Second:
		return "per second"
	case d == time.Minute:
		return "per minute"
	case d == time.Hour:
		return "per hour"
	case d == 24*time.Hour:
		return "per day"
	default:
		return "per " + span(d.Seconds())
	}
}
