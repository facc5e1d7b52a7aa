package dialect_test

import (
	"time"

	"github.com/headgate/headgate/provider"
)

const sentry = `
retry_after:
  - {header: X-Sentry-Rate-Limits, pattern: '(\d+):', as: seconds}
signals:
  - {header: {name: X-Sentry-Rate-Limits, matches: ':'}, outcome: rate_limited}
`

const ipAPI = `
budgets:
  - {name: minute, remaining: {header: X-Rl}, reset: {header: X-Ttl, as: seconds}}
`

// Seconds from now.
var deltaVectors = []vector{
	{id: "D29", status: 429, body: `{"message":"API rate limit exceeded"}`, lines: []string{"RateLimit-Limit: 6", "RateLimit-Remaining: 4", "RateLimit-Reset: 47",
		"X-RateLimit-Limit-Minute: 10", "X-RateLimit-Remaining-Minute: 9", "X-RateLimit-Limit-Second: 2", "X-RateLimit-Remaining-Second: 1"},
		want: limited(0, budget("", 6, 4, 47*s, 0), budget("minute", 10, 9, 0, time.Minute), budget("second", 2, 1, 0, s))},
	{id: "D29", status: 429, lines: []string{"RateLimit-Limit: 6", "RateLimit-Remaining: 0", "RateLimit-Reset: 47"}, want: limited(47*s, budget("", 6, 0, 47*s, 0))},
	{id: "D29", dialect: `budgets: [{name: minute, limit: {header: X-RateLimit-Limit-Minute}, remaining: {header: X-RateLimit-Remaining-Minute}}]`,
		status: 200, lines: []string{"X-RateLimit-Limit-Minute: 10", "X-RateLimit-Remaining-Minute: 9"}, want: ok(budget("minute", 10, 9, 0, time.Minute))},
	{id: "D30", status: 200, lines: []string{"ratelimit-limit: 300", "ratelimit-remaining: 280", "ratelimit-reset: 53"}, want: ok(budget("", 300, 280, 53*s, 0))},
	{id: "D35", status: 200, lines: []string{"X-RateLimit-Limit: 1000", "X-RateLimit-Remaining: 990", "X-RateLimit-Reset-In: 3600", "X-RateLimit-Used: 10"},
		want: ok(using(10, budget("", 1000, 990, time.Hour, 0)))},
	{id: "D36", dialect: ipAPI, status: 200, lines: []string{"X-Rl: 0", "X-Ttl: 34"}, want: ok(budget("minute", unknown, 0, 34*s, 0))},
	{id: "D36", dialect: ipAPI, status: 429, lines: []string{"X-Rl: 0", "X-Ttl: 34"}, want: limited(34*s, budget("minute", unknown, 0, 34*s, 0))},
	{id: "D37", status: 200, lines: []string{"x-ratelimit-remaining: 598.7", "x-ratelimit-used: 2", "x-ratelimit-reset: 345"},
		want: ok(using(2, budget("", unknown, 598, 345*s, 0)))},
	{id: "D38", status: 200, lines: []string{`Ratelimit: "default";r=50;t=30`, `Ratelimit-Policy: "burst";q=100;w=60`},
		want: ok(budget("default", unknown, 50, 30*s, 0), budget("burst", 100, unknown, 0, time.Minute))},
	{id: "D40", status: 429, lines: []string{"x-ratelimit-limit: 100", "x-ratelimit-remaining: 0", "retry-after: 30"}, want: limited(30*s, budget("", 100, 0, 0, 0))},
	{id: "D42", status: 429, lines: []string{"Retry-After: 2700"}, want: limited(2700 * s)},
	{id: "D42", dialect: sentry, status: 200, lines: []string{"X-Sentry-Rate-Limits: 60:transaction:key, 2700:default;error;security:organization"}, want: limited(2700 * s)},
	{id: "D42", dialect: sentry, status: 429, lines: []string{"X-Sentry-Rate-Limits: 60::organization, 2700::organization", "Retry-After: 60"}, want: limited(2700 * s)},
	{id: "D42", dialect: `retry_after: [{header: X-Sentry-Rate-Limits, pattern: '(\d+):[^,]*transaction', as: seconds}]`,
		status: 429, lines: []string{"X-Sentry-Rate-Limits: 60:transaction:key, 2700:default;error;security:organization"}, want: limited(60 * s)},
}

