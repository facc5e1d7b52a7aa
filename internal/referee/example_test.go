package referee_test

import (
	"fmt"

	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

func Example() {
	r, err := referee.New(1, referee.Play{
		Provider: provider.Provider{Slug: "shop"},
		Limits:   []provider.Limit{{Name: "hourly", Max: 2, Per: "1h"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	r.Serve(referee.Listen())
	for range 3 {
		resp, err := r.Client().Get(r.URL("shop") + "/items")
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	rep := r.Report("shop")
	fmt.Println("violations:", rep.Violated, "answered:", rep.Answered, "of", rep.Arrivals)
	for _, v := range rep.Violations {
		fmt.Printf("%s: %d of %d\n", v.Limit, v.Used, v.Max)
	}
	// Output:
	// 200 OK
	// 200 OK
	// 429 Too Many Requests
	// violations: 1 answered: 3 of 3
	// hourly: 3 of 2
}
