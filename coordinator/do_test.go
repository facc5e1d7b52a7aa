package coordinator_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

const second = time.Second

func TestGoesAtOnceThenAtTheNextFreeInstant(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		went := calls(t, c, 5, to, 0)
		// Two a second, answered at once: a unit is free strictly after its second.
		assert.Equal(t, []time.Duration{0, 0, second + 1, second + 1, 2*second + 2}, went)
	}, declare(provider.Throttle{RPS: 2}))
}

func TestRoundTripIsHeld(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		went := calls(t, c, 3, to, 100*time.Millisecond)
		assert.Equal(t, []time.Duration{0, 1100*time.Millisecond + 1, 2200*time.Millisecond + 2}, went)
	}, declare(provider.Throttle{RPS: 1}))
}

func TestRefusalByOneLimitTakesNothingFromTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		now := to
		now.Wait = -1
		for range 2 {
			require.NoError(t, c.Do(t.Context(), now, ok))
		}
		before := state(t, c)
		e := refusal(t, c.Do(t.Context(), now, ok))
		assert.Equal(t, coordinator.ReasonRateLimited, e.Reason)
		assert.Equal(t, "rpm", e.Limit.Name)
		assert.Equal(t, time.Minute+1, e.RetryAfter)
		assert.Equal(t, before.Limits, state(t, c).Limits)
	}, declare(provider.Throttle{RPS: 10, RPM: 2, RPD: 500}))
}

func TestPanicLeavesNothingTaken(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.PanicsWithValue(t, "boom", func() {
			_ = c.Do(t.Context(), to, func(context.Context) error { panic("boom") })
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.Do(t.Context(), to, func(context.Context) error { runtime.Goexit(); return nil })
		}()
		<-done
		s := state(t, c)
		assert.Zero(t, s.InFlight)
		assert.EqualValues(t, 2, s.Outcomes[provider.Canceled])
		// Both may have been sent: their units come back linger and window later.
		time.Sleep(2 * second)
		require.NoError(t, c.Do(t.Context(), to, ok))
	}, declare(provider.Throttle{RPS: 2, MaxInFlight: 1}))
}

func TestNestedCallTakesUnitsUnderItsCallersSlot(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		err := c.Do(t.Context(), to, func(ctx context.Context) error {
			return c.Do(ctx, to, func(ctx context.Context) error {
				return c.Do(ctx, to, ok)
			})
		})
		require.NoError(t, err)
		assert.EqualValues(t, 3, state(t, c).Limits[0].Used)
	}, declare(provider.Throttle{RPM: 3, MaxInFlight: 1}))
}

func TestNestedCallIsPartOfTheProbeAndOfTheTrial(t *testing.T) {
	nested := func(c *coordinator.Coordinator) func(context.Context) error {
		return func(ctx context.Context) error { return c.Do(ctx, to, ok) }
	}
	p := declare(provider.Throttle{MaxWait: 10 * second})
	p.Breaker.Failures = 1
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.Error(t, c.Do(t.Context(), to, answers(provider.Failed, 0)))
		time.Sleep(31 * second)
		require.NoError(t, c.Do(t.Context(), to, nested(c)), "a probe that waits for itself")
		require.NoError(t, c.Pause("p", time.Now().Add(second), "test"))
		time.Sleep(2 * second)
		require.NoError(t, c.Do(t.Context(), to, nested(c)), "a trial that waits for itself")
	}, p)
}

func TestLeaseIsInTheContext(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		call := to
		call.Key = "k"
		require.NoError(t, c.Do(t.Context(), call, func(ctx context.Context) error {
			ls, ok := coordinator.LeaseFrom(ctx)
			require.True(t, ok)
			assert.Equal(t, "k", ls.Key())
			return nil
		}))
		_, found := coordinator.LeaseFrom(t.Context())
		assert.False(t, found)
	}, declare(provider.Throttle{}))
}

func TestStateTellsHowLongTheOldestCallIsOut(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var ls []*coordinator.Lease
		for range 3 {
			l, err := c.Acquire(t.Context(), to)
			require.NoError(t, err)
			ls = append(ls, l)
			time.Sleep(second)
		}
		assert.Equal(t, 3*second, state(t, c).OldestOut)
		ls[1].Release()
		assert.Equal(t, 3*second, state(t, c).OldestOut)
		ls[0].Forget()
		assert.Equal(t, second, state(t, c).OldestOut)
		ls[2].Release()
		assert.Zero(t, state(t, c).OldestOut)
	}, declare(provider.Throttle{}))
}

func TestGetReturnsTheValueOrNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		v, err := coordinator.Get(t.Context(), c, to, func(context.Context) (int, error) { return 7, nil })
		require.NoError(t, err)
		assert.Equal(t, 7, v)
		v, err = coordinator.Get(t.Context(), c, to, func(context.Context) (int, error) { return 7, errors.New("no") })
		require.Error(t, err)
		assert.Zero(t, v)
	}, declare(provider.Throttle{}))
}

func TestLeaseIsHarmlessLateAndTwice(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		ls, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		ls.Report(provider.Feedback{Outcome: "nonsense"})
		ls.Report(provider.Feedback{Outcome: provider.Failed})
		ls.Release()
		ls.Release()
		ls.Report(provider.Feedback{Outcome: provider.RateLimited})
		ls.Forget()
		ls.Sent()
		s := state(t, c)
		assert.Equal(t, map[provider.Outcome]int64{provider.Unknown: 1}, s.Outcomes)
		assert.EqualValues(t, 1, s.Limits[0].Used)
		assert.Zero(t, s.InFlight)
		assert.Empty(t, s.Pauses)
	}, declare(provider.Throttle{RPM: 5, MaxInFlight: 1}))
}

func TestReleaseFromTwoGoroutines(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		ls, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		go ls.Release()
		go ls.Release()
		synctest.Wait()
		s := state(t, c)
		assert.Zero(t, s.InFlight)
		assert.EqualValues(t, 0, s.Limits[1].Held)
	}, declare(provider.Throttle{RPM: 5, MaxInFlight: 1}))
}

func TestForgetGivesEverythingBack(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		ls, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		ls.Forget()
		assert.Zero(t, state(t, c).Limits[0].Used+state(t, c).Limits[0].Held)
		ls, err = c.Acquire(t.Context(), to)
		require.NoError(t, err, "the unit is back at once")
		ls.Sent()
		ls.Forget() // too late: it is a Release
		s := state(t, c)
		assert.EqualValues(t, 1, s.Limits[0].Held, "it may be on its way")
		assert.Equal(t, 1, s.Lingering)
		time.Sleep(251 * time.Millisecond)
		assert.EqualValues(t, 1, state(t, c).Limits[0].Used)
	}, declare(provider.Throttle{RPM: 1}))
}

// A call without an answer may still be on its way: it is charged linger after it
// was sent, and not before its end.
func TestCallWithoutAnswerLingers(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		require.Error(t, c.Do(ctx, to, takes(second)))
		require.NoError(t, c.Do(t.Context(), to, ok))
		assert.Equal(t, 100*time.Millisecond+250*time.Millisecond+second+1, time.Since(start))
	}, declare(provider.Throttle{RPS: 1}))
}

func TestLingerIsTheLongestRoundTripOfTheLastMinute(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.NoError(t, c.Do(t.Context(), to, takes(700*time.Millisecond)))
		time.Sleep(5 * second)
		start := time.Now()
		ls, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		ls.Sent()
		time.Sleep(100 * time.Millisecond)
		ls.Release()
		require.NoError(t, c.Do(t.Context(), to, ok))
		assert.Equal(t, 700*time.Millisecond+second+1, time.Since(start))
	}, declare(provider.Throttle{RPS: 1}))
}

func TestArrivalWithinSettlesRequestsBeforeTheAnswer(t *testing.T) {
	th := limits(
		provider.Limit{Name: "requests", Max: 1, Per: "1s"},
		provider.Limit{Name: "tokens", Max: 100, Per: "1s", Unit: provider.Tokens},
	)
	th.ArrivalWithin = 2 * second
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		call := to
		call.Cost = map[string]int64{provider.Tokens: 10}
		told := make(chan struct{})
		go func() {
			_ = c.Do(t.Context(), call, func(ctx context.Context) error {
				ls, _ := coordinator.LeaseFrom(ctx)
				ls.Sent()
				close(told)
				return sleep(ctx, time.Minute)
			})
		}()
		<-told
		require.NoError(t, c.Do(t.Context(), call, ok))
		assert.Equal(t, 3*second+1, time.Since(start))
		s := state(t, c)
		assert.EqualValues(t, 10, s.Limits[1].Held, "tokens wait for the answer")
		time.Sleep(time.Minute)
	}, declare(th))
}

