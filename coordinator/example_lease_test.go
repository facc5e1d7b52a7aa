package coordinator_test

import (
	"context"
	"fmt"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// What was never sent costs nothing. What was sent is said, where an answer may not
// come: then its units count from the sending on.
func ExampleLease_Forget() {
	c := made(provider.Throttle{RPM: 1})
	ctx, call := context.Background(), coordinator.Call{Provider: "geo", Key: "KEY_A", Wait: -1}
	ls, err := c.Acquire(ctx, call)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ls.Provider(), ls.Key(), ls.Waited())
	ls.Forget()

	ls, err = c.Acquire(ctx, call)
	fmt.Println("the unit is there again:", err == nil)
	ls.Sent()
	ls.Forget() // too late: it is a Release
	_, err = c.Acquire(ctx, call)
	fmt.Println("and now:", err == nil)
	// Output:
	// geo KEY_A 0s
	// the unit is there again: true
	// and now: false
}

// A transport's request is the one that its caller's lease was granted for, if it is the
// first, and the slot is held until the answer's body has been read.
func ExampleLease_Hold() {
	c := made(provider.Throttle{MaxInFlight: 1})
	ctx, call := context.Background(), coordinator.Call{Provider: "geo", Wait: -1}
	var lease *coordinator.Lease
	_ = c.Do(ctx, call, func(ctx context.Context) error {
		lease, _ = coordinator.LeaseFrom(ctx)
		fmt.Println(lease.Claim(c, "geo"), lease.Claim(c, "geo"))
		lease.Hold(func() {}) // what closes the body, if the call is tried again
		return nil
	})
	inFlight := func() int {
		s, _ := c.State("geo")
		return s.InFlight
	}
	fmt.Println("in flight:", inFlight())
	lease.Release() // the body has been read
	fmt.Println("in flight:", inFlight())
	// Output:
	// true false
	// in flight: 1
	// in flight: 0
}

// What is left for whoever the call is made for.
func ExampleLease_Limits() {
	c := made(provider.Throttle{RPM: 60, MaxInFlight: 4})
	_ = c.Do(context.Background(), coordinator.Call{Provider: "geo"}, func(ctx context.Context) error {
		ls, _ := coordinator.LeaseFrom(ctx)
		for _, l := range ls.Limits() {
			fmt.Println(l.Name, l.Left, "of", l.Room)
		}
		return nil
	})
	// Output:
	// rpm 59 of 60
	// max_in_flight 3 of 4
}
