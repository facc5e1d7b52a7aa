package coordinator_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// least is what holds, and whether it was refuted.
func least(t *testing.T, c *coordinator.Coordinator) (time.Duration, bool) {
	t.Helper()
	s := state(t, c)
	return s.LeastRoundTrip, s.LeastRoundTripRefuted
}

// A declaration that is no truth does harm until the first answer that refutes it, and
// none after it: not even by what counted from too early an instant before.
func TestAnAnswerRefutesTheLeastRoundTrip(t *testing.T) {
	for _, l := range []provider.Limit{
		{Name: "l", Max: 20, Per: "2s"}, {Name: "l", Max: 20, Per: "2s", Algorithm: provider.LeakyBucket},
		{Name: "l", Max: 20, Per: "2s", Burst: 5, Algorithm: provider.TokenBucket}, {Name: "l", Max: 1500, Per: "2s"},
	} {
		t.Run(string(l.Algorithm), func(t *testing.T) {
			// For a while the way there is long, then some calls find a short one: the
			// least was that of the short one all along.
			w := ways{between(380, 400), between(20, 20)}
			over(t, w, once(provider.Throttle{LeastRoundTrip: 400 * ms, Limits: []provider.Limit{l}}), referee.Play{}, func(t *testing.T, c *coordinator.Coordinator, x *far) {
				begun := time.Now()
				var mu sync.Mutex
				var before int64
				var refuted time.Duration
				x.short = begun.Add(20 * second)
				ctx, stop := context.WithCancel(t.Context()) // a deadline would refuse who cannot make it, at once and again
				defer time.AfterFunc(60*second, stop).Stop()
				for range 2 * l.Max {
					go func() {
						for ctx.Err() == nil {
							_ = c.Do(ctx, to, x.send)
							mu.Lock()
							if s, _ := c.State("p"); s.LeastRoundTripRefuted && refuted == 0 {
								assert.Equal(t, 20*ms, s.LeastRoundTrip)
								refuted, before = time.Since(begun), x.r.Report("p").Violated
							}
							mu.Unlock()
						}
					}()
				}
				<-ctx.Done()
				synctest.Wait()
				assert.Greater(t, refuted, 20*second)
				assert.Less(t, refuted, 25*second)
				assert.Positive(t, before, "what a lie does")
				assert.Equal(t, before, x.r.Report("p").Violated, "and no more of it")
			})
		})
	}
}

// What is no answer of the provider's refutes nothing; an Update declares anew.
func TestWhatRefutesTheLeastRoundTrip(t *testing.T) {
	th := limits(provider.Limit{Name: "l", Max: 100, Per: "1s"})
	th.LeastRoundTrip = 200 * ms
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		says := func(d time.Duration, o provider.Outcome) {
			_ = c.Do(t.Context(), to, func(context.Context) error {
				time.Sleep(d)
				return provider.Feedback{Outcome: o}.Err(errors.New("answer"))
			})
		}
		holds := func(want time.Duration, refuted bool) {
			t.Helper()
			d, is := least(t, c)
			assert.Equal(t, want, d)
			assert.Equal(t, refuted, is)
		}
		for _, o := range []provider.Outcome{provider.Failed, provider.Unknown, provider.Canceled} {
			says(0, o)
		}
		says(200*ms, provider.OK)
		holds(200*ms, false)
		ls, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		time.Sleep(150 * ms)
		ls.Sent()
		time.Sleep(100 * ms)
		ls.Report(provider.Feedback{Outcome: provider.OK})
		ls.Release()
		holds(100*ms, true) // from when it was sent
		says(150*ms, provider.OK)
		holds(100*ms, true)
		says(0, provider.Rejected)
		holds(0, true)
		require.NoError(t, c.Update("p", th))
		holds(200*ms, false)
		th.LeastRoundTrip = 0
		require.NoError(t, c.Update("p", th))
		holds(0, false)
	}, once(th))
}

// A failure that came too soon is settled as if nothing were known: who cannot tell
// whether it was an answer does not count it from an instant before.
func TestAFailureTooSoonCountsFromItsEnd(t *testing.T) {
	th := limits(provider.Limit{Name: "l", Max: 1, Per: "1s"})
	th.LeastRoundTrip = 200 * ms
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		_ = c.Do(t.Context(), to, func(context.Context) error {
			time.Sleep(150 * ms)
			return provider.Feedback{Outcome: provider.Failed}.Err(errors.New("status 500"))
		})
		assert.Equal(t, []time.Duration{second + 1}, calls(t, c, 1, to, 300*ms))
		assert.Equal(t, []time.Duration{800*ms + 1}, calls(t, c, 1, to, 200*ms))
	}, once(th))
}

