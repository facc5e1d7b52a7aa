package provider

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// declared is what the overrides of these tests are put over.
func declared() Provider {
	return Provider{
		Slug: "acme", Auth: Auth{Kind: "header", Name: "Key", Env: []string{"ACME_KEY"}},
		Endpoints: []Endpoint{{Name: "host"}, {Name: "search", Cost: map[string]int64{"credits": 1}}, {Name: "paid"}},
		Throttle: Throttle{
			RPS: 2, Adaptive: true, Off: []string{"paid"}, MaxQueue: 50,
			Limits: []Limit{
				{Name: "minute", Max: 4, Per: "1m", Scope: ScopeKey, Charges: []Outcome{OK, Rejected}, Source: "a"},
				{Name: "day", Max: 500, Per: Day, Zone: "Europe/Berlin"},
				{Name: "credits", Max: 10, Per: "24h", Unit: "credits"},
			},
		},
	}
}

func apply(t *testing.T, text string) (Provider, error) {
	t.Helper()
	o, err := ParseOverrides([]byte(text))
	require.NoError(t, err)
	return o.Apply(declared())
}

func TestOverridesAreMergedByName(t *testing.T) {
	p, err := apply(t, `
excess: delay
providers:
  acme:
    throttle:
      rps: 10
      adaptive: false
      limits:
        - {name: minute, max: 30, charges: [ok]}
        - {name: hour, max: 1000, per: 1h}
    drop: [day]
    keys: [KEY_A, KEY_B]
    endpoints: {paid: true, search: false}
`)
	require.NoError(t, err)
	want := declared()
	want.Auth.Env = []string{"KEY_A", "KEY_B"}
	want.Throttle.RPS, want.Throttle.Adaptive, want.Throttle.Excess = 10, false, Delay
	want.Throttle.Off = []string{"search"}
	want.Throttle.Limits[0].Max, want.Throttle.Limits[0].Charges = 30, []Outcome{OK}
	want.Throttle.Limits = []Limit{want.Throttle.Limits[0], want.Throttle.Limits[2], {Name: "hour", Max: 1000, Per: "1h"}}
	assert.Equal(t, want, p)
}

func TestOverridesDoNotTouchWhatWasDeclared(t *testing.T) {
	o, err := ParseOverrides([]byte("providers: {acme: {throttle: {limits: [{name: minute, max: 9, charges: [ok]}]}, drop: [day], endpoints: {paid: true}}}"))
	require.NoError(t, err)
	p := declared()
	_, err = o.Apply(p)
	require.NoError(t, err)
	assert.Equal(t, declared(), p)
	again, err := o.Apply(p)
	require.NoError(t, err)
	first, err := o.Apply(p)
	require.NoError(t, err)
	assert.Equal(t, first, again)
}

// What a dropped limit alone gave a meaning to goes with it.
func TestADroppedLimitLeavesNothingBehind(t *testing.T) {
	o, err := ParseOverrides([]byte("providers: {acme: {drop: [credits, day]}}"))
	require.NoError(t, err)
	p := declared()
	p.Dialect.Signals = []Signal{
		{Status: []int{402}, Outcome: QuotaSpent, Limit: "credits"},
		{Status: []int{403}, Outcome: QuotaSpent, Limit: "minute"},
	}
	require.NoError(t, p.Validate())
	got, err := o.Apply(p)
	require.NoError(t, err)
	assert.Empty(t, got.Dialect.Signals[0].Limit)
	assert.Equal(t, "minute", got.Dialect.Signals[1].Limit)
	assert.Empty(t, got.Endpoints[1].Cost)
	assert.Equal(t, "credits", p.Dialect.Signals[0].Limit, "what was declared is not touched")
	assert.Len(t, p.Endpoints[1].Cost, 1)
	require.NoError(t, p.WithThrottle(Throttle{}).Validate())
	require.NoError(t, p.WithThrottle(p.Throttle).Validate())
	assert.Equal(t, p, p.WithThrottle(p.Throttle))
}

func TestOverridesOfOthersChangeTheExcessAlone(t *testing.T) {
	o, err := ParseOverrides([]byte("excess: reject\nproviders: {other: {off: true}}"))
	require.NoError(t, err)
	assert.Equal(t, []string{"other"}, o.Slugs())
	assert.True(t, o.Changes("acme"))
	p, err := o.Apply(declared())
	require.NoError(t, err)
	want := declared()
	want.Throttle.Excess = Reject
	assert.Equal(t, want, p)

	mine := declared()
	mine.Throttle.Excess = Queue
	p, err = o.Apply(mine)
	require.NoError(t, err)
	assert.Equal(t, Queue, p.Throttle.Excess, "it is a default")

	p, err = Overrides{}.Apply(declared())
	require.NoError(t, err)
	assert.Equal(t, declared(), p)
	assert.False(t, Overrides{}.Changes("acme"))
}

func TestOverridesSwitchAProviderOff(t *testing.T) {
	p, err := apply(t, "providers: {acme: {off: true, endpoints: {search: false}}}")
	require.NoError(t, err)
	assert.False(t, p.Throttle.Switched("host"))
	assert.False(t, p.Throttle.Switched(""))
	p, err = apply(t, "providers: {acme: {endpoints: {search: false}}}")
	require.NoError(t, err)
	assert.True(t, p.Throttle.Switched("host"))
	assert.True(t, p.Throttle.Switched(""))
	assert.False(t, p.Throttle.Switched("search"))
}

