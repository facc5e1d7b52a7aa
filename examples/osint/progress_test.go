package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vbauerster/mpb/v8"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

func TestProgressLine(t *testing.T) {
	assert.Equal(t, "  12.3s  a 3/10  b 5/5 (2 refused)", progressLine(12345*time.Millisecond, []counts{
		{slug: "a", done: 3, total: 10}, {slug: "b", done: 5, total: 5, failed: 2},
	}))
}

// Many providers are summed up, with the one that takes the longest.
func TestProgressOfMany(t *testing.T) {
	var all []counts
	for range mostNames {
		all = append(all, counts{slug: "quick", done: 5, total: 5})
	}
	assert.Contains(t, progressLine(time.Second, all), "quick 5/5")
	all = append(all, counts{slug: "slow", done: 3, failed: 2, total: 10, left: time.Hour}, counts{slug: "long", done: 1, total: 90, left: time.Minute})
	assert.Equal(t, "   1.0s  44/140 lookups, 8/10 providers are done (2 refused); the slowest: slow 3/10", progressLine(time.Second, all))
	assert.Equal(t, "   1.0s  45/45 lookups, 9/9 providers are done", progressLine(time.Second, append(all[:mostNames:mostNames], all[0])))
}

func TestNow(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	waiting := coordinator.State{At: at, Queue: coordinator.QueueState{Length: 7}}
	assert.Equal(t, "7 wait, 9s left", now(waiting, 9*time.Second))
	assert.Equal(t, "7 wait", now(waiting, 0))

	paused := waiting
	paused.Pauses = []coordinator.PauseState{{Why: "rate_limited", Until: at.Add(3 * time.Second)}}
	assert.Equal(t, "paused 3s: rate_limited", now(paused, time.Minute))
	paused.Pauses[0].Until = at
	assert.Equal(t, "7 wait", now(paused, 0), "over; one call has gone alone")

	open := waiting
	open.Breaker = coordinator.BreakerState{State: "open", Until: at.Add(30 * time.Second)}
	assert.Equal(t, "does not answer, asked again in 30s", now(open, 0))
}

// A bar that never fills, as after Ctrl-C, must not keep the program from ending.
func TestBarsEndThoughTheyAreNotFull(t *testing.T) {
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{Slug: "full"}, {Slug: "half"}}})
	require.NoError(t, err)
	full := named("full", 2)
	half := named("half", 10)
	unasked := named("unasked", 1)
	unasked.missing = assert.AnError
	b := newBoard([]*target{half, full, unasked})
	var out buffer
	stop := bars(&out, c, b, mpb.WithAutoRefresh())
	for range 2 {
		b.done(full, &lookup{})
	}
	for range 5 {
		b.done(half, &lookup{err: &coordinator.Error{Reason: coordinator.ReasonFailed}})
	}
	b.done(half, &lookup{err: &coordinator.Error{Reason: coordinator.ReasonCanceled}, broken: true})
	stop()
	told := out.String()
	assert.Regexp(t, `full +\[=+\] +2/2  done`, told)
	assert.Regexp(t, `half +\[=+>? +\] +5/10  stopped, 5 refused`, told)
	assert.NotContains(t, told, "unasked")
}
