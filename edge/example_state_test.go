package edge_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/edge"
	"github.com/headgate/headgate/provider"
)

// An Edge is watched like any coordinator, and ends like one.
func ExampleEdge_State() {
	limits, err := edge.New(edge.Config{Tiers: map[string]provider.Throttle{"free": {RPM: 2}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	h := limits.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 3 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	}
	s, err := limits.State()
	fmt.Println(s.Granted, s.Refused[coordinator.ReasonRateLimited], err)
	fmt.Println(len(limits.Coordinator().States()), limits.Shutdown(context.Background()))
	// Output:
	// 2 1 <nil>
	// 1 <nil>
}

// Who a client is, behind proxies that are one's own.
func ExampleAddress() {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.RemoteAddr = "10.0.0.7:4711"
	r.Header.Set("X-Forwarded-For", "203.0.113.7, 10.0.0.8")
	fmt.Println(edge.Address(r, nil))
	fmt.Println(edge.Address(r, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}))
	// Output:
	// 10.0.0.7
	// 203.0.113.7
}

func ExampleStatus() {
	fmt.Println(edge.Status(coordinator.ReasonRateLimited), edge.Status(coordinator.ReasonCircuitOpen), edge.Status(coordinator.ReasonInvalid))
	// Output: 429 503 500
}
