package coordinator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// When 250 calls would be done, before anything is sent.
func ExampleCoordinator_Forecast() {
	c := made(provider.Throttle{RPH: 100})
	f, err := c.Forecast(coordinator.Call{Provider: "geo"}, 250)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range f.Portions {
		fmt.Printf("%d after %v %q\n", p.Calls, p.From.Sub(f.At).Round(time.Hour), p.Limit)
	}
	fmt.Println("all in", f.Done().Sub(f.At).Round(time.Hour))
	// Output:
	// 100 after 0s ""
	// 100 after 1h0m0s "rph"
	// 50 after 2h0m0s "rph"
	// all in 2h0m0s
}

// Calls of several kinds share what they have in common.
func ExampleCoordinator_ForecastAll() {
	c := made(provider.Throttle{RPH: 100, Limits: []provider.Limit{{Name: "cap", Max: 1, Algorithm: provider.InFlight}}})
	f, err := c.ForecastAll(time.Minute, // a round trip
		coordinator.Demand{Call: coordinator.Call{Provider: "geo", Flow: "alice"}, Calls: 5},
		coordinator.Demand{Call: coordinator.Call{Provider: "geo", Flow: "bob"}, Calls: 5})
	fmt.Println(f.Calls, "calls, the last in", f.Done().Sub(f.At).Round(time.Minute), err)
	// Output: 10 calls, the last in 9m0s <nil>
}

// A producer slows down while the queue is over its mark.
func ExampleCoordinator_Pressure() {
	c := made(provider.Throttle{RPS: 1, MaxQueue: 10})
	p, err := c.Pressure("geo")
	fmt.Println(p.High, p.Queue.Length, "of", p.Queue.Capacity, err)
	// Output: false 0 of 10 <nil>
}

// Who looks on ends with the coordinator.
func ExampleCoordinator_Done() {
	c := made(provider.Throttle{})
	_ = c.Shutdown(context.Background())
	<-c.Done()
	fmt.Println("no call goes any more")
	// Output: no call goes any more
}
