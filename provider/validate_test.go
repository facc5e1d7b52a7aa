package provider

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fault is one row: change makes the valid declaration wrong in one way, and
// want is what the only fault must say.
type fault struct {
	name   string
	change func(*Provider)
	want   string
}

func checkFaults(t *testing.T, rows []fault) {
	t.Helper()
	for _, row := range rows {
		p := completeValue()
		row.change(&p)
		err := p.Validate()
		if !assert.Error(t, err, row.name) {
			continue
		}
		assert.Contains(t, err.Error(), row.want, row.name)
		assert.NotContains(t, err.Error(), "\n", "%s: one fault", row.name)
		var fault *FieldError
		require.ErrorAs(t, err, &fault, row.name)
		assert.True(t, strings.HasPrefix(row.want, fault.Field+": "), "%s: the row names the field %s", row.name, fault.Field)
		assert.Zero(t, fault.Line, row.name)
	}
}

func TestValidateAcceptsWhatIsRight(t *testing.T) {
	require.NoError(t, completeValue().Validate())
	for name, p := range map[string]Provider{
		"slug alone":     {Slug: "x"},
		"host and port":  {Slug: "x", BaseURL: "http://127.0.0.1:8080/v1/", Hosts: []string{"localhost", "[::1]:80", "API.example"}},
		"other port":     {Slug: "x", BaseURL: "https://a.example", Hosts: []string{"a.example:8443"}},
		"budget of 1":    {Slug: "x", Retry: Retry{Budget: 1}},
		"all statuses":   {Slug: "x", Dialect: Dialect{Signals: []Signal{{Status: []int{100, 599}, Outcome: OK}}}},
		"forever":        {Slug: "x", Throttle: Throttle{MaxWait: Forever, MaxRetryAfter: Forever}},
		"31 days":        {Slug: "x", Throttle: Throttle{Limits: []Limit{{Name: "a", Max: math.MaxInt64, Per: "744h"}}}},
		"an alias":       {Slug: "x", Throttle: Throttle{Limits: []Limit{{Name: "a", Max: 1, Per: "1s", Algorithm: SlidingLog, Counted: CountedSent}}}},
		"gcra burst":     {Slug: "x", Throttle: Throttle{Limits: []Limit{{Name: "a", Max: 1, Per: "1s", Algorithm: GCRA, Burst: 4}}}},
		"in flight":      {Slug: "x", Throttle: Throttle{Limits: []Limit{{Name: "a", Max: 1, Algorithm: InFlight, Scope: ScopeKey}}}},
		"calendar":       {Slug: "x", Throttle: Throttle{Limits: []Limit{{Name: "a", Max: 1, Per: Day, Algorithm: FixedWindow, Zone: "Asia/Kathmandu", Anchor: "23:59:59"}}}},
		"free name":      {Slug: "x", Throttle: Throttle{RPM: 1, Limits: []Limit{{Name: "rps", Max: 1, Per: "1s"}}}},
		"spent short":    {Slug: "x", Throttle: Throttle{RPD: 10}, Dialect: Dialect{Signals: []Signal{{Status: []int{403}, Outcome: QuotaSpent, Limit: "rpd"}}}},
		"request's cost": {Slug: "x", Endpoints: []Endpoint{{Name: "a", Cost: map[string]int64{Requests: 0}}}},
	} {
		assert.NoError(t, p.Validate(), name)
	}
}

