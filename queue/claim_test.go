package queue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// crossing is one call that needs a key and an endpoint which open in opposite
// phase, for ever new rivals at each: whenever the one opens, the other is shut.
type crossing struct {
	*world
	key, end *gated
	call     *call
}

func newCrossing(t testing.TB, every time.Duration) *crossing {
	c := &crossing{world: newWorld(t)}
	c.bound = 1000
	c.key = c.gate(&spacing{every: second})
	c.end = c.gate(&spacing{every: every, next: every / 2})
	for range 60 {
		c.add(route(c.key, c.gate(&spacing{})), "key", 1)
		c.add(route(c.gate(&spacing{}), c.end), "end", 1)
	}
	c.hand()
	c.call = c.add(route(c.key, c.end), "both", 1)
	c.hand()
	return c
}

// TestClaimEndsStarvation: without a claim it waits until its rivals are through,
// which takes a minute.
func TestClaimEndsStarvation(t *testing.T) {
	c := newCrossing(t, second)
	c.until(time.Hour)
	assert.Less(t, c.call.at, 10*second)
	assert.Greater(t, c.call.at, 7*second, "not before 16 moves")
	assert.Len(t, c.went, 121)
	assert.NotZero(t, c.claims)
	c.empty()
}

// TestClaimOfAnHourlyEndpointIsRefused: nobody closes a key for an hour.
func TestClaimOfAnHourlyEndpointIsRefused(t *testing.T) {
	c := newCrossing(t, second)
	c.leave(c.call)
	hourly := c.gate(&spacing{every: time.Hour})
	call := c.add(route(c.key, c.end, hourly), "both", 1)
	c.hand()
	for call.line.moves < claimAfter-1 {
		c.until(c.now + second/2)
		require.Less(t, c.now, 20*second)
	}
	hourly.take(c.now, 1) // somebody else is first, just before the last move
	before := c.now
	for range 30 {
		keys := c.count("key")
		c.until(c.now + second)
		assert.Equal(t, keys+1, c.count("key"), "one a second, as if there were nobody else")
	}
	assert.Zero(t, c.claims)
	assert.Equal(t, claimAfter, call.line.moves, "it will be tried again with the next move")
	c.until(2 * time.Hour)
	assert.Equal(t, before+time.Hour, call.at)
	c.empty()
}

// TestClaimEndsWithItsHorizon: the answer that the claimant waits for does not
// come. Its claim ends, others go on.
func TestClaimEndsWithItsHorizon(t *testing.T) {
	c := newCrossing(t, second)
	slot := &slots{limit: 1}
	cap := c.gate(slot)
	c.leave(c.call)
	hung := c.add(route(c.key, c.end, cap), "both", 1)
	c.hand()
	for c.claims == 0 {
		c.until(c.now + second/2)
		require.Less(t, c.now, 20*second)
	}
	claimed := c.now
	slot.out = 1
	c.until(claimed + claimHorizon)
	assert.Equal(t, waits, hung.fate)
	before := len(c.went)
	c.until(c.now + second)
	assert.Greater(t, len(c.went), before, "its claim outlives its horizon")
	slot.out = 0
	c.q.Touch(&cap.Gate)
	c.hand()
	c.until(time.Hour)
	assert.Equal(t, gone, hung.fate)
	c.empty()
}

// TestClaimOfTheLast: the claimant is the only one left, and the answer does not
// come. Its claim ends nevertheless: it would close its gates to a call that does
// not need the slot.
func TestClaimOfTheLast(t *testing.T) {
	c := newCrossing(t, second)
	slot := &slots{limit: 1}
	cap := c.gate(slot)
	c.leave(c.call)
	hung := c.add(route(cap, c.key, c.end), "both", 1)
	c.hand()
	for c.claims == 0 {
		c.until(c.now + second/2)
		require.Less(t, c.now, 20*second)
	}
	slot.out = 1
	for _, x := range c.q.All() {
		if x != &hung.Waiter {
			c.leave(x.Owner.(*call))
		}
	}
	c.hand()
	c.until(c.now + claimHorizon)
	assert.Nil(t, c.q.Blocked(c.now, route(c.key), Flow{"nested", 1}, []int64{1}))
	assert.Equal(t, waits, hung.fate)
}

