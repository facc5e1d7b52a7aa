package dialect_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The cases are complaints about clients that read answers wrongly. Number 19 is
// the adapter's.
func TestNoCaseIsMissing(t *testing.T) {
	var files []string
	for _, glob := range []string{"*_test.go", "../adapters/*_test.go"} {
		found, err := filepath.Glob(glob)
		require.NoError(t, err)
		files = append(files, found...)
	}
	var found []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^func TestCase(\d\d)_`).FindAllStringSubmatch(string(text), -1) {
			found = append(found, m[1])
		}
	}
	slices.Sort(found)
	assert.Equal(t, strings.Fields("01 02 03 04 06 07 09 10 12 13 15 16 17 19"), slices.Compact(found))
}

func TestCase06_TheBudgetAtZeroBinds(t *testing.T) {
	for _, d := range []string{"", openAI} {
		f := readBy(t, d, 429, "", "x-ratelimit-reset-requests: 12ms", "x-ratelimit-remaining-requests: 59",
			"x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 0")
		assert.Equal(t, 6*time.Minute, f.RetryAfter)
		f = readBy(t, d, 429, "", "x-ratelimit-reset-requests: 12ms", "x-ratelimit-remaining-requests: 0",
			"x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 0")
		assert.Equal(t, 6*time.Minute, f.RetryAfter, "of two at zero the later")
		f = readBy(t, d, 429, "", "x-ratelimit-reset-requests: 12ms", "x-ratelimit-remaining-requests: 0",
			"x-ratelimit-reset-tokens: 6m0s", "x-ratelimit-remaining-tokens: 7")
		assert.Equal(t, 12*time.Millisecond, f.RetryAfter, "12ms is not twelve minutes, and tokens do not bind")
	}
}

func TestCase07_TheDeclarationSaysWhatAResetIs(t *testing.T) {
	at := []string{"RateLimit-Remaining: 0", "RateLimit-Reset: 1609844400", stamp(1609844400, 90*time.Second)}
	kong := `budgets: [{name: a, remaining: {header: RateLimit-Remaining}, reset: {header: RateLimit-Reset, as: seconds}}]`
	delta := []string{"RateLimit-Remaining: 0", "RateLimit-Reset: 47", at[2]}
	assert.Equal(t, 90*time.Second, readBy(t, gitlab, 429, "", at...).RetryAfter)
	assert.Equal(t, 47*time.Second, readBy(t, kong, 429, "", delta...).RetryAfter)
	assert.Equal(t, 90*time.Second, readBy(t, "", 429, "", at...).RetryAfter)
	assert.Equal(t, 47*time.Second, readBy(t, "", 429, "", delta...).RetryAfter)
	// The other way round neither is a wait of 51 years, nor of none.
	for _, f := range []provider.Feedback{readBy(t, gitlab, 429, "", delta...), readBy(t, kong, 429, "", at...)} {
		assert.Zero(t, f.RetryAfter)
		require.Len(t, f.Budgets, 1)
		assert.False(t, f.Budgets[0].HasReset)
	}
	// The border of the guess: a number above it is an epoch.
	f := readBy(t, "", 200, "", "X-RateLimit-Reset: 999999999", "X-RateLimit-Remaining: 1")
	assert.False(t, f.Budgets[0].HasReset, "32 years of seconds")
	f = readBy(t, "", 200, "", "X-RateLimit-Reset: 1000000001", "X-RateLimit-Remaining: 1", stamp(1000000000, 0))
	assert.Equal(t, time.Second, f.Budgets[0].Reset)
	f = readBy(t, "", 200, "", "X-RateLimit-Reset: 1772449201500", "X-RateLimit-Remaining: 1")
	assert.Equal(t, 1500*time.Millisecond, f.Budgets[0].Reset)
}

func TestCase09_DatesWithoutSecondsAndOfJavaScript(t *testing.T) {
	for _, at := range []string{"2026-03-02T11:05Z", "Mon Mar 02 2026 11:05:00 GMT+0000 (Coordinated Universal Time)",
		"Mon Mar 02 2026 12:05:00 GMT+0100 (Mitteleuropäische Normalzeit)"} {
		for _, d := range []string{"", "budgets: [{name: a, remaining: {header: X-RateLimit-Remaining}, reset: {header: X-RateLimit-Reset, as: date}}]"} {
			f := readBy(t, d, 429, "", "X-RateLimit-Reset: "+at, "X-RateLimit-Remaining: 0")
			assert.Equal(t, 5*time.Minute, f.RetryAfter, at)
		}
	}
}

func TestCase10_RetryAfterBeatsEveryResetForThatResourceOnly(t *testing.T) {
	f := readBy(t, discord, 429, "", "X-RateLimit-Remaining: 9", "X-RateLimit-Reset-After: 64.57", "Retry-After: 1337", "X-RateLimit-Scope: shared")
	assert.Equal(t, 1337*time.Second, f.RetryAfter)
	assert.Equal(t, provider.ScopeEndpoint, f.Scope)
	f = readBy(t, "", 429, "", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset-After: 64.57", "Retry-After: 3")
	assert.Equal(t, 3*time.Second, f.RetryAfter, "shorter than the reset, too")
}

func TestCase12_AMissingRemainderIsUnknownNotZero(t *testing.T) {
	const line = "RateLimit: quota;t=1"
	assert.Equal(t, provider.Feedback{Outcome: provider.OK}, readBy(t, "only: true", 200, "", line), "strict: ignored")
	f := readBy(t, "", 200, "", line)
	assert.Equal(t, ok(budget("quota", unknown, unknown, time.Second, 0)), f, "lenient: t alone")
	assert.Equal(t, time.Second, readBy(t, "", 429, "", line).RetryAfter)
}

func TestCase13_ACachedAnswerTellsNothing(t *testing.T) {
	const line = `RateLimit: "default";r=0;t=50`
	for _, d := range []string{"", "budgets: [{name: a, remaining: {header: RateLimit, pattern: 'r=(\\d+)'}}]\nused: {credits: {json: $.n}}"} {
		assert.Equal(t, provider.Feedback{Outcome: provider.OK}, readBy(t, d, 200, `{"n":3}`, line, "Age: 30"))
		assert.NotEmpty(t, readBy(t, d, 200, `{"n":3}`, line, "Age: 0").Budgets)
	}
	f := readBy(t, "retry_after: [{json: $.n, as: seconds}]", 429, `{"n":3}`, "Age: 30")
	assert.Equal(t, provider.RateLimited, f.Outcome)
	assert.Zero(t, f.RetryAfter)
}

const lying = `
signals:
  - {status: [200], json: {path: '$.errors[*].extensions.code', equals: THROTTLED}, outcome: rate_limited}
  - {status: [200], json: {path: $.status, matches: '^(OVER_QUERY_LIMIT|429)$'}, outcome: rate_limited}
  - {status: [200], body: '^API count exceeded', outcome: quota_spent}
`

func TestCase15_A200WithAnErrorInItIsNoSuccess(t *testing.T) {
	for body, want := range map[string]provider.Outcome{
		`{"errors":[{"extensions":{"code":"THROTTLED"}}]}`:   provider.RateLimited,
		`{"status":"OVER_QUERY_LIMIT"}`:                      provider.RateLimited,
		`{"status":429}`:                                     provider.RateLimited,
		"API count exceeded - Increase Quota":                provider.QuotaSpent,
		"\ufeff\r\n API count exceeded":                      provider.QuotaSpent,
		`{"status":200,"note":"API count exceeded"}`:         provider.OK,
		`{"status":"OK","errors":[]}`:                        provider.OK,
		`{"errors":[{"extensions":{"code":"UNTHROTTLED"}}]}`: provider.OK,
		`{"status":4290}`:                                    provider.OK,
	} {
		assert.Equal(t, want, readBy(t, lying, 200, body).Outcome, body)
	}
	assert.Equal(t, provider.Rejected, readBy(t, lying, 404, `{"status":429}`).Outcome, "the status is a condition too")
}

const github = `
signals:
  - {status: [403, 429], json: {path: $.message, matches: secondary rate limit}, outcome: rate_limited, scope: key}
`

func TestCase16_TheMessageTellsALimitFromARight(t *testing.T) {
	f := readBy(t, github, 403, `{"message":"You have exceeded a secondary rate limit"}`, "retry-after: 60", "x-ratelimit-remaining: 4990")
	assert.Equal(t, provider.RateLimited, f.Outcome)
	assert.Equal(t, time.Minute, f.RetryAfter)
	f = readBy(t, github, 403, `{"message":"Resource not accessible by personal access token"}`, "x-ratelimit-remaining: 4990")
	assert.Equal(t, provider.Unauthorized, f.Outcome)
	assert.Zero(t, f.RetryAfter)
	f = readBy(t, `signals: [{status: [403], outcome: unauthorized}]`, 403, "", "retry-after: 60")
	assert.Equal(t, provider.Unauthorized, f.Outcome, "a signal is not overruled")
	f = readBy(t, "", 403, "", "X-RateLimit-Remaining: 0")
	assert.Equal(t, provider.RateLimited, f.Outcome, "nothing is left: that is a limit, with or without a time")
}

func TestCase17_ADaysQuotaIsSpentAndAMinutesIsWaitedFor(t *testing.T) {
	f := readBy(t, gemini, 429, geminiPerDay)
	assert.Equal(t, provider.QuotaSpent, f.Outcome)
	assert.Equal(t, "day", f.Limit)
	assert.Zero(t, f.RetryAfter, "the 38 s beside it are not when the day ends: the limit's own calendar says that")

	minute := strings.Replace(strings.Replace(geminiPerDay, "PerDay", "PerMinute", 1), "38s", "45.837906927s", 1)
	f = readBy(t, gemini, 429, minute)
	assert.Equal(t, provider.RateLimited, f.Outcome)
	assert.Equal(t, 45837906927*time.Nanosecond, f.RetryAfter)
}

func TestReadIsTheSameEachTime(t *testing.T) {
	d := declare(t, `retry_after: [{json: $..wait, as: seconds}]`)
	for range 200 { // the members of an object come in any order
		f := dialect.Read(d, answered(429), []byte(`{"b":{"wait":2},"a":{"wait":1},"c":{"wait":3}}`), now)
		require.Equal(t, time.Second, f.RetryAfter)
	}
}
