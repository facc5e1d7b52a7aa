package coordinator_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// once is a declaration without retries: an answer is an answer.
func once(t provider.Throttle) provider.Provider {
	p := declare(t)
	p.Retry.Off = true
	return p
}

func until(t *testing.T, c *coordinator.Coordinator) time.Duration {
	t.Helper()
	s := state(t, c)
	require.NotEmpty(t, s.Pauses)
	return time.Until(s.Pauses[0].Until)
}

func TestPauseThenOneAloneThenTheRest(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		require.ErrorIs(t, c.Do(t.Context(), to, answers(provider.RateLimited, time.Minute)), coordinator.ErrRateLimited)
		var mu sync.Mutex
		var went []time.Duration
		for range 50 {
			go func() {
				_ = c.Do(t.Context(), to, func(ctx context.Context) error {
					mu.Lock()
					went = append(went, time.Since(start))
					mu.Unlock()
					return sleep(ctx, 100*time.Millisecond)
				})
			}()
		}
		time.Sleep(2 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, went, 50)
		assert.Equal(t, time.Minute, went[0])
		for _, at := range went[1:] {
			assert.GreaterOrEqual(t, at, time.Minute+100*time.Millisecond, "the first goes alone")
		}
	}, once(provider.Throttle{RPS: 20}))
}

func TestTrialOutcomes(t *testing.T) {
	for outcome, opens := range map[provider.Outcome]string{
		provider.OK: "opens", provider.Rejected: "opens", provider.Unauthorized: "opens", provider.QuotaSpent: "closes a limit",
		provider.RateLimited: "pauses", provider.Overloaded: "pauses", provider.Banned: "pauses",
		provider.Failed: "next", provider.Unknown: "next", provider.Canceled: "next",
	} {
		t.Run(string(outcome), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				require.NoError(t, c.Pause("p", time.Now().Add(second), "test"))
				ls, err := c.Acquire(t.Context(), to)
				require.NoError(t, err)
				now := to
				now.Wait = -1
				require.ErrorIs(t, c.Do(t.Context(), now, ok), coordinator.ErrThrottled, "a trial goes alone")
				ls.Report(provider.Feedback{Outcome: outcome})
				ls.Release()
				first, err1 := c.Acquire(t.Context(), now)
				other, err2 := c.Acquire(t.Context(), now)
				switch opens {
				case "opens":
					require.NoError(t, err1)
					require.NoError(t, err2)
				case "closes a limit":
					require.ErrorIs(t, err1, coordinator.ErrQuotaSpent)
					assert.Empty(t, state(t, c).Pauses)
				case "pauses":
					require.Error(t, err1)
					assert.Positive(t, until(t, c))
				case "next":
					require.NoError(t, err1)
					require.Error(t, err2)
				}
				for _, l := range []*coordinator.Lease{first, other} {
					if l != nil {
						l.Forget()
					}
				}
			}, once(provider.Throttle{}))
		})
	}
}

func TestFloorGrowsOnceAPauseAndDecays(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		refuse := answers(provider.RateLimited, 0)
		// Ten calls out at once, all refused: one pause of one penalty.
		var ls []*coordinator.Lease
		for range 10 {
			l, err := c.Acquire(t.Context(), to)
			require.NoError(t, err)
			ls = append(ls, l)
		}
		for _, l := range ls {
			l.Report(provider.Feedback{Outcome: provider.RateLimited})
			l.Release()
		}
		assert.Equal(t, 2*second, until(t, c), "the declared penalty")
		for _, want := range []time.Duration{4 * second, 8 * second, 16 * second} {
			require.Error(t, c.Do(t.Context(), to, refuse))
			assert.Equal(t, want, until(t, c))
		}
		require.NoError(t, c.Do(t.Context(), to, ok))
		time.Sleep(2*time.Minute + time.Second)
		require.Error(t, c.Do(t.Context(), to, refuse))
		assert.Equal(t, 8*second, until(t, c), "32 s, halved twice")
		for range 12 {
			require.Error(t, c.Do(t.Context(), to, refuse))
		}
		assert.Equal(t, 5*time.Minute, until(t, c), "at most five minutes")
	}, once(provider.Throttle{Penalty: 2 * second}))
}

