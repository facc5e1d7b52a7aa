package breaker_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/breaker"
	"github.com/headgate/headgate/provider"
)

// The owner of a breaker looks, takes at the instant of going, and reports.
func Example() {
	b := breaker.New("shodan", provider.Breaker{Failures: 2, Cooldown: time.Hour}, 0)
	for range 3 {
		now := time.Now() // in real use: under the mutex that guards b
		until, ok := b.Look(now)
		if !ok {
			fmt.Println("refused; when to come back is known:", until.After(now))
			continue
		}
		t := b.Take(now)
		// … the call; it fails …
		b.Done(&t, time.Now(), breaker.Failure)
	}
	for _, c := range b.Changes() {
		fmt.Println("from", c.From, "to", c.To)
	}
	// Output:
	// refused; when to come back is known: true
	// from closed to open
}
