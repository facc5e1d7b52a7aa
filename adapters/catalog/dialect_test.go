package catalog_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
)

// The answers as the sources of each file tell them.
func TestEachProvidersAnswersAreReadAsItMeansThem(t *testing.T) {
	dialects := map[string]provider.Dialect{}
	for _, p := range all(t) {
		dialects[p.Slug] = p.Dialect
	}
	refused := func(o provider.Outcome, scope, limit string, wait time.Duration, budgets ...provider.Budget) provider.Feedback {
		return provider.Feedback{Outcome: o, Scope: scope, Limit: limit, RetryAfter: wait, Budgets: budgets}
	}
	urlscan := []string{"X-Rate-Limit-Action: search", "X-Rate-Limit-Limit: 30", "X-Rate-Limit-Reset: 2025-05-18T20:19:00.000Z", "X-Rate-Limit-Reset-After: 17"}
	told := func(remaining int64, window time.Duration) provider.Budget {
		return provider.Budget{Limit: 30, HasLimit: true, Remaining: remaining, HasRemaining: true, Reset: 17 * time.Second, HasReset: true, Window: window}
	}
	for _, c := range []struct {
		slug   string
		status int
		lines  []string
		body   string
		want   provider.Feedback
	}{
		{"virustotal", 429, nil, `{"error":{"code":"QuotaExceededError","message":"Quota exceeded"}}`, refused(provider.QuotaSpent, "key", "day", 0)},
		{"virustotal", 429, nil, `{"error":{"code":"TooManyRequestsError"}}`, refused(provider.RateLimited, "key", "", 0)},
		{"virustotal", 429, nil, "", refused(provider.RateLimited, "key", "", 0)},
		{"virustotal", 404, nil, `{"error":{"code":"NotFoundError"}}`, provider.Feedback{Outcome: provider.OK}},
		{"virustotal", 401, nil, `{"error":{"code":"WrongCredentialsError"}}`, refused(provider.Unauthorized, "", "", 0)},
		{"ip-api", 200, []string{"X-Rl: 0", "X-Ttl: 51"}, `{"status":"success"}`, provider.Feedback{Outcome: provider.OK,
			Budgets: []provider.Budget{{Name: "minute", HasRemaining: true, Reset: 51 * time.Second, HasReset: true}}}},
		{"ip-api", 429, []string{"X-Rl: 0", "X-Ttl: 51"}, "", refused(provider.RateLimited, "", "", 51*time.Second,
			provider.Budget{Name: "minute", HasRemaining: true, Reset: 51 * time.Second, HasReset: true})},
		{"urlscan", 200, append(urlscan, "X-Rate-Limit-Scope: ip-address", "X-Rate-Limit-Window: minute", "X-Rate-Limit-Remaining: 24"), `{"results":[]}`,
			provider.Feedback{Outcome: provider.OK, Budgets: []provider.Budget{told(24, time.Minute)}}},
		{"urlscan", 429, append(urlscan, "X-Rate-Limit-Scope: ip-address", "X-Rate-Limit-Window: minute", "X-Rate-Limit-Remaining: 0"), `{"message":"slow down","status":429}`,
			refused(provider.RateLimited, "provider", "", 17*time.Second, told(0, time.Minute))},
		{"urlscan", 429, append(urlscan, "X-Rate-Limit-Scope: user", "X-Rate-Limit-Window: hour", "X-Rate-Limit-Remaining: 0"), "",
			refused(provider.RateLimited, "key", "", 17*time.Second, told(0, time.Hour))},
		{"urlscan", 429, append(urlscan, "X-Rate-Limit-Scope: user", "X-Rate-Limit-Window: day", "X-Rate-Limit-Remaining: 0"), "",
			refused(provider.QuotaSpent, "key", "search-day", 17*time.Second, told(0, 24*time.Hour))},
		{"shodan", 429, []string{"retry-after: 0"}, `{"error":"Request rate limit reached (1 request/ second)."}`, refused(provider.RateLimited, "key", "", 0)},
		{"shodan", 404, nil, `{"error":"No information available for that IP."}`, provider.Feedback{Outcome: provider.OK}},
		{"crt-sh", 502, nil, "<html>", refused(provider.Overloaded, "", "", 0)},
		{"crt-sh", 200, nil, "<!DOCTYPE html>", refused(provider.Overloaded, "", "", 0)},
		{"crt-sh", 200, nil, `[{"id":1}]`, provider.Feedback{Outcome: provider.OK}},
		{"crt-sh", 429, nil, "", refused(provider.RateLimited, "", "", 0)},
	} {
		h := http.Header{}
		for _, line := range c.lines {
			name, value, _ := strings.Cut(line, ": ")
			h.Add(name, value)
		}
		f := dialect.Read(dialects[c.slug], &http.Response{StatusCode: c.status, Header: h}, []byte(c.body), time.Unix(0, 0))
		f.Detail = ""
		assert.Equal(t, c.want, f, "%s %d %v %s", c.slug, c.status, c.lines, c.body)
	}
}
