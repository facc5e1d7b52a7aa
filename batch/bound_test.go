package batch_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/batch"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// A job that would go after Until is refused as soon as that is known, with the
// time at which it could go; one whose turn is exactly then goes.
func TestUntil(t *testing.T) {
	for _, wait := range []time.Duration{0, -1, time.Minute} {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			start := time.Now()
			call := to
			call.Wait = wait
			g := newLog(t).add(10, call, nil)
			until := start.Add(30*time.Minute + 3) // the fourth is free strictly after its ten minutes
			all := collect(batch.Run(t.Context(), c, slices.Values(g.jobs), batch.Options{Until: until}))
			require.Len(t, all, 10)
			for i, o := range all {
				switch {
				case o.res.Err == nil:
					assert.LessOrEqual(t, o.at, until.Sub(start))
				default:
					var e *coordinator.Error
					require.ErrorAs(t, o.res.Err, &e)
					require.ErrorIs(t, e, coordinator.ErrThrottled)
					require.True(t, e.RetryAt.After(until), "%d: %v", i, e)
					require.Zero(t, o.res.Attempts)
				}
			}
			assert.Len(t, g.order(), 4)
			assert.InDelta(t, until.Sub(start), all[len(all)-1].at, 1000, "nanoseconds")
		}, declare("p", every("10m")))
	}
}

// A job that is to be tried again while the loop is slow may find that its time is
// over. It is not tried, and comes out with what is known.
func TestUntilWhileTheLoopIsSlow(t *testing.T) {
	for _, wired := range []bool{true, false} {
		b := &book{p: declare("p", provider.Throttle{})}
		b.answer = func(context.Context, int, provider.Query) (provider.Result, error) {
			return provider.Result{}, provider.Feedback{Outcome: provider.QuotaSpent, RetryAfter: 40 * time.Hour}.Err(nil)
		}
		cfg := library(t, wired, b)
		cfg.Providers = []provider.Provider{declare("q", provider.Throttle{})}
		bubbleWith(t, cfg, func(t *testing.T, c *coordinator.Coordinator) {
			jobs := queries("x")
			g := newLog(t).add(100, coordinator.Call{Provider: "q"}, func(ctx context.Context) error { return sleep(ctx, 40*time.Hour-time.Second) })
			opt := batch.Options{Until: time.Now().Add(40*time.Hour + time.Second)}
			slow := false
			for job, res := range batch.Run(t.Context(), c, slices.Values(append(jobs, g.jobs...)), opt) {
				if job.Query == nil {
					require.NoError(t, res.Err)
					if !slow {
						slow = true
						time.Sleep(3 * time.Second)
					}
					continue
				}
				require.ErrorIs(t, res.Err, coordinator.ErrTooLate)
				var e *coordinator.Error
				require.ErrorAs(t, res.Err, &e)
				assert.Equal(t, provider.QuotaSpent, e.Answer.Outcome)
				assert.Equal(t, 1, e.Attempts)
				assert.Equal(t, 1, res.Attempts)
			}
			assert.Len(t, b.asked, 1)
		})
	}
}

// What is out at Until may end; what was not started does not go any more.
func TestNothingGoesAfterUntil(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		g := newLog(t).add(200, to, func(ctx context.Context) error { return sleep(ctx, time.Minute) })
		until := time.Now().Add(90 * time.Second)
		all := collect(batch.Run(t.Context(), c, slices.Values(g.jobs), batch.Options{Until: until}))
		require.Len(t, all, 200)
		done := 0
		for _, o := range all {
			if o.res.Err == nil {
				done++
				continue
			}
			require.ErrorIs(t, o.res.Err, coordinator.ErrTooLate)
			require.ErrorIs(t, o.res.Err, context.DeadlineExceeded)
		}
		assert.Equal(t, 4, done)
		assert.Equal(t, 2*time.Minute, all[199].at)
	}, declare("p", provider.Throttle{MaxInFlight: 2}))
}

func TestUntilThatIsOver(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		g := newLog(t).add(2000, to, nil)
		all := collect(batch.Run(t.Context(), c, slices.Values(g.jobs), batch.Options{Until: time.Now().Add(-1)}))
		require.Len(t, all, 2000)
		require.ErrorIs(t, all[1999].res.Err, coordinator.ErrTooLate)
		assert.EqualError(t, all[0].res.Err, "batch: not sent: coordinator: p: too late: timeout")
		assert.Empty(t, g.order())
	}, declare("p", provider.Throttle{}))
}

