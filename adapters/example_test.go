package adapters_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing/fstest"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
)

const acmeFile = `
slug: acme
base_url: https://api.acme.example/v1
auth: {kind: header, name: X-Api-Key, env: [ACME_KEY]}
endpoints:
  - {name: host, path: "/hosts/{value}", kinds: [ip]}
throttle: {rps: 5}
`

// A folder of declarations of your own. Every fault of every file is told at once.
func ExampleLoad() {
	all, err := adapters.Load(fstest.MapFS{"acme.yaml": {Data: []byte(acmeFile)}})
	for _, p := range all {
		fmt.Println(p.Slug, p.Throttle.RPS)
	}
	fmt.Println(err)
	_, err = adapters.Load(fstest.MapFS{"acme.yaml": {Data: []byte("slug: acme\nthrottle: {rps: -1}\n")}})
	fmt.Println(err != nil)
	// Output:
	// acme 5
	// <nil>
	// true
}

// A declaration becomes an adapter: no code for a provider.
func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"asked":%q}`, r.URL.Path)
	}))
	defer server.Close()
	p, err := provider.Parse([]byte(acmeFile))
	if err != nil {
		fmt.Println(err)
		return
	}
	key := ""
	a, err := adapters.New(p, adapters.Options{BaseURL: server.URL, Getenv: func(string) string { return key }})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a.Provider().Slug, a.Ready() != nil, a.Keys())
	key = "secret"
	fmt.Println(a.Ready(), a.Keys())

	q := provider.Query{Kind: provider.IP, Value: "203.0.113.7"}
	e, err := a.Endpoint(q)
	fmt.Println(e.Name, err)
	res, err := a.Lookup(context.Background(), q) // by itself it is not throttled: the Coordinator does that
	fmt.Println(string(res.Data), err)
	// Output:
	// acme true []
	// <nil> [ACME_KEY]
	// host <nil>
	// {"asked":"/hosts/203.0.113.7"} <nil>
}

// What a lookup was answered with, where that is no data.
func ExampleStatusError() {
	err := fmt.Errorf("lookup: %w", adapters.StatusError(http.StatusForbidden))
	var s adapters.StatusError
	if errors.As(err, &s) {
		fmt.Println(s.StatusCode(), s)
	}
	// Output: 403 status 403 Forbidden
}
