package peer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// all that live in virtual time.
var all = []Peer{Headgate, Informed, ByHand, LimitsFirst, HandOnce, Failsafe, Breaker, Spaced, Burst, Slowed, Uber, Discovery, Throttled, Retryable}

// each runs f in a bubble of its own for each peer that which takes.
func each(t *testing.T, which func(Peer) bool, f func(t *testing.T, p Peer)) {
	t.Helper()
	for _, p := range all {
		if which(p) {
			t.Run(p.Name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, p) }) })
		}
	}
}

// opened is a gate that is closed at the end of the test.
func opened(t *testing.T, p Peer, c Config) *Gate {
	g := p.New(c)
	if g.Close != nil {
		t.Cleanup(g.Close)
	}
	return g
}

func limitsIt(p Peer) bool { return !p.Limitless }

// sends makes n calls at once and returns when they went, in order.
func sends(g *Gate, n int) (at []time.Duration) {
	var (
		mu      sync.Mutex
		running sync.WaitGroup
	)
	begun := time.Now()
	for range n {
		running.Go(func() {
			_ = g.Call(context.Background(), "", func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				at = append(at, time.Since(begun))
				return nil
			})
		})
	}
	running.Wait()
	slices.Sort(at)
	return at
}

// within tells whether never more than n of at are in a window of that length.
func within(at []time.Duration, n int, window time.Duration) bool {
	for i := n; i < len(at); i++ {
		if at[i]-at[i-n] < window {
			return false
		}
	}
	return true
}

func TestEachPeerKeepsAWindow(t *testing.T) {
	each(t, limitsIt, func(t *testing.T, p Peer) {
		g := opened(t, p, Config{Kind: Window, Limits: []Limit{{2, 100 * time.Millisecond}, {5, time.Second}}})
		sends(g, 1)
		time.Sleep(10 * time.Second) // what was not used must not be made up for
		at := sends(g, 23)
		require.Len(t, at, 23, "everybody gets through")
		keeps := within(at, 2, 100*time.Millisecond) && within(at, 5, time.Second)
		require.Equal(t, p.Name != Burst.Name, keeps, "%v", at)
		require.Less(t, at[22], 11*time.Second, "at half of the rate at the least")
		require.EqualValues(t, 24, g.Permits())
	})
}

func TestBucketsBurst(t *testing.T) {
	each(t, limitsIt, func(t *testing.T, p Peer) {
		g := opened(t, p, Config{Kind: Bucket, Limits: []Limit{{10, time.Second}}})
		sends(g, 1)
		time.Sleep(10 * time.Second) // full: Uber's slack is made up for time that has passed
		at := sends(g, 20)
		bursts := !slices.Contains([]string{Spaced.Name, Slowed.Name, Failsafe.Name, Discovery.Name}, p.Name)
		require.Equal(t, bursts, at[8] == 0, "%v", at)
		require.Positive(t, at[10], "never more than N at once")
		require.InDelta(t, time.Second, at[19], float64(time.Second), "%v", at)
	})
}

func TestSlowedLeavesRoomForTheJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := sends(Slowed.New(Config{Limits: []Limit{{10, time.Second}}, Jitter: 200 * time.Millisecond}), 21)
		require.Equal(t, 2400*time.Millisecond, at[20])
	})
}

func TestInformedNeedNotWaitForTheLeastRoundTripTwice(t *testing.T) {
	for _, c := range []struct {
		p    Peer
		next time.Duration
	}{{Headgate, 1300*time.Millisecond + 1}, {Informed, 1100*time.Millisecond + 1}} {
		synctest.Test(t, func(t *testing.T) {
			g := opened(t, c.p, Config{Kind: Window, Limits: []Limit{{1, time.Second}}, LeastRoundTrip: 200 * time.Millisecond})
			var at []time.Duration
			begun := time.Now()
			for range 2 {
				require.NoError(t, g.Call(t.Context(), "", func(context.Context) error {
					at = append(at, time.Since(begun))
					time.Sleep(300 * time.Millisecond)
					return nil
				}))
			}
			require.Equal(t, []time.Duration{0, c.next}, at)
		})
	}
}

