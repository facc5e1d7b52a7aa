package provider

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const complete = `
slug: acme-intel            # a comment
name: Acme "Intel"
category: reputation
base_url: https://api.acme.example/v3
hosts: [eu.acme.example, "acme.example:8443"]
throttle:
  rps: 2.5
  rpd: 1e4
  burst: 3
  algorithm: leaky_bucket
  excess: delay
  max_queue: 50
  max_wait: forever
  max_in_flight: 4
  penalty: 1m30s
  warmup: 10s
  arrival_within: 500ms
  least_round_trip: 150ms
  max_retry_after: 48h
  adaptive: true
  learn: raise
  bad_answers: {max: 10, per: 10m}
  limits:
    - name: credits
      max: 15500
      per: month
      zone: America/Los_Angeles
      anchor: "15 17:30"
      unit: credits
      scope: key
      charges: [ok, rejected]
      shared: true
      source: https://acme.example/limits
    - {name: search, max: 2, per: 1s, algorithm: token_bucket, burst: 5, counted: sent,
       endpoints: [search], instead: true, basis: pacing}
endpoints:
  - name: search
    method: POST
    path: /search/{value}
    kinds: [ip, domain]
    params: {q: "{value}", limit: "10"}
    cost: {credits: 2, requests: 1}
    empty_is_suspicious: true
dialect:
  budgets:
    - name: credits
      unit: credits
      remaining: {header: X-Left, pattern: '^(\d+)', index: 1}
      reset: {json: $.reset, as: epoch_ms}
  retry_after:
    - {header: X-Wait, as: milliseconds}
    - {body: true, pattern: "in (\\d+) s", as: seconds}
  used:
    credits: {json: $.usage.total}
  signals:
    - status: [200, 403]
      header: {name: X-Error, equals: "429"}
      json: {path: $.code, matches: ^THROTTLED$}
      body: |-
        slow down
      outcome: quota_spent
      scope: key
      limit: credits
      before: true
  only: true
breaker: {failures: 7, cooldown: 1m, probes: 2}
retry: {off: true, attempts: 4, base: 1s, max: 1m, budget: 0.1}
timeout: 20s
auth: {kind: header, name: X-Api-Key, env: [ACME_KEY, ACME_KEY_2]}
identity: {user_agent: "headgate ({contact})", contact: true}
sources: ["https://acme.example/docs?page=2"]
as_of: 2026-11-30
confidence: documented
`

func completeValue() Provider {
	return Provider{
		Slug: "acme-intel", Name: `Acme "Intel"`, Category: "reputation",
		BaseURL: "https://api.acme.example/v3", Hosts: []string{"eu.acme.example", "acme.example:8443"},
		Throttle: Throttle{
			RPS: 2.5, RPD: 10000, Burst: 3, Algorithm: LeakyBucket, Excess: Delay, MaxQueue: 50, MaxWait: Forever, MaxInFlight: 4,
			Penalty: 90 * time.Second, Warmup: 10 * time.Second, ArrivalWithin: 500 * time.Millisecond, LeastRoundTrip: 150 * time.Millisecond, MaxRetryAfter: 48 * time.Hour,
			Adaptive: true, Learn: LearnRaise, BadAnswers: &Limit{Max: 10, Per: "10m"},
			Limits: []Limit{
				{Name: "credits", Max: 15500, Per: Month, Zone: "America/Los_Angeles", Anchor: "15 17:30", Unit: Credits, Scope: ScopeKey,
					Charges: []Outcome{OK, Rejected}, Shared: true, Source: "https://acme.example/limits"},
				{Name: "search", Max: 2, Per: "1s", Algorithm: TokenBucket, Burst: 5, Counted: CountedSent, Endpoints: []string{"search"},
					Instead: true, Basis: BasisPacing},
			},
		},
		Endpoints: []Endpoint{{Name: "search", Method: "POST", Path: "/search/{value}", Kinds: []Kind{IP, Domain},
			Params: map[string]string{"q": "{value}", "limit": "10"}, Cost: map[string]int64{Credits: 2, Requests: 1}, EmptyIsSuspicious: true}},
		Dialect: Dialect{
			Budgets: []BudgetSource{{Name: "credits", Unit: Credits, Remaining: Source{Header: "X-Left", Pattern: `^(\d+)`, Index: 1},
				Reset: Source{JSON: "$.reset", As: "epoch_ms"}}},
			RetryAfter: []Source{{Header: "X-Wait", As: "milliseconds"}, {Body: true, Pattern: `in (\d+) s`, As: "seconds"}},
			Used:       map[string]Source{Credits: {JSON: "$.usage.total"}},
			Signals: []Signal{{Status: []int{200, 403}, Header: &Match{Name: "X-Error", Equals: "429"},
				JSON: &Match{Path: "$.code", Matches: "^THROTTLED$"}, Body: "slow down", Outcome: QuotaSpent, Scope: ScopeKey, Limit: "credits", Before: true}},
			Only: true,
		},
		Breaker:  Breaker{Failures: 7, Cooldown: time.Minute, Probes: 2},
		Retry:    Retry{Off: true, Attempts: 4, Base: time.Second, Max: time.Minute, Budget: 0.1},
		Timeout:  20 * time.Second,
		Auth:     Auth{Kind: "header", Name: "X-Api-Key", Env: []string{"ACME_KEY", "ACME_KEY_2"}},
		Identity: Identity{UserAgent: "headgate ({contact})", Contact: true}, Sources: []string{"https://acme.example/docs?page=2"},
		AsOf: "2026-11-30", Confidence: "documented",
	}
}

