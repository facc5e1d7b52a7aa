package edge_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/edge"
	"github.com/headgate/headgate/provider"
)

// Tiers are data; who has which is a function. Nobody has more than his tier, a
// route no more than its own limit, and all together no more than the service.
func ExampleNew() {
	service, err := provider.Parse([]byte(`
slug: api
throttle:
  rps: 500
  limits: [{name: search, max: 50, per: 1s, endpoints: [search]}]
endpoints: [{name: search, method: GET, path: /search}]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	tiers, err := edge.ParseTiers([]byte(`
providers:
  free: {throttle: {rpm: 2}}
  pro: {throttle: {rpm: 600, max_in_flight: 20}}
`), service.Endpoints)
	if err != nil {
		fmt.Println(err)
		return
	}
	customers := map[string]string{edge.Fingerprint("key of a customer"): "pro"}
	limits, err := edge.New(edge.Config{Service: service, Tiers: tiers, Default: "free", Tier: func(r *http.Request) (tier, client string) {
		key := r.Header.Get("X-Api-Key")
		if key == "" {
			return "", "" // the default tier, by address
		}
		client = edge.Fingerprint(key)
		return customers[client], client
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	h := limits.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "found") }))
	for range 3 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/search", http.NoBody))
		fmt.Println(w.Code, w.Header().Get("RateLimit-Policy"))
	}
	// Output:
	// 200 "free/rpm";q=2;w=60
	// 200 "free/rpm";q=2;w=60
	// 429 "free/rpm";q=2;w=60
}

// A service passes on to its own clients what it knows of the provider.
func ExampleWriteError() {
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{
		{Slug: "example", Throttle: provider.Throttle{Limits: []provider.Limit{{Name: "daily", Max: 1, Per: provider.Day}}}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := c.Do(r.Context(), coordinator.Call{Provider: "example", Wait: -1}, func(context.Context) error { return nil })
		switch {
		case edge.WriteError(w, err):
		case err != nil:
			http.Error(w, "something else", http.StatusInternalServerError)
		default:
			fmt.Fprint(w, "found")
		}
	})
	for range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		fmt.Println(w.Code, w.Header().Get("RateLimit-Policy"), w.Header().Get("Retry-After") != "")
	}
	// Output:
	// 200  false
	// 429 "daily";q=1;w=86400 true
}
