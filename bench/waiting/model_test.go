package waiting

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/bench/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLeaving(t *testing.T) {
	const n = 1000
	var ours, theirs Leaving
	synctest.Test(t, func(*testing.T) { ours = Leave(peer.Headgate, n) })
	synctest.Test(t, func(*testing.T) { theirs = Leave(peer.Spaced, n) })
	require.Equal(t, 0.2, ours.Ideal)
	require.InDelta(t, 0.015, ours.Next, 0.001, "the rest of a turn")
	require.InDelta(t, ours.Ideal, ours.Newcomer, 1.1*Turn.Seconds()) // one of those who stay may have gone before
	require.Greater(t, theirs.Newcomer, 15.0, "the turns of those who have left are reserved")
	require.LessOrEqual(t, theirs.Next, theirs.Newcomer)
}

func TestFairness(t *testing.T) {
	var ours, mob Fairness
	synctest.Test(t, func(*testing.T) { ours = compare(peer.Headgate, 50) })
	synctest.Test(t, func(*testing.T) { mob = compare(peer.Throttled, 50) })
	require.InDelta(t, 1, ours.Longest, 0.03)
	require.Less(t, ours.Other, 3*Turn.Seconds(), "the second user's turn comes in the second round")
	require.Greater(t, mob.Longest, 2.0)
}

func TestMeasure(t *testing.T) {
	for _, name := range []string{Select, peer.Headgate.Name, peer.Spaced.Name} {
		c, err := Measure(name, 1000)
		require.NoError(t, err)
		require.Greater(t, c.Heap, 300.0, "%s: a goroutine at the least", name)
		require.Less(t, c.Heap, 10_000.0, name)
		require.GreaterOrEqual(t, c.Stack, 1900.0, name)
		require.GreaterOrEqual(t, c.Cancel, 0.0, name)
	}
	_, err := Measure("nobody", 1)
	require.ErrorContains(t, err, `no peer has the name "nobody"`)
}

func TestWhoCannotBeLeft(t *testing.T) {
	_, deaf, err := blocked(peer.Uber.Name)
	require.NoError(t, err)
	require.True(t, deaf)
	call, deaf, err := blocked(peer.Headgate.Name)
	require.NoError(t, err)
	require.False(t, deaf)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	call(ctx)
}
