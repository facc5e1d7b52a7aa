package coordinator_test

import (
	"context"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// Every call is decided once: it goes, or it is refused for one reason.
func TestDecisionsAreCountedOnce(t *testing.T) {
	p := provider.Provider{Slug: "p", Endpoints: []provider.Endpoint{{Name: "a"}, {Name: "b"}},
		Throttle: provider.Throttle{MaxQueue: 2, MaxWait: time.Minute, RPM: 60, MaxInFlight: 2},
		Retry:    provider.Retry{Base: time.Second}, Breaker: provider.Breaker{Failures: 3, Cooldown: time.Minute}}
	bubbleWith(t, coordinator.Config{Providers: []provider.Provider{p}}, func(t *testing.T, c *coordinator.Coordinator) {
		var calls atomic.Int64
		do := func(ctx context.Context, call coordinator.Call, fn func(context.Context) error) error {
			calls.Add(1)
			call.Provider = "p"
			return c.Do(ctx, call, fn)
		}
		a := coordinator.Call{Endpoint: "a"}
		for range 5 {
			require.NoError(t, do(t.Context(), a, ok))
		}
		require.Error(t, do(t.Context(), coordinator.Call{Endpoint: "nope"}, never(t)))
		require.Error(t, do(t.Context(), coordinator.Call{Cost: map[string]int64{"requests": 61}}, never(t)))
		require.Error(t, do(t.Context(), coordinator.Call{Endpoint: "b"}, answers(provider.Rejected, 0)))
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { assert.NoError(t, do(t.Context(), a, takes(time.Second))) })
			synctest.Wait()
		}
		all.Go(func() { assert.ErrorIs(t, do(ctx, a, never(t)), context.Canceled) })
		all.Go(func() { assert.NoError(t, do(t.Context(), a, ok)) })
		synctest.Wait()
		require.ErrorIs(t, do(t.Context(), a, never(t)), coordinator.ErrQueueFull)
		cancel()
		all.Wait()
		again := coordinator.Call{Endpoint: "b", Replayable: true}
		require.Error(t, do(t.Context(), again, answers(provider.Failed, 0))) // three attempts open the circuit
		require.ErrorIs(t, do(t.Context(), a, never(t)), coordinator.ErrCircuitOpen)
		calls.Add(1)
		_, err := c.Execute(t.Context(), coordinator.Call{Provider: "p"}, provider.Query{})
		require.Error(t, err, "it has no adapter")

		s := state(t, c)
		assert.Equal(t, []coordinator.Decision{
			{Reason: coordinator.ReasonInvalid, Count: 2},
			{Reason: coordinator.ReasonTooHeavy, Count: 1},
			{Endpoint: "a", Admitted: true, Count: 8},
			{Endpoint: "a", Reason: coordinator.ReasonCanceled, Count: 1},
			{Endpoint: "a", Reason: coordinator.ReasonCircuitOpen, Count: 1},
			{Endpoint: "a", Reason: coordinator.ReasonQueueFull, Count: 1},
			{Endpoint: "b", Admitted: true, Count: 2},
		}, s.Decisions)
		sum := int64(0)
		for _, d := range s.Decisions {
			sum += d.Count
		}
		assert.Equal(t, calls.Load(), sum)
		assert.Equal(t, 0.8, s.RetryBudget, "two of ten")
		assert.EqualValues(t, 12, s.Lately.Calls)
		assert.EqualValues(t, 3, s.Lately.Errors)
		assert.EqualValues(t, 6, s.Lately.Refusals)
		assert.Equal(t, 0.2, s.Lately.RPS)
		assert.Equal(t, 0.25, s.Lately.ErrorRate)
		assert.Equal(t, 6.0/16, s.Lately.RefusalRate)
		time.Sleep(70 * time.Second)
		assert.Zero(t, state(t, c).Lately, "the minute is over")
	})
}

func TestLatelyKnowsHowLongAttemptsTook(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for i := range 100 {
			d := 100 * time.Millisecond
			if i == 50 || i == 60 {
				d = 5 * time.Second
			}
			require.NoError(t, c.Do(t.Context(), to, takes(d)))
		}
		l := state(t, c).Lately
		assert.InEpsilon(t, 100*time.Millisecond, l.P50, 0.15)
		assert.InEpsilon(t, 5*time.Second, l.P99, 0.15)
		for d := 64 * time.Microsecond; d < time.Hour; d = d * 3 / 2 {
			time.Sleep(2 * time.Minute)
			require.NoError(t, c.Do(t.Context(), to, takes(d)))
			assert.InEpsilon(t, d, state(t, c).Lately.P99, 0.15, d)
		}
	}, declare(provider.Throttle{}))
}

func TestPressureIsWhatTheHookTells(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		high := func() bool {
			p, err := c.Pressure("p")
			require.NoError(t, err)
			return p.High
		}
		var all sync.WaitGroup
		for i := range 9 {
			assert.False(t, high(), i)
			all.Go(func() { assert.NoError(t, c.Do(t.Context(), to, takes(time.Second))) })
			synctest.Wait()
		}
		assert.True(t, high(), "8 of 10 wait")
		time.Sleep(2*time.Second + 1)
		assert.True(t, high(), "6 wait")
		time.Sleep(time.Second)
		assert.False(t, high(), "5 wait")
		all.Wait()
		_, err := c.Pressure("q")
		require.ErrorIs(t, err, coordinator.ErrUnknownProvider)
	}, declare(provider.Throttle{MaxInFlight: 1, MaxQueue: 10}))
}

// Without anybody to tell it to, a hook's panic is a line on the standard error.
func TestPanicOfAHookIsALine(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	before := os.Stderr
	os.Stderr = w
	tr := &coordinator.Trace{Going: func(context.Context, coordinator.CallInfo, time.Duration) { panic("https://example.org/?key=secret") }}
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{declare(provider.Throttle{})}, Traces: []*coordinator.Trace{tr}})
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, c.Do(t.Context(), to, ok))
	}
	os.Stderr = before
	w.Close()
	line, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Regexp(t, `^coordinator: the hook Going panicked with a string at lately_test\.go:\d+; this is told once\n$`, string(line))
}
