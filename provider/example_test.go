package provider_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/provider"
)

func ExampleParse() {
	p, err := provider.Parse([]byte(`
slug: shodan
base_url: https://api.shodan.io
throttle:
  rps: 1
  max_wait: 5m
auth: {kind: query, name: key, env: [SHODAN_API_KEY]}
`))
	fmt.Println(p.Slug, p.Throttle.RPS, p.Throttle.MaxWait, err)

	_, err = provider.Parse([]byte("slug: shodan\nthrottle:\n  rps: 1\n  max_wait: 30\n  excess: drop\n"))
	fmt.Println(err)

	// Output:
	// shodan 1 5m0s <nil>
	// line 4, column 13: throttle.max_wait: 30 has no unit: write "30s" for seconds
}

func ExampleProvider_Validate() {
	p := provider.Provider{
		Slug:     "Shodan",
		Throttle: provider.Throttle{RPS: -1, Limits: []provider.Limit{{Name: "month", Max: 100, Per: "720h", Zone: "UTC"}}},
	}
	fmt.Println(p.Validate())

	// Output:
	// slug: "Shodan" must consist of a-z, 0-9 and - alone
	// throttle.rps: -1 is negative: write a number above 0, or leave it out
	// throttle.limits[0].zone: needs a calendar period: per minute, hour, day or month
}

func ExampleThrottle_Expand() {
	limits, err := provider.Throttle{RPS: 0.5, RPM: 20, Burst: 3, Algorithm: provider.LeakyBucket, MaxInFlight: 2}.Expand()
	for _, l := range limits {
		fmt.Println(l.Name, l.Max, l.Per, l.Algorithm, l.Burst)
	}
	fmt.Println(err)

	// Output:
	// rps 1 2s leaky_bucket 3
	// rpm 20 1m sliding_window 0
	// max_in_flight 2  in_flight 0
	// <nil>
}

func ExampleFeedbackOf() {
	cause := errors.New("Get https://api.example/?key=secret: 429")
	err := fmt.Errorf("lookup: %w", provider.Feedback{Outcome: provider.RateLimited, Detail: "status 429", RetryAfter: 12 * time.Second}.Err(cause))
	f, ok := provider.FeedbackOf(err)
	fmt.Println(err)
	fmt.Println(ok, f.Outcome, f.RetryAfter, errors.Is(err, cause))

	// Output:
	// lookup: rate_limited: status 429, retry after 12s
	// true rate_limited 12s true
}

func ExampleLimit_AnchorParts() {
	day, at, err := provider.Limit{Per: provider.Month, Anchor: "15 17:30"}.AnchorParts()
	fmt.Println(day, at, err)

	// Output:
	// 15 17h30m0s <nil>
}