// The context's deadline is a bound like Until, and ends what is out, too.
func TestDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Minute)
		defer cancel()
		g := newLog(t).add(10, coordinator.Call{Provider: "p", Wait: -1}, nil)
		all := collect(batch.Run(ctx, c, slices.Values(g.jobs), batch.Options{}))
		require.Len(t, all, 10)
		for _, o := range all[3:] {
			require.ErrorIs(t, o.res.Err, coordinator.ErrThrottled)
			require.InDelta(t, 2*time.Hour, o.at, float64(time.Second), "as soon as the third has gone, not at the deadline")
		}
		require.NoError(t, all[2].res.Err)
	}, declare("p", every("1h")))
}

// endless is a sequence without end that counts what is pulled from it.
func endless(pulled *int, call coordinator.Call, do func(context.Context) error) iter.Seq[batch.Job] {
	return func(yield func(batch.Job) bool) {
		for i := 0; ; i++ {
			*pulled++
			if !yield(batch.Job{Key: fmt.Sprint(i), Call: call, Do: do}) {
				return
			}
		}
	}
}

// When the context ends nothing more is pulled or sent, and every job that was
// pulled comes out once: done, cut off or unsent.
func TestCancel(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		pulled, sent := 0, make(chan string, 1000)
		jobs := endless(&pulled, coordinator.Call{Provider: "p"}, func(ctx context.Context) error {
			sent <- ""
			return sleep(ctx, 1500*time.Millisecond)
		})
		time.AfterFunc(10*time.Second, cancel)
		seen, done := map[string]int{}, 0
		for job, res := range batch.Run(ctx, c, jobs, batch.Options{Ahead: 100}) {
			seen[job.Key]++
			if res.Err == nil {
				done++
				continue
			}
			require.ErrorIs(t, res.Err, context.Canceled)
			require.Error(t, ctx.Err())
		}
		assert.Len(t, seen, pulled)
		for key, n := range seen {
			require.Equal(t, 1, n, key)
		}
		assert.Equal(t, 9, done)
		assert.Len(t, sent, 10)
		assert.LessOrEqual(t, pulled, 9+100+2, "what was given, what was ahead, and what the sequence had in hand")
	}, declare("p", provider.Throttle{Limits: []provider.Limit{{Name: "l", Max: 1, Per: "1s", Counted: provider.CountedSent}}}))
}

func TestCanceledBefore(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		pulled := 0
		assert.Empty(t, collect(batch.Run(ctx, c, endless(&pulled, to, nil), batch.Options{})))
		assert.Zero(t, pulled)
	}, declare("p", provider.Throttle{}))
}

// Leaving the loop, by whatever way, cancels what is out and waits for it.
func TestLeavingTheLoop(t *testing.T) {
	for _, way := range []string{"break", "return", "panic"} {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			out, pulled := 0, 0
			jobs := endless(&pulled, to, func(ctx context.Context) error {
				out++
				defer func() { out-- }()
				err := sleep(ctx, time.Hour)
				time.Sleep(time.Second) // it takes its time
				if err == nil {
					return nil
				}
				return context.Cause(ctx)
			})
			first := true
			var p batch.Progress
			left := time.Duration(0)
			start := time.Now()
			func() {
				defer func() {
					left = time.Since(start)
					if way == "panic" {
						assert.Equal(t, "mine", recover())
					}
				}()
				for range batch.Run(t.Context(), c, mixed(jobs), batch.Options{Progress: &p}) {
					require.True(t, first)
					first = false
					switch way {
					case "panic":
						panic("mine")
					case "return":
						return
					}
					break
				}
			}()
			assert.Zero(t, out, way)
			assert.Equal(t, 2*time.Second, left)
			s := p.Snapshot()[1]
			assert.Equal(t, batch.Tally{Provider: "p", Pulled: pulled, Dropped: pulled}, s)
			assert.Equal(t, 1000, pulled, "one of them waits for room in its line")
		}, declare("p", provider.Throttle{MaxInFlight: 1}), declare("first", provider.Throttle{}))
	}
}

// mixed puts a job of its own, which is done in a second, before others.
func mixed(jobs iter.Seq[batch.Job]) iter.Seq[batch.Job] {
	return func(yield func(batch.Job) bool) {
		if yield(batch.Job{Call: coordinator.Call{Provider: "first"}, Do: func(ctx context.Context) error { return sleep(ctx, time.Second) }}) {
			jobs(yield)
		}
	}
}

// A coordinator that is shut down refuses for good.
func TestShutdown(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		time.AfterFunc(10*time.Second, func() { _ = c.Shutdown(context.Background()) })
		all := collect(batch.Run(t.Context(), c, slices.Values(newLog(t).add(50, to, nil).jobs), batch.Options{}))
		require.Len(t, all, 50)
		for _, o := range all[10:] {
			require.ErrorIs(t, o.res.Err, coordinator.ErrShutdown)
		}
		assert.NotErrorIs(t, all[9].res.Err, coordinator.ErrShutdown)
	}, declare("p", every("1s")))
}