func TestLateAnswersExtendByAdviceOnly(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var ls []*coordinator.Lease
		for range 5 {
			l, err := c.Acquire(t.Context(), to)
			require.NoError(t, err)
			ls = append(ls, l)
		}
		report := func(i int, o provider.Outcome, advice time.Duration) {
			ls[i].Report(provider.Feedback{Outcome: o, RetryAfter: advice})
			ls[i].Release()
		}
		report(0, provider.RateLimited, time.Minute)
		report(1, provider.OK, 0)
		assert.Equal(t, time.Minute, until(t, c), "an ok sent before the pause does not end it")
		report(2, provider.RateLimited, 10*second)
		assert.Equal(t, time.Minute, until(t, c), "only ever extended")
		report(3, provider.RateLimited, 2*time.Minute)
		assert.Equal(t, 2*time.Minute, until(t, c))
		time.Sleep(3 * time.Minute)
		require.NoError(t, c.Do(t.Context(), to, ok))
		report(4, provider.RateLimited, 0)
		assert.Empty(t, state(t, c).Pauses, "and one that comes after it begins none without advice")
	}, once(provider.Throttle{}))
}

func TestBannedStopsEverythingForThePenalty(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		require.ErrorIs(t, c.Do(t.Context(), to, answers(provider.Banned, second)), coordinator.ErrBanned)
		now := to
		now.Wait = -1
		e := refusal(t, c.Do(t.Context(), now, ok))
		assert.Equal(t, coordinator.ReasonBanned, e.Reason)
		assert.Equal(t, 10*time.Minute, e.RetryAfter)
		require.NoError(t, c.Do(t.Context(), to, ok))
		assert.Equal(t, 10*time.Minute, time.Since(start))
	}, once(provider.Throttle{Penalty: 10 * time.Minute}))
}

func TestScopesOfAPause(t *testing.T) {
	p := once(provider.Throttle{})
	p.Endpoints = []provider.Endpoint{{Name: "a"}, {Name: "b"}}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		call := func(endpoint, key string) error {
			return c.Do(t.Context(), coordinator.Call{Provider: "p", Endpoint: endpoint, Key: key, Wait: -1}, ok)
		}
		refuse := func(endpoint, key, scope string) {
			require.Error(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Endpoint: endpoint, Key: key}, func(context.Context) error {
				return provider.Feedback{Outcome: provider.RateLimited, RetryAfter: time.Hour, Scope: scope}.Err(nil)
			}))
		}
		refuse("a", "", provider.ScopeEndpoint)
		require.Error(t, call("a", ""))
		require.Error(t, call("a", "k"))
		require.NoError(t, call("b", ""))
		require.NoError(t, call("", ""))
		refuse("b", "k", provider.ScopeKey)
		require.Error(t, call("b", "k"))
		require.Error(t, call("", "k"))
		require.NoError(t, call("b", "other"))
		require.NoError(t, c.Resume("p"))
		require.NoError(t, call("a", "k"))
	}, p)
}

func TestWhoWaitsIsRefusedWhenAPauseMovesBeyondTheirDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		ls, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		errs := make(chan error, 2)
		short, cancel := context.WithTimeout(t.Context(), 30*second)
		defer cancel()
		go func() { errs <- c.Do(short, to, ok) }()
		synctest.Wait()
		go func() { errs <- c.Do(t.Context(), to, ok) }()
		synctest.Wait()
		start := time.Now()
		ls.Report(provider.Feedback{Outcome: provider.RateLimited, RetryAfter: time.Minute})
		ls.Release()
		e := refusal(t, <-errs)
		assert.Zero(t, time.Since(start), "now, not at the deadline")
		assert.Equal(t, coordinator.ReasonTooLate, e.Reason)
		assert.Equal(t, coordinator.StageQueue, e.Stage)
		assert.Equal(t, time.Minute, e.RetryAfter)
		assert.ErrorIs(t, e, coordinator.ErrRateLimited, "why")
		require.NoError(t, <-errs)
		assert.Equal(t, time.Minute, time.Since(start))
	}, once(provider.Throttle{RPS: 1}))
}

func TestAdviceAboveTheCeilingIsNotWaitedFor(t *testing.T) {
	p := declare(provider.Throttle{MaxWait: provider.Forever, MaxRetryAfter: time.Hour})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		e := refusal(t, c.Do(t.Context(), to, answers(provider.RateLimited, 8*time.Hour)))
		assert.Equal(t, coordinator.ReasonRateLimited, e.Reason)
		assert.Equal(t, 8*time.Hour, e.RetryAfter)
		e = refusal(t, c.Do(t.Context(), to, ok))
		assert.Equal(t, coordinator.ReasonTooLate, e.Reason)
		assert.Equal(t, 8*time.Hour, e.RetryAfter)
		assert.Zero(t, time.Since(start))
	}, p)
}

