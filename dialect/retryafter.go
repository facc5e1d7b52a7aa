package dialect

import (
	"net/http"
	"strings"
	"time"
)

// longest bounds what is taken for advice. Whether so long a wait is slept is
// decided elsewhere (max_retry_after); above this it is a mistake, not advice.
const longest = 10 * 365 * 24 * time.Hour

// retryAfter returns what Retry-After asks for, 0 where it gives no advice. Of
// repeated lines the longer wins: never earlier than told.
func (a answer) retryAfter() time.Duration {
	if a.cached() {
		return 0
	}
	var longer time.Duration
	for _, line := range lines(a.header, "Retry-After") {
		if d := a.wait(line); d <= longest {
			longer = max(longer, d)
		}
	}
	return longer
}

// wait reads one Retry-After value: seconds, or an HTTP date. It is 0 or less
// where the value gives no advice.
func (a answer) wait(value string) time.Duration {
	value = strings.TrimSpace(value)
	if d, ok := seconds(value); ok {
		return d
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return at.Sub(a.date())
}

// date is the answer's own instant. The two clocks need not agree, so what the
// provider dates is measured against the provider's clock.
func (a answer) date() time.Time {
	for _, line := range lines(a.header, "Date") {
		if t, err := http.ParseTime(strings.TrimSpace(line)); err == nil {
			return t
		}
	}
	return a.now
}

// cached says whether a cache gave the answer: its fields then tell of an
// earlier moment.
func (a answer) cached() bool {
	for _, line := range lines(a.header, "Age") {
		age := strings.TrimSpace(line)
		// Not parsed as a number: an age that overflows is old all the same.
		if decimal(age) && strings.Trim(age, "0.") != "" {
			return true
		}
	}
	return false
}

// seconds reads non-negative decimal seconds. ok says that value is written as
// such a number, be it out of range (then d is 0).
func seconds(value string) (d time.Duration, ok bool) {
	if !decimal(value) {
		return 0, false
	}
	// Exact, unlike a float; an overflow is an error and so no advice.
	d, err := time.ParseDuration(value + "s")
	if err != nil {
		return 0, true
	}
	return d, true
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

// lines returns the field lines of one name, whatever its case: an answer made
// by hand need not have canonical names.
func lines(h http.Header, name string) []string {
	var all []string
	for k, v := range h {
		if strings.EqualFold(k, name) {
			all = append(all, v...)
		}
	}
	return all
}
