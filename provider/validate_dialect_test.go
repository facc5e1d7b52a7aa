package provider

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// placed parses a declaration with this dialect and returns its errors.
func placed(t *testing.T, dialect string) string {
	t.Helper()
	_, err := Parse([]byte("slug: x\ndialect:\n" + dialect))
	require.Error(t, err, dialect)
	return err.Error()
}

func TestADialectsFaultsHaveTheirPlace(t *testing.T) {
	for dialect, want := range map[string]string{
		"  retry_after:\n    - {json: '$.a['}":                                                            "line 4, column 14: dialect.retry_after[0].json: \"$.a[\" is no JSON path: ",
		"  budgets:\n    - name: a\n      reset: {json: '$.a.b!'}":                                        "line 5, column 21: dialect.budgets[0].reset.json: ",
		"  signals:\n    - {json: {path: '$.a[?x]', equals: b}, outcome: failed}":                         "line 4, column 21: dialect.signals[0].json.path: ",
		"  signals:\n    - {body: '(', outcome: failed}":                                                  "line 4, column 14: dialect.signals[0].body: is no RE2 pattern",
		"  used: {credits: {json: $.a, as: weeks}}":                                                       "line 3, column 35: dialect.used.credits.as: \"weeks\" is unknown",
		"  signals:\n    - {status: [404], outcome: ok}\n    - {status: [404], body: x, outcome: failed}": "line 5, column 7: dialect.signals[1]: can never match: signals[0] matches first",
		"  signals:\n    - {status: [204], body: x, outcome: rate_limited}":                               "line 4, column 7: dialect.signals[0]: can never match: no answer with such a status has a body",
		"  signals:\n    - {body: '[^\\x00-\\x{10FFFF}]', outcome: failed}":                               "dialect.signals[0].body: can never match: no character is like it",
		"  signals:\n    - {header: {name: X-A, equals: 'a '}, outcome: failed}":                          "dialect.signals[0].header.equals: can never match",
		"  retry_after:\n    - {json: $..a..b}":                                                           "dialect.retry_after[0].json: has more than one descent",
		"  retry_after:\n    - {json: '$.a[?@.b == $.c]'}":                                                "dialect.retry_after[0].json: has a $ inside a filter",
	} {
		assert.Contains(t, placed(t, dialect), want, dialect)
	}
	long := "  retry_after:\n    - {json: '$" + strings.Repeat(".a", 500) + "'}"
	assert.Contains(t, placed(t, long), "is too long: a path has at most 1000 characters")
}

func TestANotationMustBeAbleToSayTheValue(t *testing.T) {
	for dialect, want := range map[string]string{
		"  retry_after: [{header: A, as: used_of_limit}]":          `dialect.retry_after[0].as: used_of_limit is not how a wait is written: it must be one of seconds,`,
		"  used: {credits: {header: A, as: seconds}}":              `dialect.used.credits.as: seconds is not how an amount is written: leave it out`,
		"  budgets: [{name: a, remaining: {header: A, as: rate}}]": `dialect.budgets[0].remaining.as: rate is not how an amount is written: it must be one of used_of_limit, percent, or left out`,
		"  budgets: [{name: a, window: {header: A, as: epoch}}]":   `dialect.budgets[0].window.as: epoch is not how a length is written`,
		"  budgets: [{name: a, limit: {header: A, as: date}}]":     `dialect.budgets[0].limit.as: date is not how a limit is written`,
		"  budgets: [{name: a, reset: {header: A, as: percent}}]":  `dialect.budgets[0].reset.as: percent is not how a reset is written`,
		"  budgets: [{name: a, reset: {header: A, as: rate}}]":     `dialect.budgets[0].reset: is a rate, which says when the budget is whole again only beside a limit`,
	} {
		assert.Contains(t, placed(t, dialect), want, dialect)
	}
}

