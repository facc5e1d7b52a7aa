package rdap_test

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a registry's server says: data, "no data", or why it is neither.
func TestWhatARegistrysAnswerMeans(t *testing.T) {
	const problem = `{"errorCode":404,"title":"not found"}`
	for _, c := range []struct {
		want string // data, nothing, or an outcome
		says answer
	}{
		{"data", answer{status: 200, body: domain}},
		{"data", answer{status: 200, body: `{"rdapConformance":["rdap_level_0"],"notices":[]}`}},
		{"nothing", answer{status: 404}},
		{"nothing", answer{status: 404, body: " \n"}},
		{"nothing", answer{status: 404, body: problem, header: []string{"Content-Type", "application/rdap+json"}}},
		{"nothing", answer{status: 200, body: problem}},
		{"rejected", answer{status: 404, body: "<html>no such page</html>"}},
		{"rejected", answer{status: 404, body: problem, header: []string{"Content-Encoding", "br"}}},
		{"rejected", answer{status: 400, body: `{"errorCode":400}`}},
		{"rejected", answer{status: 406}},
		{"rejected", answer{status: 451}},
		{"rejected", answer{status: 200, body: `{"rdapConformance":["rdap_level_0"],"errorCode":500}`}},
		{"rejected", answer{status: 200, body: "<html>log in</html>"}},
		{"rejected", answer{status: 200, body: "{}"}},
		{"rejected", answer{status: 200, body: "[" + domain + "]"}},
		{"rejected", answer{status: 200, body: domain + domain}},
		{"rejected", answer{status: 200, body: `{"objectClassName":7}`}},
		{"rejected", answer{status: 200, body: domain, header: []string{"Content-Encoding", "br"}}},
		{"rejected", answer{status: 300, body: domain, header: []string{"Location", "https://other.test/"}}},
		{"rejected", answer{status: 304, header: []string{"Location", "https://other.test/"}}},
		{"unknown", answer{status: 200}},
		{"unknown", answer{status: 204}},
		{"unauthorized", answer{status: 401}},
		{"unauthorized", answer{status: 403}},
		{"rate_limited", answer{status: 429}},
		{"rate_limited", answer{status: 200, body: `{"errorCode":429}`}},
		{"rate_limited", answer{status: 403, header: []string{"Retry-After", "60"}}},
		{"overloaded", answer{status: 503}},
		{"failed", answer{status: 500}},
	} {
		r, err := atRegistry(t, c.says)
		switch c.want {
		case "data":
			require.NoError(t, err, "%v", c.says)
			assert.False(t, r.Empty, "%v", c.says)
			require.Len(t, items(t, r), 1)
			assert.JSONEq(t, c.says.body, string(items(t, r)[0]))
		case "nothing":
			require.NoError(t, err, "%v", c.says)
			assert.True(t, r.Empty, "%v", c.says)
			assert.Equal(t, "[]", string(r.Data))
			assert.Empty(t, r.Next)
		default:
			f := feedback(t, err)
			assert.Equal(t, provider.Outcome(c.want), f.Outcome, "%v", c.says)
			assert.False(t, f.Unanswered)
			assert.Contains(t, err.Error(), "rdap: rdap.nic.test: "+c.want+": status ")
			assert.ErrorIs(t, err, adapters.StatusError(c.says.status))
		}
	}
}

// rdap.org's words, as it documents them: it knows who knows, and nothing else.
func TestWhatTheBootstrapServersAnswerMeans(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   provider.Outcome
		detail string
	}{
		{404, "", provider.Rejected, "status 404: no RDAP server is known for this"},
		{404, `{"errorCode":404}`, provider.Rejected, "status 404: no RDAP server is known for this"},
		{404, "<html>", provider.Rejected, "status 404: no RDAP server is known for this"},
		{200, `{"errorCode":404}`, provider.Rejected, "status 200: no RDAP server is known for this"},
		{400, "", provider.Rejected, "status 400"},
		{403, "", provider.Banned, "status 403: blocked, as rdap.org documents it"},
		{401, "", provider.Unauthorized, "status 401"},
		{429, "", provider.RateLimited, "status 429"},
		{502, "", provider.Failed, "status 502"},
	} {
		_, err := atRoot(t, answer{status: c.status, body: c.body})
		f := feedback(t, err)
		assert.Equal(t, c.want, f.Outcome, c.status)
		assert.Equal(t, c.detail, f.Detail)
		assert.Empty(t, f.Scope)
		assert.False(t, f.Empty)
	}
	r, err := atRoot(t, answer{status: 200, body: domain})
	require.NoError(t, err)
	assert.False(t, r.Empty, "what it should know after all is data")
}

// One registry's refusal and budgets say nothing of the other servers.
func TestARegistrySpeaksForItself(t *testing.T) {
	told := []string{"Retry-After", "90", "X-RateLimit-Limit", "10", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "3600", "Date", "Tue, 01 Dec 2026 12:00:00 GMT"}
	for _, status := range []int{429, 503} {
		_, err := atRegistry(t, answer{status: status, header: told})
		f := feedback(t, err)
		assert.Equal(t, 90*time.Second, f.RetryAfter)
		assert.Equal(t, provider.ScopeEndpoint, f.Scope)
		assert.Empty(t, f.Budgets)
		assert.Zero(t, f.Date)
	}
	r, err := atRegistry(t, answer{status: 200, body: domain, header: told})
	require.NoError(t, err)
	assert.Empty(t, r.Feedback.Budgets)
	assert.Zero(t, r.Feedback.Date)

	_, err = atRoot(t, answer{status: 429, header: told})
	f := feedback(t, err)
	assert.Equal(t, 90*time.Second, f.RetryAfter)
	assert.Empty(t, f.Scope, "the provider")
	assert.Len(t, f.Budgets, 1)
	assert.Equal(t, time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC), f.Date)
}

func TestAnAnswerIsBounded(t *testing.T) {
	const most = 1 << 20
	for size, data := range map[int]bool{most: true, most + 1: false, 4 << 20: false} {
		r, err := atRegistry(t, answer{status: 200, body: domain + strings.Repeat(" ", size-len(domain))})
		if data {
			require.NoError(t, err)
			assert.Len(t, items(t, r), 1)
			continue
		}
		f := feedback(t, err)
		assert.Equal(t, []any{provider.Rejected, "status 200: the answer is longer than 1 MiB"}, []any{f.Outcome, f.Detail})
	}
}

func TestAnyBytesBecomeJSON(t *testing.T) {
	r, err := atRegistry(t, answer{status: 200, body: "{\"objectClassName\":\"x\",\"a\":\"\xff<é>\"}"})
	require.NoError(t, err)
	assert.Equal(t, "[{\"objectClassName\":\"x\",\"a\":\"\ufffd<é>\"}]", string(r.Data))
}
