package dialect_test

import (
	"time"

	"github.com/headgate/headgate/provider"
)

const openAI = `
budgets:
  - name: requests
    limit: {header: x-ratelimit-limit-requests}
    remaining: {header: x-ratelimit-remaining-requests}
    reset: {header: x-ratelimit-reset-requests, as: duration}
  - name: tokens
    unit: tokens
    limit: {header: x-ratelimit-limit-tokens}
    remaining: {header: x-ratelimit-remaining-tokens}
    reset: {header: x-ratelimit-reset-tokens, as: duration}
retry_after:
  - {header: retry-after-ms, as: milliseconds}
  - {header: x-ms-retry-after-ms, as: milliseconds}
  - {header: retry-after}
`

const anthropic = `
budgets:
  - name: requests
    limit: {header: anthropic-ratelimit-requests-limit}
    remaining: {header: anthropic-ratelimit-requests-remaining}
    reset: {header: anthropic-ratelimit-requests-reset, as: rfc3339}
  - name: tokens
    unit: tokens
    limit: {header: anthropic-ratelimit-tokens-limit}
    remaining: {header: anthropic-ratelimit-tokens-remaining}
    reset: {header: anthropic-ratelimit-tokens-reset, as: rfc3339}
`

// A per-day violation's retryDelay is no time to come back at, so that it is read
// only where no quota of a day is among the violations.
const gemini = `
retry_after:
  - {json: "$[?count(@.details[*].violations[?search(@.quotaId, 'PerDay')]) == 0].details[*].retryDelay", as: duration}
signals:
  - status: [429]
    json: {path: '$.error.details[*].violations[*].quotaId', matches: PerDay}
    outcome: quota_spent
    limit: day
`

const jira = `
budgets:
  - name: app
    limit: {header: X-RateLimit-Limit}
    reset: {header: X-RateLimit-Reset, as: date}
signals:
  - {status: [429], header: {name: RateLimit-Reason, equals: jira-per-issue-on-write}, outcome: rate_limited, scope: endpoint}
`

