package dialect_test

import (
	"time"

	"github.com/headgate/headgate/provider"
)

const s = time.Second

// The standards: RFC 9110 and the drafts of the IETF.
var standardVectors = []vector{
	{id: "D01", status: 503, lines: []string{"Retry-After: 120"}, want: told(provider.Overloaded, 120*s)},
	{id: "D01", status: 429, lines: []string{"Retry-After: 120"}, want: limited(120 * s)},
	{id: "D01", status: 301, lines: []string{"Retry-After: 120"}, want: ok()},
	{id: "D02", status: 429, lines: []string{"Retry-After: Wed, 21 Oct 2015 07:28:00 GMT", "Date: Wed, 21 Oct 2015 07:26:30 GMT"}, want: limited(90 * s)},
	{id: "D02", status: 429, lines: []string{"Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"}, want: limited(0)}, // past
	{id: "D03", status: 200, lines: []string{`RateLimit: "default";r=50;t=30`, `RateLimit-Policy: "default";q=100;w=10`},
		want: ok(budget("default", 100, 50, 30*s, 10*s))},
	{id: "D03", status: 429, lines: []string{`RateLimit: "default";r=0;t=30`, `RateLimit-Policy: "default";q=100;w=10`},
		want: limited(30*s, budget("default", 100, 0, 30*s, 10*s))},
	{id: "D04", status: 200, lines: []string{`RateLimit-Policy: "burst";q=100;w=60,"daily";q=1000;w=86400`},
		want: ok(budget("burst", 100, unknown, 0, time.Minute), budget("daily", 1000, unknown, 0, 24*time.Hour))},
	{id: "D04", status: 200, lines: []string{`RateLimit-Policy: "burst";q=100;w=60`, `RateLimit-Policy: "daily";q=1000;w=86400`, `RateLimit: "daily";r=7`},
		want: ok(budget("daily", 1000, 7, 0, 24*time.Hour), budget("burst", 100, unknown, 0, time.Minute))},
	{id: "D05", status: 200, lines: []string{`RateLimit-Policy: "peruser";q=65535;qu="content-bytes";w=10;pk=:sdfjLJUOUH==:`,
		`RateLimit: "default";r=999;pk=:dHJpYWwxMjEzMjM=:`},
		want: ok(budget("default", unknown, 999, 0, 0), of(provider.Bytes, budget("peruser", 65535, unknown, 0, 10*s)))},
	{id: "D05", status: 200, lines: []string{`RateLimit-Policy: "a";q=5;qu="bytes";w=10, "b";q=6;qu="concurrent-requests"`},
		want: ok(of(provider.Bytes, budget("a", 5, unknown, 0, 10*s)), of("concurrent-requests", budget("b", 6, unknown, 0, 0)))},
	{id: "D06", status: 200, lines: []string{"RateLimit-Policy: quota;q=100;w=1", "RateLimit: quota;t=1"},
		want: ok(budget("quota", 100, unknown, s, s))},
	{id: "D06", dialect: "only: true", status: 200, lines: []string{"RateLimit-Policy: quota;q=100;w=1", "RateLimit: quota;t=1"}, want: ok()},
	{id: "D07", status: 429, lines: []string{"Retry-After: 20", `RateLimit-Policy: "dynamic";q=100;w=60`, `RateLimit: "dynamic";r=15;t=40`},
		want: limited(20*s, budget("dynamic", 100, 15, 40*s, time.Minute))},
	{id: "D08", status: 200, lines: []string{"RateLimit: limit=100, remaining=50, reset=5", "RateLimit-Policy: 100;w=10"},
		want: ok(budget("", 100, 50, 5*s, 10*s))},
	{id: "D08", status: 429, lines: []string{"RateLimit: limit=10, reset=1"}, want: limited(s, budget("", 10, unknown, s, 0))},
	{id: "D09", status: 200, lines: []string{"RateLimit-Limit: 100", "RateLimit-Remaining: 50", "RateLimit-Reset: 50",
		"RateLimit-Policy: 10;w=1, 50;w=60, 1000;w=3600, 5000;w=86400"},
		want: ok(budget("", 100, 50, 50*s, 0), budget("", 10, unknown, 0, s), budget("", 50, unknown, 0, time.Minute),
			budget("", 1000, unknown, 0, time.Hour), budget("", 5000, unknown, 0, 24*time.Hour))},
	{id: "D10", status: 200, lines: []string{"RateLimit-Limit: 10, 10;w=1, 50;w=60, 1000;w=3600, 5000;w=86400", "RateLimit-Remaining: 9"},
		want: ok(budget("", 10, 9, 0, s), budget("", 50, unknown, 0, time.Minute),
			budget("", 1000, unknown, 0, time.Hour), budget("", 5000, unknown, 0, 24*time.Hour))},
	{id: "D10", status: 200, lines: []string{
		`RateLimit-Limit: 100, 100;w=60;burst=1000;comment="sliding window", 5000;w=3600;burst=0;comment="fixed window"`},
		want: ok(budget("", 100, unknown, 0, time.Minute), budget("", 5000, unknown, 0, time.Hour))},
	{id: "D11", status: 429, lines: []string{`X-RateLimit-Limit: 10, 10;window=1;name="per-ip", 1000;window=3600`, "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1"},
		want: limited(s, budget("per-ip", 10, 0, s, s), budget("", 1000, unknown, 0, time.Hour))},
	{id: "D13", status: 429, lines: []string{"Content-Type: application/problem+json; charset=utf-8"},
		body: `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","violated-policies":["daily","bandwidth"]}`,
		want: spentLimit("daily", 0)},
	{id: "D13", status: 429, lines: []string{"Content-Type: application/problem+json", `RateLimit-Policy: "bandwidth";q=5;w=86400,"daily";q=10;w=3600`, `RateLimit: "bandwidth";r=0;t=600`},
		body: `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","violated-policies":["daily","bandwidth"]}`,
		want: spentLimit("bandwidth", 600*s, budget("bandwidth", 5, 0, 600*s, 24*time.Hour), budget("daily", 10, unknown, 0, time.Hour))},
	{id: "D13", status: 429, lines: []string{"Content-Type: application/problem+json", `RateLimit-Policy: "second";q=5;w=1`, `RateLimit: "second";r=0;t=1`},
		body: `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","violated-policies":["second"]}`,
		want: provider.Feedback{Outcome: provider.RateLimited, Limit: "second", RetryAfter: s, Budgets: []provider.Budget{budget("second", 5, 0, s, s)}}},
	{id: "D13", status: 500, lines: []string{"Content-Type: application/problem+json", "Retry-After: 5"},
		body: `{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"}`, want: told(provider.Overloaded, 5*s)},
	{id: "D13", status: 400, lines: []string{"Content-Type: application/problem+json"},
		body: `{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected"}`, want: limited(0)},
	{id: "D13", status: 400, lines: []string{"Content-Type: application/problem+json"},
		body: `{"type":"about:blank"}`, want: told(provider.Rejected, 0)},
	{id: "D13", dialect: "only: true", status: 429, lines: []string{"Content-Type: application/problem+json"},
		body: `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded"}`, want: limited(0)},
}
