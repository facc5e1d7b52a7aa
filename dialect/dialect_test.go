package dialect_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var now = time.Date(2026, 3, 2, 11, 0, 0, 0, time.UTC)

// read reads an answer of status with header lines "Name: value".
func read(status int, lines ...string) provider.Feedback {
	h := http.Header{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ":")
		h.Add(name, strings.TrimPrefix(value, " "))
	}
	return dialect.Read(provider.Dialect{}, &http.Response{StatusCode: status, Header: h}, nil, now)
}

func TestStatusDecidesTheOutcome(t *testing.T) {
	want := map[provider.Outcome][]int{
		provider.OK:           {101, 200, 201, 202, 204, 206, 299, 300, 301, 304, 308, 399},
		provider.RateLimited:  {429},
		provider.QuotaSpent:   {402},
		provider.Unauthorized: {401, 403},
		provider.Rejected:     {400, 404, 405, 407, 409, 410, 413, 418, 422, 425, 451, 499},
		provider.Overloaded:   {503, 529},
		provider.Failed:       {408, 500, 501, 502, 504, 520, 530, 599},
		provider.Unknown:      {-1, 0, 1, 99, 100, 103, 600, 999},
	}
	for outcome, statuses := range want {
		for _, s := range statuses {
			f := read(s)
			assert.Equal(t, outcome, f.Outcome, "status %d", s)
			if outcome == provider.OK {
				assert.Equal(t, provider.Feedback{Outcome: provider.OK}, f, "status %d", s)
			} else {
				assert.Equal(t, "status "+strconv.Itoa(s), f.Detail)
			}
			assert.False(t, f.Unanswered, "an answer is an answer")
			assert.False(t, f.Before, "a status alone does not say that nothing was done")
		}
	}
}

func TestCase01_NegativeRetryAfterIsNoAdviceAndStillARefusal(t *testing.T) {
	f := read(429, "Retry-After: -5")
	assert.Equal(t, provider.RateLimited, f.Outcome)
	assert.Zero(t, f.RetryAfter)
}

func TestCase02_RetryAfterIsADecimalOrNoAdvice(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"1.5":                1500 * time.Millisecond,
		"120":                2 * time.Minute,
		" 7 ":                7 * time.Second,
		"007":                7 * time.Second,
		"2.0":                2 * time.Second,
		"0.001":              time.Millisecond,
		"45.837906927":       45837906927,
		"1.1":                1100 * time.Millisecond,
		"2700":               45 * time.Minute,
		"315360000":          10 * 365 * 24 * time.Hour,
		"315360001":          0,
		"9223372036":         0,
		"9223372037":         0,
		"99999999999999999":  0,
		"18446744073709552":  0, // × 1e9 wraps round to a small positive number
		"-3":                 0,
		"+3":                 0,
		"-0":                 0,
		"abc":                0,
		"":                   0,
		"   ":                0,
		".5":                 0,
		"5.":                 0,
		"1.2.3":              0,
		"1,5":                0,
		"1_000":              0,
		"0x10":               0,
		"1e3":                0,
		"1e999":              0,
		"NaN":                0,
		"inf":                0,
		"Infinity":           0,
		"3s":                 0,
		"3m":                 0,
		"１２":                 0, // full-width digits
		"12\x00":             0,
		"Wed, 21 Oct 2015":   0,
		"2026-03-02T11:05Z":  0, // a date, but not an HTTP date
		"120, 60":            0,
		"\xff\xfe":           0,
		"0.0000000000000001": 0,
	} {
		assert.Equal(t, want, read(429, "Retry-After: "+value).RetryAfter, "%q", value)
	}
}

func TestCase03_AnHTTPDateIsMeasuredAgainstTheAnswersOwnDate(t *testing.T) {
	const at = "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"
	// The local clock is eleven years fast: only the answer's Date counts.
	assert.Equal(t, 30*time.Second, read(429, at, "Date: Wed, 21 Oct 2015 07:27:30 GMT").RetryAfter)
	assert.Zero(t, read(429, at, "Date: Wed, 21 Oct 2015 07:28:00 GMT").RetryAfter, "now is no advice")
	assert.Zero(t, read(429, at, "Date: Wed, 21 Oct 2015 07:28:01 GMT").RetryAfter, "past is no advice")
	assert.Zero(t, read(429, at).RetryAfter, "without a Date the local clock is all there is")

	h := http.Header{"Retry-After": {"Wed, 21 Oct 2015 07:28:00 GMT"}, "Date": {"junk"}}
	local := time.Date(2015, 10, 21, 7, 27, 0, 0, time.FixedZone("", -7*3600)).Add(-7 * time.Hour)
	f := dialect.Read(provider.Dialect{}, &http.Response{StatusCode: 503, Header: h}, nil, local)
	assert.Equal(t, time.Minute, f.RetryAfter)
}

