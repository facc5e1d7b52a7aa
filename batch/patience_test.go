package batch_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/batch"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

var to = coordinator.Call{Provider: "p"}

// counting counts what a coordinator refuses and lets go.
func counting(refused, went *atomic.Int64) *coordinator.Trace {
	return &coordinator.Trace{
		Refused: func(context.Context, coordinator.CallInfo, *coordinator.Error) { refused.Add(1) },
		Going:   func(context.Context, coordinator.CallInfo, time.Duration) { went.Add(1) },
	}
}

// An open breaker must not empty a run in milliseconds: what comes out failed was
// sent and failed, and nothing else.
func TestAnOpenBreakerDoesNotEmptyTheRun(t *testing.T) {
	var refused, went atomic.Int64
	cfg := coordinator.Config{Traces: []*coordinator.Trace{batch.Trace(), counting(&refused, &went)}}
	p := declare("p", every("1s"))
	p.Retry.Off = true
	cfg.Providers = []provider.Provider{p}
	bubbleWith(t, cfg, func(t *testing.T, c *coordinator.Coordinator) {
		down := time.Now().Add(5 * time.Minute)
		g := newLog(t).add(300, to, func(context.Context) error {
			if time.Now().Before(down) {
				return provider.Feedback{Outcome: provider.Failed}.Err(nil)
			}
			return nil
		})
		all := collect(batch.Run(t.Context(), c, slices.Values(g.jobs), batch.Options{}))
		require.Len(t, all, 300)
		failed := 0
		for _, o := range all {
			if o.res.Err != nil {
				failed++
				var e *coordinator.Error
				require.ErrorAs(t, o.res.Err, &e)
				require.Equal(t, coordinator.ReasonFailed, e.Reason)
				require.Equal(t, 1, o.res.Attempts)
			}
		}
		assert.Equal(t, 5+9, failed, "five open it, and a probe each 30 s keeps it so for 5 minutes")
		assert.EqualValues(t, 300, went.Load())
		assert.LessOrEqual(t, refused.Load(), int64(32*(1+9)), "who waits is refused once each time that it opens")
		order := []string{}
		for _, o := range all {
			order = append(order, o.job.Key)
		}
		want := []string{}
		for _, j := range g.jobs {
			want = append(want, j.Key)
		}
		assert.Equal(t, want, order, "who was refused goes before those behind it")
	})
}

func TestQuotaUntilMidnight(t *testing.T) {
	p := declare("p", provider.Throttle{Limits: []provider.Limit{{Name: "day", Max: 10, Per: provider.Day}}})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		all := newLog(t).add(25, to, nil).run(c, batch.Options{})
		guard := func(d time.Duration) time.Duration { return d.Truncate(time.Minute) }
		assert.Equal(t, time.Duration(0), guard(all[9].at))
		assert.Equal(t, 24*time.Hour, guard(all[10].at))
		assert.Equal(t, 24*time.Hour, guard(all[19].at))
		assert.Equal(t, 48*time.Hour, guard(all[20].at))
	}, p)
}

// A provider may say that its quota is spent for longer than anybody waits in the
// coordinator. The job waits here, and costs one more call.
func TestAQuotaThatIsToldIsWaitedForHere(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		back := time.Now().Add(80 * time.Hour)
		asked := 0
		do := func(context.Context) error {
			asked++
			if left := time.Until(back); left > 0 {
				return provider.Feedback{Outcome: provider.QuotaSpent, Limit: "l", RetryAfter: left}.Err(nil)
			}
			return nil
		}
		all := newLog(t).add(3, to, do).run(c, batch.Options{})
		assert.Equal(t, 80*time.Hour, all[0].at)
		assert.Equal(t, 2, all[0].res.Attempts)
		assert.Equal(t, 4, asked)
	}, declare("p", every("1s")))
}

