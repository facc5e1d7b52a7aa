package breaker_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/breaker"
	"github.com/headgate/headgate/provider"
)

// After its cooldown an open breaker lets one probe go, which closes it or fails.
func ExampleBreaker_State() {
	b := breaker.New("acme", provider.Breaker{Failures: 1, Cooldown: time.Millisecond}, time.Second)
	fmt.Println(b.Closed(), b.Failures())
	now := time.Now()
	call := b.Take(now)
	b.Done(&call, now, breaker.Failure)
	state, until := b.State(now)
	fmt.Println(state, until.After(now))

	for now = time.Now(); now.Before(until); now = time.Now() {
		// an owner sets a timer
	}
	probe := b.Take(now)
	_, ok := b.Look(now)
	fmt.Println("a probe:", probe.Probe(), "- another one:", ok, "- given up for lost a second later:", b.Overdue().Sub(now) > time.Second)
	b.Done(&probe, now, breaker.Success)
	fmt.Println(b.Closed())
	// Output:
	// true 0
	// open true
	// a probe: true - another one: false - given up for lost a second later: true
	// true
}

// Its numbers change live; what is open stays open until the told instant.
func ExampleBreaker_Configure() {
	b := breaker.New("acme", provider.Breaker{Failures: 5}, 0)
	b.Configure(provider.Breaker{Failures: 1})
	now := time.Now()
	call := b.Take(now)
	b.Done(&call, now, breaker.Failure)
	for _, c := range b.Changes() {
		fmt.Println(c.From, "to", c.To)
	}
	b.Configure(provider.Breaker{Off: true})
	fmt.Println(b.Closed())
	// Output:
	// closed to open
	// true
}
