package breaker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

const cooldown = 30 * time.Second

// bubble runs f in virtual time, where time.Now stands still until f sleeps.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// call looks and takes at once; the look must allow it.
func call(t *testing.T, b *Breaker) *Token {
	t.Helper()
	until, ok := b.Look(time.Now())
	require.True(t, ok, "the look must allow the call; it says not before %v", until)
	tok := b.Take(time.Now())
	return &tok
}

// refused tells the instant that a look names.
func refused(t *testing.T, b *Breaker) time.Time {
	t.Helper()
	until, ok := b.Look(time.Now())
	require.False(t, ok, "the look must refuse")
	return until
}

func fail(t *testing.T, b *Breaker, n int) {
	t.Helper()
	for range n {
		b.Done(call(t, b), time.Now(), Failure)
	}
}

// opened returns a breaker that has just opened, and when it tries again.
func opened(t *testing.T, d provider.Breaker, timeout time.Duration) (*Breaker, time.Time) {
	t.Helper()
	b := New("x", d, timeout)
	fail(t, b, int(b.failures))
	s, until := b.State(time.Now())
	require.Equal(t, Open, s)
	b.Changes()
	return b, until
}

// probing returns a half-open breaker and its first probe.
func probing(t *testing.T, d provider.Breaker, timeout time.Duration) (*Breaker, *Token) {
	t.Helper()
	b, until := opened(t, d, timeout)
	time.Sleep(time.Until(until))
	p := call(t, b)
	require.True(t, p.Probe())
	b.Changes()
	return b, p
}

func state(b *Breaker) State {
	s, _ := b.State(time.Now())
	return s
}

func TestTripsAtExactlyFive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := New("x", provider.Breaker{}, 0)
		fail(t, b, 4)
		assert.Equal(t, Closed, state(b))
		assert.Equal(t, 4, b.Failures())
		fail(t, b, 1)
		assert.Equal(t, Open, state(b))
		assert.Equal(t, 0, b.Failures())
	})
}

func TestSuccessBreaksTheRow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := New("x", provider.Breaker{}, 0)
		for range 10 {
			fail(t, b, 4)
			b.Done(call(t, b), time.Now(), Success)
			require.Equal(t, 0, b.Failures())
		}
		assert.Equal(t, Closed, state(b))
	})
}

// gobreaker would clear its counts with time if its Interval were set.
func TestTimeDoesNotBreakTheRow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := New("x", provider.Breaker{}, 0)
		fail(t, b, 4)
		time.Sleep(365 * 24 * time.Hour)
		assert.Equal(t, 4, b.Failures())
		fail(t, b, 1)
		assert.Equal(t, Open, state(b))
	})
}

// gobreaker calls this excluded: it is neither a success nor a failure.
func TestNeitherMovesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := New("x", provider.Breaker{}, 0)
		fail(t, b, 4)
		for range 20 {
			b.Done(call(t, b), time.Now(), Neither)
		}
		assert.Equal(t, 4, b.Failures(), "it does not break the row")
		assert.Equal(t, Closed, state(b), "nor lengthen it")
		fail(t, b, 1)
		assert.Equal(t, Open, state(b))
	})
}

// gobreaker's State moves an open breaker to half-open; ours, and Look, must
// leave everything as it is, however often and late they are asked.
func TestLookIsNotAMove(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b, until := opened(t, provider.Breaker{}, 0)
		for range 3 {
			assert.Equal(t, until, refused(t, b))
			s, u := b.State(time.Now())
			assert.Equal(t, Open, s)
			assert.Equal(t, until, u)
			time.Sleep(cooldown / 4)
		}
		time.Sleep(time.Hour)
		for range 3 {
			_, ok := b.Look(time.Now())
			assert.True(t, ok)
			s, u := b.State(time.Now())
			assert.Equal(t, HalfOpen, s)
			assert.True(t, u.IsZero())
		}
		assert.Empty(t, b.Changes(), "nothing has moved")
		assert.True(t, b.Overdue().IsZero(), "nothing is out")

		assert.True(t, call(t, b).Probe())
		assert.Equal(t, []Change{{From: Open, To: HalfOpen}}, b.Changes())
	})
}

