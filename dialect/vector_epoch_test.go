package dialect_test

import (
	"time"

	"github.com/headgate/headgate/provider"
)

const discord = `
budgets:
  - name: route
    limit: {header: X-RateLimit-Limit}
    remaining: {header: X-RateLimit-Remaining}
    reset: {header: X-RateLimit-Reset-After, as: seconds}
retry_after:
  - {header: Retry-After, as: seconds}
  - {json: $.retry_after, as: seconds}
signals:
  - {status: [429], header: {name: X-RateLimit-Scope, equals: global}, outcome: rate_limited, scope: provider}
  - {status: [429], outcome: rate_limited, scope: endpoint}
`

// Absolute epochs.
var epochVectors = []vector{
	{id: "D14", status: 403, lines: []string{"x-ratelimit-limit: 60", "x-ratelimit-remaining: 0", "x-ratelimit-used: 60",
		"x-ratelimit-reset: 1609844400", "x-ratelimit-resource: core", stamp(1609844400, 25*time.Minute)},
		want: limited(25*time.Minute, using(60, budget("", 60, 0, 25*time.Minute, 0)))},
	{id: "D14", status: 403, lines: []string{"retry-after: 60", "x-ratelimit-remaining: 4990"}, want: limited(time.Minute, budget("", unknown, 4990, 0, 0))},
	{id: "D14", status: 403, lines: []string{"x-ratelimit-remaining: 4990"}, want: told(provider.Unauthorized, 0, budget("", unknown, 4990, 0, 0))},
	{id: "D14", dialect: `signals: [{status: [403], body: secondary rate limit, outcome: rate_limited, scope: key, before: true}]`,
		status: 403, body: `{"message":"You have exceeded a secondary rate limit."}`,
		want: provider.Feedback{Outcome: provider.RateLimited, Scope: "key", Before: true}},
	{id: "D15", dialect: gitlab, status: 429, body: "Retry later", lines: []string{"RateLimit-Limit: 60", "RateLimit-Name: throttle_authenticated_api", "RateLimit-Observed: 67",
		"RateLimit-Remaining: 0", "RateLimit-Reset: 1609844400", "RateLimit-ResetTime: Tue, 05 Jan 2021 11:00:00 GMT", "Retry-After: 30", stamp(1609844400, 30*s)},
		want: limited(30*s, using(67, budget("throttle", 60, 0, 30*s, 0)))},
	{id: "D15", status: 200, lines: []string{"RateLimit-Limit: 60", "RateLimit-Observed: 67", "RateLimit-Remaining: 33", "RateLimit-Reset: 1609844400", stamp(1609844400, 40*s)},
		want: ok(using(67, budget("", 60, 33, 40*s, 0)))}, // by the conventions alone
	{id: "D15", status: 429, lines: []string{"RateLimit-ResetTime: Tue, 05 Jan 2021 11:00:00 GMT", "RateLimit-Remaining: 0", "Date: Tue, 05 Jan 2021 10:59:00 GMT"},
		want: limited(time.Minute, budget("", unknown, 0, time.Minute, 0))},
	{id: "D16", status: 200, lines: []string{"X-Rate-Limit-Limit: 1200", "X-Rate-Limit-Remaining: 1199", "X-Rate-Limit-Reset: 1609459200", stamp(1609459200, 60*s)},
		want: ok(budget("", 1200, 1199, time.Minute, 0))},
	{id: "D17", dialect: `signals: [{status: [400, 429], json: {path: "$.errors[*].code", equals: "88"}, outcome: rate_limited, scope: endpoint}]`,
		status: 400, body: `{"errors":[{"code":88,"message":"Rate limit exceeded"}]}`,
		lines: []string{"x-rate-limit-limit: 900", "x-rate-limit-remaining: 0", "x-rate-limit-reset: 1705420800", stamp(1705420800, 90*s)},
		want:  scoped("endpoint", limited(90*s, budget("", 900, 0, 90*s, 0)))},
	{id: "D17", status: 200, lines: []string{"x-rate-limit-limit: 900", "x-rate-limit-remaining: 847", "x-rate-limit-reset: 1705420800", stamp(1705420800, 90*s)},
		want: ok(budget("", 900, 847, 90*s, 0))},
	{id: "D18", status: 429, lines: []string{"X-RateLimit-Limit:120", "X-RateLimit-Remaining:0", "X-RateLimit-Reset:1482966442", stamp(1482966442, 12*s)},
		want: limited(12*s, budget("", 120, 0, 12*s, 0))},
	{id: "D20", status: 429, lines: []string{"X-RateLimit-Reset: 1772450000", "Retry-After: 42", stamp(1772450000, 60*s)},
		want: limited(42*s, budget("", unknown, unknown, time.Minute, 0))},
	{id: "D21", dialect: discord, status: 429, body: `{"retry_after": 64.57}`, lines: []string{"Retry-After: 65", "X-RateLimit-Limit: 10", "X-RateLimit-Remaining: 0",
		"X-RateLimit-Reset: 1470173023.123", "X-RateLimit-Reset-After: 64.57", "X-RateLimit-Bucket: abcd1234", "X-RateLimit-Scope: user"},
		want: scoped("endpoint", limited(65*s, budget("route", 10, 0, 64570*time.Millisecond, 0)))},
	{id: "D21", status: 200, lines: []string{"X-RateLimit-Limit: 10", "X-RateLimit-Remaining: 1", "X-RateLimit-Reset: 1470173023.123", stamp(1470173023, 10*s)},
		want: ok(budget("", 10, 1, 10123*time.Millisecond, 0))},
	{id: "D21", status: 200, lines: []string{"X-RateLimit-Limit: 10", "X-RateLimit-Remaining: 1", "X-RateLimit-Reset: 1470173023.123", "X-RateLimit-Reset-After: 64.57", stamp(1470173023, 10*s)},
		want: ok(budget("", 10, 1, 64570*time.Millisecond, 0))}, // relative beats absolute
	{id: "D22", dialect: discord, status: 429, body: `{"retry_after": 1336.57}`, lines: []string{"Retry-After: 1337", "X-RateLimit-Remaining: 9",
		"X-RateLimit-Reset-After: 64.57", "X-RateLimit-Scope: shared"},
		want: scoped("endpoint", limited(1337*s, budget("route", unknown, 9, 64570*time.Millisecond, 0)))},
	{id: "D23", dialect: discord, status: 429, body: `{"retry_after":64.57,"global":true}`, lines: []string{"Retry-After: 65", "X-RateLimit-Global: true", "X-RateLimit-Scope: global"},
		want: scoped("provider", limited(65*s))},
	{id: "D23", dialect: discord, status: 429, body: `{"retry_after":64.57,"global":true}`, lines: []string{"X-RateLimit-Scope: global"},
		want: scoped("provider", limited(64570*time.Millisecond))},
	{id: "D25", status: 429, lines: []string{"X-Rate-Limit-Policy: p", "X-Rate-Limit-Remaining: 0", "X-Rate-Limit-Reset: 1772449260"},
		want: limited(time.Minute, budget("", unknown, 0, time.Minute, 0))},
	{id: "D26", dialect: linear, status: 200, lines: []string{"X-RateLimit-Requests-Limit: 1500", "X-RateLimit-Requests-Remaining: 1499", "X-RateLimit-Requests-Reset: 1772449230500",
		"X-Complexity: 12", "X-RateLimit-Complexity-Limit: 250000", "X-RateLimit-Complexity-Remaining: 0", "X-RateLimit-Complexity-Reset: 1772452800000"},
		want: costing("complexity", 12, ok(budget("requests", 1500, 1499, 30500*time.Millisecond, 0), of("complexity", budget("complexity", 250000, 0, time.Hour, 0))))},
	{id: "D26", status: 429, lines: []string{"X-RateLimit-Requests-Limit: 1500", "X-RateLimit-Requests-Remaining: 0", "X-RateLimit-Requests-Reset: 1772449230500"},
		want: limited(30500*time.Millisecond, of("requests", budget("requests", 1500, 0, 30500*time.Millisecond, 0)))},
	{id: "D27", dialect: `budgets: [{name: unified, reset: {header: anthropic-ratelimit-unified-reset, as: epoch}}]`,
		status: 429, lines: []string{"anthropic-ratelimit-unified-reset: 1772449260"}, want: limited(time.Minute, budget("unified", unknown, unknown, time.Minute, 0))},
	{id: "D28", dialect: dnsdb, status: 200, body: `{"rate":{"limit":1000000,"remaining":999970,"reset":1551830400,"expires":null,"results_max":null}}`,
		lines: []string{stamp(1551830400, time.Hour)}, want: ok(budget("quota", 1000000, 999970, time.Hour, 0))},
	{id: "D28", dialect: dnsdb, status: 200, body: `{"rate":{"limit":"unlimited","remaining":5,"reset":"n/a"}}`, want: ok(budget("quota", unknown, 5, 0, 0))},
}

const gitlab = `
budgets:
  - name: throttle
    limit: {header: RateLimit-Limit}
    remaining: {header: RateLimit-Remaining}
    used: {header: RateLimit-Observed}
    reset: {header: RateLimit-Reset, as: epoch}
`

const linear = `
budgets:
  - name: requests
    limit: {header: X-RateLimit-Requests-Limit}
    remaining: {header: X-RateLimit-Requests-Remaining}
    reset: {header: X-RateLimit-Requests-Reset, as: epoch_ms}
  - name: complexity
    unit: complexity
    limit: {header: X-RateLimit-Complexity-Limit}
    remaining: {header: X-RateLimit-Complexity-Remaining}
    reset: {header: X-RateLimit-Complexity-Reset, as: epoch_ms}
used:
  complexity: {header: X-Complexity}
`

const dnsdb = `
budgets:
  - name: quota
    limit: {json: $.rate.limit}
    remaining: {json: $.rate.remaining}
    reset: {json: $.rate.reset, as: epoch}
`
