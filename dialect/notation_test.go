package dialect_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
)

func answered(status int, lines ...string) *http.Response {
	h := http.Header{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ":")
		h.Add(name, strings.TrimPrefix(value, " "))
	}
	return &http.Response{StatusCode: status, Header: h}
}

const none = -1 * time.Second // no value: not told

// as reads one value of a reset; none where it is not told.
func as(notation, value string) time.Duration {
	d := provider.Dialect{Only: true, Budgets: []provider.BudgetSource{{Name: "a", Remaining: provider.Source{Header: "X-Left"}, Reset: provider.Source{Header: "X-At", As: notation}}}}
	f := dialect.Read(d, answered(200, "X-Left: 1", "X-At: "+value), nil, now)
	if !f.Budgets[0].HasReset {
		return none
	}
	return f.Budgets[0].Reset
}

// 1772449200 is now. What has just passed is now, too; a minute ago is a mistake.
func TestEachNotation(t *testing.T) {
	for notation, values := range map[string]map[string]time.Duration{
		"seconds":      {"47": 47 * s, "64.57": 64570 * time.Millisecond, "0": 0, "": none, "-1": none, "47s": none, "1e3": none, "1609844400": none},
		"milliseconds": {"600000": 10 * time.Minute, "6457": 6457 * time.Millisecond, "0.5": 500 * time.Microsecond, "-1": none, "NaN": none, "99999999999999999": none},
		"epoch": {"1772449260": time.Minute, "1772449201.25": 1250 * time.Millisecond, "1772449200": 0, "1772449199": 0, "1772449141": 0, "1772449140": none, "47": none,
			"1772449260000": none, "99999999999999999999": none, "-1772449260": none, "2026-03-02T11:05:00Z": none},
		"epoch_ms":  {"1772449201500": 1500 * time.Millisecond, "1772449201500.9": 1500 * time.Millisecond, "1772449260": none, "17724492015000000": none, "x": none},
		"http_date": {"Mon, 02 Mar 2026 11:01:00 GMT": time.Minute, "Mon, 02 Mar 2026 11:01:00 UTC": none, "60": none, "2026-03-02T11:01:00Z": none},
		"rfc3339": {"2026-03-02T11:01:00Z": time.Minute, "2026-03-02t12:01:00.5+01:00": time.Minute + 500*time.Millisecond, "2026-03-02T11:01Z": none,
			"2026-03-02T11:01:00": none, "2026-03-02 11:01:00Z": none},
		"retry_after": {"60": time.Minute, "2.0": 2 * s, "Mon, 02 Mar 2026 11:01:00 GMT": time.Minute, "60s": none, "1772449260": none, "2026-03-02T11:01:00Z": none},
		"duration": {"6m0s": 6 * time.Minute, "12ms": 12 * time.Millisecond, "45.8s": 45800 * time.Millisecond, "1h2m": 62 * time.Minute, "45.837906927s": 45837906927,
			"2m59.56s": 2*time.Minute + 59560*time.Millisecond, "1d2h": 26 * time.Hour, "500µs": 500 * time.Microsecond, "0s": 0,
			"2 hours, 3 minutes and 4 seconds": 2*time.Hour + 3*time.Minute + 4*s, "1 day": 24 * time.Hour, "00:12:34": 12*time.Minute + 34*s, "1:00:00.5": time.Hour + 500*time.Millisecond,
			"60": none, "-5s": none, "+5s": none, "5S": none, "5x": none, "s": none, "1h garbage": none, "99999999h": none, "999999999999999999999d": none, "00:61:00": none, "": none, "1e3s": none,
			strings.Repeat("1h", 60): none},
		"": {"47": 47 * s, "1772449260": time.Minute, "1772449260000": time.Minute, "6m0s": 6 * time.Minute, "2026-03-02T11:05Z": 5 * time.Minute, "Mon, 02 Mar 2026 11:01:00 GMT": time.Minute,
			"47,900": 47 * s, "200000000": 200000000 * s, "99999999999999999999": none, "soon": none, "-47": none, "inf": none},
	} {
		for value, want := range values {
			assert.Equal(t, want, as(notation, value), "%s %q", notation, value)
		}
	}
}