func TestParseReadsEveryField(t *testing.T) {
	p, err := Parse([]byte(complete))
	require.NoError(t, err)
	assert.Equal(t, completeValue(), p)
}

func TestParseReadsJSON(t *testing.T) {
	text, err := json.MarshalIndent(completeValue(), "", "\t")
	require.NoError(t, err)
	assert.Contains(t, string(text), `"max_wait": "forever"`)
	assert.Contains(t, string(text), `"penalty": "1m30s"`)
	p, err := Parse(text)
	require.NoError(t, err)
	assert.Equal(t, completeValue(), p)
}

func TestParseToleratesWhatEditorsDo(t *testing.T) {
	for name, text := range map[string]string{
		"byte order mark": "\ufeffslug: x\nname: y\n",
		"CRLF":            "slug: x\r\nname: y\r\n",
		"document start":  "---\nslug: x\nname: y\n",
		"document end":    "slug: x\nname: y\n...\n",
		"directive":       "%YAML 1.2\n---\nslug: x\nname: y\n",
		"empty second":    "slug: x\nname: y\n---\n",
		"no line end":     "slug: x\nname: y",
		"compact JSON":    `{"slug":"x","name":"y"}`,
		"JSON escapes":    `{"slug":"\u0078","name":"\u0079"}`,
	} {
		p, err := Parse([]byte(text))
		require.NoError(t, err, name)
		assert.Equal(t, Provider{Slug: "x", Name: "y"}, p, name)
	}
}

