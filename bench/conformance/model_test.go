package conformance

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/bench/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reckless sends whatever comes.
var reckless = peer.Peer{Name: "reckless", New: func(peer.Config) *peer.Gate {
	return &peer.Gate{Call: func(ctx context.Context, _ string, send peer.Send) error { return send(ctx) }}
}}

// timid sends one call at a time, and none for two windows after an answer.
var timid = peer.Peer{Name: "timid", New: func(c peer.Config) *peer.Gate {
	turn := make(chan struct{}, 1)
	return &peer.Gate{Call: func(ctx context.Context, _ string, send peer.Send) error {
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		err := send(ctx)
		time.Sleep(2 * c.Limits[0].Per)
		<-turn
		return err
	}}
}}

func played(t *testing.T, c Cell) (r Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var err error
		r, err = Play(c, true)
		require.NoError(t, err)
	})
	return r
}

func cell(p peer.Peer, k peer.Kind, n Network, d Demand) Cell {
	return Cell{Peer: p, Set: Sets()[2], Kind: k, Network: n, Demand: d} // 1 per 1 s
}

func TestWhoSurelyBreaksALimitIsRefused(t *testing.T) {
	for _, k := range Kinds {
		for _, d := range Demands {
			r := played(t, cell(reckless, k, Networks()[1], d))
			require.Positive(t, r.Refused, "%s, %s", k, d)
			require.LessOrEqual(t, r.Utilisation, 1.1, "%s, %s: the judge lets no more through", k, d)
		}
	}
}

func TestWhoSurelyKeepsALimitIsNot(t *testing.T) {
	for _, k := range Kinds {
		for _, d := range Demands {
			for _, n := range Networks() {
				r := played(t, cell(timid, k, n, d))
				require.Zero(t, r.Refused, "%s, %s, %s", k, d, n.Name)
				require.Positive(t, r.Arrived)
				if d == Steady {
					require.InDelta(t, 1/(2+n.RoundTrip().Seconds()), r.Goodput, 0.06, "%s, %s", k, n.Name)
				}
			}
		}
	}
}

// With delays that vary, counting a call as it is sent is not enough; counting it until
// its answer is.
func TestDelaysThatVary(t *testing.T) {
	for _, k := range []peer.Kind{peer.Window, peer.Bucket} {
		require.Zero(t, played(t, cell(peer.Headgate, k, Networks()[1], Steady)).Refused)
		require.Zero(t, played(t, cell(peer.Slowed, k, Networks()[1], Steady)).Refused)
		require.Positive(t, played(t, cell(peer.Spaced, k, Networks()[1], Steady)).Refused)
		require.Zero(t, played(t, cell(peer.Spaced, k, Networks()[0], Steady)).Refused)
	}
}

// In some phase a call is on the wrong side of a window's edge.
func TestFixedWindowsArePlayedInManyPhases(t *testing.T) {
	c := cell(peer.Spaced, peer.Fixed, Networks()[1], Steady)
	var r Result
	synctest.Test(t, func(t *testing.T) {
		var err error
		r, err = Play(c, false)
		require.NoError(t, err)
	})
	require.Positive(t, r.Refused)
	require.Greater(t, r.Goodput, 0.8, "but in most it is not")
	seen := map[time.Duration]bool{}
	for i := range 12 {
		p := c.phase(i, 12)
		require.Less(t, p, c.Set.Window)
		seen[p] = true
	}
	require.Len(t, seen, 12)
}

func TestARefusedCallThatCountsKeepsOthersOut(t *testing.T) {
	c := cell(peer.Spaced, peer.Window, Networks()[1], Steady)
	lenient := played(t, c)
	c.Strict = true
	strict := played(t, c)
	require.Less(t, strict.Goodput, lenient.Goodput)
	require.True(t, strict.Strict)
}

func TestWaits(t *testing.T) {
	// Bursts of three, one a second: they wait 0, 1 and 2 s.
	r := played(t, cell(peer.Spaced, peer.Window, Networks()[0], Bursty))
	require.Equal(t, 1.0, r.P50)
	require.Equal(t, 2.0, r.P99)
	require.InDelta(t, 0.6, r.Utilisation, 0.03)
	// Calls that have not been admitted when it ends have waited until then: half of
	// what was played of them half of the time.
	never := peer.Peer{Name: "never", New: func(peer.Config) *peer.Gate {
		return &peer.Gate{Call: func(ctx context.Context, _ string, _ peer.Send) error { <-ctx.Done(); return ctx.Err() }}
	}}
	r = played(t, cell(never, peer.Window, Networks()[0], Bursty))
	require.InDelta(t, 45.5/2, r.P50, 3)
}

func TestCells(t *testing.T) {
	all := Cells(false)
	require.Len(t, all, 2*len(Sets())*len(Kinds)*len(Networks())*len(Demands)*len(Peers))
	skipped := 0
	for _, c := range all {
		if c.Skip() != "" {
			skipped++
			require.True(t, c.Peer.Blind)
			require.Greater(t, c.Set.Window, time.Second)
		}
	}
	require.Equal(t, len(all)/len(Peers)/2, skipped, "half of the sets of one peer")
	few := Cells(true)
	require.Less(t, len(few), len(all)/5)
	for _, p := range Peers {
		require.True(t, slices.ContainsFunc(few, func(c Cell) bool { return c.Peer.Name == p.Name }), p.Name)
	}
}

func TestAPeerThatFailsIsAnError(t *testing.T) {
	broken := peer.Peer{Name: "broken", New: func(peer.Config) *peer.Gate {
		return &peer.Gate{Call: func(context.Context, string, peer.Send) error { return context.DeadlineExceeded }}
	}}
	synctest.Test(t, func(t *testing.T) {
		_, err := Play(cell(broken, peer.Window, Networks()[0], Steady), true)
		require.ErrorContains(t, err, "broken at 1 per 1 s")
	})
}
