package coordinator_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
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

// record is what hooks were told, in order, each as a line.
type record struct {
	start time.Time
	each  func() // run in each hook, as a user's code would; nil: nothing

	mu    sync.Mutex
	lines []string
	timer []string // told on the timer's goroutine
}

func (r *record) add(format string, args ...any) {
	stack := make([]byte, 1<<14)
	stack = stack[:runtime.Stack(stack, false)]
	r.mu.Lock()
	line := fmt.Sprintf(format, args...)
	r.lines = append(r.lines, line)
	if strings.Contains(string(stack), "created by time.goFunc") {
		r.timer = append(r.timer, line)
	}
	r.mu.Unlock()
	if r.each != nil {
		r.each()
	}
}

// take returns the lines told since the last take.
func (r *record) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	return lines
}

func (r *record) at(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return t.Sub(r.start)
}

func (r *record) trace() *coordinator.Trace {
	who := func(c coordinator.CallInfo) string {
		return fmt.Sprintf("%s/%s/%s/%s/%d try %d", c.Provider, c.Endpoint, c.Key, c.Flow, c.Priority, c.Attempt)
	}
	return &coordinator.Trace{
		Waiting: func(_ context.Context, c coordinator.CallInfo, q coordinator.QueueState) {
			r.add("waiting %s, of %d", who(c), q.Length)
		},
		Going: func(_ context.Context, c coordinator.CallInfo, waited time.Duration) {
			r.add("going %s after %s", who(c), waited)
		},
		Attempt: func(_ context.Context, c coordinator.CallInfo, f provider.Feedback, took time.Duration) {
			r.add("attempt %s %s in %s", who(c), f.Outcome, took)
		},
		End: func(_ context.Context, c coordinator.CallInfo, err error, took time.Duration) {
			r.add("end %s in %s, error %t", who(c), took, err != nil)
		},
		Refused: func(_ context.Context, c coordinator.CallInfo, e *coordinator.Error) {
			r.add("refused %s %s", who(c), e.Reason)
		},
		Breaker: func(b coordinator.BreakerChange) { r.add("breaker %s to %s until %s", b.From, b.To, r.at(b.Until)) },
		Paused: func(p coordinator.PauseChange) {
			r.add("paused %s %q %s until %s", p.Scope, p.Name, p.Why, r.at(p.Until))
		},
		Pressure: func(p coordinator.PressureChange) { r.add("pressure %t at %d", p.High, p.Queue.Length) },
	}
}

// recorded runs f with a coordinator whose hooks write to a record, and sees to it
// that none ran on the timer.
func recorded(t *testing.T, p provider.Provider, f func(t *testing.T, c *coordinator.Coordinator, r *record)) {
	t.Helper()
	r := new(record)
	cfg := coordinator.Config{Providers: []provider.Provider{p}, Traces: []*coordinator.Trace{nil, {}, r.trace()}}
	bubbleWith(t, cfg, func(t *testing.T, c *coordinator.Coordinator) {
		r.start = time.Now()
		f(t, c, r)
	})
	assert.Empty(t, r.timer, "told on the timer's goroutine")
}