// gobreaker's expiry is strict: asked at exactly the end of its timeout it is
// still open, and a timer that was set for that instant would not come again.
func TestExactlyAtOpenUntilAProbeGoes(t *testing.T) {
	for _, d := range []time.Duration{1, time.Millisecond, cooldown} {
		bubble(t, func(t *testing.T) {
			start := time.Now()
			b, until := opened(t, provider.Breaker{Cooldown: d}, 0)
			assert.Equal(t, start.Add(d).Add(1), until)
			time.Sleep(time.Until(until) - 1)
			assert.Equal(t, until, refused(t, b))
			time.Sleep(time.Nanosecond)
			p := call(t, b)
			require.True(t, p.Probe())
			assert.Equal(t, HalfOpen, state(b))
			b.Done(p, time.Now(), Success)
			assert.Equal(t, Closed, state(b))
		})
	}
}

func TestSecondDoneOfAClosedCallCountsOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := New("x", provider.Breaker{}, 0)
		tok := call(t, b)
		for range 10 {
			b.Done(tok, time.Now(), Failure)
		}
		assert.Equal(t, 1, b.Failures())
		b.Done(new(Token), time.Now(), Failure)
		assert.Equal(t, 1, b.Failures(), "the zero token claims nothing")
	})
}

func TestLateResultsOfAnEarlierStateAreIgnored(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := New("x", provider.Breaker{}, 0)
		late := make([]*Token, 20)
		for i := range late {
			late[i] = call(t, b)
		}
		fail(t, b, 5)
		until := refused(t, b)
		for _, l := range late[:5] {
			b.Done(l, time.Now(), Failure)
		}
		assert.Equal(t, until, refused(t, b), "they do not prolong it")
		time.Sleep(time.Until(until))
		p := call(t, b)
		b.Done(late[5], time.Now(), Success)
		assert.Equal(t, HalfOpen, state(b), "they close nothing")
		b.Done(late[6], time.Now(), Failure)
		assert.Equal(t, HalfOpen, state(b), "nor open it")
		refused(t, b)
		b.Done(p, time.Now(), Success)
		for _, l := range late[7:] {
			b.Done(l, time.Now(), Failure)
		}
		assert.Equal(t, Closed, state(b))
		assert.Equal(t, 0, b.Failures(), "nor count once it has closed")
	})
}

func TestNilIsAlwaysClosed(t *testing.T) {
	b := New("x", provider.Breaker{Off: true}, 0)
	require.Nil(t, b)
	now := time.Now()
	for range 20 {
		_, ok := b.Look(now)
		require.True(t, ok)
		tok := b.Take(now)
		require.Equal(t, Token{}, tok)
		require.False(t, tok.Probe())
		b.Done(&tok, now, Failure)
	}
	s, until := b.State(now)
	assert.Equal(t, Closed, s)
	assert.True(t, until.IsZero())
	assert.True(t, b.Overdue().IsZero())
	assert.Zero(t, b.Failures())
	assert.Nil(t, b.Changes())
	b.Configure(provider.Breaker{Failures: 1})
}

func TestChangesAreToldOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := New("x", provider.Breaker{Failures: 1}, 0)
		assert.Empty(t, b.Changes())
		fail(t, b, 1)
		until := refused(t, b)
		time.Sleep(cooldown + 1)
		b.Done(call(t, b), time.Now(), Success)
		assert.Equal(t, []Change{
			{From: Closed, To: Open, Until: until}, {From: Open, To: HalfOpen}, {From: HalfOpen, To: Closed},
		}, b.Changes())
		assert.Empty(t, b.Changes())
	})
}

// What this package rests on; if a new gobreaker no longer does so, here is
// where it shows.
func TestGobreakerIsAsAssumed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cb := gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{Timeout: time.Second})
		for range 6 {
			_, _ = cb.Execute(failed)
		}
		time.Sleep(time.Second)
		assert.Equal(t, gobreaker.StateOpen, cb.State(), "expiry is strict")
		time.Sleep(time.Nanosecond)
		assert.Equal(t, gobreaker.StateHalfOpen, cb.State(), "State moves it")
	})
}
