package dialect_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
)

// Others of the kinds that the collected dialects have.
func TestSourcesFindTheirValue(t *testing.T) {
	compute := func(at string) string {
		return `budgets: [{name: a, remaining: {header: x-ms-ratelimit-remaining-resource, ` + at + `}}]`
	}
	resources := []string{"x-ms-ratelimit-remaining-resource: Microsoft.Compute/HighCostGet3Min;139", "x-ms-ratelimit-remaining-resource: Microsoft.Compute/HighCostGet30Min;707"}
	for name, c := range map[string]struct {
		dialect string
		status  int
		lines   []string
		body    string
		want    provider.Feedback
	}{
		"milliseconds in Retry-After":                       {`retry_after: [{header: Retry-After, as: milliseconds}]`, 429, []string{"Retry-After: 6457"}, "", limited(6457 * time.Millisecond)},
		"a claimed header without advice is not read again": {`retry_after: [{header: Retry-After, as: milliseconds}]`, 429, []string{"Retry-After: Mon, 02 Mar 2026 11:00:05 GMT"}, "", limited(0)},
		"of budgets at zero the latest": {"budgets:\n  - {name: a, remaining: {header: L}, reset: {header: A}}\n  - {name: b, remaining: {header: L}, reset: {header: B}}\n  - {name: c, reset: {header: C}}", 429,
			[]string{"L: 0", "A: 9", "B: 5", "C: 60"}, "", limited(9*s, budget("a", unknown, 0, 9*s, 0), budget("b", unknown, 0, 5*s, 0), budget("c", unknown, unknown, time.Minute, 0))},
		"an amount out of reason": {"used: {credits: {header: L}}\nbudgets: [{name: a, remaining: {header: L}, used: {header: L}}]", 200, []string{"L: 9223372036854775807.5"}, "", ok()},
		"milliseconds in a reset": {`budgets: [{name: a, remaining: {header: X-Rate-Limit-Remaining}, reset: {header: X-Rate-Limit-Reset, as: milliseconds}}]`, 429,
			[]string{"X-Rate-Limit-Limit: 10", "X-Rate-Limit-Remaining: 0", "X-Rate-Limit-Reset: 600000"}, "", limited(10*time.Minute, budget("a", unknown, 0, 10*time.Minute, 0))},
		"line by key":                    {compute(`pattern: 'HighCostGet30Min;(\d+)'`), 200, resources, "", ok(budget("a", unknown, 707, 0, 0))},
		"line by index":                  {compute(`pattern: ';(\d+)', index: 1`), 200, resources, "", ok(budget("a", unknown, 707, 0, 0))},
		"of several lines the least":     {compute(`pattern: ';(\d+)'`), 200, resources, "", ok(budget("a", unknown, 139, 0, 0))},
		"index out of range":             {compute(`pattern: ';(\d+)', index: 2`), 200, resources, "", ok()},
		"list over several lines":        {`budgets: [{name: a, remaining: {header: L, index: 2}}]`, 200, []string{"L: 1, 2", "L: 3,4"}, "", ok(budget("a", unknown, 3, 0, 0))},
		"last of a list":                 {`budgets: [{name: a, remaining: {header: L, index: 1}}]`, 200, []string{"L: 1, 2"}, "", ok(budget("a", unknown, 2, 0, 0))},
		"beyond a list":                  {`budgets: [{name: a, remaining: {header: L, index: 2}}]`, 200, []string{"L: 1, 2"}, "", ok()},
		"first of a list":                {`budgets: [{name: a, remaining: {header: L}}]`, 200, []string{"L: 7, 2"}, "", ok(budget("a", unknown, 7, 0, 0))},
		"of lines the least remains":     {`budgets: [{name: a, remaining: {header: L}}]`, 200, []string{"L: 7", "L: 2", "L: x"}, "", ok(budget("a", unknown, 2, 0, 0))},
		"of lines the largest use":       {`budgets: [{name: a, used: {header: L}}]`, 200, []string{"L: 7", "L: 9", "L: 8"}, "", ok(using(9, budget("a", unknown, unknown, 0, 0)))},
		"of lines the longest wait":      {`retry_after: [{header: L, as: seconds}]`, 429, []string{"L: 7", "L: 9", "L: x"}, "", limited(9 * s)},
		"a date keeps its comma":         {`retry_after: [{header: L, as: http_date}]`, 429, []string{"L: Mon, 02 Mar 2026 11:00:05 GMT"}, "", limited(5 * s)},
		"the first advice wins":          {`retry_after: [{header: L, as: seconds}, {header: M, as: seconds}]`, 429, []string{"L: 0", "M: 3", "Retry-After: 60"}, "", limited(3 * s)},
		"else Retry-After":               {`retry_after: [{header: L, as: seconds}]`, 429, []string{"L: -1", "Retry-After: 60"}, "", limited(60 * s)},
		"only what is declared":          {"only: true\nretry_after: [{header: L, as: seconds}]", 429, []string{"L: -1", "Retry-After: 60", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 9"}, "", limited(0)},
		"JSON key":                       {`retry_after: [{json: "$['retry-in']"}]`, 429, nil, `{"retry-in":"1m30s"}`, limited(90 * s)},
		"JSON index":                     {`retry_after: [{json: '$.waits[*]', index: 1, as: seconds}]`, 429, nil, `{"waits":[1,2,3]}`, limited(2 * s)},
		"JSON first node":                {`retry_after: [{json: '$.waits[*]', as: seconds}]`, 429, nil, `{"waits":[1,2,3]}`, limited(1 * s)},
		"JSON filter":                    {`retry_after: [{json: '$.d[?@.k == 2].w', as: seconds}]`, 429, nil, `{"d":[{"k":1,"w":5},{"k":2,"w":6}]}`, limited(6 * s)},
		"JSON with a pattern":            {`retry_after: [{json: $.message, pattern: 'in (\S+)\.', as: duration}]`, 429, nil, `{"message":"try again in 20.5s."}`, limited(20500 * time.Millisecond)},
		"JSON of another type":           {`retry_after: [{json: $.a, as: seconds}]`, 429, nil, `{"a":{"b":1}}`, limited(0)},
		"JSON null":                      {`retry_after: [{json: $.a, as: seconds}]`, 429, nil, `{"a":null}`, limited(0)},
		"JSON with junk behind":          {`retry_after: [{json: $.a, as: seconds}]`, 429, nil, `{"a":5} {"a":6}`, limited(0)},
		"JSON negative":                  {`retry_after: [{json: $.a, as: seconds}]`, 429, nil, `{"a":-5}`, limited(0)},
		"JSON exponent":                  {`retry_after: [{json: $.a, as: seconds}]`, 429, nil, `{"a":1e999}`, limited(0)},
		"a body's largest use":           {`used: {tokens: {body: true, pattern: '"total_tokens":(\d+)'}}`, 200, nil, "data: {\"total_tokens\":5}\n\ndata: {\"total_tokens\":17}\n", costing("tokens", 17, ok())},
		"a cost is rounded up":           {`used: {credits: {header: X-Cost}}`, 200, []string{"X-Cost: 1.2"}, "", costing("credits", 2, ok())},
		"a cost of a refusal":            {`used: {credits: {header: X-Cost}}`, 429, []string{"X-Cost: 0"}, "", costing("credits", 0, limited(0))},
		"no cost":                        {`used: {credits: {header: X-Cost}}`, 200, []string{"X-Cost: -1"}, "", ok()},
		"window of its own":              {`budgets: [{name: a, limit: {header: L}, window: {header: W}}]`, 200, []string{"L: 5", "W: hour"}, "", ok(budget("a", 5, unknown, 0, time.Hour))},
		"window in milliseconds":         {`budgets: [{name: a, limit: {header: L}, window: {header: W, as: milliseconds}}]`, 200, []string{"L: 5", "W: 1500"}, "", ok(budget("a", 5, unknown, 0, 1500*time.Millisecond))},
		"window alone":                   {`budgets: [{name: a, window: {header: W}}]`, 200, []string{"W: 60"}, "", ok()},
		"a limit of 0 is none":           {`budgets: [{name: a, limit: {header: L}, remaining: {header: R}}]`, 200, []string{"L: 0", "R: 0"}, "", ok(budget("a", unknown, 0, 0, 0))},
		"an unlimited limit":             {`budgets: [{name: a, limit: {header: L}, remaining: {header: R}}]`, 200, []string{"L: unlimited", "R: -1"}, "", ok()},
		"fraction over its limit":        {`budgets: [{name: a, remaining: {header: F, as: used_of_limit}}]`, 200, []string{"F: 45 / 40"}, "", ok(using(45, budget("a", 40, 0, 0, 0)))},
		"of fractions the largest share": {`budgets: [{name: a, used: {header: F, as: used_of_limit}}]`, 200, []string{"F: 5/40", "F: 4/8", "F: 30/80"}, "", ok(using(4, budget("a", 8, 4, 0, 0)))},
		"no fraction":                    {`budgets: [{name: a, used: {header: F, as: used_of_limit}}]`, 200, []string{"F: 45/0"}, "", ok()},
		"percent with a sign":            {`budgets: [{name: a, used: {header: F, as: percent}}]`, 200, []string{"F: 99.5 %"}, "", ok(using(100, budget("a", 100, 0, 0, 0)))},
		"a rate of nothing":              {`budgets: [{name: a, limit: {header: F, as: rate}}]`, 200, []string{"F: 0.0"}, "", ok()},
		"a rate out of reason":           {`budgets: [{name: a, limit: {header: F, as: rate}}]`, 200, []string{"F: 0.000000000001"}, "", ok()},
		"quota: the named one's reset": {"budgets:\n  - {name: day, reset: {header: D}}\n  - {name: minute, remaining: {header: R}, reset: {header: M}}\nsignals: [{status: [429], outcome: quota_spent, limit: day}]",
			429, []string{"D: 3600", "R: 0", "M: 5"}, "", spentLimit("day", time.Hour, budget("day", unknown, unknown, time.Hour, 0), budget("minute", unknown, 0, 5*s, 0))},
		"an overload is not cured by a reset": {"", 503, []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 50"}, "", told(provider.Overloaded, 0, budget("", unknown, 0, 50*s, 0))},
		"no data":                             {`signals: [{status: [404], json: {path: $.code, equals: NotFound}, outcome: ok}]`, 404, nil, `{"code":"NotFound"}`, ok()},
	} {
		f := readBy(t, c.dialect, c.status, c.body, c.lines...)
		f.Detail = ""
		assert.Equal(t, c.want, f, name)
	}
}

func TestTheDetailNamesTheSignalAndNothingOfTheAnswer(t *testing.T) {
	f := readBy(t, lying, 200, "API count exceeded")
	assert.Equal(t, "status 200: dialect.signals[2]", f.Detail)
	f = readBy(t, `signals: [{status: [404], outcome: ok}]`, 404, "{}")
	assert.Equal(t, "status 404: no data", f.Detail)
}

func TestTwoFamiliesThatTellTheSameAreOneBudget(t *testing.T) {
	// express-rate-limit sends both: seconds here, an epoch there.
	f := readBy(t, "", 200, "", "RateLimit-Limit: 5", "RateLimit-Remaining: 3", "RateLimit-Reset: 60", "X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 3", "X-RateLimit-Reset: 1772449261")
	assert.Equal(t, ok(budget("", 5, 3, time.Minute, 0)), f)
	f = readBy(t, "", 200, "", "RateLimit-Limit: 5", "RateLimit-Remaining: 3", "X-RateLimit-Limit: 50", "X-RateLimit-Remaining: 30")
	assert.Equal(t, ok(budget("", 5, 3, 0, 0), budget("", 50, 30, 0, 0)), f)
}

func TestABudgetThatTheDeclarationReadsIsNotReadAgain(t *testing.T) {
	f := readBy(t, `budgets: [{name: mine, reset: {header: x-ratelimit-reset, as: milliseconds}}]`, 200, "",
		"X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 600000", "X-RateLimit-Limit-Minute: 9")
	assert.Equal(t, ok(budget("mine", unknown, unknown, 10*time.Minute, 0), budget("minute", 9, unknown, 0, time.Minute)), f)
}

// Malformed, repeated, hostile: nothing of it is a budget at zero or a wait.
func TestHostileFields(t *testing.T) {
	for _, line := range []string{
		`RateLimit: "a`, `RateLimit: "a";r=-1;t=-5`, `RateLimit: "a";r=999999999999999999;t=1`, `RateLimit: ("a" "b");r=0;t=5`, "RateLimit: \xff\xfe", "RateLimit: ,,,",
		`RateLimit: ?1;r=0;t=9`, "RateLimit: " + strings.Repeat(`"a";r=0;t=9,`, 2000), "RateLimit: limit=(1 2), remaining=a, reset=-3",
		"RateLimit-Policy: 0;w=1", "RateLimit-Policy: -5;w=1", `RateLimit-Policy: "a";q=0;w=5`, `RateLimit-Policy: 5`,
		"X-RateLimit-Remaining: -5", "X-RateLimit-Remaining: NaN", "X-RateLimit-Remaining: 1e5", "X-RateLimit-Remaining: 99999999999999999999", "X-RateLimit-Remaining:",
		"X-RateLimit-Reset: -1", "X-RateLimit-Reset: 1609844400", "X-RateLimit-Reset: Infinity", "X-RateLimit-Reset: 31536000000", "X-RateLimit-Limit: 0",
		"X-RateLimit: garbage", "X-RateLimited: 0", "X-RateLimit-Bucket: 0", "X-RateLimit-Retry-After: -1", "X-RateLimit-Limit-" + strings.Repeat("a", 100) + ": 5",
		"Retry-After-Ms: -1", "Retry-After-Ms: 1e999", "X-RateLimit-Reset-After: inf",
	} {
		f := readBy(t, "", 429, "", line)
		assert.Zero(t, f.RetryAfter, "%q", line)
		assert.Empty(t, f.Budgets, "%q", line)
	}
	var many []string
	for range 3000 {
		many = append(many, `RateLimit-Policy: 5;w=1`)
	}
	assert.LessOrEqual(t, len(readBy(t, "", 200, "", many...).Budgets), 64)
	for i := range 100 {
		many[i] = "X-RateLimit-Remaining-" + strconv.Itoa(i) + ": 1"
	}
	assert.Len(t, readBy(t, "", 200, "", many[:100]...).Budgets, 64)
}

// An unvalidated declaration may be nonsense: it reads nothing, and does not panic.
func TestANonsensicalDeclarationReadsNothing(t *testing.T) {
	bad := provider.Source{Header: "A", Pattern: "("}
	d := provider.Dialect{
		Budgets:    []provider.BudgetSource{{}, {Limit: bad, Remaining: provider.Source{JSON: "$["}, Reset: provider.Source{Header: "A", As: "weeks"}, Window: bad}},
		RetryAfter: []provider.Source{bad, {}, {Header: "A", Pattern: "1"}, {Header: "A", Index: -1}, {JSON: "nope"}},
		Used:       map[string]provider.Source{"": {}, "x": bad},
		Signals:    []provider.Signal{{}, {Body: "(", Outcome: provider.OK}, {Header: &provider.Match{}}, {JSON: &provider.Match{}}, {Header: &provider.Match{Name: "A", Matches: "("}}},
	}
	f := dialect.Read(d, answered(429, "A: 1"), []byte(`{"a":1}`), now)
	f.Detail = ""
	assert.Equal(t, limited(0), f)
}