func TestValidateFaultsOfTheProvider(t *testing.T) {
	checkFaults(t, []fault{
		{"no slug", func(p *Provider) { p.Slug = "" }, "slug: is missing: a name of a-z, 0-9 and -"},
		{"slug in upper case", func(p *Provider) { p.Slug = "Acme" }, `slug: "Acme" must consist of a-z, 0-9 and - alone`},
		{"slug with a line end", func(p *Provider) { p.Slug = "acme\n" }, `slug: "acme\n" must consist`},
		{"relative URL", func(p *Provider) { p.BaseURL = "/v1" }, "base_url: must be absolute, with http or https and a host"},
		{"URL without a host", func(p *Provider) { p.BaseURL = "https:///v1" }, "base_url: must be absolute"},
		{"other scheme", func(p *Provider) { p.BaseURL = "ftp://a.example" }, "base_url: must be absolute, with http or https"},
		{"no URL", func(p *Provider) { p.BaseURL = "https://a b" }, "base_url: is no URL"},
		{"user", func(p *Provider) { p.BaseURL = "https://u@a.example" }, "base_url: must not hold a user or password"},
		{"query", func(p *Provider) { p.BaseURL = "https://a.example?" }, "base_url: must not have a query or fragment"},
		{"fragment", func(p *Provider) { p.BaseURL = "https://a.example#" }, "base_url: must not have a query or fragment"},
		{"placeholder host", func(p *Provider) { p.BaseURL = "https://{region}.example" }, "base_url: is no "},
		{"base port", func(p *Provider) { p.BaseURL = "https://a.example:70000" }, "base_url: has no valid port: it must be from 1 to 65535"},
		{"host with a scheme", func(p *Provider) { p.Hosts[1] = "https://a.example" }, `hosts[1]: is no host: it must be a host name, or host:port, such as "api.example.com"`},
		{"host with a path", func(p *Provider) { p.Hosts[1] = "a.example/v1" }, "hosts[1]: is no host"},
		{"empty host", func(p *Provider) { p.Hosts[1] = "" }, "hosts[1]: is no host"},
		{"empty label", func(p *Provider) { p.Hosts[1] = "a..example" }, "hosts[1]: is no host"},
		{"no port after the colon", func(p *Provider) { p.Hosts[1] = "a.example:" }, "hosts[1]: is no host"},
		{"port 0", func(p *Provider) { p.Hosts[1] = "a.example:0" }, "hosts[1]: has no valid port"},
		{"bare IPv6", func(p *Provider) { p.Hosts[1] = "::1" }, "hosts[1]: is no host"},
		{"no IPv6", func(p *Provider) { p.Hosts[1] = "[a]" }, "hosts[1]: is no IPv6 address in brackets"},
		{"umlaut", func(p *Provider) { p.Hosts[1] = "käse.example" }, "hosts[1]: is no host"},
		{"host twice", func(p *Provider) { p.Hosts[1] = "EU.acme.example:443" }, `hosts[1]: "EU.acme.example:443" is there already, in hosts[0]`},
		{"host of base_url", func(p *Provider) { p.Hosts[1] = "API.acme.example" }, `hosts[1]: "API.acme.example" is there already, in base_url`},
		{"negative timeout", func(p *Provider) { p.Timeout = -time.Second }, "timeout: -1s is negative: write a duration above 0, or leave it out"},
		{"endless timeout", func(p *Provider) { p.Timeout = Forever }, "timeout: forever is too long: at most 87600h"},
		{"date", func(p *Provider) { p.AsOf = "30.11.2026" }, `as_of: "30.11.2026" is no date: write it as 2026-11-30`},
		{"no such day", func(p *Provider) { p.AsOf = "2026-02-30" }, `as_of: "2026-02-30" is no date`},
		{"auth kind", func(p *Provider) { p.Auth.Kind = "cookie" }, `auth.kind: "cookie" is unknown: it must be one of header, query, form, basic, bearer, path, none`},
		{"auth without a kind", func(p *Provider) { p.Auth.Kind = "" }, "auth.kind: is missing: it must be one of header"},
		{"no header", func(p *Provider) { p.Auth.Name = "" }, "auth.name: is missing: the name of the header that takes the key"},
		{"no parameter", func(p *Provider) { p.Auth.Kind, p.Auth.Name = "query", "" }, "auth.name: is missing: the name of the parameter that takes the key"},
		{"no placeholder", func(p *Provider) { p.Auth.Kind, p.Auth.Name = "path", "" }, "auth.name: is missing: the name of the placeholder that takes the key"},
		{"header with a colon", func(p *Provider) { p.Auth.Name = "X-Key:" }, "auth.name: is no name of a header"},
		{"environment", func(p *Provider) { p.Auth.Env[1] = "my-key" }, "auth.env[1]: must be the name of an environment variable"},
		{"user agent", func(p *Provider) { p.Identity.UserAgent = "a\r\nb" }, "identity.user_agent: has a control character"},
		{"failures", func(p *Provider) { p.Breaker.Failures = -1 }, "breaker.failures: -1 is negative"},
		{"too many failures", func(p *Provider) { p.Breaker.Failures = math.MaxInt32 + 1 }, "breaker.failures: 2147483648 is too large: at most 2147483647"},
		{"cooldown", func(p *Provider) { p.Breaker.Cooldown = -1 }, "breaker.cooldown: -1ns is negative"},
		{"probes", func(p *Provider) { p.Breaker.Probes = -1 }, "breaker.probes: -1 is negative"},
		{"attempts", func(p *Provider) { p.Retry.Attempts = -1 }, "retry.attempts: -1 is negative"},
		{"base", func(p *Provider) { p.Retry.Base = -1 }, "retry.base: -1ns is negative"},
		{"max", func(p *Provider) { p.Retry.Max = -1 }, "retry.max: -1ns is negative"},
		{"base above max", func(p *Provider) { p.Retry.Base = time.Hour }, "retry.base: 1h is above max, 1m"},
		{"budget above 1", func(p *Provider) { p.Retry.Budget = 20 }, "retry.budget: 20 is no share: it must be from 0 to 1"},
		{"budget below 0", func(p *Provider) { p.Retry.Budget = -0.1 }, "retry.budget: -0.1 is no share"},
		{"budget NaN", func(p *Provider) { p.Retry.Budget = math.NaN() }, "retry.budget: NaN is no share"},
	})
}

