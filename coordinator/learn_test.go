package coordinator_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// shared is a quota that somebody else spends, too: fixed windows of a minute, and
// answers that tell what is left.
type shared struct {
	mu       sync.Mutex
	max      int64
	window   int64
	used     int64
	violated int
	ours     map[int64]int64
}

func (s *shared) spend(n int64) (left int64, reset time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if w := now.Unix() / 60; w != s.window {
		s.window, s.used = w, 0
	}
	reset = now.Truncate(time.Minute).Add(time.Minute).Sub(now)
	if s.used+n > s.max {
		s.violated++
		return s.max - s.used, reset, false
	}
	s.used += n
	return s.max - s.used, reset, true
}

func (s *shared) budget(left int64, reset time.Duration) provider.Budget {
	return provider.Budget{Limit: s.max, HasLimit: true, Remaining: left, HasRemaining: true, Reset: reset, HasReset: true}
}

// Another process spends 60 of 100 a minute. Answers come in any order, and tell;
// not one call more than what is left goes, and all of that does.
func TestLearnsWhatOthersSpend(t *testing.T) {
	p := once(provider.Throttle{MaxInFlight: 5, MaxWait: provider.Forever, Limits: []provider.Limit{
		{Name: "minute", Max: 100, Per: "1m", Algorithm: provider.FixedWindow},
	}})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		s := &shared{max: 100, ours: make(map[int64]int64)}
		rng := rand.New(rand.NewPCG(3, 3))
		var mu sync.Mutex
		delay := func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(10+rng.IntN(90)) * time.Millisecond
		}
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				require.NoError(t, c.Do(t.Context(), to, func(ctx context.Context) error {
					ls, _ := coordinator.LeaseFrom(ctx)
					time.Sleep(delay())
					left, reset, ok := s.spend(1)
					s.mu.Lock()
					s.ours[s.window]++
					s.mu.Unlock()
					back := delay()
					time.Sleep(back)
					f := provider.Feedback{Outcome: provider.OK, Budgets: []provider.Budget{s.budget(left, reset-back)}}
					if !ok {
						f.Outcome = provider.RateLimited
					}
					ls.Report(f)
					return f.Err(nil)
				}))
			})
		}
		for range 8 {
			_, _, ok := s.spend(60)
			assert.True(t, ok, "theirs comes first in each window")
			time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		}
		wg.Wait()
		assert.Zero(t, s.violated)
		var full int
		for _, n := range s.ours {
			assert.LessOrEqual(t, n, int64(40))
			if n == 40 {
				full++
			}
		}
		assert.Equal(t, 5, full, "and what is left is used: %v", s.ours)
	}, p)
}

func TestToldQuotaThatNoLimitDeclares(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		tells := func(left int64) func(context.Context) error {
			return func(ctx context.Context) error {
				ls, _ := coordinator.LeaseFrom(ctx)
				ls.Report(provider.Feedback{Budgets: []provider.Budget{{Remaining: left, HasRemaining: true, Reset: 30 * second, HasReset: true}}})
				return nil
			}
		}
		start := time.Now()
		require.NoError(t, c.Do(t.Context(), to, tells(2)))
		require.NoError(t, c.Do(t.Context(), to, ok))
		require.NoError(t, c.Do(t.Context(), to, ok))
		assert.Zero(t, time.Since(start), "two were left")
		require.NoError(t, c.Do(t.Context(), to, ok))
		assert.Equal(t, 30*second, time.Since(start))
		require.NoError(t, c.Do(t.Context(), keyed("k"), tells(0)))
		now := keyed("k")
		now.Wait = -1
		require.ErrorIs(t, c.Do(t.Context(), now, ok), coordinator.ErrThrottled)
		now.Key = "other"
		require.NoError(t, c.Do(t.Context(), now, ok), "a key's quota is its own")
	}, once(provider.Throttle{}))
}

