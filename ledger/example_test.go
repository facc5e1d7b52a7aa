package ledger_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/memory"
	"github.com/headgate/headgate/provider"
)

// Two processes share three calls an hour. (Here both are in one, and so is the store.)
func ExampleOpen() {
	ctx := context.Background()
	limit := provider.Limit{Name: "hour", Max: 3, Per: "1h"}
	call := func() ledger.Take {
		c := ledger.NewCounter("acme", limit, "", "")
		return ledger.Take{Provider: "acme", Units: []ledger.Units{{Counter: c, N: 1}}}
	}
	store := memory.New()
	for range 2 {
		l, err := ledger.Open(store, ledger.Settings{})
		if err != nil {
			fmt.Println(err)
			return
		}
		for range 2 {
			g, err := l.Take(ctx, call())
			switch {
			case err != nil:
				fmt.Println(err)
			case g.Hold == 0:
				fmt.Println("not before", g.Wait.Round(time.Minute))
			default:
				l.Settle(ledger.Settlement{Hold: g.Hold}) // the answer is there
				fmt.Println("goes; room for", g.Room[0], "more")
			}
		}
		if err := l.Close(ctx); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// goes; room for 2 more
	// goes; room for 1 more
	// goes; room for 0 more
	// not before 1h0m0s
}