func TestValidateFaultsOfTheThrottle(t *testing.T) {
	checkFaults(t, []fault{
		{"NaN", func(p *Provider) { p.Throttle.RPS = math.NaN() }, "throttle.rps: must be a number"},
		{"infinite", func(p *Provider) { p.Throttle.RPM = math.Inf(1) }, "throttle.rpm: must be a number"},
		{"minus infinite", func(p *Provider) { p.Throttle.RPM = math.Inf(-1) }, "throttle.rpm: must be a number"},
		{"negative", func(p *Provider) { p.Throttle.RPH = -1 }, "throttle.rph: -1 is negative"},
		{"overflow", func(p *Provider) { p.Throttle.RPD = 1e19 }, "throttle.rpd: 1e+19 is too large: it must be below 9.223372036854776e+18"},
		{"too slow", func(p *Provider) { p.Throttle.RPD = 0.03 }, "throttle.rpd: 0.03 is less than one in 744h: write a limit with per: month"},
		{"burst", func(p *Provider) { p.Throttle.Burst = -1 }, "throttle.burst: -1 is negative"},
		{"algorithm", func(p *Provider) { p.Throttle.Algorithm = "bucket" }, `throttle.algorithm: "bucket" is unknown: it must be one of sliding_window, sliding_log, sliding_window_counter, fixed_window, token_bucket, gcra, leaky_bucket`},
		{"in flight", func(p *Provider) { p.Throttle.Algorithm = InFlight }, "throttle.algorithm: in_flight shapes no rate: write max_in_flight"},
		{"algorithm without a rate", func(p *Provider) { p.Throttle.RPS, p.Throttle.RPD, p.Throttle.Burst = 0, 0, 0 }, "throttle.algorithm: has no rate to shape: give rps, rpm, rph or rpd, or set it on a limit"},
		{"burst without a rate", func(p *Provider) { p.Throttle.RPS, p.Throttle.RPD, p.Throttle.Algorithm = 0, 0, "" }, "throttle.burst: has no rate to shape"},
		{"excess", func(p *Provider) { p.Throttle.Excess = "drop" }, `throttle.excess: "drop" is unknown: it must be one of queue, reject, delay`},
		{"max_queue", func(p *Provider) { p.Throttle.MaxQueue = -1 }, "throttle.max_queue: -1 is negative"},
		{"max_wait", func(p *Provider) { p.Throttle.MaxWait = -1 }, "throttle.max_wait: -1ns is negative"},
		{"max_wait of centuries", func(p *Provider) { p.Throttle.MaxWait = Forever - 1 }, "throttle.max_wait: 2562047h47m16.854775806s is too long: at most 87600h, or forever"},
		{"max_in_flight", func(p *Provider) { p.Throttle.MaxInFlight = -1 }, "throttle.max_in_flight: -1 is negative"},
		{"penalty", func(p *Provider) { p.Throttle.Penalty = -1 }, "throttle.penalty: -1ns is negative"},
		{"endless penalty", func(p *Provider) { p.Throttle.Penalty = Forever }, "throttle.penalty: forever is too long"},
		{"warmup", func(p *Provider) { p.Throttle.Warmup = -1 }, "throttle.warmup: -1ns is negative"},
		{"arrival_within", func(p *Provider) { p.Throttle.ArrivalWithin = -1 }, "throttle.arrival_within: -1ns is negative"},
		{"least_round_trip", func(p *Provider) { p.Throttle.LeastRoundTrip = -1 }, "throttle.least_round_trip: -1ns is negative"},
		{"endless least_round_trip", func(p *Provider) { p.Throttle.LeastRoundTrip = Forever }, "throttle.least_round_trip: forever is too long"},
		{"least_round_trip of a timeout", func(p *Provider) { p.Throttle.LeastRoundTrip, p.Timeout = time.Second, time.Second }, "throttle.least_round_trip: 1s is not below timeout, 1s: no answer could come in time"},
		{"max_retry_after", func(p *Provider) { p.Throttle.MaxRetryAfter = -1 }, "throttle.max_retry_after: -1ns is negative"},
		{"learn", func(p *Provider) { p.Throttle.Learn = "both" }, `throttle.learn: "both" is unknown: it must be one of lower, raise`},
		{"bad answers", func(p *Provider) { p.Throttle.BadAnswers.Max = 0 }, "throttle.bad_answers.max: 0 is too small: it must be at least 1"},
		{"bad answers' period", func(p *Provider) { p.Throttle.BadAnswers.Per = "" }, "throttle.bad_answers.per: is missing"},
		{"bad answers in flight", func(p *Provider) { p.Throttle.BadAnswers.Per, p.Throttle.BadAnswers.Algorithm = "", InFlight }, "throttle.bad_answers.algorithm: in_flight counts no answers"},
		{"bad answers' unit", func(p *Provider) { p.Throttle.BadAnswers.Unit = Tokens }, "throttle.bad_answers.unit: has no meaning here"},
		{"bad answers' charges", func(p *Provider) { p.Throttle.BadAnswers.Charges = []Outcome{OK} }, "throttle.bad_answers.charges: has no meaning here"},
		{"bad answers' endpoints", func(p *Provider) { p.Throttle.BadAnswers.Endpoints = []string{"search"} }, "throttle.bad_answers.endpoints: has no meaning here"},
		{"bad answers instead", func(p *Provider) { p.Throttle.BadAnswers.Instead = true }, "throttle.bad_answers.instead: has no meaning here"},
		{"bad answers' name", func(p *Provider) { p.Throttle.Limits[1].Name = "bad_answers" }, `throttle.limits[1].name: "bad_answers" is the name of throttle.bad_answers already`},
		{"two limits of one name", func(p *Provider) { p.Throttle.Limits[1].Name = "credits" }, `throttle.limits[1].name: "credits" is the name of throttle.limits[0] already: each limit needs its own`},
		{"a short form's name", func(p *Provider) { p.Throttle.Limits[1].Name = "rpd" }, `throttle.limits[1].name: "rpd" is the name of throttle.rpd already`},
		{"the cap's name", func(p *Provider) { p.Throttle.Limits[1].Name = "max_in_flight" }, `throttle.limits[1].name: "max_in_flight" is the name of throttle.max_in_flight already`},
		{"the burst's name", func(p *Provider) { p.Throttle.Algorithm, p.Throttle.Limits[1].Name = "", "burst" }, `throttle.limits[1].name: "burst" is the name of throttle.burst already`},
	})
}