// Late answers of earlier calls can only tighten what a later call was told.
func TestShuffledAnswersOnlyTighten(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var ls []*coordinator.Lease
		tell := func(i int, left int64) {
			ls[i].Report(provider.Feedback{Budgets: []provider.Budget{{Name: "m", Remaining: left, HasRemaining: true, Reset: time.Minute, HasReset: true}}})
			ls[i].Release()
		}
		acquire := func() {
			l, err := c.Acquire(t.Context(), to)
			require.NoError(t, err)
			ls = append(ls, l)
			time.Sleep(ms)
		}
		left := func() int64 { l := state(t, c).Limits[0]; return l.Max - l.Used - l.Held }
		acquire()
		tell(0, 50) // from here on it is known to tell
		for range 3 {
			acquire()
		}
		tell(3, 20)
		assert.EqualValues(t, 18, left(), "the two that were out may not be counted")
		tell(1, 48)
		assert.EqualValues(t, 19, left(), "it arrived before the last one: it is counted")
		tell(2, 10)
		assert.EqualValues(t, 10, left(), "somebody else has spent")
		acquire()
		tell(4, 30)
		assert.EqualValues(t, 30, left(), "newer: there is more again")
		assert.Equal(t, "learned", state(t, c).Limits[0].Origin)
		time.Sleep(time.Minute)
		assert.Equal(t, "declared", state(t, c).Limits[0].Origin)
	}, once(provider.Throttle{Limits: []provider.Limit{{Name: "m", Max: 100, Per: "1m"}}}))
}

func TestToldSizeOfALimit(t *testing.T) {
	tells := func(size int64) func(context.Context) error {
		return func(ctx context.Context) error {
			ls, _ := coordinator.LeaseFrom(ctx)
			ls.Report(provider.Feedback{Budgets: []provider.Budget{{Name: "m", Limit: size, HasLimit: true, Reset: 10 * second, HasReset: true}}})
			return nil
		}
	}
	for learn, raised := range map[string]int64{"": 40, provider.LearnRaise: 500} {
		t.Run("learn "+learn, func(t *testing.T) {
			th := limits(provider.Limit{Name: "m", Max: 40, Per: "1m"})
			th.Learn = learn
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				require.NoError(t, c.Do(t.Context(), to, tells(20)))
				l := state(t, c).Limits[0]
				assert.EqualValues(t, 20, l.Max)
				assert.Equal(t, "learned", l.Origin)
				assert.Equal(t, 19, room(t, c, to), "a lower one counts at once")
				time.Sleep(2 * time.Minute)
				assert.Equal(t, 40, room(t, c, to), "until its reset")
				time.Sleep(2 * time.Minute)
				require.NoError(t, c.Do(t.Context(), to, tells(500)))
				assert.Equal(t, raised, state(t, c).Limits[0].Max)
			}, once(th))
		})
	}
}

func TestBadAnswersStopALaneBeforeTheProviderBansIt(t *testing.T) {
	p := once(provider.Throttle{BadAnswers: &provider.Limit{Max: 3, Per: "10m"}})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var asked, most, out atomic.Int64
		var wg sync.WaitGroup
		call := to
		call.Wait = time.Minute
		for range 20 {
			wg.Go(func() {
				_ = c.Do(t.Context(), call, func(ctx context.Context) error {
					most.Store(max(most.Load(), out.Add(1)))
					defer out.Add(-1)
					_ = sleep(ctx, second)
					if asked.Add(1) <= 4 {
						return nil
					}
					return provider.Feedback{Outcome: provider.Rejected}.Err(nil)
				})
			})
		}
		wg.Wait()
		assert.EqualValues(t, 20, asked.Load(), "answers that are not bad cost nothing")
		assert.EqualValues(t, 3, most.Load(), "each that is out may be a bad one")
		for range 2 {
			require.Error(t, c.Do(t.Context(), keyed("a"), answers(provider.Unauthorized, 0)))
		}
		require.Error(t, c.Do(t.Context(), to, answers(provider.RateLimited, second)))
		call.Wait = -1
		e := refusal(t, c.Do(t.Context(), call, ok))
		require.NotNil(t, e.Limit)
		assert.Equal(t, "bad_answers", e.Limit.Name)
		assert.InDelta(t, 10*time.Minute, e.RetryAfter, float64(second))
	}, p)
}

