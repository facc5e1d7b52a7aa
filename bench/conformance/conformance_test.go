package conformance

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
	report = flag.String("report", "", "play every cell and write the results to this file, as JSON")
	quick  = flag.Bool("quick", false, "fewer cells, and shorter")
)

// TestPlay is how the program plays its cells: only a test has virtual time.
func TestPlay(t *testing.T) {
	if *report == "" {
		t.Skip("it takes minutes; the program asks for it with -report")
	}
	var (
		mu      sync.Mutex
		results []Result
	)
	keep := func(r Result) {
		mu.Lock()
		defer mu.Unlock()
		results = append(results, r)
	}
	t.Run("cells", func(t *testing.T) {
		var blind sync.WaitGroup
		for _, c := range Cells(*quick) {
			switch {
			case c.Skip() != "":
			case c.Peer.Blind: // they last as long as they play: all at once, beside the others
				blind.Go(func() { keep(play(t, c)) })
			default:
				t.Run("", func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { keep(play(t, c)) })
				})
			}
		}
		blind.Wait()
	})
	b, err := json.Marshal(results)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(*report, b, 0o600))
}

func play(t *testing.T, c Cell) Result {
	t.Helper()
	r, err := Play(c, *quick)
	require.NoError(t, err)
	return r
}
