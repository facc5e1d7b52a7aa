package breaker

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

func TestConfigureKeepsTheRow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := New("x", provider.Breaker{}, 0)
		fail(t, b, 4)
		b.Configure(provider.Breaker{Failures: 3})
		assert.Equal(t, Closed, state(b))
		assert.Equal(t, 4, b.Failures())
		fail(t, b, 1)
		assert.Equal(t, Open, state(b))

		b = New("x", provider.Breaker{}, 0)
		fail(t, b, 4)
		b.Configure(provider.Breaker{Failures: 7})
		fail(t, b, 2)
		assert.Equal(t, Closed, state(b))
		fail(t, b, 1)
		assert.Equal(t, Open, state(b))
	})
}

func TestConfigureKeepsOpenUntil(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, until := opened(t, provider.Breaker{}, 0)
		b.Configure(provider.Breaker{Cooldown: time.Second})
		assert.Equal(t, until, refused(t, b))
		time.Sleep(time.Until(until))
		b.Done(call(t, b), time.Now(), Failure)
		assert.Equal(t, time.Now().Add(time.Second).Add(1), refused(t, b), "the next time it is the new one")
	})
}

func TestConfigureToFewerProbesLeavesAWayOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, p1 := probing(t, provider.Breaker{Probes: 3}, 0)
		p2 := call(t, b)
		b.Done(p1, time.Now(), Success)
		b.Done(p2, time.Now(), Success)
		b.Configure(provider.Breaker{Probes: 1})
		b.Done(call(t, b), time.Now(), Success)
		assert.Equal(t, Closed, state(b))
	})
}

func TestConfigureOffClosesAndStaysClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, _ := opened(t, provider.Breaker{}, 0)
		b.Configure(provider.Breaker{Off: true})
		assert.Equal(t, []Change{{From: Open, To: Closed}}, b.Changes())
		fail(t, b, 20)
		assert.Equal(t, Closed, state(b))
		b.Configure(provider.Breaker{})
		assert.Zero(t, b.Failures())
		fail(t, b, 5)
		assert.Equal(t, Open, state(b))
	})
}

func TestConfigureOffForgetsWhatIsOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := New("x", provider.Breaker{}, 0)
		out := make([]*Token, 10)
		for i := range out {
			out[i] = call(t, b)
		}
		b.Configure(provider.Breaker{Off: true})
		for _, tok := range out {
			b.Done(tok, time.Now(), Failure)
		}
		assert.Equal(t, Closed, state(b))
		assert.Zero(t, b.Failures())
	})
}

func TestNumbersBelowOneMeanTheDefaults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, until := opened(t, provider.Breaker{Failures: -1, Cooldown: -1, Probes: -1}, -1)
		assert.Equal(t, time.Now().Add(DefaultCooldown).Add(1), until)
		time.Sleep(time.Until(until))
		call(t, b)
		refused(t, b)
		assert.Equal(t, time.Now().Add(DefaultTimeout).Add(1), b.Overdue())
	})
}

func TestLargestNumbersDoNotOverflow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := New("x", provider.Breaker{Failures: math.MaxInt}, 0)
		fail(t, b, 100)
		assert.Equal(t, Closed, state(b))

		b, until := opened(t, provider.Breaker{Cooldown: math.MaxInt64}, math.MaxInt64)
		require.True(t, until.After(time.Now().Add(1e6*time.Hour)), "until is %v", until)
		refused(t, b)
	})
}
