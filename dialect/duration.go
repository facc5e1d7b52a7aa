package dialect

import (
	"regexp"
	"strings"
	"time"
)

// units are how providers write a unit of time, and time.ParseDuration's name of
// it. The letters are not folded: an M is a month to some.
var units = map[string]string{
	"ns": "ns", "us": "us", "µs": "us", "μs": "us",
	"ms": "ms", "msec": "ms", "millisecond": "ms", "milliseconds": "ms",
	"s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
	"m": "m", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
	"h": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
	"d": "d", "day": "d", "days": "d",
}

var (
	part  = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([a-zµμ]+)(?:,? ?(?:and )?)`)
	clock = regexp.MustCompile(`^([0-9]{1,4}):([0-5][0-9]):([0-5][0-9])(\.[0-9]+)?$`)
)

// duration reads 6m0s, 12ms, 45.837906927s, 1h2m, 1d, "2 hours, 3 minutes" and
// 00:12:34. A number without a unit is none.
func duration(value string) (time.Duration, bool) {
	if m := clock.FindStringSubmatch(value); m != nil {
		return duration(m[1] + "h" + m[2] + "m" + m[3] + m[4] + "s")
	}
	var sum time.Duration
	for rest := value; rest != ""; {
		m := part.FindStringSubmatch(rest)
		if m == nil {
			return 0, false
		}
		d, ok := oneUnit(m[1], units[m[2]])
		if !ok {
			return 0, false
		}
		// Without overflow: 100 characters hold 20 parts of ten years at most.
		sum, rest = sum+d, strings.TrimSpace(rest[len(m[0]):])
	}
	return sum, value != ""
}

// oneUnit is n of a unit, at most longest.
func oneUnit(n, unit string) (time.Duration, bool) {
	times := time.Duration(1)
	switch unit {
	case "":
		return 0, false
	case "d":
		unit, times = "h", 24
	}
	d, ok := number(n, unit)
	if !ok || d > longest/times {
		return 0, false
	}
	return d * times, true
}