func TestEstimateIsCorrectedByTheAnswer(t *testing.T) {
	th := limits(provider.Limit{Name: "tokens", Max: 100, Per: "1m", Unit: provider.Tokens})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		call := to
		call.Cost = map[string]int64{provider.Tokens: 60}
		used := func(n int64) func(context.Context) error {
			return func(ctx context.Context) error {
				ls, _ := coordinator.LeaseFrom(ctx)
				ls.Report(provider.Feedback{Outcome: provider.OK})
				ls.Report(provider.Feedback{Used: map[string]int64{provider.Tokens: n}})
				return nil
			}
		}
		require.NoError(t, c.Do(t.Context(), call, used(10)))
		assert.EqualValues(t, 10, state(t, c).Limits[0].Used)
		require.NoError(t, c.Do(t.Context(), call, used(150)))
		assert.EqualValues(t, 160, state(t, c).Limits[0].Used, "an estimate too low is charged in full")
		call.Wait = -1
		call.Cost = map[string]int64{provider.Tokens: 1}
		require.ErrorIs(t, c.Do(t.Context(), call, ok), coordinator.ErrRateLimited)
	}, declare(th))
}

func TestChargesOnlyTheDeclaredOutcomes(t *testing.T) {
	th := limits(provider.Limit{Name: "paid", Max: 1, Per: "1m", Charges: []provider.Outcome{provider.OK}})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		call := to
		call.Wait = -1
		for range 3 {
			require.Error(t, c.Do(t.Context(), call, answers(provider.Rejected, 0)))
		}
		require.NoError(t, c.Do(t.Context(), call, ok))
		require.ErrorIs(t, c.Do(t.Context(), call, ok), coordinator.ErrThrottled)
	}, declare(th))
}

func TestExecuteAsksTheRegisteredAdapter(t *testing.T) {
	reg := registryOf(t, &echo{p: provider.Provider{Slug: "echo", Endpoints: []provider.Endpoint{
		{Name: "whois", Kinds: []provider.Kind{provider.Domain}},
		{Name: "host", Kinds: []provider.Kind{provider.IP}},
	}}})
	bubbleWith(t, coordinator.Config{Registry: reg}, func(t *testing.T, c *coordinator.Coordinator) {
		res, err := c.Execute(t.Context(), coordinator.Call{Provider: "echo", Key: "main"}, provider.Query{Kind: provider.IP, Value: "192.0.2.1"})
		require.NoError(t, err)
		assert.JSONEq(t, `["host","main","192.0.2.1"]`, string(res.Data))
		_, err = c.Execute(t.Context(), coordinator.Call{Provider: "ehco"}, provider.Query{})
		require.ErrorIs(t, err, coordinator.ErrUnknownProvider)
		assert.ErrorContains(t, err, "did you mean echo?")
	})
}

func TestExecuteRefusesWhatNoEndpointTakesBeforeItCosts(t *testing.T) {
	a := &echo{p: provider.Provider{Slug: "echo", Throttle: provider.Throttle{RPM: 1}, Endpoints: []provider.Endpoint{
		{Name: "host", Kinds: []provider.Kind{provider.IP}},
	}}}
	bubbleWith(t, coordinator.Config{Registry: registryOf(t, a)}, func(t *testing.T, c *coordinator.Coordinator) {
		to := coordinator.Call{Provider: "echo"}
		for _, q := range []provider.Query{{Kind: provider.Hash}, {Kind: provider.Hash, Endpoint: "host"}, {Endpoint: "hots"}} {
			_, err := c.Execute(t.Context(), to, q)
			assert.Equal(t, coordinator.ReasonInvalid, refusal(t, err).Reason)
		}
		a.lacks = errors.New("set ECHO_KEY")
		_, err := c.Execute(t.Context(), to, provider.Query{Kind: provider.IP})
		assert.ErrorContains(t, err, "set ECHO_KEY")
		a.lacks = nil
		_, err = c.Execute(t.Context(), to, provider.Query{Kind: provider.IP})
		require.NoError(t, err, "nothing was taken")
	})
}

func TestExecuteNeverTakesARefusalForData(t *testing.T) {
	reg := registryOf(t, &echo{p: provider.Provider{Slug: "echo", Retry: provider.Retry{Off: true}},
		f: provider.Feedback{Outcome: provider.QuotaSpent}})
	bubbleWith(t, coordinator.Config{Registry: reg}, func(t *testing.T, c *coordinator.Coordinator) {
		res, err := c.Execute(t.Context(), coordinator.Call{Provider: "echo"}, provider.Query{})
		require.ErrorIs(t, err, coordinator.ErrQuotaSpent)
		assert.Zero(t, res)
	})
}