// What an answer's later part tells is charged, or comes back, where the estimate was.
func TestCorrectionFindsWhatCountsFromBeforeTheAnswer(t *testing.T) {
	for _, l := range []provider.Limit{
		{Name: "l", Max: 10, Per: "1m", Unit: provider.Tokens}, {Name: "l", Max: 10, Per: "1m", Unit: provider.Tokens, Algorithm: provider.TokenBucket},
		{Name: "l", Max: 10, Per: "1m", Unit: provider.Tokens, Algorithm: provider.FixedWindow},
	} {
		th := limits(l)
		th.LeastRoundTrip = 200 * ms
		call := units(provider.Tokens, 9)
		for _, refutes := range []bool{false, true} {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				time.Sleep(2*time.Minute - 100*ms - time.Duration(time.Now().UnixNano())%time.Minute)
				a, err := c.Acquire(t.Context(), call)
				require.NoError(t, err)
				time.Sleep(250 * ms) // in the next minute: what counts from 200 ms before is of this one
				a.Report(provider.Feedback{Outcome: provider.OK})
				time.Sleep(2 * second)
				assert.EqualValues(t, 9, state(t, c).Limits[0].Used)
				if refutes {
					assert.NoError(t, c.Do(t.Context(), units(provider.Tokens, 0), takes(30*ms)))
				}
				_, refuted := least(t, c)
				assert.Equal(t, refutes, refuted)
				a.Report(provider.Feedback{Used: map[string]int64{provider.Tokens: 2}})
				a.Release()
				assert.EqualValues(t, 2, state(t, c).Limits[0].Used, l.Algorithm)
			}, once(th))
		}
	}
}

// Of a limit that counts as calls are sent, what an estimate was too low by counts from
// the answer on, as ever.
func TestLeastRoundTripIsNothingToWhatCountsAsItIsSent(t *testing.T) {
	th := limits(provider.Limit{Name: "l", Max: 10, Per: "1s", Unit: provider.Tokens, Counted: provider.CountedSent})
	th.LeastRoundTrip = 200 * ms
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		ls, err := c.Acquire(t.Context(), units(provider.Tokens, 1))
		require.NoError(t, err)
		time.Sleep(500 * ms)
		ls.Report(provider.Feedback{Used: map[string]int64{provider.Tokens: 10}})
		ls.Release()
		begun := time.Now()
		next := units(provider.Tokens, 9)
		next.Wait = 0
		assert.NoError(t, c.Do(t.Context(), next, takes(200*ms)))
		assert.Equal(t, 1200*ms+1, time.Since(begun))
	}, once(th))
}

// Nobody is refused who could go in time, though what is out may turn out to have
// counted for some time when it is answered.
func TestNobodyIsRefusedForWhatMayCountFromBefore(t *testing.T) {
	th := limits(provider.Limit{Name: "l", Max: 2, Per: "1s"})
	th.LeastRoundTrip = 200 * ms
	by := func(at time.Duration) coordinator.Call {
		call := to
		call.Wait = at
		return call
	}
	out := func(t *testing.T, c *coordinator.Coordinator, f func(context.Context) error) {
		t.Helper()
		go func() { _ = c.Do(t.Context(), to, f) }()
		synctest.Wait()
	}
	t.Run("behind another", func(t *testing.T) {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			out(t, c, takes(260*ms))
			out(t, c, takes(260*ms)) // both count from 60 ms on, which is known at 260
			time.Sleep(250 * ms)
			out(t, c, ok)
			e := refusal(t, c.Do(t.Context(), by(799*ms), ok)) // they have none before 50 ms
			assert.Equal(t, coordinator.ReasonTooLate, e.Reason)
			assert.NoError(t, c.Do(t.Context(), by(810*ms+1), ok))
		}, once(th))
	})
	t.Run("beside one that counts from its end", func(t *testing.T) {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			out(t, c, takes(300*ms)) // counts from 100 ms on
			time.Sleep(150 * ms)
			out(t, c, func(ctx context.Context) error {
				time.Sleep(100 * ms)
				return provider.Feedback{Outcome: provider.Failed}.Err(errors.New("status 500"))
			}) // and this one from 250
			time.Sleep(110 * ms)
			assert.NoError(t, c.Do(t.Context(), by(840*ms+1), ok))
		}, once(th))
	})
}

// A forecast plays it, too.
func TestForecastKnowsTheLeastRoundTrip(t *testing.T) {
	for _, l := range []provider.Limit{{Name: "l", Max: 3, Per: "1s"}, {Name: "l", Max: 2, Per: "1s", Burst: 1, Algorithm: provider.TokenBucket}, {Name: "l", Max: 5, Per: "2s", Algorithm: provider.LeakyBucket}} {
		th := limits(l)
		th.LeastRoundTrip = 150 * ms
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			calls(t, c, 2, to, 200*ms)
			start := time.Now()
			played := c.Rehearse(200*ms, coordinator.Demand{Call: to, Calls: 20})
			var want []time.Duration
			for _, at := range played {
				want = append(want, at.Sub(start))
			}
			assert.Equal(t, want, calls(t, c, 20, to, 200*ms), l.Algorithm)
		}, once(th))
	}
}

// The least way there of one process and the least way back of another come to no round
// trip of anybody: a limit that is shared has nothing of it, whether the ledger answers
// or not.
func TestLeastRoundTripIsOfOneProcess(t *testing.T) {
	th := limits(provider.Limit{Name: "l", Max: 1, Per: "1s", Shared: true}, provider.Limit{Name: "own", Max: 1, Per: "100ms"})
	th.LeastRoundTrip = 200 * ms
	for _, away := range []bool{false, true} {
		teamed(t, 1, ledger.Settings{Replicas: 1}, once(th), func(x *team) {
			x.link.cut.Store(away)
			went := calls(x.t, x.cs[0], 3, to, 300*ms)
			assert.GreaterOrEqual(t, went[1], 1300*ms)
			assert.GreaterOrEqual(t, went[2], 2600*ms)
		})
	}
}
