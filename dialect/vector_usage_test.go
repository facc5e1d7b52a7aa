package dialect_test

import (
	"time"

	"github.com/headgate/headgate/provider"
)

const shopify = `
budgets: [{name: shop, used: {header: X-Shopify-Shop-Api-Call-Limit, as: used_of_limit}}]
`

const shopifyGraphQL = `
budgets:
  - name: cost
    unit: cost
    limit: {json: $.extensions.cost.throttleStatus.maximumAvailable}
    remaining: {json: $.extensions.cost.throttleStatus.currentlyAvailable}
    reset: {json: $.extensions.cost.throttleStatus.restoreRate, as: rate}
used:
  cost: {json: $.extensions.cost.actualQueryCost}
signals:
  - {status: [200], json: {path: '$.errors[*].extensions.code', equals: THROTTLED}, outcome: rate_limited, before: true}
`

const strava = `
budgets:
  - {name: quarter, limit: {header: X-RateLimit-Limit}, used: {header: X-RateLimit-Usage}}
  - {name: day, limit: {header: X-RateLimit-Limit, index: 1}, used: {header: X-RateLimit-Usage, index: 1}}
  - {name: read, limit: {header: X-ReadRateLimit-Limit, index: 1}, used: {header: X-ReadRateLimit-Usage, index: 1}}
`

const binance = `
budgets:
  - {name: weight, unit: weight, used: {header: X-MBX-USED-WEIGHT-1M}}
  - {name: orders, unit: orders, used: {header: X-MBX-ORDER-COUNT-10S}}
signals:
  - {status: [418], outcome: banned}
  - {status: [403], outcome: rejected}
`

const zendesk = `
budgets:
  - name: tickets
    limit: {header: zendesk-ratelimit-tickets-index, pattern: 'total=(\d+)'}
    remaining: {header: zendesk-ratelimit-tickets-index, pattern: 'remaining=(\d+)'}
    reset: {header: zendesk-ratelimit-tickets-index, pattern: 'resets=(\d+)', as: seconds}
`

const azure = `
budgets:
  - {name: reads, remaining: {header: x-ms-ratelimit-remaining-subscription-reads}}
  - {name: writes, remaining: {header: x-ms-ratelimit-remaining-subscription-writes}}
signals:
  - {status: [429], json: {path: $.error.code, equals: RetryableErrorDueToAnotherOperation}, outcome: failed}
`

