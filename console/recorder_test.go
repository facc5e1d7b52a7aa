package console

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// Every call that waits is counted once, however its wait ends: it goes, goes again
// after a refusal of the provider, gives up, or is refused.
func TestFlowsAreThoseThatWait(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		waiting := func() map[string]int {
			synctest.Wait()
			all := make(map[string]int)
			for _, f := range w.opt.Recorder.flowsOf("acme", 10) {
				all[f.Name] = f.Waiting
			}
			s, err := w.State("acme")
			require.NoError(t, err)
			sum := 0
			for _, n := range all {
				sum += n
			}
			assert.Equal(t, s.Queue.Length, sum)
			return all
		}
		limited := provider.Feedback{Outcome: provider.RateLimited, RetryAfter: 10 * time.Second}
		go func() { _ = w.call(coordinator.Call{Provider: "acme", Flow: "again"}, limited) }()
		synctest.Wait()
		ctx, giveUp := context.WithCancel(t.Context())
		go func() {
			_ = w.Do(ctx, coordinator.Call{Provider: "acme", Flow: "impatient"}, func(context.Context) error { return nil })
		}()
		go func() { _ = w.call(coordinator.Call{Provider: "acme", Flow: "patient"}, ok) }()
		go func() { _ = w.call(coordinator.Call{Provider: "acme", Flow: "late", Wait: 12 * time.Second}, ok) }()
		assert.Equal(t, map[string]int{"impatient": 1, "patient": 1, "late": 1}, waiting())
		giveUp()
		assert.Equal(t, map[string]int{"patient": 1, "late": 1}, waiting())
		time.Sleep(2 * time.Second) // the first was refused, and waits again
		assert.Equal(t, map[string]int{"again": 1, "patient": 1, "late": 1}, waiting())
		require.NoError(t, w.Pause("acme", time.Now().Add(time.Minute), "maintenance"))
		assert.Equal(t, map[string]int{"again": 1, "patient": 1}, waiting())
		require.NoError(t, w.Coordinator.Shutdown(t.Context()))
		assert.Empty(t, waiting())
		got := w.told("acme").Refused
		var reasons []coordinator.Reason
		for _, r := range got {
			reasons = append(reasons, r.Reason)
		}
		assert.ElementsMatch(t, []coordinator.Reason{coordinator.ReasonShutdown, coordinator.ReasonShutdown, coordinator.ReasonTooLate}, reasons, "in the queue, and before a further attempt")
	}, provider.Provider{Slug: "acme", Throttle: provider.Throttle{MaxInFlight: 1}})
}

// A call that waited, went, and is refused before its next attempt without waiting again
// takes nobody else's place in the count along.
func TestFlowOfACallThatWaitsNoMore(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		first := coordinator.Call{Provider: "acme", Flow: "a", Replayable: true, Wait: 10 * time.Second}
		go func() { _ = w.call(coordinator.Call{Provider: "acme"}, ok) }()
		synctest.Wait()
		go func() { assert.Error(t, w.call(first, provider.Feedback{Outcome: provider.Failed})) }() // waits for the one before
		time.Sleep(2100 * time.Millisecond)                                                         // it has failed, and is backing off
		require.NoError(t, w.Pause("acme", time.Now().Add(time.Minute), "maintenance"))
		go func() { _ = w.call(coordinator.Call{Provider: "acme", Flow: "a", Wait: time.Hour}, ok) }()
		time.Sleep(5 * time.Second)
		refused := w.told("acme").Refused
		require.Len(t, refused, 1)
		assert.Equal(t, coordinator.StageRetry, refused[0].Stage)
		assert.Equal(t, []Flow{{"a", 1}}, w.opt.Recorder.flowsOf("acme", 10))
		time.Sleep(2 * time.Minute)
	}, provider.Provider{Slug: "acme", Throttle: provider.Throttle{MaxInFlight: 1}})
}