func TestThreeUnauthorizedInARowPauseTheKey(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		k, other := to, to
		k.Key, other.Key = "k", "other"
		bad := answers(provider.Unauthorized, 0)
		for range 2 {
			require.Error(t, c.Do(t.Context(), k, bad))
		}
		require.NoError(t, c.Do(t.Context(), k, ok))
		for range 3 {
			assert.Empty(t, state(t, c).Pauses)
			require.Error(t, c.Do(t.Context(), k, bad))
		}
		assert.Equal(t, time.Minute, until(t, c))
		require.NoError(t, c.Do(t.Context(), other, ok))
		require.Error(t, c.Do(t.Context(), k, bad))
		assert.Equal(t, 2*time.Minute, until(t, c), "growing")
		require.NoError(t, c.Update("p", provider.Throttle{Penalty: time.Minute}))
		assert.Empty(t, state(t, c).Pauses, "Update ends it")
	}, once(provider.Throttle{Penalty: time.Minute}))
}

func TestQuotaSpentClosesTheNamedLimit(t *testing.T) {
	th := limits(
		provider.Limit{Name: "minute", Max: 10, Per: "1m"},
		provider.Limit{Name: "day", Max: 100, Per: provider.Day, Zone: "America/Los_Angeles"},
	)
	now := to
	now.Wait = -1
	spent := func(limit string, advice time.Duration) func(context.Context) error {
		return func(context.Context) error {
			return provider.Feedback{Outcome: provider.QuotaSpent, Limit: limit, RetryAfter: advice}.Err(nil)
		}
	}
	t.Run("until the told reset", func(t *testing.T) {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			require.ErrorIs(t, c.Do(t.Context(), to, spent("minute", 5*time.Minute)), coordinator.ErrQuotaSpent)
			e := refusal(t, c.Do(t.Context(), now, ok))
			assert.Equal(t, coordinator.ReasonQuotaSpent, e.Reason)
			assert.Equal(t, "minute", e.Limit.Name)
			assert.Equal(t, "learned", e.Limit.Origin)
			assert.Equal(t, 5*time.Minute, e.RetryAfter)
			assert.Empty(t, state(t, c).Pauses, "a limit, not a pause")
		}, once(th))
	})
	t.Run("else until the calendar's next boundary", func(t *testing.T) {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			require.Error(t, c.Do(t.Context(), to, spent("", 0)))
			e := refusal(t, c.Do(t.Context(), now, ok))
			assert.Equal(t, "day", e.Limit.Name)
			// Bubbles begin on 2000-01-01 00:00 UTC; midnight in Los Angeles is 08:00 UTC.
			assert.Equal(t, time.Date(2000, 1, 1, 8, 0, 1, 0, time.UTC), e.RetryAt.UTC(), "and a guard of a second")
		}, once(th))
	})
	t.Run("else after a hundredth of the window, doubling", func(t *testing.T) {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			for _, want := range []time.Duration{600, 1200, 2400, 4800, 9600, 19200, 38400, 60000, 60000} {
				require.Error(t, c.Do(t.Context(), to, spent("minute", 0)))
				e := refusal(t, c.Do(t.Context(), now, ok))
				assert.Equal(t, want*time.Millisecond, e.RetryAfter)
				time.Sleep(e.RetryAfter)
			}
		}, once(th))
	})
}

func TestWarmupRisesToTheWholeRate(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.NoError(t, c.Pause("p", time.Now().Add(second), "test"))
		require.NoError(t, c.Do(t.Context(), to, ok))
		start := time.Now()
		went := calls(t, c, 150, to, 0)
		perSecond := make(map[int]int)
		for _, at := range went {
			perSecond[int(at/second)]++
		}
		t.Log(perSecond)
		assert.LessOrEqual(t, perSecond[0], 3, "a tenth of 10 a second, rising")
		assert.Less(t, perSecond[4], 8)
		assert.GreaterOrEqual(t, perSecond[11], 9)
		_ = start
	}, once(provider.Throttle{RPS: 10, Warmup: 10 * second}))
}

func TestTrialThatHangsDoesNotKeepTheScope(t *testing.T) {
	p := once(provider.Throttle{})
	p.Breaker.Off = true
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.NoError(t, c.Pause("p", time.Now().Add(second), "test"))
		start := time.Now()
		ls, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		require.NoError(t, c.Do(t.Context(), to, ok))
		assert.Equal(t, second+time.Minute, time.Since(start))
		ls.Release()
	}, p)
}