func TestValidateFaultsOfALimit(t *testing.T) {
	monthly := func(change func(*Limit)) func(*Provider) {
		return func(p *Provider) { change(&p.Throttle.Limits[0]) }
	}
	bucket := func(change func(*Limit)) func(*Provider) {
		return func(p *Provider) { change(&p.Throttle.Limits[1]) }
	}
	only := func(l Limit) func(*Provider) {
		return func(p *Provider) { p.Throttle.Limits = append(p.Throttle.Limits, l) }
	}
	checkFaults(t, []fault{
		{"no name", bucket(func(l *Limit) { l.Name = "" }), "throttle.limits[1].name: is missing"},
		{"max 0", bucket(func(l *Limit) { l.Max = 0 }), "throttle.limits[1].max: 0 is too small: it must be at least 1"},
		{"max below 0", bucket(func(l *Limit) { l.Max = -1 }), "throttle.limits[1].max: -1 is too small"},
		{"no period", bucket(func(l *Limit) { l.Per = "" }), `throttle.limits[1].per: is missing: a period is a duration above 0 up to 744h, such as "1s" or "24h", or one of minute, hour, day, month`},
		{"period 0", bucket(func(l *Limit) { l.Per = "0s" }), `throttle.limits[1].per: "0s" is not above 0`},
		{"period of nothing", bucket(func(l *Limit) { l.Per = "0.1ns" }), `throttle.limits[1].per: "0.1ns" is not above 0`},
		{"negative period", bucket(func(l *Limit) { l.Per = "-1s" }), `throttle.limits[1].per: "-1s" is not above 0`},
		{"period too long", bucket(func(l *Limit) { l.Per = "744h0m1s" }), `throttle.limits[1].per: "744h0m1s" is too long: at most 744h`},
		{"period word", bucket(func(l *Limit) { l.Per = "week" }), `throttle.limits[1].per: "week" is unknown: a period is`},
		{"period in flight", only(Limit{Name: "a", Max: 1, Per: "1s", Algorithm: InFlight}), "throttle.limits[2].per: in_flight counts calls that are out, not a period: leave it out"},
		{"calendar in flight", only(Limit{Name: "a", Max: 1, Per: Day, Algorithm: InFlight}), "throttle.limits[2].per: in_flight counts"},
		{"calendar bucket", only(Limit{Name: "a", Max: 1, Per: Day, Algorithm: TokenBucket}), "throttle.limits[2].algorithm: token_bucket cannot have the calendar period day: leave it out (fixed_window), or write a duration"},
		{"calendar window", monthly(func(l *Limit) { l.Algorithm = SlidingWindow }), "throttle.limits[0].algorithm: sliding_window cannot have the calendar period month"},
		{"calendar of an unknown", monthly(func(l *Limit) { l.Algorithm = "gccra" }), `throttle.limits[0].algorithm: "gccra" is unknown`},
		{"zone", monthly(func(l *Limit) { l.Zone = "Mars/Olympus" }), `throttle.limits[0].zone: "Mars/Olympus" is unknown: write an IANA name such as "America/Los_Angeles" or "UTC"`},
		{"this machine's zone", monthly(func(l *Limit) { l.Zone = "Local" }), `throttle.limits[0].zone: "Local" is unknown`},
		{"zone of a duration", bucket(func(l *Limit) { l.Zone = "UTC" }), "throttle.limits[1].zone: needs a calendar period: per minute, hour, day or month"},
		{"anchor", monthly(func(l *Limit) { l.Anchor = "32" }), `throttle.limits[0].anchor: "32" is no day of a month from 1 to 31: write it as "15" or "15 17:30"`},
		{"anchor of a duration", bucket(func(l *Limit) { l.Anchor = "17:30" }), "throttle.limits[1].anchor: needs a calendar period"},
		{"burst below 0", bucket(func(l *Limit) { l.Burst = -1 }), "throttle.limits[1].burst: -1 is negative"},
		{"burst of a window", bucket(func(l *Limit) { l.Algorithm = "" }), "throttle.limits[1].burst: sliding_window has no burst: write a further limit of 5 per 1s, or use token_bucket or leaky_bucket"},
		{"burst of a counter", bucket(func(l *Limit) { l.Algorithm = SlidingWindowCounter }), "throttle.limits[1].burst: sliding_window_counter has no burst"},
		{"burst of a log", bucket(func(l *Limit) { l.Algorithm = SlidingLog }), "throttle.limits[1].burst: sliding_window has no burst"},
		{"burst of a month", monthly(func(l *Limit) { l.Burst = 1 }), "throttle.limits[0].burst: fixed_window has no burst"},
		{"burst in flight", only(Limit{Name: "a", Max: 1, Burst: 1, Algorithm: InFlight}), "throttle.limits[2].burst: in_flight has no burst"},
		{"algorithm", bucket(func(l *Limit) { l.Algorithm = "bucket" }), `throttle.limits[1].algorithm: "bucket" is unknown: it must be one of sliding_window, sliding_log, sliding_window_counter, fixed_window, token_bucket, gcra, leaky_bucket, in_flight`},
		{"counted", bucket(func(l *Limit) { l.Counted = "arrived" }), `throttle.limits[1].counted: "arrived" is unknown: it must be one of answered, sent`},
		{"a log that is answered", only(Limit{Name: "a", Max: 1, Per: "1s", Algorithm: SlidingLog, Counted: CountedAnswered}), "throttle.limits[2].counted: sliding_log means sent"},
		{"sent in flight", only(Limit{Name: "a", Max: 1, Counted: CountedSent, Algorithm: InFlight}), "throttle.limits[2].counted: in_flight counts until the answer"},
		{"unit in flight", only(Limit{Name: "a", Max: 1, Unit: Tokens, Algorithm: InFlight}), "throttle.limits[2].unit: in_flight counts requests"},
		{"charges in flight", only(Limit{Name: "a", Max: 1, Charges: []Outcome{OK}, Algorithm: InFlight}), "throttle.limits[2].charges: in_flight charges nothing"},
		{"unit of two words", bucket(func(l *Limit) { l.Unit = "search credits" }), `throttle.limits[1].unit: "search credits" must be one word`},
		{"scope", bucket(func(l *Limit) { l.Scope = "ip" }), `throttle.limits[1].scope: "ip" is unknown: it must be one of provider, key, endpoint, key+endpoint`},
		{"basis", bucket(func(l *Limit) { l.Basis = "guess" }), `throttle.limits[1].basis: "guess" is unknown: it must be one of provider, pacing, assumed`},
		{"instead of nothing", bucket(func(l *Limit) { l.Endpoints = nil }), "throttle.limits[1].instead: needs endpoints"},
		{"empty endpoint", func(p *Provider) {
			p.Endpoints = append(p.Endpoints, Endpoint{Name: "host"})
			p.Throttle.Limits[1].Endpoints = []string{"host", ""}
		}, "throttle.limits[1].endpoints[1]: is empty: it must be the name of an endpoint"},
		{"endpoint twice", bucket(func(l *Limit) { l.Endpoints = []string{"search", "search"} }), `throttle.limits[1].endpoints[1]: "search" is there twice`},
		{"unknown endpoint", bucket(func(l *Limit) { l.Endpoints = []string{"serach"} }), `throttle.limits[1].endpoints[0]: "serach" is not declared: it must be one of search`},
		{"charges", monthly(func(l *Limit) { l.Charges[1] = "okay" }), `throttle.limits[0].charges[1]: "okay" is unknown: it must be one of ok, rate_limited`},
	})
}

