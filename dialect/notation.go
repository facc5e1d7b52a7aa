package dialect

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longest bounds what is taken for advice. Whether so long a wait is slept is
// decided elsewhere (max_retry_after); above this it is a mistake, not advice.
const longest = 10 * 365 * 24 * time.Hour

// wait reads a value written as told and says how long it is from the answer on.
// ok is false for what is no such value, lies in the past, or is out of reason.
func (a *answer) wait(value, as string) (d time.Duration, ok bool) {
	value = strings.TrimSpace(value)
	if len(value) > 100 {
		return 0, false
	}
	var at time.Time
	switch as {
	case "seconds":
		d, ok = seconds(value)
		return within(d, ok)
	case "milliseconds":
		d, ok = number(value, "ms")
		return within(d, ok)
	case "duration":
		d, ok = duration(value)
		return within(d, ok)
	case "retry_after":
		if d, ok = seconds(value); ok || decimal(value) {
			return within(d, ok)
		}
		at, ok = httpDate(value)
	case "epoch":
		at, ok = epoch(value)
	case "epoch_ms":
		at, ok = epochMillis(value)
	case "http_date":
		at, ok = httpDate(value)
	case "rfc3339":
		at, ok = rfc3339(value)
	case "date":
		at, ok = date(value)
	case "":
		return a.guess(value)
	}
	if !ok {
		return 0, false
	}
	d = at.Sub(a.date())
	if d < 0 && d > -justPassed {
		d = 0
	}
	return within(d, true)
}

// justPassed is how far back a date still means "now": both it and the answer's own
// Date are whole seconds, of clocks that need not be one, and an answer takes its
// time. A reset that has just come is known; one of last year is a mistake.
const justPassed = time.Minute

// The least numbers that are an epoch in seconds, and in milliseconds: nobody
// waits 31 years, and an epoch of 10¹¹ seconds is 3,000 years away.
const (
	leastEpoch       = 1e9
	leastEpochMillis = 1e11
)

// guess reads a time of which nothing says how it is written.
func (a *answer) guess(value string) (time.Duration, bool) {
	if decimal(value) {
		whole, _, _ := strings.Cut(value, ".")
		switch n, err := strconv.ParseInt(whole, 10, 64); {
		case err != nil:
			return 0, false
		case n < leastEpoch:
			return a.wait(value, "seconds")
		case n < leastEpochMillis:
			return a.wait(value, "epoch")
		}
		return a.wait(value, "epoch_ms")
	}
	if d, ok := a.wait(value, "duration"); ok {
		return d, true
	}
	return a.wait(value, "date")
}

func within(d time.Duration, ok bool) (time.Duration, bool) {
	if !ok || d < 0 || d > longest {
		return 0, false
	}
	return d, true
}

// seconds reads non-negative decimal seconds.
func seconds(value string) (time.Duration, bool) { return number(value, "s") }

// number reads a non-negative decimal number of a unit, exactly, unlike a float.
// An overflow is none.
func number(value, unit string) (time.Duration, bool) {
	if !decimal(value) {
		return 0, false
	}
	d, err := time.ParseDuration(value + unit)
	return d, err == nil
}

// decimal says whether s is digits with at most one point between them: no
// sign, no exponent, no infinity.
func decimal(s string) bool {
	whole, fraction, point := strings.Cut(s, ".")
	return digits(whole) && (!point || digits(fraction))
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func epoch(value string) (time.Time, bool) {
	whole, fraction, n, ok := parts(value)
	if !ok {
		return time.Time{}, false
	}
	if fraction == "" {
		return time.Unix(n, 0), true
	}
	d, err := time.ParseDuration("0." + fraction + "s")
	return time.Unix(n, 0).Add(d), err == nil && whole != ""
}

func epochMillis(value string) (time.Time, bool) {
	_, _, n, ok := parts(value)
	return time.UnixMilli(n), ok
}

// parts splits a decimal whose whole part is an instant that time.Time can hold.
func parts(value string) (whole, fraction string, n int64, ok bool) {
	if !decimal(value) {
		return "", "", 0, false
	}
	whole, fraction, _ = strings.Cut(value, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	return whole, fraction, n, err == nil && n < 1e15
}

func httpDate(value string) (time.Time, bool) {
	t, err := http.ParseTime(value)
	return t, err == nil
}

// amount reads a number of units: what a budget has is rounded down, what was
// used up.
func amount(value string, up bool) (int64, bool) {
	if !decimal(value) {
		return 0, false
	}
	whole, fraction, _ := strings.Cut(value, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > 1<<53 {
		return 0, false
	}
	if up && strings.Trim(fraction, "0") != "" {
		n++
	}
	return n, true
}