func TestAllThreeFormsOfAnHTTPDateAreRead(t *testing.T) {
	for _, at := range []string{
		"Mon, 02 Mar 2026 11:00:30 GMT", "Monday, 02-Mar-26 11:00:30 GMT", "Mon Mar  2 11:00:30 2026",
	} {
		assert.Equal(t, 30*time.Second, read(429, "Retry-After: "+at).RetryAfter, at)
	}
	assert.Zero(t, read(429, "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT").RetryAfter, "8,000 years are a mistake")
	assert.Zero(t, read(429, "Retry-After: Mon, 02 Mar 2026 11:00:30 CET").RetryAfter, "an HTTP date is in GMT")
}

func TestCase04_ZeroIsNoAdvice(t *testing.T) {
	for _, zero := range []string{"0", "0.0", "000"} {
		f := read(429, "Retry-After: "+zero)
		assert.Equal(t, provider.RateLimited, f.Outcome)
		assert.Zero(t, f.RetryAfter)
	}
}

func TestCase16_A403WithAdviceIsARateAndWithoutItARight(t *testing.T) {
	f := read(403, "retry-after: 60")
	assert.Equal(t, provider.RateLimited, f.Outcome)
	assert.Equal(t, time.Minute, f.RetryAfter)
	for _, lines := range [][]string{
		nil, {"X-RateLimit-Remaining: 4999"}, {"Retry-After: 0"}, {"Retry-After: soon"}, {"Retry-After: 60", "Age: 5"},
	} {
		f := read(403, lines...)
		assert.Equal(t, provider.Unauthorized, f.Outcome, "%v", lines)
		assert.Zero(t, f.RetryAfter)
	}
}

func TestOfRepeatedLinesTheLongerWins(t *testing.T) {
	assert.Equal(t, time.Minute, read(429, "Retry-After: 10", "Retry-After: 60", "Retry-After: 30").RetryAfter)
	assert.Equal(t, time.Minute, read(429, "Retry-After: 10", "Retry-After: Mon, 02 Mar 2026 11:01:00 GMT").RetryAfter)
	assert.Equal(t, 10*time.Second, read(429, "Retry-After: 10", "Retry-After: never", "Retry-After: -1").RetryAfter)
}

func TestFieldNamesAreCaseInsensitive(t *testing.T) {
	h := http.Header{"retry-after": {"10"}, "RETRY-AFTER": {"20"}, "Retry-After": {"5"}}
	f := dialect.Read(provider.Dialect{}, &http.Response{StatusCode: 429, Header: h}, nil, now)
	assert.Equal(t, 20*time.Second, f.RetryAfter)
	h = http.Header{"Retry-After": {"10"}, "aGe": {"1"}}
	assert.Zero(t, dialect.Read(provider.Dialect{}, &http.Response{StatusCode: 429, Header: h}, nil, now).RetryAfter)
}

func TestACachedAnswersAdviceIsIgnored(t *testing.T) {
	for age, want := range map[string]time.Duration{
		"30": 0, "1": 0, "0.5": 0, "99999999999999999999999": 0,
		"0": time.Minute, "00": time.Minute, "": time.Minute, "-1": time.Minute, "old": time.Minute,
	} {
		f := read(429, "Retry-After: 60", "Age: "+age)
		assert.Equal(t, provider.RateLimited, f.Outcome)
		assert.Equal(t, want, f.RetryAfter, "Age %q", age)
	}
}

func TestOnlyWhatWaitingCuresCarriesAdvice(t *testing.T) {
	for status, want := range map[int]time.Duration{
		429: time.Minute, 402: time.Minute, 503: time.Minute, 529: time.Minute, 500: time.Minute, 408: time.Minute,
		200: 0, 202: 0, 301: 0, 400: 0, 401: 0, 404: 0, 413: 0, 999: 0,
	} {
		assert.Equal(t, want, read(status, "Retry-After: 60").RetryAfter, "status %d", status)
	}
}

func TestOnlySwitchesTheStandardConventionsOff(t *testing.T) {
	// A provider that writes milliseconds into Retry-After must not be read in seconds.
	r := &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"6457"}}}
	f := dialect.Read(provider.Dialect{Only: true}, r, nil, now)
	assert.Equal(t, provider.RateLimited, f.Outcome)
	assert.Zero(t, f.RetryAfter)
	r.StatusCode = 403
	assert.Equal(t, provider.Unauthorized, dialect.Read(provider.Dialect{Only: true}, r, nil, now).Outcome)
}

func TestNoAnswerAtAllIsUnknown(t *testing.T) {
	require.NotPanics(t, func() {
		assert.Equal(t, provider.Unknown, dialect.Read(provider.Dialect{}, nil, nil, now).Outcome)
		assert.Equal(t, provider.Failed, dialect.Read(provider.Dialect{}, &http.Response{StatusCode: 500}, nil, now).Outcome)
	})
}

// Any number of seconds comes out as written, to the nanosecond, whatever its form.
func TestSecondsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, int64(10*365*24*time.Hour)).Draw(t, "d"))
		whole, fraction := strconv.FormatInt(int64(d/time.Second), 10), strconv.FormatInt(int64(d%time.Second)+1e9, 10)[1:]
		value := strings.Repeat("0", rapid.IntRange(0, 3).Draw(t, "zeros")) + whole + "." + fraction
		if got := read(429, "Retry-After: "+value).RetryAfter; got != d {
			t.Fatalf("%s: got %v, want %v", value, got, d)
		}
	})
}