func TestTraceTellsEachStepOnceInOrder(t *testing.T) {
	p := declare(provider.Throttle{RPS: 1})
	p.Endpoints = []provider.Endpoint{{Name: "host"}}
	recorded(t, p, func(t *testing.T, c *coordinator.Coordinator, r *record) {
		require.NoError(t, c.Do(t.Context(), to, takes(100*ms)))
		assert.Equal(t, []string{"going p////0 try 1 after 0s", "attempt p////0 try 1 ok in 100ms", "end p////0 try 1 in 100ms, error false"}, r.take())

		call := coordinator.Call{Provider: "p", Endpoint: "host", Key: "k", Flow: "f", Priority: coordinator.Interactive}
		var at []time.Time
		require.NoError(t, c.Do(t.Context(), call, flaky(1, provider.RateLimited, 5*second, &at)))
		assert.Equal(t, []string{
			"waiting p/host/k/f/1 try 0, of 1",
			"going p/host/k/f/1 try 1 after 1.000000001s",
			`paused provider "" rate_limited until 6.100000001s`,
			"attempt p/host/k/f/1 try 1 rate_limited in 0s",
			"waiting p/host/k/f/1 try 1, of 1",
			"going p/host/k/f/1 try 2 after 6.000000001s",
			`paused provider "" rate_limited until 0s`,
			"attempt p/host/k/f/1 try 2 ok in 0s",
			"end p/host/k/f/1 try 2 in 6.000000001s, error false",
		}, r.take())

		now := to
		now.Wait = -1
		require.Error(t, c.Do(t.Context(), now, ok))
		require.Error(t, c.Do(t.Context(), coordinator.Call{Provider: "nobody"}, ok))
		_, err := c.Execute(t.Context(), to, provider.Query{})
		require.Error(t, err)
		assert.Equal(t, []string{"refused p////0 try 0 rate_limited", "refused nobody////0 try 0 unknown_provider",
			"refused p////0 try 0 invalid"}, r.take())
	})
}

func TestTraceTellsTheBreaker(t *testing.T) {
	p := once(provider.Throttle{})
	p.Breaker.Failures = 1
	recorded(t, p, func(t *testing.T, c *coordinator.Coordinator, r *record) {
		fail(t, c, 1)
		require.Error(t, c.Do(t.Context(), to, ok))
		assert.Equal(t, []string{"going p////0 try 1 after 0s", "breaker closed to open until 30.000000001s", "attempt p////0 try 1 failed in 0s",
			"end p////0 try 1 in 0s, error true", "refused p////0 try 0 circuit_open"}, r.take())
		time.Sleep(30*second + 1)
		hang := make(chan struct{})
		go func() {
			_ = c.Do(t.Context(), to, func(context.Context) error { <-hang; return nil })
		}()
		synctest.Wait()
		require.Error(t, c.Do(t.Context(), to, ok))
		assert.Equal(t, []string{"breaker open to half-open until 0s", "going p////0 try 1 after 0s", "waiting p////0 try 0, of 1",
			"breaker half-open to open until 2m0.000000003s", "refused p////0 try 0 circuit_open"}, r.take(), "though the timer saw it")
		close(hang)
		synctest.Wait()
		time.Sleep(30*second + 1)
		r.take()
		require.NoError(t, c.Do(t.Context(), to, ok))
		assert.Equal(t, []string{"breaker open to half-open until 0s", "going p////0 try 1 after 0s", "breaker half-open to closed until 0s",
			"attempt p////0 try 1 ok in 0s", "end p////0 try 1 in 0s, error false"}, r.take())
	})
}

func TestTraceTellsPausesAndPressure(t *testing.T) {
	recorded(t, once(provider.Throttle{RPS: 1, MaxQueue: 5}), func(t *testing.T, c *coordinator.Coordinator, r *record) {
		require.NoError(t, c.Pause("p", r.start.Add(time.Minute), "maintenance"))
		require.NoError(t, c.Pause("p", r.start.Add(30*second), "shorter: nothing new"))
		require.NoError(t, c.Pause("p", r.start.Add(2*time.Minute), "longer"))
		require.NoError(t, c.Resume("p"))
		require.NoError(t, c.Resume("p"))
		assert.Equal(t, []string{`paused provider "" maintenance until 1m0s`, `paused provider "" longer until 2m0s`,
			`paused provider "" longer until 0s`}, r.take())
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() { assert.NoError(t, c.Do(t.Context(), to, ok)) })
			synctest.Wait()
		}
		wg.Wait()
		var pressure []string
		for _, line := range r.take() {
			if strings.HasPrefix(line, "pressure") {
				pressure = append(pressure, line)
			}
		}
		assert.Equal(t, []string{"pressure true at 4", "pressure false at 2"}, pressure)
	})
}