// Usage, fractions, percentages, costs.
var usageVectors = []vector{
	{id: "D57", dialect: shopify, status: 200, lines: []string{"X-Shopify-Shop-Api-Call-Limit: 32/40"}, want: ok(using(32, budget("shop", 40, 8, 0, 0)))},
	{id: "D57", dialect: shopify, status: 429, lines: []string{"X-Shopify-Shop-Api-Call-Limit: 40/40", "Retry-After: 2.0"}, want: limited(2*s, using(40, budget("shop", 40, 0, 0, 0)))},
	{id: "D58", dialect: shopifyGraphQL, status: 200, body: `{"data":{},"extensions":{"cost":{"requestedQueryCost":252,"actualQueryCost":12,` +
		`"throttleStatus":{"maximumAvailable":1000.0,"currentlyAvailable":988.0,"restoreRate":50.0}}}}`,
		want: costing("cost", 12, ok(of("cost", budget("cost", 1000, 988, 240*time.Millisecond, 20*s))))},
	{id: "D58", dialect: shopifyGraphQL, status: 200, body: `{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}],"extensions":{"cost":{"requestedQueryCost":252,` +
		`"actualQueryCost":null,"throttleStatus":{"maximumAvailable":1000.0,"currentlyAvailable":0.5,"restoreRate":50.0}}}}`,
		want: provider.Feedback{Outcome: provider.RateLimited, Before: true, RetryAfter: 20 * s,
			Budgets: []provider.Budget{of("cost", budget("cost", 1000, 0, 20*s, 20*s))}}},
	{id: "D60", dialect: strava, status: 200, lines: []string{"X-RateLimit-Limit: 200,2000", "X-RateLimit-Usage: 200,1500", "X-ReadRateLimit-Limit: 100,1000", "X-ReadRateLimit-Usage: 8,90"},
		want: ok(using(200, budget("quarter", 200, 0, 0, 0)), using(1500, budget("day", 2000, 500, 0, 0)), using(90, budget("read", 1000, 910, 0, 0)))},
	{id: "D61", dialect: `
budgets:
  - {name: day, limit: {header: X-HubSpot-RateLimit-Daily}, remaining: {header: X-HubSpot-RateLimit-Daily-Remaining}}
  - {name: second, limit: {header: X-HubSpot-RateLimit-Secondly}, remaining: {header: X-HubSpot-RateLimit-Secondly-Remaining}}`, status: 200,
		lines: []string{"X-HubSpot-RateLimit-Daily: 250000", "X-HubSpot-RateLimit-Daily-Remaining: 249999", "X-HubSpot-RateLimit-Secondly: 10", "X-HubSpot-RateLimit-Secondly-Remaining: 9"},
		want:  ok(budget("day", 250000, 249999, 0, 24*time.Hour), budget("second", 10, 9, 0, s))},
	{id: "D63", dialect: binance, status: 418, lines: []string{"Retry-After: 259200", "X-MBX-USED-WEIGHT-1M: 6100"},
		want: told(provider.Banned, 72*time.Hour, of("weight", using(6100, budget("weight", unknown, unknown, 0, time.Minute))))},
	{id: "D63", dialect: binance, status: 403, want: told(provider.Rejected, 0)},
	{id: "D63", dialect: binance, status: 429, lines: []string{"X-MBX-ORDER-COUNT-10S: 51"},
		want: limited(0, of("orders", using(51, budget("orders", unknown, unknown, 0, 10*s))))},
	{id: "D64", dialect: `budgets: [{name: app, unit: percent, used: {header: X-App-Usage, pattern: '":(\d+)', as: percent}}]`, status: 200,
		lines: []string{`X-App-Usage: {"call_count":28,"total_cputime":25,"total_time":25}`}, want: ok(of("percent", using(28, budget("app", 100, 72, 0, 0))))},
	{id: "D65", dialect: `budgets: [{name: plan, limit: {header: x-amzn-RateLimit-Limit, as: rate}}]`, status: 200,
		lines: []string{"x-amzn-RateLimit-Limit: 0.5"}, want: ok(budget("plan", 1, unknown, 0, 2*s))},
	{id: "D65", dialect: `budgets: [{name: plan, limit: {header: x-amzn-RateLimit-Limit, as: rate}}]`, status: 200,
		lines: []string{"x-amzn-RateLimit-Limit: 2.5"}, want: ok(budget("plan", 2, unknown, 0, 800*time.Millisecond))},
	{id: "D66", dialect: azure, status: 200, lines: []string{"x-ms-ratelimit-remaining-subscription-reads: 11999", "x-ms-ratelimit-remaining-subscription-writes: 1199"},
		want: ok(budget("reads", unknown, 11999, 0, 0), budget("writes", unknown, 1199, 0, 0))},
	{id: "D66", dialect: azure, status: 429, lines: []string{"Retry-After: 17"}, want: limited(17 * s)},
	{id: "D66", dialect: azure, status: 429, body: `{"error":{"code":"RetryableErrorDueToAnotherOperation"}}`, want: told(provider.Failed, 0)},
	{id: "D68", dialect: zendesk, status: 429, lines: []string{"X-Rate-Limit: 700", "X-Rate-Limit-Remaining: 699", "ratelimit-limit: 700", "ratelimit-remaining: 699", "ratelimit-reset: 41",
		"zendesk-ratelimit-tickets-index: total=100; remaining=0; resets=43"},
		want: limited(43*s, budget("tickets", 100, 0, 43*s, 0), budget("", 700, 699, 41*s, 0))},
	{id: "D68", dialect: zendesk, status: 200, lines: []string{"zendesk-ratelimit-tickets-index: total=100; remaining=99; resets=41"}, want: ok(budget("tickets", 100, 99, 41*s, 0))},
	{id: "D69", dialect: `budgets: [{name: total, limit: {header: X-QUOTA-LIMIT-TOTAL}, remaining: {header: X-QUOTA-LIMIT-REMAINING}}]`, status: 200,
		lines: []string{"X-QUOTA-LIMIT-TOTAL: 50000", "X-QUOTA-LIMIT-REMAINING: 49000"}, want: ok(budget("total", 50000, 49000, 0, 0))},
}
