package console

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// However often and irregularly is looked, no call is lost or counted twice as long as
// nothing is older than the history, there are never more than 120 samples, and the
// longest queue is one that was seen.
func TestHistoryLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var h history
		begin := time.Unix(1_000_000, 0)
		now := begin
		h.init(now)
		s := coordinator.State{Provider: "acme", Outcomes: map[provider.Outcome]int64{}, Refused: map[coordinator.Reason]int64{}}
		h.add([]coordinator.State{s}, now)
		longest := 0
		for now.Sub(begin) < 55*time.Minute {
			now = now.Add(time.Duration(rng.Int64N(int64(rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, 2 * time.Minute}).Draw(t, "gap")))))
			s.Granted += rng.Int64N(50)
			s.Outcomes[provider.Failed] += rng.Int64N(3)
			s.Outcomes[provider.OK] += 5
			s.Refused[coordinator.ReasonTooLate] += rng.Int64N(3)
			s.Refused[coordinator.ReasonCanceled] += 7
			s.Queue.Length = rng.IntN(1000)
			longest = max(longest, s.Queue.Length)
			h.add([]coordinator.State{s}, now)
			require.LessOrEqual(t, len(h.trails["acme"].past), mostSamples)
		}
		h.add([]coordinator.State{s}, h.next) // ends the step that goes on
		got := h.of("acme")
		var sum Sample
		for _, x := range got.Samples {
			sum.Calls, sum.Failed, sum.Refused, sum.Waiting = sum.Calls+x.Calls, sum.Failed+x.Failed, sum.Refused+x.Refused, max(sum.Waiting, x.Waiting)
		}
		assert.Equal(t, s.Granted, int64(sum.Calls))
		assert.Equal(t, s.Outcomes[provider.Failed], int64(sum.Failed))
		assert.Equal(t, s.Refused[coordinator.ReasonTooLate], int64(sum.Refused))
		assert.Equal(t, longest, int(sum.Waiting))
		assert.InDelta(t, now.Sub(begin).Seconds(), got.StepSeconds*float64(len(got.Samples)), 2*got.StepSeconds+1)
	})
}

// After two hours it has the last one, in steps of 30 s; a process that slept for a day
// has nothing of that time and goes on.
func TestHistoryKeepsAnHour(t *testing.T) {
	var h history
	now := time.Unix(1_000_000, 0)
	h.init(now)
	s := coordinator.State{Provider: "acme"}
	for range 2 * 60 * 60 {
		h.add([]coordinator.State{s}, now)
		now = now.Add(time.Second)
		s.Granted += 2
	}
	got := h.of("acme")
	require.Len(t, got.Samples, mostSamples)
	assert.Equal(t, 30.0, got.StepSeconds)
	for _, x := range got.Samples[:mostSamples-1] {
		assert.InDelta(t, 60, x.Calls, 2)
	}
	now = now.Add(24 * time.Hour)
	h.add([]coordinator.State{s}, now)
	assert.Positive(t, h.due(now))
	assert.LessOrEqual(t, h.due(now), longestStep)
	now = now.Add(time.Minute)
	s.Granted += 5
	h.add([]coordinator.State{s}, now)
	now = now.Add(time.Minute)
	h.add([]coordinator.State{s}, now)
	last := h.of("acme").Samples
	require.Len(t, last, mostSamples)
	assert.Equal(t, uint32(5), last[mostSamples-2].Calls+last[mostSamples-1].Calls+last[mostSamples-3].Calls)
}

// What was before the console is not told as if it had just happened; a provider that
// is first called later begins at nothing.
func TestHistoryBeginsWithTheConsole(t *testing.T) {
	var h history
	now := time.Unix(1_000_000, 0)
	h.init(now)
	old := coordinator.State{Provider: "old", Granted: 1000}
	h.add([]coordinator.State{old}, now)
	old.Granted += 3
	fresh := coordinator.State{Provider: "fresh", Granted: 4}
	h.add([]coordinator.State{old, fresh}, now.Add(firstStep/2))
	h.add([]coordinator.State{old, fresh}, now.Add(firstStep))
	assert.Equal(t, uint32(3), h.of("old").Samples[0].Calls)
	assert.Equal(t, uint32(4), h.of("fresh").Samples[0].Calls)
	assert.Nil(t, h.of("nobody"))
}

// History goes on while nobody looks, and the coordinator is not looked at more often
// than that then.
func TestHistoryWithoutOnlookers(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		require.NoError(t, w.Do(t.Context(), coordinator.Call{Provider: "acme"}, func(context.Context) error { return nil }))
		var last time.Time
		looks := 0
		for range 4 * 60 * 60 { // an hour, by quarters of a second
			time.Sleep(freshFor)
			if at := w.latest.Load().at; !at.Equal(last) {
				looks, last = looks+1, at
			}
		}
		assert.InDelta(t, 120+5*60, looks, 10, "120 of the first length, then 60 of each")
		got := w.told("acme").History
		assert.Equal(t, 30.0, got.StepSeconds)
		assert.Equal(t, uint32(1), got.Samples[0].Calls)
		require.NoError(t, w.Close())
		at := w.latest.Load().at
		time.Sleep(time.Hour)
		assert.Equal(t, at, w.latest.Load().at, "after Close nobody looks")
		assert.Contains(t, w.get("/").Body.String(), "All providers take calls", "but who asks is told")
	}, provider.Provider{Slug: "acme"})
}