// twenty is a provider of 20 a second that publishes nothing; it returns what came
// of 100 calls a second in 5 minutes.
func twenty(t *testing.T, th provider.Throttle) (answered, refused int) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		window, used := start.Unix(), 0
		call := func(context.Context) error {
			if now := time.Now().Unix(); now != window {
				window, used = now, 0
			}
			if used++; used > 20 {
				refused++
				return provider.Feedback{Outcome: provider.RateLimited}.Err(nil)
			}
			answered++
			return nil
		}
		for time.Since(start) < 5*time.Minute {
			_ = c.Do(t.Context(), to, call)
			time.Sleep(10 * time.Millisecond)
		}
	}, once(th))
	t.Logf("%d answered, %d refused", answered, refused)
	return answered, refused
}

// The first refusal comes by surprise, then there are few, and most of what is
// possible is used.
func TestAdaptsToARateThatNobodyTells(t *testing.T) {
	without, _ := twenty(t, provider.Throttle{})
	for name, th := range map[string]provider.Throttle{"nothing declared": {Adaptive: true}, "a ceiling far above": {Adaptive: true, RPS: 100}} {
		answered, refused := twenty(t, th)
		assert.LessOrEqual(t, refused, 6, name)
		assert.Greater(t, answered, 20*300*6/10, name)
		assert.Greater(t, answered, 5*without, "what the pauses alone leave")
	}
}

// One cut a pause, and growing only while at least half is used.
func TestOneCutAPauseAndNoGrowthWithoutUse(t *testing.T) {
	p := once(provider.Throttle{Adaptive: true, RPS: 100})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var ls []*coordinator.Lease
		for range 40 {
			l, err := c.Acquire(t.Context(), to)
			require.NoError(t, err)
			ls = append(ls, l)
		}
		for _, l := range ls {
			l.Report(provider.Feedback{Outcome: provider.RateLimited, RetryAfter: second})
			l.Release()
		}
		time.Sleep(second)
		require.NoError(t, c.Do(t.Context(), to, ok))
		rate := func() float64 { // how far apart two calls go
			start := time.Now()
			for range 2 {
				require.NoError(t, c.Do(t.Context(), to, ok))
			}
			return 2 / time.Since(start).Seconds()
		}
		first := rate()
		assert.InDelta(t, 20, first, 1, "half of the 40 that went in a second, not a half of a half")
		time.Sleep(time.Hour)
		require.NoError(t, c.Do(t.Context(), to, ok))
		assert.InDelta(t, first, rate(), 4, "an hour without use is no reason to grow")
	}, p)
}

// A spent quota that no limit declares is closed all the same.
func TestSpentQuotaWithoutALimit(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		require.ErrorIs(t, c.Do(t.Context(), to, answers(provider.QuotaSpent, time.Minute)), coordinator.ErrQuotaSpent)
		now := to
		now.Wait = -1
		e := refusal(t, c.Do(t.Context(), now, ok))
		assert.Equal(t, coordinator.ReasonQuotaSpent, e.Reason)
		assert.Equal(t, time.Minute, e.RetryAfter)
		require.NoError(t, c.Do(t.Context(), to, ok))
		assert.Equal(t, time.Minute, time.Since(start))
	}, once(provider.Throttle{MaxInFlight: 3}))
}