func TestValidateFaultsOfEndpoints(t *testing.T) {
	endpoint := func(change func(*Endpoint)) func(*Provider) {
		return func(p *Provider) {
			p.Endpoints = append(p.Endpoints, Endpoint{Name: "host"})
			change(&p.Endpoints[1])
		}
	}
	checkFaults(t, []fault{
		{"no name", endpoint(func(e *Endpoint) { e.Name = "" }), "endpoints[1].name: is missing"},
		{"name twice", endpoint(func(e *Endpoint) { e.Name = "search" }), `endpoints[1].name: "search" is the name of endpoints[0] already`},
		{"method", endpoint(func(e *Endpoint) { e.Method = "get" }), `endpoints[1].method: "get" is no method: write it as GET or POST`},
		{"path without a slash", endpoint(func(e *Endpoint) { e.Path = "hosts" }), "endpoints[1].path: must begin with a slash"},
		{"path with a query", endpoint(func(e *Endpoint) { e.Path = "/h?a=b" }), "endpoints[1].path: must not have a query or fragment: write it under params"},
		{"path with a line end", endpoint(func(e *Endpoint) { e.Path = "/h\n" }), "endpoints[1].path: has a control character"},
		{"lone brace", endpoint(func(e *Endpoint) { e.Path = "/h/{value" }), "endpoints[1].path: has a brace without its partner"},
		{"kind", endpoint(func(e *Endpoint) { e.Kinds = []Kind{IP, "ipv6"} }), `endpoints[1].kinds[1]: "ipv6" is unknown: it must be one of ip, domain, url, hash, email, phone, company, text`},
		{"cost below 0", endpoint(func(e *Endpoint) { e.Cost = map[string]int64{Credits: -1} }), "endpoints[1].cost.credits: -1 is negative: a cost is at least 0"},
		{"unknown unit", endpoint(func(e *Endpoint) { e.Cost = map[string]int64{Tokens: 1} }), `endpoints[1].cost.tokens: no limit counts it: declare a limit with unit "tokens", or leave it out`},
	})
	limited := Provider{Slug: "x", Throttle: Throttle{Limits: []Limit{{Name: "a", Max: 1, Per: "1s", Endpoints: []string{"b"}}}}}
	assert.ErrorContains(t, limited.Validate(), `throttle.limits[0].endpoints[0]: "b" is not declared: it must be declared under endpoints, where there is none`)
	assert.NoError(t, limited.Throttle.Validate(), "a throttle alone cannot know")
}