func TestEachNotationIsAcceptedWhereItCanSayTheValue(t *testing.T) {
	seen := map[string]bool{}
	accept := func(d Dialect, as string) {
		seen[as] = true
		assert.NoError(t, Provider{Slug: "x", Dialect: d}.Validate(), as)
	}
	for _, as := range []string{"seconds", "milliseconds", "duration", "epoch", "epoch_ms", "http_date", "rfc3339", "date", "retry_after"} {
		s := Source{Header: "A", As: as}
		accept(Dialect{RetryAfter: []Source{s}, Budgets: []BudgetSource{{Name: "a", Reset: s}}}, as)
	}
	for _, as := range []string{"used_of_limit", "percent"} {
		s := Source{Header: "A", As: as}
		accept(Dialect{Budgets: []BudgetSource{{Name: "a", Limit: s, Remaining: s, Used: s}}}, as)
	}
	accept(Dialect{Budgets: []BudgetSource{{Name: "a", Limit: Source{Header: "A", As: "rate"}, Reset: Source{Header: "B", As: "rate"}}}}, "rate")
	for _, as := range notations {
		assert.True(t, seen[as], "%s is listed and can be used nowhere", as)
	}
}

func TestASignalIsHiddenOnlyByOneThatAlwaysWinsOverIt(t *testing.T) {
	on := func(statuses ...int) Signal { return Signal{Status: statuses, Outcome: Failed} }
	body := Signal{Body: "x", Outcome: Failed}
	header := Signal{Header: &Match{Name: "A", Equals: "1"}, Outcome: Failed}
	both := Signal{Status: []int{404}, Body: "x", Header: &Match{Name: "A", Equals: "1"}, JSON: &Match{Path: "$.a", Equals: "1"}, Outcome: OK}
	for name, c := range map[string]struct {
		signals []Signal
		hidden  bool
	}{
		"same":                    {[]Signal{on(404), on(404)}, true},
		"all by several":          {[]Signal{on(404), on(410, 400), on(404, 410)}, true},
		"some":                    {[]Signal{on(404), on(404, 410)}, false},
		"narrow first":            {[]Signal{both, on(404)}, false},
		"status hides":            {[]Signal{on(404), both}, true},
		"body hides":              {[]Signal{body, both}, true},
		"header hides":            {[]Signal{header, both}, true},
		"another body":            {[]Signal{{Body: "y", Outcome: Failed}, both}, false},
		"another header":          {[]Signal{{Header: &Match{Name: "A", Equals: "2"}, Outcome: Failed}, both}, false},
		"JSON hides":              {[]Signal{{JSON: &Match{Path: "$.a", Equals: "1"}, Outcome: Failed}, both}, true},
		"another JSON":            {[]Signal{{JSON: &Match{Path: "$.a", Equals: "2"}, Outcome: Failed}, both}, false},
		"a first status is left":  {[]Signal{on(404), on(410, 404)}, false},
		"any status is not one":   {[]Signal{on(404), body}, false},
		"body of any status":      {[]Signal{body, body}, true},
		"body with and without":   {[]Signal{{Status: []int{200}, Body: "x", Outcome: Failed}, body}, false},
		"a status is left over":   {[]Signal{{Status: []int{200}, Body: "x", Outcome: Failed}, {Status: []int{200, 201}, Body: "x", Outcome: OK}}, false},
		"a body where one may be": {[]Signal{{Status: []int{204, 200}, Body: "x", Outcome: Failed}}, false},
	} {
		err := Provider{Slug: "x", Dialect: Dialect{Signals: c.signals}}.Validate()
		if c.hidden {
			assert.ErrorContains(t, err, "can never match", name)
		} else {
			assert.NoError(t, err, name)
		}
	}
}

func TestPathsThatAreUsefulAreAccepted(t *testing.T) {
	for _, path := range []string{
		"$", "$.error.code", "$['a..b']['c..d']", "$['$']['$x']", `$["\"..$"]..a`, "$.errors[*].code", "$..retryDelay", "$.a[?@.b == '$..x']", "$.d[?@.x]",
		`$[?count(@.details[*].violations[?search(@.quotaId, 'PerDay')]) == 0].details[*].retryDelay`,
	} {
		p := Provider{Slug: "x", Dialect: Dialect{RetryAfter: []Source{{JSON: path}}}}
		assert.NoError(t, p.Validate(), path)
	}
}