// Durations and dates as text.
var textVectors = []vector{
	{id: "D43", dialect: openAI, status: 200, lines: openAILines, want: ok(budget("requests", 60, 59, s, 0), of("tokens", budget("tokens", 150000, 149984, 6*time.Minute, 0)))},
	{id: "D43", status: 200, lines: openAILines, want: ok(of("requests", budget("requests", 60, 59, s, 0)), of("tokens", budget("tokens", 150000, 149984, 6*time.Minute, 0)))},
	{id: "D44", dialect: openAI, status: 200, lines: []string{"x-ratelimit-reset-requests: 12ms", "x-ratelimit-reset-tokens: 9ms"},
		want: ok(budget("requests", unknown, unknown, 12*time.Millisecond, 0), of("tokens", budget("tokens", unknown, unknown, 9*time.Millisecond, 0)))},
	{id: "D44", status: 200, lines: []string{"x-ratelimit-limit-tokens_usage_based: 160000"}, want: ok(of("tokens", budget("tokens_usage_based", 160000, unknown, 0, 0)))},
	{id: "D45", dialect: openAI, status: 429, lines: []string{"retry-after-ms: 1234", "retry-after: 2"}, want: limited(1234 * time.Millisecond)},
	{id: "D45", status: 429, lines: []string{"retry-after-ms: 1234", "retry-after: 2"}, want: limited(1234 * time.Millisecond)},
	{id: "D45", status: 429, lines: []string{"x-ms-retry-after-ms: 900", "retry-after: 1"}, want: limited(900 * time.Millisecond)},
	{id: "D45", dialect: openAI, status: 429, lines: []string{"retry-after: 0.5", "x-should-retry: true"}, want: limited(500 * time.Millisecond)},
	{id: "D46", dialect: anthropic, status: 429, lines: anthropicLines("0", "0"),
		want: limited(2*time.Minute, budget("requests", 50, 0, time.Minute, 0), of("tokens", budget("tokens", 50000, 0, 2*time.Minute, 0)))},
	{id: "D46", dialect: anthropic, status: 429, lines: append(anthropicLines("49", "49500"), "retry-after: 60"),
		want: limited(time.Minute, budget("requests", 50, 49, time.Minute, 0), of("tokens", budget("tokens", 50000, 49500, 2*time.Minute, 0)))},
	{id: "D46", dialect: anthropic, status: 429, lines: anthropicLines("0", "49500"),
		want: limited(time.Minute, budget("requests", 50, 0, time.Minute, 0), of("tokens", budget("tokens", 50000, 49500, 2*time.Minute, 0)))},
	{id: "D47", dialect: gemini, status: 429,
		body: `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"38s"}]}}`, want: limited(38 * s)},
	{id: "D47", dialect: gemini, status: 429, body: `{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"45.837906927s"}]}}`,
		want: limited(45837906927)},
	{id: "D47", dialect: gemini, status: 429, body: geminiPerDay, want: spentLimit("day", 0)},
	{id: "D48", dialect: `
retry_after: [{body: true, pattern: 'reset after ([0-9hms]+)', as: duration}]
signals: [{status: [429], body: Your quota will reset after, outcome: quota_spent}]`,
		status: 429, body: `{"error":{"message":"You have exhausted your capacity. Your quota will reset after 12h34m16s."}}`,
		want: told(provider.QuotaSpent, 12*time.Hour+34*time.Minute+16*s)},
	{id: "D49", dialect: `retry_after: [{body: true, pattern: 'retry after (\d+) seconds', as: seconds}]`,
		status: 429, body: "Requests have exceeded the call rate limit. Please retry after 45 seconds.", want: limited(45 * s)},
	{id: "D51", dialect: jira, status: 429, lines: []string{"X-RateLimit-Reset: 2026-03-02T11:05Z", "X-RateLimit-Limit: 100", "RateLimit-Reason: jira-per-issue-on-write"},
		want: scoped("endpoint", limited(5*time.Minute, budget("app", 100, unknown, 5*time.Minute, 0)))},
	{id: "D51", dialect: jira, status: 429, lines: []string{"X-RateLimit-Reset: 2026-03-02T11:05Z", "Retry-After: 400", "RateLimit-Reason: jira-burst-based"},
		want: limited(400*s, budget("app", unknown, unknown, 5*time.Minute, 0))},
	{id: "D52", status: 429, lines: []string{"x-RateLimit-Interval-Seconds: 60", "X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 0", "retry-after: 7"},
		want: limited(7*s, budget("", 5, 0, 0, time.Minute))},
	{id: "D52", dialect: `budgets: [{name: bucket, limit: {header: X-RateLimit-Limit}, window: {header: x-RateLimit-Interval-Seconds, as: seconds}}]`,
		status: 200, lines: []string{"x-RateLimit-Interval-Seconds: 60", "X-RateLimit-Limit: 5"}, want: ok(budget("bucket", 5, unknown, 0, time.Minute))},
	{id: "D54", status: 429, lines: []string{"X-RateLimit-Limit: 60", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 2026-03-02 11:00:41", "X-RateLimit-Retry-After: 39"},
		want: limited(39*s, budget("", 60, 0, 41*s, 0))},
	{id: "D56", status: 429, lines: []string{"ratelimit-remaining: 0", "ratelimit-reset: 2026-03-02T11:00:30.000Z", "ratelimit-reset-date: 2026-03-02T11:00:30.000Z", "retry-after: 31"},
		want: limited(31*s, budget("", unknown, 0, 30*s, 0))},
	{id: "D56", status: 200, lines: []string{"ratelimit-remaining: 3", "ratelimit-reset: 1772449230", "ratelimit-reset-date: 2026-03-02T11:00:30Z"},
		want: ok(budget("", unknown, 3, 30*s, 0))},
}

var openAILines = []string{"x-ratelimit-limit-requests: 60", "x-ratelimit-limit-tokens: 150000", "x-ratelimit-remaining-requests: 59",
	"x-ratelimit-remaining-tokens: 149984", "x-ratelimit-reset-requests: 1s", "x-ratelimit-reset-tokens: 6m0s"}

func anthropicLines(requests, tokens string) []string {
	return []string{"Date: Sat, 25 Oct 2025 11:59:00 GMT",
		"anthropic-ratelimit-requests-limit: 50", "anthropic-ratelimit-requests-remaining: " + requests, "anthropic-ratelimit-requests-reset: 2025-10-25T12:00:00Z",
		"anthropic-ratelimit-tokens-limit: 50000", "anthropic-ratelimit-tokens-remaining: " + tokens, "anthropic-ratelimit-tokens-reset: 2025-10-25T12:01:00Z"}
}

const geminiPerDay = `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[
 {"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},
 {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"38s"}]}}`
