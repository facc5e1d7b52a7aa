package outage

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/bench/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// few callers are as good as many where nobody waits.
const few = 50

func played(t *testing.T, p peer.Peer, m Mode, callers int) (r Result) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { r = play(p, m, callers, From+Length) })
	return r
}

// clairvoyant sends nothing from the outage's beginning to its end, and then nothing
// for so long.
func clairvoyant(longer time.Duration, wastes int64) peer.Peer {
	return peer.Peer{Name: "clairvoyant", New: func(peer.Config) *peer.Gate {
		begun := time.Now()
		var permits atomic.Int64
		return &peer.Gate{
			Permits: permits.Load,
			Call: func(ctx context.Context, _ string, send peer.Send) error {
				permits.Add(1)
				if at := time.Since(begun); at >= From && at < From+Length+longer {
					if permits.Add(-1) > 0 && at < From+time.Second {
						permits.Add(wastes)
					}
					return context.Canceled
				}
				return send(ctx)
			},
		}
	}}
}

func TestWhoSendsNothingIntoTheOutage(t *testing.T) {
	r := played(t, clairvoyant(0, 0), Fails, few)
	require.Zero(t, r.Sent)
	require.Zero(t, r.Wasted)
	require.Less(t, r.Back, 1.5, "all of them ask within one and a half pauses")
	require.InDelta(t, few/(Pause+RoundTrip).Seconds(), r.Before, 3)
	r = played(t, clairvoyant(7*time.Second, 0), Hangs, few)
	require.InDelta(t, 7.5, r.Back, 1)
	require.Positive(t, played(t, clairvoyant(0, 1), Fails, few).Wasted)
}

func TestWhoSendsEverythingIntoIt(t *testing.T) {
	reckless := peer.Peer{Name: "reckless", New: func(peer.Config) *peer.Gate {
		return &peer.Gate{Call: func(ctx context.Context, _ string, send peer.Send) error { return send(ctx) }}
	}}
	r := played(t, reckless, Fails, few)
	require.InDelta(t, Length.Seconds()*few/(Pause+RoundTrip).Seconds(), r.Sent, 60)
	require.Equal(t, -1.0, r.Wasted, "it has no permits")
	require.Zero(t, r.Back)
	r = played(t, reckless, Hangs, few)
	require.InDelta(t, Length.Seconds()*few/(Pause+Timeout).Seconds(), r.Sent, 60)
}

func TestWhoNeverComesBack(t *testing.T) {
	require.Equal(t, After.Seconds(), played(t, clairvoyant(After, 0), Fails, few).Back)
}

// What a breaker is for, and what its place in the chain costs.
func TestBreakersAndPermits(t *testing.T) {
	headgate, inside, outside := played(t, peer.Headgate, Fails, 300), played(t, peer.ByHand, Fails, 300), played(t, peer.LimitsFirst, Fails, 300)
	require.Less(t, headgate.Sent, 100.0)
	require.Zero(t, headgate.Wasted)
	require.Greater(t, inside.Sent, 4*headgate.Sent, "who waited for a permit was through the breaker already")
	require.Zero(t, inside.Wasted)
	require.Less(t, outside.Sent, 100.0)
	require.Greater(t, outside.Wasted, 1000.0)
}

func TestWithin(t *testing.T) {
	at := []time.Duration{1, 2, 2, 3, 5}
	require.Equal(t, 3, within(at, 2, 5))
	require.Equal(t, 5, within(at, 0, 6))
	require.Zero(t, within(at, 4, 5))
}