// What is kept of a provider is bounded, and what did not fit is counted still.
func TestRecorderIsBounded(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		const calls = mostFlows + 50
		require.NoError(t, w.Pause("acme", time.Now().Add(time.Minute), "maintenance"))
		for i := range calls {
			go func() { _ = w.call(coordinator.Call{Provider: "acme", Flow: fmt.Sprint(i)}, ok) }()
		}
		synctest.Wait()
		x := w.opt.Recorder.of("acme")
		assert.Len(t, x.flows, mostFlows)
		assert.Equal(t, 50, x.further)
		shown := w.told("acme").Flows
		assert.Len(t, shown, mostFlowsShown+1)
		assert.Equal(t, Flow{"(others)", calls - mostFlowsShown}, shown[mostFlowsShown])
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		x.mu.Lock()
		assert.Empty(t, x.flows)
		assert.Zero(t, x.further)
		x.mu.Unlock()
		for i := range 3 * mostKinds {
			detail := fmt.Sprint("status ", i)
			_ = w.call(coordinator.Call{Provider: "acme", Endpoint: fmt.Sprint(i)}, provider.Feedback{Outcome: provider.Unknown, Detail: detail})
			_ = w.Do(t.Context(), coordinator.Call{Provider: "acme", Endpoint: fmt.Sprint(i), Cost: map[string]int64{"requests": -1}}, nil)
		}
		d := w.told("acme")
		require.Len(t, d.Answers, mostKinds)
		require.Len(t, d.Refused, mostKinds)
		assert.Equal(t, fmt.Sprint("status ", 3*mostKinds-1), d.Answers[0].Detail, "the latest is first")
		_ = w.call(coordinator.Call{Provider: "acme", Endpoint: "20"}, provider.Feedback{Outcome: provider.Unknown, Detail: "status 20"})
		again := w.told("acme")
		require.Len(t, again.Answers, mostKinds)
		assert.Equal(t, int64(2), again.Answers[0].Count)
		assert.Equal(t, "status 20", again.Answers[0].Detail)
		assert.True(t, again.Answers[0].First.Before(again.Answers[0].Last))
		assert.ErrorIs(t, w.Do(t.Context(), coordinator.Call{Provider: "nobody"}, nil), coordinator.ErrUnknownProvider)
		_, kept := w.opt.Recorder.providers.Load("nobody")
		assert.False(t, kept, "anybody can ask for more names than memory has room for")
	}, provider.Provider{Slug: "acme", Throttle: provider.Throttle{MaxInFlight: 1000}, Breaker: provider.Breaker{Off: true}})
}

// What a provider told last is the last answer, ok or not; a call that was never
// answered tells nothing.
func TestLastAnswer(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		left := int64(7)
		require.NoError(t, w.call(coordinator.Call{Provider: "acme"}, provider.Feedback{Budgets: []provider.Budget{{Name: "day", Remaining: left, HasRemaining: true, Reset: time.Hour, HasReset: true}}}))
		at := time.Now()
		_ = w.call(coordinator.Call{Provider: "acme"}, provider.Feedback{Outcome: provider.Canceled})
		_ = w.call(coordinator.Call{Provider: "acme"}, provider.Feedback{Outcome: provider.Failed, Unanswered: true})
		last := w.told("acme").Last
		require.NotNil(t, last)
		assert.Equal(t, provider.OK, last.Outcome)
		assert.Equal(t, 1.0, last.Took)
		require.Len(t, last.Budgets, 1)
		assert.Equal(t, &left, last.Budgets[0].Remaining)
		assert.Nil(t, last.Budgets[0].Limit, "what was not told is not 0")
		assert.True(t, last.Budgets[0].Reset.Equal(at.Add(time.Hour)))
		assert.Contains(t, w.get("/?open=acme").Body.String(), "<dt>day</dt><dd>7 left, resets")
		_ = w.call(coordinator.Call{Provider: "acme"}, provider.Feedback{Outcome: provider.RateLimited, RetryAfter: 2 * time.Hour, Detail: "status 429"})
		last = w.told("acme").Last
		assert.Equal(t, provider.RateLimited, last.Outcome)
		assert.True(t, last.RetryAt.Equal(last.Last.Add(2*time.Hour)))
	}, provider.Provider{Slug: "acme", Throttle: provider.Throttle{MaxWait: time.Minute}})
}

// Another Trace whose Begin forgets the context that it was given costs the flows,
// nothing else.
func TestRecorderBesideAnotherTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := new(Recorder)
		rude := &coordinator.Trace{Begin: func(context.Context, coordinator.CallInfo) context.Context { return context.Background() }}
		c, err := coordinator.New(coordinator.Config{Registry: new(registry.Registry), Providers: []provider.Provider{{Slug: "acme", Throttle: provider.Throttle{RPS: 1}}},
			Traces: []*coordinator.Trace{rec.Trace(), rude}})
		require.NoError(t, err)
		for range 3 {
			go func() {
				assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "acme"}, func(context.Context) error { return nil }))
			}()
		}
		synctest.Wait()
		assert.Empty(t, rec.flowsOf("acme", 10))
		time.Sleep(5 * time.Second)
	})
}

func BenchmarkRecorder(b *testing.B) {
	for _, with := range []bool{false, true} {
		b.Run(fmt.Sprintf("with=%t", with), func(b *testing.B) {
			cfg := coordinator.Config{Registry: new(registry.Registry), Providers: []provider.Provider{{Slug: "acme", Throttle: provider.Throttle{MaxInFlight: 10}}}}
			rec := new(Recorder)
			if with {
				cfg.Traces = []*coordinator.Trace{rec.Trace()}
			} else {
				cfg.Traces = []*coordinator.Trace{{}}
			}
			c, err := coordinator.New(cfg)
			require.NoError(b, err)
			f := func(context.Context) error { return nil }
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Do(b.Context(), coordinator.Call{Provider: "acme"}, f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