// TestClaimWhileTheCapIsFull: an answer is near, and no reason to refuse a claim.
func TestClaimWhileTheCapIsFull(t *testing.T) {
	c := newCrossing(t, second)
	slot := &slots{limit: 1}
	cap := c.gate(slot)
	c.leave(c.call)
	call := c.add(route(c.key, c.end, cap), "both", 1)
	c.hand()
	for call.line.moves < claimAfter-1 {
		c.until(c.now + second/2)
		require.Less(t, c.now, 20*second)
	}
	slot.out = 1
	c.until(c.now + second/2)
	require.Equal(t, &cap.Gate, call.line.home)
	assert.Equal(t, call.line, c.key.claim)
	slot.out = 0
	c.q.Touch(&cap.Gate)
	c.hand()
	before := len(c.went)
	c.until(c.now + second)
	require.Equal(t, gone, call.fate)
	assert.Same(t, call, c.went[before])
}

// TestMovesAreCountedByCall: a line whose calls are each sent on a few times has
// no reason for a claim.
func TestMovesAreCountedByCall(t *testing.T) {
	w := newWorld(t)
	key, end := w.gate(&spacing{every: 7 * second / 10}), w.gate(&spacing{every: 17 * second / 10})
	r, rival := route(key, end), route(key)
	a := w.add(r, "a", 1)
	for range 100 {
		w.add(r, "a", 1)
		w.add(rival, "b", 1)
	}
	w.hand()
	require.Equal(t, gone, a.fate)
	moves := 0
	for line := w.q.lines[a.class()]; line.home != nil; {
		home := line.home
		w.until(w.now + second/20)
		if line.home != home {
			moves++
		}
	}
	require.Greater(t, moves, 2*claimAfter)
	assert.Zero(t, w.claims)
}

// TestClaimIsGivenUp: by a cancel, and by a gate that is shut for long after all.
func TestClaimIsGivenUp(t *testing.T) {
	for _, how := range []string{"cancel", "pause"} {
		t.Run(how, func(t *testing.T) {
			c := newCrossing(t, second)
			for c.claims == 0 {
				c.until(c.now + second/2)
				require.Less(t, c.now, 20*second)
			}
			require.Equal(t, waits, c.call.fate)
			if how == "cancel" {
				c.leave(c.call)
			} else {
				home := c.of(c.call.line.home)
				home.ruler.(*spacing).next = c.now + time.Hour
				c.q.Touch(&home.Gate)
			}
			c.hand()
			assert.Nil(t, c.key.claim)
			assert.Nil(t, c.end.claim)
			before := len(c.went)
			c.until(c.now + second)
			assert.NotEqual(t, before, len(c.went))
			c.until(3 * time.Hour)
			c.empty()
		})
	}
}

// TestOneClaimAtATime: two calls that cross the same gates both go in the end.
func TestOneClaimAtATime(t *testing.T) {
	c := newCrossing(t, second)
	other := c.add(route(c.end, c.key), "other", 1)
	c.hand()
	c.until(time.Hour)
	assert.Less(t, c.call.at, 20*second)
	assert.Less(t, other.at, 20*second)
	c.empty()
}

// TestClaimedGateIsClosedToNewcomers: also to a call that would not wait.
func TestClaimedGateIsClosedToNewcomers(t *testing.T) {
	c := newCrossing(t, second)
	for c.claims == 0 {
		c.until(c.now + second/2)
		require.Less(t, c.now, 20*second)
	}
	for _, g := range []*gated{c.key, c.end} {
		g.ruler.(*spacing).next = 0
		f := Flow{"new", 1}
		assert.NotNil(t, c.q.Blocked(c.now, route(g), f, []int64{1}))
	}
}