func TestARefusedCallComesAgainWhenItMay(t *testing.T) {
	each(t, func(Peer) bool { return true }, func(t *testing.T, p Peer) {
		g := opened(t, p, Config{Kind: Window, Limits: []Limit{{1, time.Millisecond}}, Attempts: 3, Breaker: true})
		var at []time.Duration
		begun := time.Now()
		require.NoError(t, g.Call(t.Context(), "", func(context.Context) error {
			if at = append(at, time.Since(begun)); len(at) < 3 {
				return &RefusedError{RetryAfter: 7 * time.Second}
			}
			return nil
		}))
		require.Len(t, at, 3)
		require.GreaterOrEqual(t, at[1], 7*time.Second)
		require.GreaterOrEqual(t, at[2], 14*time.Second)
		require.Less(t, at[2], 15*time.Second)
	})
}

func TestAttempts(t *testing.T) {
	each(t, func(p Peer) bool { return p.Lacks == "" || p.Name == Retryable.Name }, func(t *testing.T, p Peer) {
		g := opened(t, p, Config{Kind: Window, Limits: []Limit{{10, time.Second}}, Attempts: 3})
		n := 0
		err := g.Call(t.Context(), "", func(context.Context) error { n++; return StatusError(503) })
		require.Error(t, err)
		require.Equal(t, 3, n)
	})
}

func TestBreakers(t *testing.T) {
	broken := func(p Peer) bool { return p.Lacks == "" || p.Name == Breaker.Name || p.Name == HandOnce.Name }
	each(t, broken, func(t *testing.T, p Peer) {
		g := opened(t, p, Config{Kind: Window, Limits: []Limit{{1, time.Millisecond}}, Breaker: true})
		sent := 0
		try := func(err error) {
			_ = g.Call(t.Context(), "", func(context.Context) error { sent++; return err })
		}
		for range 4 * Failures {
			try(StatusError(500))
			time.Sleep(2 * time.Millisecond)
		}
		require.Equal(t, Failures, sent, "open after so many")
		time.Sleep(Cooldown)
		try(nil)
		try(nil)
		require.Equal(t, Failures+2, sent, "closed again by one that is good")
		for range Failures {
			ctx, cancel := context.WithCancel(t.Context())
			_ = g.Call(ctx, "", func(context.Context) error { sent++; cancel(); return context.Canceled })
		}
		try(nil)
		require.Equal(t, 2*Failures+3, sent, "who leaves says nothing of the provider")
	})
}

func TestCaps(t *testing.T) {
	each(t, func(p Peer) bool { return p.Lacks == "" || p.Name == HandOnce.Name }, func(t *testing.T, p Peer) {
		g := opened(t, p, Config{Kind: Bucket, Limits: []Limit{{1000, time.Second}}, Cap: 3})
		var running sync.WaitGroup
		var mu sync.Mutex
		now, most := 0, 0
		for range 10 {
			running.Go(func() {
				_ = g.Call(t.Context(), "", func(context.Context) error {
					mu.Lock()
					now++
					most = max(most, now)
					mu.Unlock()
					time.Sleep(time.Second)
					mu.Lock()
					defer mu.Unlock()
					now--
					return nil
				})
			})
		}
		running.Wait()
		require.Equal(t, 3, most)
	})
}

func TestWhoWaitsMayLeave(t *testing.T) {
	each(t, func(p Peer) bool { return !p.Limitless && !p.Deaf }, func(t *testing.T, p Peer) {
		g := opened(t, p, Config{Kind: Window, Limits: []Limit{{1, time.Hour}}})
		sends(g, 1)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		err := g.Call(ctx, "", func(context.Context) error { return errors.New("it was sent") })
		require.Error(t, err)
		require.NotContains(t, err.Error(), "it was sent")
	})
}

func TestGoLimiterWaitsOnTheWall(t *testing.T) {
	g := GoLimiter.New(Config{Limits: []Limit{{3, 50 * time.Millisecond}}})
	defer g.Close()
	begun := time.Now()
	at := sends(g, 7)
	require.Len(t, at, 7)
	require.GreaterOrEqual(t, time.Since(begun), 100*time.Millisecond, "the seventh is of the third window")
	require.EqualValues(t, 7, g.Permits())
}
