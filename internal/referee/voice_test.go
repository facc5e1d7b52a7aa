package referee

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

// speaking is provider p with endpoints a and b, its limits and a dialect.
func speaking(d provider.Dialect, limits ...provider.Limit) Play {
	p := named
	p.Dialect = d
	return Play{Provider: p, Limits: limits, Speak: true}
}

var (
	perMinute = provider.Limit{Name: "minute", Max: 1, Per: "1m"}
	perDay    = provider.Limit{Name: "day", Max: 1, Per: provider.Day, Scope: provider.ScopeKey}
)

// secondAnswer is the second answer of a provider that allows one call.
func secondAnswer(t *testing.T, d provider.Dialect, l provider.Limit) (status int, h http.Header, body string) {
	t.Helper()
	served(t, speaking(d, l), func(t *testing.T, r *Referee, url string) {
		time.Sleep(250 * ms)
		ok, _, _ := do(t, r, "GET", url+"/a")
		require.Equal(t, 200, ok)
		time.Sleep(500 * ms)
		status, h, body = do(t, r, "GET", url+"/a")
	})
	return status, h, body
}

func TestARefusalIsTheSignalThatFitsTheLimit(t *testing.T) {
	code := func(equals string) *provider.Match { return &provider.Match{Path: "$.error.code", Equals: equals} }
	rate := provider.Signal{Status: []int{403}, Outcome: provider.RateLimited}
	quota := provider.Signal{Status: []int{402}, Outcome: provider.QuotaSpent}
	for _, c := range []struct {
		name    string
		signals []provider.Signal
		limit   provider.Limit
		status  int
		body    string
	}{
		{"none is declared", nil, perMinute, 429, `{"error":"refused"}`},
		{"a rate", []provider.Signal{quota, rate}, perMinute, 403, `{"error":"refused"}`},
		{"a quota", []provider.Signal{rate, quota}, perDay, 402, `{"error":"refused"}`},
		{"a quota, and only the rate has a word", []provider.Signal{rate}, perDay, 403, `{"error":"refused"}`},
		{"a rate, and only the quota has a word", []provider.Signal{quota}, perMinute, 429, `{"error":"refused"}`},
		{"by name", []provider.Signal{quota, {Status: []int{503}, JSON: code("7"), Outcome: provider.QuotaSpent, Limit: "day"}}, perDay, 503, `{"error":{"code":7}}`},
		{"another one's name", []provider.Signal{{Status: []int{422}, Outcome: provider.RateLimited, Limit: "other"}, rate}, perMinute, 403, `{"error":"refused"}`},
		{"one word for all quotas", []provider.Signal{{Status: []int{422}, Outcome: provider.QuotaSpent, Limit: "other"}, rate}, perDay, 422, `{"error":"refused"}`},
		{"by scope", []provider.Signal{quota, {Status: []int{422}, Outcome: provider.QuotaSpent, Scope: provider.ScopeKey}}, perDay, 422, `{"error":"refused"}`},
		{"nothing is a refusal but these", []provider.Signal{{Status: []int{400}, Outcome: provider.Rejected}}, perMinute, 429, `{"error":"refused"}`},
		{"what 429 means", []provider.Signal{{Status: []int{429}, Outcome: provider.Banned}}, perMinute, 429, `{"error":"refused"}`},
		{"without a body", []provider.Signal{{Status: []int{204}, Outcome: provider.RateLimited}}, perMinute, 204, ""},
		{"in a text", []provider.Signal{{Status: []int{200}, Body: "(?i)^API count exceeded", Outcome: provider.RateLimited}}, perMinute, 200, "api count exceeded"},
		{"in text and code", []provider.Signal{{JSON: code("true"), Body: "per (day|month)", Outcome: provider.RateLimited}}, perMinute, 200, `{"error":{"code":true},"message":"per day"}`},
		{"in a member beside", []provider.Signal{{JSON: code("x"), Body: `"why":\s*"rate`, Outcome: provider.RateLimited}}, perMinute, 200, `{"error":{"code":"x"},"why":"rate"}`},
		{"with signs of HTML", []provider.Signal{{JSON: &provider.Match{Path: "$.page", Matches: "^<title>"}, Outcome: provider.RateLimited}}, perMinute, 200, `{"page":"<title>"}`},
		{"not as one before it", []provider.Signal{{Status: []int{403}, Body: "refused", Outcome: provider.Unauthorized}, rate}, perMinute, 403, `{"message":"no"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, _, body := secondAnswer(t, provider.Dialect{Signals: c.signals}, c.limit)
			assert.Equal(t, c.status, status)
			assert.Equal(t, c.body, body)
		})
	}
}

func TestAHeaderOfASignal(t *testing.T) {
	d := provider.Dialect{Signals: []provider.Signal{
		{Status: []int{429}, Header: &provider.Match{Name: "x-window", Matches: "^(day|week)$"}, Outcome: provider.QuotaSpent},
		{Status: []int{429}, Header: &provider.Match{Name: "x-window", Equals: "minute"}, Outcome: provider.RateLimited},
	}}
	_, h, _ := secondAnswer(t, d, perDay)
	assert.Equal(t, "day", h.Get("X-Window"))
	_, h, _ = secondAnswer(t, d, perMinute)
	assert.Equal(t, "minute", h.Get("X-Window"))
}

// Several signals that fit alike are all heard, one after the other.
func TestWordsForTheSameTakeTurns(t *testing.T) {
	d := provider.Dialect{Signals: []provider.Signal{{Status: []int{403}, Outcome: provider.RateLimited}, {Status: []int{418}, Outcome: provider.RateLimited}}}
	served(t, speaking(d, perMinute), func(t *testing.T, r *Referee, url string) {
		do(t, r, "GET", url+"/a")
		heard := map[int]int{}
		for range 6 {
			status, _, _ := do(t, r, "GET", url+"/a")
			heard[status]++
		}
		assert.Equal(t, map[int]int{403: 3, 418: 3}, heard)
	})
}

// The wait is 59.5 s at each of these answers, until 60.25 s after the beginning of
// the year 2000.
func TestTheWaitIsToldWhereAndAsTheDialectSays(t *testing.T) {
	header := func(as, pattern string) provider.Source {
		return provider.Source{Header: "X-Wait", As: as, Pattern: pattern}
	}
	for _, c := range []struct {
		source provider.Source
		want   string
	}{
		{header("seconds", ""), "60"},
		{header("retry_after", ""), "60"},
		{header("", ""), "60"},
		{header("milliseconds", ""), "59500"},
		{header("duration", ""), "59.5s"},
		{header("duration", `^(\d+s)$`), "60s"},
		{header("duration", `(\d+ms)`), "59500ms"},
		{header("epoch", ""), "946684861"},
		{header("epoch_ms", ""), "946684860250"},
		{header("http_date", ""), "Sat, 01 Jan 2000 00:01:01 GMT"},
		{header("rfc3339", ""), "2000-01-01T00:01:01Z"},
		{header("date", ""), "2000-01-01T00:01:00.250Z"},
		{header("date", `until (\d+-\d+-\d+ \d+:\d+:\d+)$`), "until 2000-01-01 00:01:01"},
		{header("seconds", `(?i)retry in (\d+) seconds?`), "retry in 60 second"},
		{provider.Source{Header: "X-Wait", As: "seconds", Index: 2}, ", , 60"},
	} {
		d := provider.Dialect{RetryAfter: []provider.Source{c.source}}
		_, h, _ := secondAnswer(t, d, perMinute)
		assert.Equal(t, c.want, h.Get("X-Wait"), "%+v", c.source)
		assert.Empty(t, h.Get("Retry-After"), "told elsewhere")
	}
	for _, c := range []struct {
		source provider.Source
		want   string
	}{
		{provider.Source{JSON: "$.retry_after", As: "seconds"}, `{"retry_after":60}`},
		{provider.Source{JSON: "$.error.details[*].delay", As: "duration"}, `{"error":{"details":[{"delay":"59.5s"}]}}`},
		{provider.Source{JSON: `$["api-error"]`, Pattern: `in (\d+) s`, As: "seconds"}, `{"api-error":"in 60 s"}`},
		{provider.Source{Body: true, Pattern: `banned until (\S+),`, As: "rfc3339"}, "banned until 2000-01-01T00:01:01Z,"},
	} {
		_, h, body := secondAnswer(t, provider.Dialect{RetryAfter: []provider.Source{c.source}}, perMinute)
		assert.Equal(t, c.want, body)
		assert.Empty(t, h.Get("Retry-After"))
	}
}

func TestTheFirstPlaceThatSuchAnAnswerHas(t *testing.T) {
	inBody := provider.Source{JSON: "$.wait", As: "seconds"}
	d := provider.Dialect{
		RetryAfter: []provider.Source{inBody, {Header: "X-Wait", As: "milliseconds"}},
		Signals:    []provider.Signal{{Status: []int{204}, Outcome: provider.RateLimited}},
	}
	_, h, body := secondAnswer(t, d, perMinute)
	assert.Empty(t, body)
	assert.Equal(t, "59500", h.Get("X-Wait"))
	d.RetryAfter = []provider.Source{inBody}
	_, h, _ = secondAnswer(t, d, perMinute)
	assert.Equal(t, "60", h.Get("Retry-After"), "the convention")
	d.Only = true
	_, h, _ = secondAnswer(t, d, perMinute)
	assert.Empty(t, h.Get("Retry-After"), "which is none here")
	d = provider.Dialect{Signals: []provider.Signal{{Status: []int{200}, Body: "^over", Outcome: provider.RateLimited}}, RetryAfter: []provider.Source{inBody}}
	_, h, body = secondAnswer(t, d, perMinute)
	assert.Equal(t, "over", body, "a text has no members")
	assert.Equal(t, "60", h.Get("Retry-After"))
}

func TestANeverCuredRefusalPromisesNothing(t *testing.T) {
	served(t, speaking(provider.Dialect{}, perMinute), func(t *testing.T, r *Referee, url string) {
		status, h, _ := do(t, r, "GET", url+"/a", "X-Cost-Requests", "2")
		assert.Equal(t, 429, status)
		assert.Empty(t, h.Values("Retry-After"))
	})
}

func TestWhatCannotBeSaidIsAnErrorOfNew(t *testing.T) {
	budget := func(b provider.BudgetSource) provider.Dialect {
		return provider.Dialect{Budgets: []provider.BudgetSource{b}}
	}
	remaining := func(s provider.Source) provider.Dialect {
		return budget(provider.BudgetSource{Name: "minute", Remaining: s})
	}
	for text, d := range map[string]provider.Dialect{
		`dialect.budgets[0].name: "hour", would have to be that of a limit`: budget(provider.BudgetSource{Name: "hour", Remaining: provider.Source{Header: "X-Left"}}),
		`dialect.budgets[0].remaining.json: $[?@.a].b: would have to be`:    remaining(provider.Source{JSON: "$[?@.a].b"}),
		`dialect.signals[0].json.path: $.a[1:2]: would have to be`:          {Signals: []provider.Signal{{JSON: &provider.Match{Path: "$.a[1:2]", Equals: "1"}, Outcome: provider.RateLimited}}},
		`dialect.signals[0].body: no RE2 pattern`:                           {Signals: []provider.Signal{{Body: "(", Outcome: provider.RateLimited}}},
		`index: 1, would have to be that of a header's list`:                remaining(provider.Source{JSON: "$.a", Index: 1}),
		`pattern: "^([a-z]+)$" finds none of`:                               remaining(provider.Source{Header: "X-Left", Pattern: "^([a-z]+)$"}),
		`would be heard as signals[0]`:                                      {Signals: []provider.Signal{{Status: []int{403}, Outcome: provider.Unauthorized}, {Status: []int{403}, Outcome: provider.RateLimited}}},
		`a refusal with status 429`:                                         {Signals: []provider.Signal{{Status: []int{429}, Outcome: provider.Rejected}}},
		`an answer with data would be heard as none`:                        {Signals: []provider.Signal{{Status: []int{200}, Outcome: provider.Rejected}}},
		`signals: an answer with data would be heard as none`:               {Signals: []provider.Signal{{Status: []int{200}, Outcome: provider.OK, Empty: true}}},
		`has another value already`:                                         budget(provider.BudgetSource{Name: "minute", Remaining: provider.Source{JSON: "$.n"}, Used: provider.Source{JSON: "$.n"}}),
		`header X-N: says "0;1" where it would have to say "0"`:             budget(provider.BudgetSource{Name: "minute", Used: provider.Source{Header: "X-N"}, Remaining: provider.Source{Header: "X-N"}}),
		`dialect.retry_after[0]: index: 3`:                                  {RetryAfter: []provider.Source{{Body: true, Index: 3, As: "seconds"}}},
	} {
		_, err := New(1, speaking(d, perMinute))
		require.ErrorContains(t, err, text)
		require.ErrorContains(t, err, `referee: provider "p": `)
	}
	p := speaking(provider.Dialect{}, perMinute)
	p.Refuse = Answer{Status: 403}
	_, err := New(1, p)
	require.ErrorContains(t, err, "refuse: would have to be left out")
}

// What turns out to be unsayable on the way is a 500, not silence.
func TestAnAnswerWithoutRoomForTheBudgetsIsAnError(t *testing.T) {
	p := speaking(provider.Dialect{Budgets: []provider.BudgetSource{{Name: "minute", Remaining: provider.Source{JSON: "$.left"}}}}, perMinute)
	p.Answer = func(Arrival) Answer { return Answer{Body: "a text"} }
	served(t, p, func(t *testing.T, r *Referee, url string) {
		status, _, body := do(t, r, "GET", url+"/a")
		assert.Equal(t, 500, status)
		assert.Contains(t, body, "referee: json: $.left is to be told in a body that is no JSON")
	})
}
