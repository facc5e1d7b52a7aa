package decision

import (
	"context"
	"errors"
	"flag"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/bench/peer"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.benchtime", "100x"); err != nil { // what is measured does not matter here
		os.Exit(2)
	}
	goleak.VerifyTestMain(m)
}

func TestEachPeerIsMeasured(t *testing.T) {
	for _, p := range Peers {
		for _, n := range Goroutines {
			r, err := Measure(p, n)
			require.NoError(t, err)
			require.Equal(t, p.Name, r.Peer)
			require.Equal(t, n, r.Goroutines)
			require.Positive(t, r.Nanoseconds, p.Name)
			require.GreaterOrEqual(t, r.Core, 0.0, p.Name)
		}
	}
}

func TestEachGoroutineMakesItsShare(t *testing.T) {
	for _, goroutines := range []int{1, 2, 128} {
		for _, n := range []int{0, 1, 127, 128, 1000} {
			var calls atomic.Int64
			gate := &peer.Gate{Call: func(context.Context, string, peer.Send) error { calls.Add(1); return nil }}
			require.NoError(t, run(gate, goroutines, n))
			require.EqualValues(t, n, calls.Load(), "%d calls by %d", n, goroutines)
		}
	}
}

func TestAPeerThatRefusesIsAnError(t *testing.T) {
	refuses := peer.Peer{Name: "refuses", New: func(peer.Config) *peer.Gate {
		return &peer.Gate{Call: func(context.Context, string, peer.Send) error { return errors.New("no") }}
	}}
	for _, n := range Goroutines {
		_, err := Measure(refuses, n)
		require.EqualError(t, err, "decision: refuses: no")
	}
}

// The peers' own wrapping must not be what is measured.
func TestTheHarnessAllocatesNothing(t *testing.T) {
	for _, p := range []peer.Peer{peer.Burst, peer.Uber, peer.Throttled} {
		gate := p.New(config(p))
		ctx := context.Background()
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = gate.Call(ctx, "", nothing) }), p.Name)
	}
}