func TestFaultsOfOverridesTheText(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "the text is empty",
		"excess: drop":               `line 1, column 9: excess: "drop" is unknown: it must be one of queue, reject, delay`,
		"provider: {}":               `line 1, column 1: unknown key "provider": it must be one of excess, providers`,
		"providers: [a]":             "line 1, column 12: providers: must be a mapping",
		"providers: {a: }":           "line 1, column 15: providers.a: must be a mapping",
		"providers: {a: {of: true}}": `line 1, column 17: providers.a: unknown key "of": it must be one of off, keys, endpoints, drop, throttle`,
		"providers: {a: {off: 1}}":   "line 1, column 22: providers.a.off: must be true or false",
		"providers: {a: {off: true}, a: {off: true}}":                  "line 1, column 29: is no valid YAML: mapping key \"a\" already defined",
		"providers: {a: {keys: []}}":                                   "line 1, column 23: providers.a.keys: is empty: name at least one variable",
		"providers: {a: {keys: KEY}}":                                  "line 1, column 23: providers.a.keys: must be a list",
		"providers: {a: {endpoints: {search: off}}}":                   "line 1, column 37: providers.a.endpoints.search: must be true or false",
		"providers: {a: {throttle: {rpm: fast}}}":                      "line 1, column 33: providers.a.throttle.rpm: must be a number",
		"providers: {a: {throttle: {rmp: 1}}}":                         `line 1, column 28: providers.a.throttle: unknown key "rmp"`,
		"providers: {a: {throttle: {limits: {}}}}":                     "line 1, column 36: providers.a.throttle.limits: must be a list",
		"providers: {a: {throttle: {limits: [{max: 1}]}}}":             "line 1, column 37: providers.a.throttle.limits[0]: has no name",
		"providers: {a: {throttle: {limits: [{name: b}, {name: b}]}}}": `providers.a.throttle.limits[1]: changes "b" a second time: write it once`,
		"providers: {a: {throttle: {limits: [{name: b, max: 1.5}]}}}":  "line 1, column 52: providers.a.throttle.limits.b.max: must be a whole number",
		"providers: {a: {throttle: {limits: [{name: b, maxx: 1}]}}}":   `providers.a.throttle.limits.b: unknown key "maxx"`,
		"a: &x {b: 1}\nproviders: {a: *x}":                             `line 1, column 1: unknown key "a"`,
	} {
		_, err := ParseOverrides([]byte(text))
		assert.ErrorContains(t, err, want, text)
	}
}

func TestFaultsOfOverridesThatDoNotFit(t *testing.T) {
	for text, want := range map[string]string{
		"providers:\n  acme:\n    drop: [hour]":                                       `line 3, column 12: providers.acme.drop[0]: "hour" is no declared limit: it must be one of minute, day, credits`,
		"providers:\n  acme:\n    endpoints: {hosts: false}":                          "line 3, column 24: providers.acme.endpoints.hosts: is not declared: it must be one of host, search, paid",
		"providers:\n  acme:\n    keys: [my-key-42]":                                  "line 3, column 12: providers.acme.keys[0]: must be the name of an environment variable",
		"providers:\n  acme:\n    throttle: {limits: [{name: new, max: 1}]}":          "line 3, column 25: providers.acme.throttle.limits.new.per: is missing",
		"providers:\n  acme:\n    throttle: {limits: [{name: day, algorithm: gcra}]}": "providers.acme.throttle.limits.day.algorithm: gcra cannot have the calendar period day",
		"providers:\n  acme:\n    throttle: {max_queue: -1}":                          "line 3, column 27: providers.acme.throttle.max_queue: -1 is negative",
	} {
		_, err := apply(t, text)
		assert.ErrorContains(t, err, want, text)
		var fault *FieldError
		assert.ErrorAs(t, err, &fault)
		assert.NotContains(t, err.Error(), "my-key-42", "it may be the key itself")
	}
	o, err := ParseOverrides([]byte("providers: {acme: {keys: [KEY]}}"))
	require.NoError(t, err)
	_, err = o.Apply(Provider{Slug: "acme"})
	assert.ErrorContains(t, err, "providers.acme.keys: are of no use: the provider takes no key")
}

func TestOverridesTellAllFaultsAtOnce(t *testing.T) {
	_, err := ParseOverrides([]byte("providers:\n  a: {of: 1}\n  b: {throttle: {rpm: x}}\nexces: queue\n"))
	require.Error(t, err)
	assert.Equal(t, 3, strings.Count(err.Error(), "line "))
	_, err = apply(t, "providers: {acme: {drop: [x], endpoints: {y: true}, throttle: {max_queue: -1}}}")
	var all interface{ Unwrap() []error }
	require.ErrorAs(t, err, &all)
	assert.Len(t, all.Unwrap(), 3)
}

func TestNeeds(t *testing.T) {
	p := Provider{Auth: Auth{Kind: "path", Name: "key"}}
	e := Endpoint{
		Path: "/{key}/{value|lower}/{country}", Params: map[string]string{"page": "{page}", "m": "{contact}", "f": "fixed"},
		Form: map[string]string{"a": "{b|md5}"}, JSON: `{"x": "{country} {y}"}`, Headers: map[string]string{"X": "{z}"},
	}
	assert.Equal(t, []string{"b", "country", "y", "z"}, p.Needs(e))
	assert.Nil(t, p.Needs(Endpoint{Path: "/{value}"}))
}

func FuzzOverrides(f *testing.F) {
	f.Add("excess: queue\nproviders:\n  acme:\n    throttle: {limits: [{name: minute, max: 3}]}\n    keys: [A]\n    endpoints: {host: false}\n    drop: [day]\n")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := ParseOverrides([]byte(text))
		if err != nil {
			return
		}
		if p, err := o.Apply(declared()); err == nil {
			require.NoError(t, p.Validate())
		}
	})
}