func TestAnythingDatedIsADate(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"2026-03-02T11:05Z":                   5 * time.Minute, // minutes only
		"2026-03-02T11:05":                    5 * time.Minute, // without a zone: UTC
		"2026-03-02T11:05+00:00":              5 * time.Minute,
		"2026-03-02T12:05+0100":               5 * time.Minute,
		"2026-03-02T12:05+01":                 5 * time.Minute,
		"2026-03-02 11:05":                    5 * time.Minute,
		"2026-03-02 11:05:00":                 5 * time.Minute,
		"2026-03-02 11:05:00 UTC":             5 * time.Minute,
		"2026-03-02 11:05:00 +0000":           5 * time.Minute, // Ruby
		"2026-03-02 11:05:00+00:00":           5 * time.Minute, // Python
		"2026-03-02 11:05:00.250000":          5*time.Minute + 250*time.Millisecond,
		"2026-03-02T11:05:00.1234567Z":        5*time.Minute + 123456700, // .NET
		"2026-03-02T11:05:00.123456789123Z":   5*time.Minute + 123456789,
		"2026-03-02T11:05:00.000Z":            5 * time.Minute,
		"2026-03-02t11:05:00z":                5 * time.Minute,
		"2026-03-02T11:05:00-00:00":           5 * time.Minute,
		"2026-03-02T11:05Z[UTC]":              5 * time.Minute, // Java
		"2026-03-02T12:05+01:00[Europe/Rome]": 5 * time.Minute,
		"20260302T110500Z":                    5 * time.Minute,
		"2026/03/02 11:05:00":                 5 * time.Minute,
		"Mon, 02 Mar 2026 11:05:00 GMT":       5 * time.Minute,
		"Mon, 2 Mar 2026 12:05:00 +0100":      5 * time.Minute,
		"Monday, 02-Mar-26 11:05:00 GMT":      5 * time.Minute,
		"Mon Mar  2 11:05:00 2026":            5 * time.Minute,
		"Mon Mar 02 11:05:00 +0000 2026":      5 * time.Minute, // Ruby
		"Mon Mar  2 11:05:00 UTC 2026":        5 * time.Minute, // Unix
		"Mon Mar 02 2026 11:05:00 GMT+0000 (Coordinated Universal Time)": 5 * time.Minute,
		"Mon Mar 02 2026 06:05:00 GMT-0500 (Eastern Standard Time)":      5 * time.Minute,
		"Mon Mar 02 2026 11:05:00 GMT+0000":                              5 * time.Minute,
		"2026-03-03":                                                     13 * time.Hour, // a day begins at midnight
		"2026-03-02":                                                     none,           // past
		"Mon Mar 02 2026 11:05:00 CST":                                   none,           // there are three
		"Mon, 02 Mar 2026 11:05:00 CET":                                  none,
		"2026-03-02 11:05:00 PST":                                        none,
		"2026-13-02T11:05Z":                                              none,
		"2026-03-02T25:05Z":                                              none,
		"9999-12-31T23:59:59Z":                                           none, // 8,000 years
		"0000-00-00 00:00:00":                                            none,
		"11:05":                                                          none,
		"tomorrow":                                                       none,
		"":                                                               none,
		"()":                                                             none,
		"(2026-03-02T11:05Z)":                                            none,
		"60":                                                             none,
		"2026-03-02T11:05Z and more":                                     none,
		strings.Repeat("2026-03-02 ", 99):                                none,
	} {
		assert.Equal(t, want, as("date", value), "%q", value)
	}
}

// A date is the provider's: its clock, hours off either way, is the one that counts.
func TestAbsoluteTimesFollowTheAnswersClock(t *testing.T) {
	d := provider.Dialect{}
	for _, skew := range []time.Duration{-5 * time.Hour, -time.Second, 0, 10 * time.Minute, 26 * time.Hour} {
		theirs := now.Add(skew)
		f := dialect.Read(d, answered(429, "Date: "+theirs.Format(http.TimeFormat), "X-RateLimit-Remaining: 0",
			"X-RateLimit-Reset: "+theirs.Add(90*s).Format(time.RFC3339)), nil, now)
		assert.Equal(t, 90*s, f.RetryAfter, skew)
	}
}