// Signals without useful headers.
var signalVectors = []vector{
	{id: "D71", dialect: virusTotal, status: 429, body: `{"error":{"code":"QuotaExceededError","message":"Quota exceeded"}}`, want: scoped("key", spentLimit("day", 0))},
	{id: "D71", dialect: virusTotal, status: 429, body: `{"error":{"code":"TooManyRequestsError"}}`, want: scoped("key", limited(0))},
	{id: "D71", dialect: `signals: [{status: [204], outcome: rate_limited}]`, status: 204, want: limited(0)},
	{id: "D72", dialect: google, status: 403, body: googleBody("rateLimitExceeded"), want: limited(0)},
	{id: "D72", dialect: google, status: 429, body: googleBody("userRateLimitExceeded"), want: scoped("key", limited(0))},
	{id: "D72", dialect: google, status: 403, body: googleBody("dailyLimitExceeded"), want: spentLimit("day", 0)},
	{id: "D72", dialect: google, status: 403, body: googleBody("forbidden"), want: told(provider.Unauthorized, 0)},
	{id: "D73", dialect: `retry_after: [{json: '$.error.details[*].errors[*].details.quotaErrorDetails.retryDelay', as: duration}]`, status: 429,
		body: `{"error":{"details":[{"errors":[{"details":{"quotaErrorDetails":{"rateScope":"ACCOUNT","rateName":"n","retryDelay":"30s"}}}]}]}}`, want: limited(30 * s)},
	{id: "D74", dialect: `signals: [{status: [429], outcome: rate_limited, scope: endpoint}]`,
		status: 429, lines: []string{"Retry-After: 30"}, want: scoped("endpoint", limited(30*s))},
	{id: "D75", status: 429, lines: []string{"Retry-After: 3"}, body: `{"code":"rate_limited"}`, want: limited(3 * s)},
	{id: "D75", status: 529, lines: []string{"Retry-After: 3"}, body: `{"code":"service_overload"}`, want: told(provider.Overloaded, 3*s)},
	{id: "D76", dialect: `signals: [{status: [429], header: {name: Stripe-Rate-Limited-Reason, equals: endpoint-rate}, outcome: rate_limited, scope: endpoint}]`,
		status: 429, lines: []string{"Stripe-Rate-Limited-Reason: endpoint-rate"}, want: scoped("endpoint", limited(0))},
	{id: "D76", status: 429, want: limited(0)},
	{id: "D77", dialect: riot, status: 429, lines: []string{"Retry-After: 5", "X-Rate-Limit-Type: application"}, want: scoped("key", limited(5*s))},
	{id: "D77", dialect: riot, status: 429, lines: []string{"Retry-After: 5", "X-Rate-Limit-Type: method"}, want: scoped("endpoint", limited(5*s))},
	{id: "D77", dialect: riot, status: 429, lines: []string{"X-Rate-Limit-Type: service"}, want: scoped("endpoint", limited(0))},
	{id: "D77", dialect: riot, status: 429, want: told(provider.Overloaded, 0)},
	{id: "D78", dialect: `signals: [{status: [200], body: '^API count exceeded', outcome: quota_spent, limit: day}]`,
		status: 200, body: "API count exceeded - Increase Quota with Membership", want: spentLimit("day", 0)},
	{id: "D79", dialect: `signals: [{status: [429], body: 'Request rate limit reached', outcome: rate_limited, scope: key}]`,
		status: 429, lines: []string{"retry-after: 0"}, body: `{"error":"Request rate limit reached (1 request/ second). Please wait a second before trying again"}`, want: scoped("key", limited(0))},
	{id: "D81", dialect: `signals: [{status: [200], json: {path: $.status, equals: ratelimited}, outcome: rate_limited}]`,
		status: 200, body: `{"status":"ratelimited"}`, want: limited(0)},
	{id: "D81", dialect: `signals: [{status: [200], json: {path: $, equals: '[]'}, outcome: rate_limited}]`, status: 200, body: " []\n", want: limited(0)},
	{id: "D82", dialect: `signals: [{status: [503], header: {name: Retry-After, matches: .}, outcome: banned}]`,
		status: 503, lines: []string{"Retry-After: 120"}, want: told(provider.Banned, 120*s)},
	{id: "D82", status: 429, lines: []string{"Retry-After: 10"}, want: limited(10 * s)},
	{id: "D83", dialect: `signals: [{status: [429], header: {name: x-envoy-ratelimited, matches: '.*'}, outcome: overloaded, before: true}]`,
		status: 429, lines: []string{"x-envoy-ratelimited: true"}, want: provider.Feedback{Outcome: provider.Overloaded, Before: true}},
}

const virusTotal = `
signals:
  - {status: [429], json: {path: $.error.code, equals: QuotaExceededError}, outcome: quota_spent, limit: day, scope: key}
  - {status: [429], json: {path: $.error.code, equals: TooManyRequestsError}, outcome: rate_limited, scope: key}
`

const google = `
signals:
  - {status: [403, 429], json: {path: '$.error.errors[*].reason', equals: rateLimitExceeded}, outcome: rate_limited}
  - {status: [403, 429], json: {path: '$.error.errors[*].reason', equals: userRateLimitExceeded}, outcome: rate_limited, scope: key}
  - {status: [403, 429], json: {path: '$.error.errors[*].reason', equals: dailyLimitExceeded}, outcome: quota_spent, limit: day}
`

func googleBody(reason string) string {
	return `{"error":{"code":403,"errors":[{"domain":"usageLimits","reason":"` + reason + `"}]}}`
}

const riot = `
signals:
  - {status: [429], header: {name: X-Rate-Limit-Type, equals: application}, outcome: rate_limited, scope: key}
  - {status: [429], header: {name: X-Rate-Limit-Type, matches: '^(method|service)$'}, outcome: rate_limited, scope: endpoint}
  - {status: [429], outcome: overloaded}
`
