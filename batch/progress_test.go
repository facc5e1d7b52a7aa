package batch_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/batch"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// balance requires that every job that was pulled is somewhere.
func balance(t *testing.T, tallies []batch.Tally) {
	t.Helper()
	for _, s := range tallies {
		for _, n := range []int{s.Skipped, s.Pulled, s.Waiting, s.Out, s.Unread, s.Done, s.Failed, s.Refused, s.Canceled, s.Dropped} {
			require.GreaterOrEqual(t, n, 0, "%+v", s)
		}
		require.Equal(t, s.Pulled, s.Waiting+s.Out+s.Unread+s.Done+s.Failed+s.Refused+s.Canceled+s.Dropped, "%+v", s)
	}
}

func TestProgress(t *testing.T) {
	var p batch.Progress
	assert.Nil(t, p.Snapshot(), "before the run")
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		g := newLog(t)
		g.add(10, to, nil)
		g.add(10, coordinator.Call{Provider: "q"}, func(context.Context) error { return errors.New("no") })
		g.add(1, coordinator.Call{Provider: "nobody"}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		for range batch.Run(ctx, c, slices.Values(g.jobs), batch.Options{Progress: &p, Until: time.Now().Add(7*time.Hour + 7)}) {
			synctest.Wait()
			balance(t, p.Snapshot())
			if n++; n == 5 {
				require.Equal(t, []string{"", "p", "q"}, []string{p.Snapshot()[0].Provider, p.Snapshot()[1].Provider, p.Snapshot()[2].Provider})
				s := p.Snapshot()[1]
				assert.Equal(t, g.start.Add(time.Hour+1), s.RetryAt)
				assert.Equal(t, 9, s.Waiting)
			}
			if time.Since(g.start) > 150*time.Minute {
				cancel()
			}
		}
		want := []batch.Tally{
			{Provider: "", Pulled: 1, Failed: 1},
			{Provider: "p", Pulled: 10, Done: 4, Canceled: 6},
			{Provider: "q", Pulled: 10, Failed: 10},
		}
		assert.Equal(t, want, p.Snapshot())
	}, declare("p", func() provider.Throttle {
		h := every("1h")
		h.Excess = provider.Reject
		h.Limits[0].Counted = provider.CountedSent // what is refused knows when, also while the one before is out
		return h
	}()), declare("q", provider.Throttle{}))
}

// Of several instants at which jobs are tried again, the first is shown.
func TestProgressShowsTheFirstRetry(t *testing.T) {
	p := declare("p", provider.Throttle{Excess: provider.Reject})
	for _, hours := range []int{5, 1, 3} {
		name := fmt.Sprint("e", hours)
		p.Endpoints = append(p.Endpoints, provider.Endpoint{Name: name})
		p.Throttle.Limits = append(p.Throttle.Limits, provider.Limit{Name: name, Max: 1, Per: provider.Period(fmt.Sprint(hours, "h")),
			Endpoints: []string{name}, Counted: provider.CountedSent})
	}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		g := newLog(t)
		for _, e := range p.Endpoints {
			g.add(2, coordinator.Call{Provider: "p", Endpoint: e.Name}, nil)
		}
		var p batch.Progress
		n := 0
		for range batch.Run(t.Context(), c, slices.Values(g.jobs), batch.Options{Progress: &p}) {
			synctest.Wait()
			if n++; n >= 3 && n < 6 {
				assert.Equal(t, g.start.Add(time.Duration([]int{1, 3, 5}[n-3])*time.Hour+1), p.Snapshot()[0].RetryAt)
			}
		}
		assert.Zero(t, p.Snapshot()[0].RetryAt)
	}, p)
}

// Never more than Ahead jobs of a provider are pulled and not given to the loop.
func TestAhead(t *testing.T) {
	for _, x := range []struct {
		name        string
		throttle    provider.Throttle
		ahead, want int
	}{
		{"default", provider.Throttle{}, 0, 1000},
		{"max_queue", provider.Throttle{MaxQueue: 40}, 0, 40},
		{"less", provider.Throttle{MaxQueue: 40}, 7, 7},
		{"more", provider.Throttle{MaxQueue: 40}, 50, 40},
		{"below zero", provider.Throttle{MaxQueue: 40}, -1, 40},
		{"one", provider.Throttle{MaxQueue: 1}, 0, 2},
		{"delay", provider.Throttle{Excess: provider.Delay}, 0, 1000},
		{"reject", provider.Throttle{Excess: provider.Reject, RPS: 100, Burst: 3, Algorithm: provider.LeakyBucket}, 0, 1000},
	} {
		t.Run(x.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				pulled, given := 0, 0
				jobs := endless(&pulled, to, func(context.Context) error { return nil })
				for range batch.Run(t.Context(), c, jobs, batch.Options{Ahead: x.ahead}) {
					given++
					synctest.Wait()
					require.Equal(t, given+x.want, pulled, "the one in hand among them, that waits for room")
					if given == 20 {
						break
					}
				}
			}, declare("p", x.throttle))
		})
	}
}

// A loop that is slow does not collect results: jobs are not started while 64 wait
// for it, of all providers.
func TestASlowLoop(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var ps batch.Progress
		n := 0
		for range batch.Run(t.Context(), c, turns(5, 1500), batch.Options{Progress: &ps}) {
			n++
			synctest.Wait()
			unread := 0
			for _, s := range ps.Snapshot() {
				unread += s.Unread
			}
			require.LessOrEqual(t, unread, 64+5*32)
			balance(t, ps.Snapshot())
		}
		assert.Equal(t, 1500, n)
	}, declare("p0", provider.Throttle{}), declare("p1", provider.Throttle{}), declare("p2", provider.Throttle{}),
		declare("p3", provider.Throttle{}), declare("p4", provider.Throttle{}))
}

// turns are n jobs of so many providers in turn.
func turns(providers, n int) iter.Seq[batch.Job] {
	return func(yield func(batch.Job) bool) {
		for i := range n {
			call := coordinator.Call{Provider: fmt.Sprint("p", i%providers)}
			if !yield(batch.Job{Key: fmt.Sprint(i), Call: call, Do: func(context.Context) error { return nil }}) {
				return
			}
		}
	}
}

// Jobs of providers that nobody declared need no memory of their names.
func TestUnknownProvidersShareALine(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var p batch.Progress
		n := 0
		for _, res := range batch.Run(t.Context(), c, turns(5000, 5000), batch.Options{Progress: &p}) {
			require.ErrorIs(t, res.Err, coordinator.ErrUnknownProvider)
			n++
		}
		assert.Equal(t, []batch.Tally{{Pulled: n, Failed: 5000}}, p.Snapshot())
	})
}

// What Run returns may be ranged over again, as far as its sequence may.
func TestASecondRange(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		results := batch.Run(t.Context(), c, slices.Values(newLog(t).add(5, to, nil).jobs), batch.Options{})
		assert.Len(t, collect(results), 5)
		assert.Len(t, collect(results), 5)
		assert.Empty(t, collect(batch.Run(t.Context(), c, nil, batch.Options{})))
	}, declare("p", provider.Throttle{}))
}
