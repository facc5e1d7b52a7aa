package limit_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
)

// A call looks, takes, and is settled when its answer is there.
func ExampleRule() {
	r, err := limit.New(provider.Limit{Name: "search", Max: 2, Per: "1s"})
	if err != nil {
		fmt.Println(err)
		return
	}
	at := func(d time.Duration) limit.Now { return limit.Now{Mono: d} }
	for range 2 {
		if r.Look(at(0), 1) <= 0 {
			r.Take(at(0), 1)
		}
	}
	fmt.Println("a third may go:", r.Look(at(0), 1) < limit.Never)
	answered := at(80 * time.Millisecond)
	r.Settle(at(0), answered, 1, 1)
	fmt.Println("a third may go at", r.Look(answered, 1))
	// Output:
	// a third may go: false
	// a third may go at 1.080000001s
}

func ExampleRule_When() {
	r, _ := limit.New(provider.Limit{Name: "lookups", Max: 4, Per: "1m"})
	now := limit.Now{}
	for _, n := range []int64{4, 5, 12, 13} {
		fmt.Println(n, r.When(now, n))
	}
	// Output:
	// 4 0s
	// 5 1m0.000000001s
	// 12 2m0.000000002s
	// 13 3m0.000000003s
}