func TestParseFaults(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "the text is empty: it must be a mapping of keys to values"},
		{"only a comment", "# nothing\n", "the text is empty"},
		{"only null", "~\n", "the text is empty"},
		{"empty mapping", "{}", "line 1, column 1: slug: is missing"},
		{"a list", "- slug: x\n", "line 1, column 1: must be a mapping of keys to values"},
		{"a word", "slug", "must be a mapping"},
		{"two documents", "slug: x\n---\nslug: y\n", "line 3, column 1: a second document begins here"},
		{"key twice", "slug: x\nname: a\nname: b\n", "line 3, column 1: is no valid YAML: mapping key \"name\" already defined"},
		{"key twice in JSON", `{"slug":"x","slug":"y"}`, `line 1, column 13: is no valid YAML: mapping key "slug" already defined`},
		{"unknown key", "slug: x\nthrottle:\n  rps: 1\n  rpss: 2\n", `line 4, column 3: throttle: unknown key "rpss": it must be one of rps, rpm, rph`},
		{"unknown key in a list", "slug: x\nthrottle:\n  limits:\n    - name: a\n      may: 1\n", `line 5, column 7: throttle.limits[0]: unknown key "may": it must be one of name, max, per`},
		{"key in upper case", "Slug: x\n", `line 1, column 1: unknown key "Slug"`},
		{"a number for a key", "slug: x\n5: y\n", `line 2, column 1: "5" is no key`},
		{"broken YAML", "slug: [x\n", "line 1, column 7: is no valid YAML"},
		{"tab", "slug: x\nthrottle:\n\trps: 1\n", "line 3, column 1: is no valid YAML"},
		{"not UTF-8", "slug: \xff\xfe\n", "the text is not in UTF-8"},
		{"too long", "slug: x\n# " + strings.Repeat("x", maxText), "at most 256 KiB"},
		{"too deep", "slug: " + strings.Repeat("[", 501), "too many brackets"},
		{"duration without unit", "slug: x\ntimeout: 30\n", `line 2, column 10: timeout: 30 has no unit: write "30s" for seconds`},
		{"duration with a fraction and no unit", "slug: x\ntimeout: 0.5\n", `timeout: 0.5 has no unit: write "0.5s"`},
		{"duration in quotes without unit", "slug: x\ntimeout: '30'\n", `line 2, column 10: timeout: "30" is no duration: write it as "30s"`},
		{"duration of a strange unit", "slug: x\nretry:\n  base: 2 days\n", `line 3, column 9: retry.base: "2 days" is no duration`},
		{"forever for a timeout", "slug: x\ntimeout: forever\n", "line 2, column 10: timeout: forever is too long: at most 87600h"},
		{"period as a number", "slug: x\nthrottle:\n  limits: [{name: a, max: 1, per: 60}]\n", `line 3, column 35: throttle.limits[0].per: must be text: write "60" in quotes`},
		{"period below the type", "slug: x\nthrottle:\n  limits:\n    - {name: a, max: 1, per: 1s}\n    - {name: b, max: 1, per: week}\n", `line 5, column 30: throttle.limits[1].per: "week" is unknown`},
		{"missing in a list", "slug: x\nthrottle:\n  limits:\n    - name: a\n      max: 1\n", "line 4, column 7: throttle.limits[0].per: is missing"},
		{"fraction for an integer", "slug: x\nthrottle: {max_queue: 2.7}\n", "line 2, column 23: throttle.max_queue: must be a whole number"},
		{"octal", "slug: x\nthrottle: {max_queue: 0100}\n", "throttle.max_queue: must be a whole number"},
		{"hexadecimal", "slug: x\nthrottle: {max_queue: 0x10}\n", "throttle.max_queue: must be a whole number"},
		{"underscore", "slug: x\nthrottle: {max_queue: 1_000}\n", "throttle.max_queue: must be a whole number"},
		{"number in quotes", "slug: x\nthrottle: {rps: \"5\"}\n", "line 2, column 17: throttle.rps: must be a number such as 2.5"},
		{"integer in quotes", "slug: x\nthrottle: {max_queue: '5'}\n", "throttle.max_queue: must be a whole number"},
		{"integer overflow", "slug: x\nthrottle: {burst: 9223372036854775808}\n", "throttle.burst: 9223372036854775808 is too large: at most 9223372036854775807"},
		{"rate overflow", "slug: x\nthrottle: {rps: 1e999}\n", "throttle.rps: 1e999 is out of range"},
		{"rate underflow", "slug: x\nthrottle: {rps: 1e-999}\n", "throttle.rps: 1e-999 is out of range"},
		{"NaN", "slug: x\nthrottle: {rps: .nan}\n", "line 2, column 17: throttle.rps: must be a number"},
		{"infinite", "slug: x\nthrottle: {rps: .inf}\n", "throttle.rps: must be a number"},
		{"yes for a bool", "slug: x\nthrottle: {adaptive: yes}\n", "throttle.adaptive: must be true or false"},
		{"a number for text", "slug: x\nname: 5\n", `line 2, column 7: name: must be text: write "5" in quotes`},
		{"a mapping for text", "slug: x\nname: {a: b}\n", "line 2, column 7: name: must be text"},
		{"text for a list", "slug: x\nhosts: a.example\n", "line 2, column 8: hosts: must be a list"},
		{"text for a mapping", "slug: x\nthrottle: fast\n", "line 2, column 11: throttle: must be a mapping"},
		{"no value", "slug: x\nname:\n", "name: has no value: write one, or leave the key out"},
		{"null in JSON", `{"slug":"x","throttle":{"rps":null}}`, "line 1, column 31: throttle.rps: has no value"},
		{"alias", "slug: x\nname: *s\n", "line 2, column 7: name: anchors, aliases and tags are not read"},
		{"anchor", "slug: x\nname: &s y\n", "line 2, column 7: name: anchors, aliases and tags are not read"},
		{"merge key", "slug: x\nthrottle: {<<: {rps: 1}}\n", `line 2, column 12: throttle: "<<" is no key`},
		{"tag", "slug: x\nname: !!str 5\n", "name: anchors, aliases and tags are not read"},
		{"bad escape", "slug: x\ndialect:\n  signals:\n    - {status: [200], body: \"\\d+\", outcome: failed}\n", "line 4, column 31: is no valid YAML: found unknown escape character 'd'"},
		{"a list for a duration", "slug: x\ntimeout: [1s]\n", `line 2, column 10: timeout: must be a duration such as "30s"`},
		{"a long word", "slug: " + strings.Repeat("X", 60) + "\n", `slug: "` + strings.Repeat("X", 40) + `…" must consist`},
		{"calendar word for a duration", "slug: x\ntimeout: minute\n", `timeout: "minute" is no duration`},
		{"invalid value", "slug: x\nthrottle:\n  excess: drop\n", `line 3, column 11: throttle.excess: "drop" is unknown: it must be one of queue, reject, delay`},
		{"no slug", "# c\n\nname: y\n", "line 3, column 1: slug: is missing"},
	} {
		p, err := Parse([]byte(c.text))
		if assert.Error(t, err, c.name) {
			assert.Contains(t, err.Error(), c.want, c.name)
			assert.NotContains(t, err.Error(), "\n", "%s: one fault, one line", c.name)
			var fault *FieldError
			assert.ErrorAs(t, err, &fault, c.name)
		}
		assert.Equal(t, Provider{}, p, c.name)
	}
}