func TestValidateFaultsOfTheDialect(t *testing.T) {
	signal := func(change func(*Signal)) func(*Provider) {
		return func(p *Provider) { change(&p.Dialect.Signals[0]) }
	}
	source := func(change func(*Source)) func(*Provider) {
		return func(p *Provider) { change(&p.Dialect.RetryAfter[0]) }
	}
	checkFaults(t, []fault{
		{"no condition", signal(func(s *Signal) { *s = Signal{Outcome: OK} }), "dialect.signals[0]: has no condition: give at least one of status, header, json, body"},
		{"status 99", signal(func(s *Signal) { s.Status[0] = 99 }), "dialect.signals[0].status[0]: 99 is no status: it must be from 100 to 599"},
		{"status 600", signal(func(s *Signal) { s.Status[1] = 600 }), "dialect.signals[0].status[1]: 600 is no status"},
		{"no outcome", signal(func(s *Signal) { s.Outcome = "" }), "dialect.signals[0].outcome: is missing: it must be one of ok, rate_limited"},
		{"outcome", signal(func(s *Signal) { s.Outcome = "throttled" }), `dialect.signals[0].outcome: "throttled" is unknown: it must be one of ok, rate_limited`},
		{"scope", signal(func(s *Signal) { s.Scope = ScopeKeyEndpoint }), `dialect.signals[0].scope: "key+endpoint" is unknown: it must be one of provider, endpoint, key`},
		{"limit", signal(func(s *Signal) { s.Limit = "rpm" }), `dialect.signals[0].limit: "rpm" is not declared: it must be one of rps, rpd, max_in_flight, credits, search`},
		{"body", signal(func(s *Signal) { s.Body = "(" }), "dialect.signals[0].body: is no RE2 pattern: missing closing )"},
		{"header without a name", signal(func(s *Signal) { s.Header.Name = "" }), `dialect.signals[0].header.name: must be the name of a header, such as "X-Error"`},
		{"header with a path", signal(func(s *Signal) { s.Header.Path = "$.a" }), "dialect.signals[0].header.path: has no meaning at a header"},
		{"header without a value", signal(func(s *Signal) { s.Header.Equals = "" }), "dialect.signals[0].header: must have exactly one of equals and matches"},
		{"header with two values", signal(func(s *Signal) { s.Header.Matches = "a" }), "dialect.signals[0].header: must have exactly one of equals and matches"},
		{"JSON without a path", signal(func(s *Signal) { s.JSON.Path = "" }), "dialect.signals[0].json.path: is missing"},
		{"JSON path", signal(func(s *Signal) { s.JSON.Path = "code" }), `dialect.signals[0].json.path: "code" is no JSON path: it begins with $`},
		{"JSON with a name", signal(func(s *Signal) { s.JSON.Name = "X-A" }), "dialect.signals[0].json.name: has no meaning at a JSON value"},
		{"JSON pattern", signal(func(s *Signal) { s.JSON.Matches = "(?=x)" }), "dialect.signals[0].json.matches: is no RE2 pattern: invalid or unsupported Perl syntax"},
		{"no place", source(func(s *Source) { s.Header = "" }), "dialect.retry_after[0]: has 0 places: it must be exactly one of header, json, body"},
		{"two places", source(func(s *Source) { s.Body = true }), "dialect.retry_after[0]: has 2 places"},
		{"header", source(func(s *Source) { s.Header = "X Wait" }), `dialect.retry_after[0].header: "X Wait" is no name of a header`},
		{"notation", source(func(s *Source) { s.As = "secs" }), `dialect.retry_after[0].as: "secs" is unknown: it must be one of seconds, milliseconds, epoch`},
		{"pattern", source(func(s *Source) { s.Pattern = "[" }), "dialect.retry_after[0].pattern: is no RE2 pattern: missing closing ]"},
		{"pattern without a capture", source(func(s *Source) { s.Pattern = "a" }), "dialect.retry_after[0].pattern: has 0 captures: it must have one"},
		{"pattern with two captures", source(func(s *Source) { s.Pattern = "(a)(b)" }), "dialect.retry_after[0].pattern: has 2 captures"},
		{"index", source(func(s *Source) { s.Index = -1 }), "dialect.retry_after[0].index: -1 is negative"},
		{"used", func(p *Provider) { p.Dialect.Used[Credits] = Source{} }, "dialect.used.credits: has 0 places"},
		{"budget of nothing", func(p *Provider) { p.Dialect.Budgets[0] = BudgetSource{Name: "a"} }, "dialect.budgets[0]: says nothing: give at least one of limit, remaining, reset, used, window"},
		{"budget's source", func(p *Provider) { p.Dialect.Budgets[0].Reset.JSON = "reset" }, `dialect.budgets[0].reset.json: "reset" is no JSON path`},
	})
	unlimited := Provider{Slug: "x", Dialect: Dialect{Signals: []Signal{{Status: []int{403}, Outcome: QuotaSpent, Limit: "rpd"}}}}
	assert.ErrorContains(t, unlimited.Validate(), `dialect.signals[0].limit: "rpd" is not declared: the throttle has no limit`)
}