// What the timer saw is told by whoever it let go, as he goes: not when his function
// has ended.
func TestTraceTellsWhatTheTimerSawWithoutDelay(t *testing.T) {
	p := once(limits(provider.Limit{Name: "rps", Max: 1, Per: "1s", Counted: provider.CountedSent}))
	p.Throttle.MaxQueue = 5
	recorded(t, p, func(t *testing.T, c *coordinator.Coordinator, r *record) {
		for range 6 {
			go func() { assert.NoError(t, c.Do(t.Context(), to, takes(time.Hour))) }()
		}
		time.Sleep(3*second + 10)
		synctest.Wait()
		lines := r.take()
		assert.Equal(t, []string{"pressure false at 2", "going p////0 try 1 after 3.000000003s"}, lines[len(lines)-2:])
		time.Sleep(2 * time.Hour)
	})
}

// A producer that was told to slow down is told when he need not any more, also
// where there is no queue any more that could be full.
func TestPressureEndsWithTheQueueThatItWasOf(t *testing.T) {
	for name, th := range map[string]provider.Throttle{
		"no bound": {RPS: 1, Excess: provider.Delay}, "no places": {RPS: 1, Excess: provider.Reject}, "more places": {RPS: 1, MaxQueue: 100},
	} {
		t.Run(name, func(t *testing.T) {
			recorded(t, once(provider.Throttle{RPS: 1, MaxQueue: 5}), func(t *testing.T, c *coordinator.Coordinator, r *record) {
				for range 6 {
					go func() { _ = c.Do(t.Context(), to, ok) }()
				}
				synctest.Wait()
				assert.Contains(t, strings.Join(r.take(), "\n"), "pressure true")
				require.NoError(t, c.Update("p", th))
				time.Sleep(10 * second)
				assert.Contains(t, strings.Join(r.take(), "\n"), "pressure false")
			})
		})
	}
}

// A hook may use the coordinator that calls it: no lock is held.
func TestTraceHooksMayUseTheCoordinator(t *testing.T) {
	p := declare(provider.Throttle{RPS: 2, MaxQueue: 10, MaxInFlight: 2})
	p.Breaker = provider.Breaker{Failures: 1, Cooldown: 100 * ms}
	recorded(t, p, func(t *testing.T, c *coordinator.Coordinator, r *record) {
		var inside atomic.Bool
		var uses atomic.Int64
		now := to
		now.Wait = -1
		r.each = func() {
			if !inside.CompareAndSwap(false, true) {
				return // what the hook itself causes
			}
			defer inside.Store(false)
			uses.Add(1)
			_, err := c.State("p")
			assert.NoError(t, err)
			assert.NotEmpty(t, c.States())
			for range c.Providers() {
				break
			}
			assert.NoError(t, c.Update("p", p.Throttle))
			_ = c.Do(t.Context(), now, ok)
			if ls, err := c.Acquire(t.Context(), now); err == nil {
				ls.Forget()
			}
		}
		var wg sync.WaitGroup
		for i := range 30 {
			do := takes(10 * ms)
			switch {
			case i%10 == 9:
				do = answers(provider.RateLimited, second)
			case i%5 == 4:
				do = answers(provider.Failed, 0)
			}
			wg.Go(func() { _ = c.Do(t.Context(), to, do) })
			time.Sleep(200 * ms)
		}
		wg.Wait()
		require.NoError(t, c.Pause("p", time.Now().Add(second), "test"))
		require.NoError(t, c.Resume("p"))
		told := make(map[string]int)
		for _, line := range r.take() {
			hook, _, _ := strings.Cut(line, " ")
			told[hook]++
		}
		require.Len(t, told, 8, "hooks of which this test shows nothing: %v", told)
		assert.Greater(t, uses.Load(), int64(60))
	})
}