func TestParseTellsEveryFaultAtOnce(t *testing.T) {
	_, err := Parse([]byte("slug: x\ntimeout: 30\nnmae: y\nthrottle:\n  rps: fast\n  max_queue: 1.5\n"))
	require.Error(t, err)
	assert.Equal(t, []string{
		`line 2, column 10: timeout: 30 has no unit: write "30s" for seconds`,
		"line 5, column 8: throttle.rps: must be a number such as 2.5, in decimal digits and without quotes",
		"line 6, column 14: throttle.max_queue: must be a whole number such as 10, in decimal digits and without quotes",
	}, append(strings.Split(err.Error(), "\n")[:1], strings.Split(err.Error(), "\n")[2:]...))
	assert.Contains(t, err.Error(), `line 3, column 1: unknown key "nmae"`)

	_, err = Parse([]byte("slug: X\nthrottle:\n  rps: -1\n  limits: [{name: a, max: 0, per: 1s}]\n"))
	require.Error(t, err)
	assert.Len(t, strings.Split(err.Error(), "\n"), 3)
	assert.Contains(t, err.Error(), "line 4, column 27: throttle.limits[0].max: 0 is too small")
}

func TestParseNeverShowsWhatMayBeSecret(t *testing.T) {
	for _, text := range []string{
		"slug: x\nbase_url: https://user:s3cret@api.example/\n",
		"slug: x\nbase_url: https://api.example/?key=s3cret\n",
		"slug: x\nbase_url: 'https://api.example/#s3cret'\n",
		"slug: x\nbase_url: https://api.exa mple/?key=s3cret\n",
		"slug: x\nbase_url: ftp://s3cret@api.example\n",
		"slug: x\nhosts: ['https://api.example/?key=s3cret']\n",
		"slug: x\nauth: {kind: header, name: X-Key, env: [s3cret-key]}\n",
		"slug: x\nauth: {kind: header, name: X-Key, env: s3cret}\n",
		"slug: x\nauth: {kind: header, name: 'X-Key: s3cret'}\n",
		"slug: x\nparams: {key: s3cret}\n",
		"slug: x\nname: [s3cret\n",
		"slug: x\nendpoints: [{name: a, params: {key: [s3cret]}}]\n",
		"slug: x\nendpoints: [{name: a, path: '/x?key=s3cret'}]\n",
	} {
		_, err := Parse([]byte(text))
		if assert.Error(t, err, text) {
			assert.NotContains(t, err.Error(), "s3cret", text)
		}
	}
}

func TestUnmarshalReplacesOrChangesNothing(t *testing.T) {
	limit := Limit{Name: "old", Burst: 5}
	require.Error(t, json.Unmarshal([]byte(`{"name":"new","max":"1"}`), &limit))
	assert.Equal(t, Limit{Name: "old", Burst: 5}, limit)
	require.NoError(t, json.Unmarshal([]byte(`{"name":"new","max":1}`), &limit))
	assert.Equal(t, Limit{Name: "new", Max: 1}, limit)
	require.NoError(t, json.Unmarshal([]byte(`null`), &limit))
	assert.Equal(t, Limit{Name: "new", Max: 1}, limit)
}

func TestUnmarshalIsStrictInEveryType(t *testing.T) {
	for _, typ := range declarationTypes() {
		err := json.Unmarshal([]byte(`{"surprise":1}`), reflect.New(typ).Interface())
		assert.ErrorContains(t, err, `line 1, column 2: unknown key "surprise"`, typ)
	}
}

func TestUnmarshalInsideTheUsersOwnConfiguration(t *testing.T) {
	var config struct {
		Plans map[string]Throttle `yaml:"plans"`
	}
	text := "plans:\n  paid:\n    rps: 5\n    max_wait: forever\n"
	require.NoError(t, yaml.Unmarshal([]byte(text), &config))
	assert.Equal(t, Throttle{RPS: 5, MaxWait: Forever}, config.Plans["paid"])
	err := yaml.Unmarshal([]byte(strings.Replace(text, "rps: 5", "rps: five", 1)), &config)
	assert.ErrorContains(t, err, "line 3, column 10: rps: must be a number")
	err = yaml.UnmarshalWithOptions([]byte("plans: {paid: {rps: 5, rps: 6}}"), &config, yaml.AllowDuplicateMapKey())
	assert.ErrorContains(t, err, `line 1, column 24: key "rps" is there twice`)
}
