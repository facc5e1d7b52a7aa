package outage

import (
	"encoding/json"
	"flag"
	"os"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

var (
	report = flag.String("report", "", "play every peer in every mode and write the results to this file, as JSON")
	_      = flag.Bool("quick", false, "changes nothing: there is no shorter outage")
)

// TestPlay is how the program plays: only a test has virtual time.
func TestPlay(t *testing.T) {
	if *report == "" {
		t.Skip("the program asks for it with -report")
	}
	var (
		mu      sync.Mutex
		results []Result
	)
	t.Run("peers", func(t *testing.T) {
		for _, m := range Modes {
			for _, p := range Peers {
				t.Run("", func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(*testing.T) {
						r := Play(p, m)
						mu.Lock()
						defer mu.Unlock()
						results = append(results, r)
					})
				})
			}
		}
	})
	b, err := json.Marshal(results)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(*report, b, 0o600))
}