// Under reject nobody may wait in the coordinator: all wait here, and each goes at
// the first instant at which it can.
func TestRejectIsWaitedForHere(t *testing.T) {
	var refused, went atomic.Int64
	cfg := coordinator.Config{Traces: []*coordinator.Trace{batch.Trace(), counting(&refused, &went)}}
	limit := every("10ms")
	limit.Limits[0].Counted = provider.CountedSent // the instant of the next is known as soon as one has gone
	limit.Excess = provider.Reject
	cfg.Providers = []provider.Provider{declare("p", limit)}
	bubbleWith(t, cfg, func(t *testing.T, c *coordinator.Coordinator) {
		all := newLog(t).add(50, to, nil).run(c, batch.Options{})
		for i, o := range all {
			require.Equal(t, time.Duration(i)*10*time.Millisecond+time.Duration(i), o.at)
		}
		assert.EqualValues(t, 49, refused.Load(), "one for each that goes, however many wait")
	})
}

func TestAFullQueueIsWaitedForHere(t *testing.T) {
	limit := every("1s")
	limit.MaxQueue = 4
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		stop := make(chan struct{})
		others := make(chan error, 8)
		for range 5 { // four wait, all the time
			go func() {
				for {
					select {
					case <-stop:
						others <- nil
						return
					default:
						if c.Do(t.Context(), to, func(context.Context) error { return nil }) != nil {
							time.Sleep(time.Second / 3)
						}
					}
				}
			}()
		}
		time.Sleep(time.Millisecond)
		newLog(t).add(20, to, nil).run(c, batch.Options{})
		close(stop)
		for range 5 {
			<-others
		}
	}, declare("p", limit))
}

// A job's own Wait bounds one try.
func TestWaitBoundsOneTry(t *testing.T) {
	for _, wait := range []time.Duration{-1, time.Second, time.Hour} {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			call := to
			call.Wait = wait
			all := newLog(t).add(4, call, nil).run(c, batch.Options{})
			assert.Equal(t, 30*time.Second+3, all[3].at, wait)
		}, declare("p", every("10s")))
	}
}

// Failures that waiting does not cure come out at once. So does one that a job's
// function met elsewhere: the function may have done something already.
func TestWhatWaitingDoesNotCureComesOut(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		elsewhere := coordinator.Call{Provider: "q", Wait: -1}
		require.NoError(t, c.Do(t.Context(), elsewhere, func(context.Context) error { return nil }))
		mine := errors.New("mine")
		jobs := []batch.Job{
			{Call: to, Do: func(context.Context) error { return mine }},
			{Call: to, Do: func(ctx context.Context) error {
				return c.Do(ctx, elsewhere, func(context.Context) error { return nil })
			}},
			{Call: coordinator.Call{Provider: "nobody"}, Do: func(context.Context) error { return nil }},
			{Call: coordinator.Call{Provider: "p", Cost: map[string]int64{provider.Requests: 5}}, Do: func(context.Context) error { return nil }},
			{Key: "none", Call: to},
			{Key: "both", Call: to, Do: func(context.Context) error { return nil }, Query: &provider.Query{}},
		}
		all := collect(batch.Run(t.Context(), c, slices.Values(jobs), batch.Options{}))
		require.Len(t, all, len(jobs))
		var why []string
		for _, o := range all {
			require.Error(t, o.res.Err)
			assert.Less(t, o.at, 2*time.Second)
			var e *coordinator.Error
			if errors.As(o.res.Err, &e) {
				why = append(why, e.Provider+" "+string(e.Reason))
			} else {
				why = append(why, o.res.Err.Error())
			}
		}
		slices.Sort(why)
		assert.Equal(t, []string{
			`batch: job "both": give it either a Query or a function Do`,
			`batch: job "none": give it either a Query or a function Do`,
			"nobody unknown_provider", "p canceled", "p too_heavy", "p unknown",
		}, why)
	}, declare("p", every("1s")), declare("q", every("1h")))
}
