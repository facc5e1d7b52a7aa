package waiting

import (
	"cmp"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

var (
	report = flag.String("report", "", "play every peer and write the results to this file, as JSON")
	quick  = flag.Bool("quick", false, "fewer calls")
)

// TestPlay is how the program plays: only a test has virtual time.
func TestPlay(t *testing.T) {
	if *report == "" {
		t.Skip("the program asks for it with -report")
	}
	counts := []int{10_000, 100_000}
	if *quick {
		counts = []int{1000}
	}
	var (
		mu      sync.Mutex
		results Results
	)
	t.Run("peers", func(t *testing.T) {
		for _, p := range Peers {
			play(t, func() {
				f := Compare(p)
				mu.Lock()
				defer mu.Unlock()
				results.Fairness = append(results.Fairness, f)
			})
			for _, n := range counts {
				play(t, func() {
					l := Leave(p, n)
					mu.Lock()
					defer mu.Unlock()
					results.Leaving = append(results.Leaving, l)
				})
			}
		}
	})
	slices.SortFunc(results.Leaving, func(a, b Leaving) int { return cmp.Compare(a.N, b.N) })
	b, err := json.Marshal(results)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(*report, b, 0o600))
}

func play(t *testing.T, f func()) {
	t.Run("", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(*testing.T) { f() })
	})
}
