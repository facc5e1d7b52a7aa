package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// flaky fails n times with an outcome, then answers.
func flaky(n int, o provider.Outcome, advice time.Duration, at *[]time.Time) func(context.Context) error {
	return func(context.Context) error {
		*at = append(*at, time.Now())
		if len(*at) <= n {
			return provider.Feedback{Outcome: o, RetryAfter: advice}.Err(errors.New("flaky"))
		}
		return nil
	}
}

func TestWhatIsSentAgain(t *testing.T) {
	for _, test := range []struct {
		outcome    provider.Outcome
		replayable bool
		attempts   int
	}{
		{provider.RateLimited, false, 2}, {provider.QuotaSpent, true, 1}, {provider.Banned, true, 1},
		{provider.Overloaded, false, 1}, {provider.Overloaded, true, 2}, {provider.Unauthorized, true, 1},
		{provider.Rejected, true, 1}, {provider.Failed, false, 1}, {provider.Failed, true, 2},
		{provider.Unknown, true, 1}, {provider.Canceled, true, 1},
	} {
		t.Run(fmt.Sprint(test.outcome, " replayable ", test.replayable), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				call := to
				call.Replayable = test.replayable
				var at []time.Time
				err := c.Do(t.Context(), call, flaky(1, test.outcome, 0, &at))
				assert.Len(t, at, test.attempts)
				assert.Equal(t, test.attempts == 2, err == nil)
			}, declare(provider.Throttle{}))
		})
	}
}

func TestBackoffIsNeverShorterThanItsBaseNorThanAdvice(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		call := to
		call.Replayable = true
		for range 50 {
			var at []time.Time
			require.NoError(t, c.Do(t.Context(), call, flaky(2, provider.Failed, 0, &at)))
			first, next := at[1].Sub(at[0]), at[2].Sub(at[1])
			assert.GreaterOrEqual(t, first, 500*time.Millisecond)
			assert.LessOrEqual(t, first, 750*time.Millisecond)
			assert.GreaterOrEqual(t, next, second)
			assert.LessOrEqual(t, next, 1500*time.Millisecond)
			time.Sleep(10 * second) // the retry budget
		}
		var at []time.Time
		require.NoError(t, c.Do(t.Context(), call, flaky(1, provider.Overloaded, 7*second, &at)))
		assert.GreaterOrEqual(t, at[1].Sub(at[0]), 7*second)
	}, declare(provider.Throttle{}))
}

func TestRetryTakesNewPermitsGivesItsSlotBackAndKeepsItsPlace(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var order []string
		tries := 0
		done := make(chan error, 3)
		go func() {
			done <- c.Do(t.Context(), to, func(context.Context) error {
				tries++
				order = append(order, fmt.Sprint("first ", tries))
				if tries == 1 {
					return provider.Feedback{Outcome: provider.RateLimited, RetryAfter: 10 * second}.Err(nil)
				}
				return nil
			})
		}()
		synctest.Wait()
		for _, name := range []string{"second", "third"} {
			go func() {
				done <- c.Do(t.Context(), to, func(context.Context) error { order = append(order, name); return nil })
			}()
			synctest.Wait()
		}
		for range 3 {
			require.NoError(t, <-done)
		}
		assert.Equal(t, []string{"first 1", "first 2", "second", "third"}, order)
		s := state(t, c)
		assert.EqualValues(t, 4, s.Granted)
		assert.EqualValues(t, 1, s.Retries)
	}, declare(provider.Throttle{RPS: 1, MaxInFlight: 1, MaxQueue: 3}))
}

func TestRetryIsNeverRefusedForWantOfAPlace(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var at []time.Time
		done := make(chan error, 2)
		refused := flaky(1, provider.RateLimited, second, &at)
		go func() {
			done <- c.Do(t.Context(), to, func(ctx context.Context) error {
				return errors.Join(sleep(ctx, 100*time.Millisecond), refused(ctx))
			})
		}()
		synctest.Wait()
		go func() { done <- c.Do(t.Context(), to, ok) }()
		synctest.Wait()
		require.NoError(t, <-done)
		require.NoError(t, <-done)
	}, declare(provider.Throttle{RPS: 1, MaxQueue: 1}))
}

func TestRetryBudgetBoundsAmplification(t *testing.T) {
	p := declare(provider.Throttle{})
	p.Breaker.Off = true
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		call := to
		call.Replayable = true
		for range 200 {
			go func() { _ = c.Do(t.Context(), call, answers(provider.Failed, 0)) }()
		}
		time.Sleep(5 * second)
		assert.EqualValues(t, 40, state(t, c).Retries, "a fifth of the calls of the last 10 s")
		time.Sleep(10 * second)
		for range 20 {
			go func() { _ = c.Do(t.Context(), call, answers(provider.Failed, 0)) }()
		}
		time.Sleep(5 * second)
		assert.EqualValues(t, 50, state(t, c).Retries, "at least ten")
	}, p)
}

