package provider_test

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/headgate/headgate/provider"
)

// acme is a declaration, for the examples.
func acme() provider.Provider {
	p, err := provider.Parse([]byte(`
slug: acme
throttle:
  limits: [{name: day, max: 500, per: day}, {name: minute, max: 4, per: 1m, scope: key, keys: {ACME_KEY: 300}}]
endpoints:
  - {name: host, path: "/hosts/{value}", kinds: [ip]}
  - {name: search, path: "/{country}/search", params: {q: "{value}"}, kinds: [text]}
auth: {kind: header, name: X-Api-Key, env: [ACME_KEY]}
`))
	if err != nil {
		panic(err)
	}
	return p
}

// A user's plan, read from a file of his own, over the declaration that ships.
func ExampleParseOverrides() {
	over, err := provider.ParseOverrides([]byte(`
providers:
  acme:
    throttle: {limits: [{name: day, max: 10000}]}
    endpoints: {search: false}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(over.Slugs(), over.Changes("acme"), over.Changes("other"))
	p, err := over.Apply(acme())
	fmt.Println(p.Throttle.Limits[0].Max, p.Throttle.Switched("host"), p.Throttle.Switched("search"), err)
	// Output:
	// [acme] true false
	// 10000 true false <nil>
}

// What a query has to give besides its value.
func ExampleProvider_Needs() {
	p := acme()
	for _, e := range p.Endpoints {
		fmt.Println(e.Name, e.Takes(provider.IP), p.Needs(e))
	}
	// Output:
	// host true []
	// search false [country]
}

// A plan that is put in force live keeps what it does not speak of.
func ExampleProvider_WithThrottle() {
	p := acme().WithThrottle(provider.Throttle{RPS: 2})
	copied := p.Clone()
	copied.Endpoints[0].Name = "renamed"
	fmt.Println(p.Throttle.RPS, len(p.Throttle.Limits), p.Endpoints[0].Name)
	// Output: 2 0 host
}

// The defaults are written down in one place.
func ExampleThrottle_WithDefaults() {
	t := provider.Throttle{}.WithDefaults()
	fmt.Println(t.Excess, t.MaxQueue, t.MaxWait, t.Penalty)
	b, r := provider.Breaker{}.WithDefaults(), provider.Retry{}.WithDefaults()
	fmt.Println(b.Failures, b.Cooldown, r.Attempts, r.Base, r.Budget)
	fmt.Println(provider.Paging{}.WithDefaults().Max, "pages")
	// Output:
	// queue 1000 1h0m0s 1s
	// 5 30s 3 500ms 0.2
	// 10 pages
}

// Aliases are resolved, and one key may have a size of its own.
func ExampleLimit_OfKey() {
	l := provider.Limit{Name: "minute", Max: 4, Per: "1m", Algorithm: provider.GCRA, Scope: provider.ScopeKey, Keys: map[string]int64{"PRO": 300}}.WithDefaults()
	fmt.Println(l.Algorithm, l.Burst, l.Counted)
	fmt.Println(l.OfKey("PRO").Max, l.OfKey("FREE").Max)
	// Output:
	// token_bucket 4 answered
	// 300 4
}

func ExamplePeriod_Duration() {
	for _, p := range []provider.Period{"1m", provider.Day, provider.Month} {
		length, calendar := p.Duration()
		fmt.Println(p, length, calendar)
	}
	// Output:
	// 1m 1m0s false
	// day 24h0m0s true
	// month 744h0m0s true
}

// What a status means where nothing else is known.
func ExampleOfStatus() {
	for _, status := range []int{http.StatusOK, http.StatusNotFound, http.StatusTooManyRequests, http.StatusBadGateway} {
		fmt.Println(status, provider.OfStatus(status))
	}
	fmt.Println(provider.Outcome("slow").Valid())
	// Output:
	// 200 ok
	// 404 rejected
	// 429 rate_limited
	// 502 failed
	// false
}

// The pages of one lookup become one result.
func ExampleResult_Join() {
	first := provider.Result{Provider: "acme", Data: json.RawMessage(`[1,2]`), Next: "2"}
	last := provider.Result{Provider: "acme", Data: json.RawMessage(`[3]`)}
	all := first.Join(last)
	fmt.Printf("%s %q\n", all.Data, all.Next)
	// Output: [1,2,3] ""
}
