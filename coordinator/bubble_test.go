package coordinator_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs f with a coordinator of the given providers in virtual time and
// sees to it that nothing stays taken.
func bubble(t *testing.T, f func(t *testing.T, c *coordinator.Coordinator), ps ...provider.Provider) {
	t.Helper()
	bubbleWith(t, coordinator.Config{Providers: ps}, f)
}

func bubbleWith(t *testing.T, cfg coordinator.Config, f func(t *testing.T, c *coordinator.Coordinator)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, err := coordinator.New(cfg)
		require.NoError(t, err)
		f(t, c)
		synctest.Wait()
		require.NoError(t, c.Shutdown(t.Context()))
		for _, s := range c.States() {
			require.Zero(t, s.InFlight, s.Provider)
			require.Zero(t, s.Queue.Length, s.Provider)
		}
	})
}

func declare(t provider.Throttle) provider.Provider { return provider.Provider{Slug: "p", Throttle: t} }

func limits(ls ...provider.Limit) provider.Throttle { return provider.Throttle{Limits: ls} }

var to = coordinator.Call{Provider: "p"}

// ok answers at once; takes(d) after a round trip of d.
func ok(context.Context) error { return nil }

func takes(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error { return sleep(ctx, d) }
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// onItsWay is a call that arrives, and is answered, though its caller may have gone.
func onItsWay(ctx context.Context, there, back time.Duration, arrives func() provider.Outcome) (provider.Outcome, error) {
	answer := make(chan provider.Outcome, 1)
	go func() {
		time.Sleep(there)
		o := arrives()
		time.Sleep(back)
		answer <- o
	}()
	select {
	case o := <-answer:
		return o, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// answers gives an outcome, after no time at all.
func answers(o provider.Outcome, advice time.Duration) func(context.Context) error {
	return func(context.Context) error {
		return provider.Feedback{Outcome: o, RetryAfter: advice}.Err(errors.New("answer"))
	}
}

func refusal(t *testing.T, err error) *coordinator.Error {
	t.Helper()
	var e *coordinator.Error
	require.ErrorAs(t, err, &e)
	return e
}

func state(t *testing.T, c *coordinator.Coordinator) coordinator.State {
	t.Helper()
	s, err := c.State("p")
	require.NoError(t, err)
	return s
}

// calls sends n calls at once and returns when each went, in order.
func calls(t *testing.T, c *coordinator.Coordinator, n int, call coordinator.Call, trip time.Duration) []time.Duration {
	t.Helper()
	start := time.Now()
	went := make(chan time.Duration, n)
	failed := make(chan error, n)
	for range n {
		go func() {
			failed <- c.Do(t.Context(), call, func(ctx context.Context) error {
				went <- time.Since(start)
				return sleep(ctx, trip)
			})
		}()
		synctest.Wait()
	}
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = <-went
	}
	for range n {
		require.NoError(t, <-failed)
	}
	return all
}
