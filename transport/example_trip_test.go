package transport_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/transport"
)

// It is a RoundTripper like any other: a refusal of the provider's is waited for and sent
// again, if that may help and cannot harm.
func ExampleTransport_RoundTrip() {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			w.Header().Set("Retry-After", "0.01")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{
		Slug: "greeter", BaseURL: server.URL, Throttle: provider.Throttle{MaxWait: time.Minute},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := transport.New(c, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.CloseIdleConnections()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := t.RoundTrip(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	fmt.Println(res.StatusCode, "after", asked, "requests")
	// Output: 200 after 2 requests
}