// A provider whose clock is behind begins its window later: the guard is as wide as
// that, and a second, at most a hundredth of the window.
func TestLearnsTheSkewOfTheProvidersClock(t *testing.T) {
	for behind, opens := range map[time.Duration]time.Duration{0: second, 5 * second: 6 * second, -5 * second: second, time.Hour: 36 * second} {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			start := time.Now()
			answer := func(ctx context.Context) error {
				ls, _ := coordinator.LeaseFrom(ctx)
				at := time.Now().Add(-behind)
				time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // its way back only adds to it
				ls.Report(provider.Feedback{Date: at})
				return nil
			}
			require.NoError(t, c.Do(t.Context(), to, func(ctx context.Context) error {
				ls, _ := coordinator.LeaseFrom(ctx)
				ls.Report(provider.Feedback{Date: time.Now().Add(-behind)})
				return nil
			}))
			for range 9 {
				require.NoError(t, c.Do(t.Context(), to, answer))
			}
			now := to
			now.Wait = -1
			e := refusal(t, c.Do(t.Context(), now, ok))
			assert.Equal(t, start.Add(time.Hour+opens), e.RetryAt, behind)
		}, once(provider.Throttle{Limits: []provider.Limit{{Name: "h", Max: 10, Per: provider.Hour}}}))
	}
}

// An answer that comes late, of a window that is over by what is known already, says
// nothing of the new one.
func TestLateAnswerOfAnOldWindowIsIgnored(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.NoError(t, c.Do(t.Context(), to, tells(provider.Budget{Name: "rpm", Remaining: 9, HasRemaining: true, Reset: 30 * second, HasReset: true})))
		late, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		time.Sleep(25 * second)
		require.NoError(t, c.Do(t.Context(), to, tells(provider.Budget{Name: "rpm", Remaining: 8, HasRemaining: true, Reset: time.Minute, HasReset: true})))
		late.Report(provider.Feedback{Budgets: []provider.Budget{{Name: "rpm", HasRemaining: true, Reset: 5 * second, HasReset: true}}})
		late.Release()
		assert.GreaterOrEqual(t, room(t, c, to), 7)
	}, once(provider.Throttle{RPM: 20}))
}

func TestBadAnswersBindAnEndpointThatLeavesTheGeneralLimits(t *testing.T) {
	p := once(provider.Throttle{RPM: 100, BadAnswers: &provider.Limit{Max: 2, Per: "10m"}, Limits: []provider.Limit{
		{Name: "search", Max: 50, Per: "1m", Endpoints: []string{"search"}, Instead: true},
	}})
	p.Endpoints = []provider.Endpoint{{Name: "search"}}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		call := coordinator.Call{Provider: "p", Endpoint: "search", Wait: -1}
		for range 2 {
			require.Error(t, c.Do(t.Context(), call, answers(provider.Unauthorized, 0)))
		}
		e := refusal(t, c.Do(t.Context(), call, ok))
		require.NotNil(t, e.Limit)
		assert.Equal(t, "bad_answers", e.Limit.Name)
	}, p)
}

// A reset that has just come is no reason to wait a window.
func TestResetThatHasJustCome(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		require.NoError(t, c.Do(t.Context(), to, tells(provider.Budget{Name: "rph", HasRemaining: true, HasReset: true})))
		require.NoError(t, c.Do(t.Context(), to, ok))
		assert.Zero(t, time.Since(start))
	}, once(provider.Throttle{RPH: 100}))
}

// What is at zero comes back when Retry-After says, where no reset is told.
func TestRetryAfterIsTheResetOfWhatIsSpent(t *testing.T) {
	p := once(provider.Throttle{MaxWait: time.Minute, Limits: []provider.Limit{{Name: "day", Max: 10, Per: "24h"}}})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		b := provider.Budget{Name: "day", Limit: 10, HasLimit: true, HasRemaining: true}
		f := provider.Feedback{Outcome: provider.RateLimited, RetryAfter: 8 * time.Hour, Budgets: []provider.Budget{b}}
		e := refusal(t, c.Do(t.Context(), to, func(context.Context) error { return f.Err(nil) }))
		assert.Equal(t, 8*time.Hour, time.Until(e.RetryAt))
		e = refusal(t, c.Do(t.Context(), to, never(t)))
		assert.Equal(t, 8*time.Hour, time.Until(e.RetryAt))
	}, p)
}