func TestDelayThatWouldOutliveTheDeadlineIsNotSlept(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*second)
		defer cancel()
		call := to
		call.Replayable = true
		start := time.Now()
		e := refusal(t, c.Do(ctx, call, answers(provider.Overloaded, time.Minute)))
		assert.Equal(t, coordinator.ReasonOverloaded, e.Reason)
		assert.GreaterOrEqual(t, e.RetryAfter, time.Minute)
		require.NoError(t, c.Resume("p"))
		e = refusal(t, c.Do(ctx, call, answers(provider.RateLimited, time.Minute)))
		assert.Equal(t, coordinator.ReasonRateLimited, e.Reason)
		assert.Equal(t, time.Minute, e.RetryAfter)
		assert.Equal(t, 1, e.Attempts)
		assert.Zero(t, time.Since(start))
	}, declare(provider.Throttle{}))
}

type status int

func (s status) Error() string   { return "GET https://example.org/?key=secret" }
func (s status) StatusCode() int { return int(s) }

type late struct{}

func (late) Error() string   { return "late: https://example.org/?key=secret" }
func (late) Timeout() bool   { return true }
func (late) Temporary() bool { return true }

func TestClassification(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want provider.Outcome
	}{
		"feedback":        {fmt.Errorf("x: %w", provider.Feedback{Outcome: provider.Banned}.Err(nil)), provider.Banned},
		"status 429":      {status(429), provider.RateLimited},
		"status 404":      {fmt.Errorf("x: %w", status(404)), provider.Rejected},
		"status 502":      {status(502), provider.Failed},
		"refused":         {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, provider.Failed},
		"reset":           {fmt.Errorf("read: %w", syscall.ECONNRESET), provider.Failed},
		"broken stream":   {io.ErrUnexpectedEOF, provider.Failed},
		"url error":       {&url.Error{Op: "Get", URL: "https://example.org/?key=secret", Err: io.EOF}, provider.Failed},
		"early timeout":   {late{}, provider.Canceled},
		"configured":      {errConfigured, provider.QuotaSpent},
		"anything":        {errors.New("no such user"), provider.Unknown},
		"refusal of ours": {&coordinator.Error{Reason: coordinator.ReasonQueueFull}, provider.Canceled},
		"below us":        {context.Canceled, provider.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := coordinator.Config{Providers: []provider.Provider{once(provider.Throttle{})},
				Classify: func(slug string, err error) (provider.Feedback, bool) {
					return provider.Feedback{Outcome: provider.QuotaSpent}, slug == "p" && errors.Is(err, errConfigured)
				}}
			bubbleWith(t, cfg, func(t *testing.T, c *coordinator.Coordinator) {
				err := c.Do(t.Context(), to, func(context.Context) error { return test.err })
				e := refusal(t, err)
				assert.Equal(t, test.want, e.Answer.Outcome)
				assert.ErrorIs(t, err, test.err)
				assert.NotContains(t, err.Error(), "secret")
			})
		})
	}
}

var errConfigured = errors.New("configured")

func TestHeldSlotOutlivesTheFunctionAndEndsBeforeARetry(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var held []*coordinator.Lease
		dropped := 0
		try := func(ctx context.Context) error {
			ls, _ := coordinator.LeaseFrom(ctx)
			held = append(held, ls)
			ls.Hold(func() { dropped++ })
			if len(held) == 1 {
				return provider.Feedback{Outcome: provider.RateLimited, RetryAfter: second}.Err(nil)
			}
			return nil
		}
		require.NoError(t, c.Do(t.Context(), to, try), "a retry does not wait for its own slot")
		assert.Equal(t, 1, dropped)
		assert.Equal(t, 1, state(t, c).InFlight)
		now := to
		now.Wait = -1
		require.ErrorIs(t, c.Do(t.Context(), now, ok), coordinator.ErrRateLimited)
		held[1].Release()
		require.NoError(t, c.Do(t.Context(), now, ok))
	}, declare(provider.Throttle{MaxInFlight: 1}))
}

func TestFinalRefusalKeepsWhatIsHeld(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		short := to
		short.Wait = second
		var ls *coordinator.Lease
		e := refusal(t, c.Do(t.Context(), short, func(ctx context.Context) error {
			ls, _ = coordinator.LeaseFrom(ctx)
			ls.Hold(func() { t.Error("dropped though nothing is tried again") })
			return provider.Feedback{Outcome: provider.RateLimited, RetryAfter: time.Minute}.Err(nil)
		}))
		assert.Equal(t, coordinator.StageAttempt, e.Stage)
		assert.Equal(t, time.Minute, e.RetryAfter)
		ls.Release()
	}, declare(provider.Throttle{}))
}
