package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

func TestHalfOpenLetsOneProbeGoAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, p := probing(t, provider.Breaker{}, 0)
		assert.True(t, refused(t, b).IsZero(), "nobody can name the instant")
		b.Done(p, time.Now(), Failure)
		assert.Equal(t, time.Now().Add(cooldown).Add(1), refused(t, b), "a failed probe opens it for a whole cooldown")
		assert.Equal(t, []Change{{From: HalfOpen, To: Open, Until: time.Now().Add(cooldown).Add(1)}}, b.Changes())
	})
}

func TestHalfOpenLetsExactlyThreeProbesThrough(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, p1 := probing(t, provider.Breaker{Probes: 3}, 0)
		p2, p3 := call(t, b), call(t, b)
		refused(t, b)
		b.Done(p1, time.Now(), Success)
		refused(t, b) // its place is used up: three are through already
		b.Done(p2, time.Now(), Success)
		refused(t, b)
		assert.Equal(t, HalfOpen, state(b))
		b.Done(p3, time.Now(), Success)
		assert.Equal(t, Closed, state(b))
	})
}

func TestOneFailedProbeOfThreeOpensIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, p1 := probing(t, provider.Breaker{Probes: 3}, 0)
		p2, p3 := call(t, b), call(t, b)
		b.Done(p1, time.Now(), Success)
		b.Done(p2, time.Now(), Failure)
		assert.Equal(t, Open, state(b))
		b.Done(p3, time.Now(), Success)
		assert.Equal(t, Open, state(b))
		time.Sleep(cooldown + 1)
		for range 2 {
			b.Done(call(t, b), time.Now(), Success)
		}
		assert.Equal(t, HalfOpen, state(b), "the successes of the time before do not count")
	})
}

func TestProbeGivenBackLetsTheNextGo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, p := probing(t, provider.Breaker{}, 0)
		for range 5 {
			refused(t, b)
			b.Done(p, time.Now(), Neither)
			require.Equal(t, HalfOpen, state(b))
			p = call(t, b)
			require.True(t, p.Probe())
		}
		b.Done(p, time.Now(), Success)
		assert.Equal(t, Closed, state(b))
		assert.Equal(t, []Change{{From: HalfOpen, To: Closed}}, b.Changes())
	})
}

func TestSecondDoneLetsNoSecondProbeThrough(t *testing.T) {
	again := func(t *testing.T, b *Breaker, p *Token) {
		t.Helper()
		for _, r := range []Result{Neither, Success, Failure} {
			b.Done(p, time.Now(), r)
			refused(t, b)
			require.Equal(t, HalfOpen, state(b))
		}
	}
	bubble(t, func(t *testing.T) {
		b, p := probing(t, provider.Breaker{}, 0)
		b.Done(p, time.Now(), Neither)
		q := call(t, b) // in the place, and the slot, that p gave back
		again(t, b, p)
		b.Done(q, time.Now(), Success)
		assert.Equal(t, Closed, state(b))
	})
	bubble(t, func(t *testing.T) {
		b, p := probing(t, provider.Breaker{Probes: 2}, 0)
		q := call(t, b)
		b.Done(p, time.Now(), Success)
		again(t, b, p)
		b.Done(q, time.Now(), Success)
		assert.Equal(t, Closed, state(b))
	})
}

func TestHangingProbeOpensItAgain(t *testing.T) {
	for _, timeout := range []time.Duration{0, 10 * time.Second} {
		bubble(t, func(t *testing.T) {
			b, p := probing(t, provider.Breaker{}, timeout)
			if timeout == 0 {
				timeout = DefaultTimeout
			}
			assert.Equal(t, time.Now().Add(timeout).Add(1), b.Overdue())
			time.Sleep(timeout)
			assert.True(t, refused(t, b).IsZero(), "not older than its timeout yet")
			time.Sleep(time.Until(b.Overdue()))
			until := time.Now().Add(cooldown).Add(1)
			assert.Equal(t, until, refused(t, b))
			assert.True(t, b.Overdue().IsZero())
			assert.Equal(t, []Change{{From: HalfOpen, To: Open, Until: until}}, b.Changes())

			b.Done(p, time.Now(), Success)
			assert.Equal(t, Open, state(b), "its late answer is ignored")
			time.Sleep(time.Until(until))
			q := call(t, b)
			b.Done(p, time.Now(), Success)
			assert.Equal(t, HalfOpen, state(b), "and stays so")
			b.Done(q, time.Now(), Success)
			assert.Equal(t, Closed, state(b))
		})
	}
}

func TestHangingProbeIsSeenByStateAndByItsOwnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, _ := probing(t, provider.Breaker{}, 0)
		time.Sleep(DefaultTimeout + 1)
		assert.Equal(t, Open, state(b))

		b, p := probing(t, provider.Breaker{}, 0)
		time.Sleep(DefaultTimeout + 1)
		b.Done(p, time.Now(), Success)
		assert.Equal(t, Open, state(b), "nobody looked, but it was too late all the same")
	})
}

func TestOldestProbeIsTheOverdueOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, p1 := probing(t, provider.Breaker{Probes: 2}, 10*time.Second)
		time.Sleep(4 * time.Second)
		call(t, b)
		b.Done(p1, time.Now(), Neither)
		time.Sleep(time.Second)
		call(t, b) // in the slot of p1, younger than the one behind it
		assert.Equal(t, time.Now().Add(9*time.Second).Add(1), b.Overdue())
		time.Sleep(9 * time.Second)
		assert.Equal(t, HalfOpen, state(b))
		time.Sleep(time.Nanosecond)
		assert.Equal(t, Open, state(b))
	})
}