func TestValidateTellsEveryFaultAtOnce(t *testing.T) {
	p := Provider{Slug: "X", BaseURL: "x", Throttle: Throttle{RPS: -1, MaxQueue: -1, Limits: []Limit{{}}}, Retry: Retry{Budget: 2}, AsOf: "today"}
	var fields []string
	joined, ok := p.Validate().(interface{ Unwrap() []error })
	require.True(t, ok)
	for _, err := range joined.Unwrap() {
		fields = append(fields, err.(*FieldError).Field)
	}
	assert.Equal(t, []string{"slug", "base_url", "throttle.rps", "throttle.max_queue",
		"throttle.limits[0].name", "throttle.limits[0].max", "throttle.limits[0].per", "retry.budget", "as_of"}, fields)
}

func TestThrottleAndLimitNameTheirFieldsFromThemselvesOn(t *testing.T) {
	bad := Throttle{RPS: -1, BadAnswers: &Limit{Per: "1s"}, Limits: []Limit{{Name: "a", Max: 1}}}
	assert.EqualError(t, bad.Validate(), strings.Join([]string{
		"rps: -1 is negative: write a number above 0, or leave it out",
		"bad_answers.max: 0 is too small: it must be at least 1",
		`limits[0].per: is missing: a period is a duration above 0 up to 744h, such as "1s" or "24h", or one of minute, hour, day, month`,
	}, "\n"))
	assert.EqualError(t, Limit{Max: 1, Per: "1s"}.Validate(), "name: is missing: each limit needs its own")
	nameless := Limit{Max: 1, Per: "1s"}
	assert.EqualError(t, Throttle{Limits: []Limit{nameless, nameless}}.Validate(),
		"limits[0].name: is missing: each limit needs its own\nlimits[1].name: is missing: each limit needs its own", "no name is not a name twice")
	assert.NoError(t, Throttle{}.Validate())
	assert.NoError(t, Limit{Name: "a", Max: 1, Per: "1s"}.Validate())
}
