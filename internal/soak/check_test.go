package soak

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// change is what happens to a provider besides: plans, pauses, questions.
func (w *world) change(t *testing.T) {
	s := pick(w.rng, w.sites...)
	slug := s.p.Slug
	if w.chance(12) {
		w.sum.count("update")
		require.NoError(t, w.c.Update(slug, w.plan(s)))
	}
	if w.chance(40) {
		require.NoError(t, w.c.Pause(slug, time.Now().Add(w.ms(2000)+1), "soak"))
	}
	if w.chance(40) {
		require.NoError(t, w.c.Resume(slug))
	}
	if w.chance(20) {
		_, err := w.c.ForecastAll(-1, coordinator.Demand{Call: coordinator.Call{Provider: slug}, Calls: 30})
		require.NoError(t, err)
	}
	if w.chance(20) {
		for _, state := range w.c.States() {
			w.plausible(t, state)
		}
	}
}

// plausible is what holds of a state at any time.
func (w *world) plausible(t *testing.T, s coordinator.State) {
	assert.GreaterOrEqual(t, s.InFlight, 0)
	assert.GreaterOrEqual(t, s.Queue.Length, 0)
	assert.GreaterOrEqual(t, s.Lingering, 0)
	for _, l := range limitsOf(s) {
		assert.GreaterOrEqual(t, l.Used, int64(0), l.Name)
		assert.GreaterOrEqual(t, l.Held, int64(0), l.Name)
		assert.GreaterOrEqual(t, l.Left, int64(0), l.Name)
	}
	for _, p := range s.Pools {
		assert.GreaterOrEqual(t, p.Used, 0, p.Name)
	}
}

func limitsOf(s coordinator.State) (all []coordinator.LimitState) {
	all = append(all, s.Limits...)
	for _, ls := range s.Endpoints {
		all = append(all, ls...)
	}
	for _, k := range s.Keys {
		all = append(all, k.Limits...)
	}
	return all
}

// judge reads what a call got to hear.
func (w *world) judge(t *testing.T, r *ride, err error) {
	var e *coordinator.Error
	if !errors.As(err, &e) {
		return
	}
	w.sum.count("error: " + string(e.Reason))
	assert.NotEmpty(t, e.Reason)
	assert.NotEmpty(t, e.Stage)
	assert.GreaterOrEqual(t, e.RetryAfter, time.Duration(0))
	assert.Equal(t, e.RetryAfter > 0, !e.RetryAt.IsZero(), "%v", e)
	if e.Stage == coordinator.StageEntry || e.Stage == coordinator.StageQueue {
		assert.Zero(t, e.Attempts, "%v", e)
	}
	_, err = json.Marshal(e)
	assert.NoError(t, err)
}

// check is what must hold when all calls have ended.
func (w *world) check(t *testing.T, shut bool) {
	time.Sleep(time.Minute) // requests that their callers gave up arrive all the same
	synctest.Wait()
	if w.patient {
		w.sum.count("patient world")
	}
	for _, r := range w.rides {
		assert.True(t, r.ended.Load(), "call %d has not ended", r.i)
	}
	for _, s := range w.sites {
		w.sums(t, s)
		report := w.ref.Report(s.p.Slug)
		assert.Zero(t, report.Violated, "%s: %+v\n%+v", s.p.Slug, report.Violations, s.p)
		if s.elastic != nil {
			w.sum.count("elastic limit")
			s.elastic.check(t)
		}
	}
	if !shut {
		w.alive(t)
	}
	time.Sleep(3 * time.Hour) // all windows are over, and all that lingers
	for _, s := range w.c.States() {
		assert.Zero(t, s.InFlight+s.Queue.Length+s.Lingering, "%+v", s)
		for _, l := range limitsOf(s) {
			assert.Zero(t, l.Used+l.Held, "%s: %+v", s.Provider, l)
		}
		for _, p := range s.Pools {
			assert.Zero(t, p.Used+p.Waiting, "%s: %+v", s.Provider, p)
		}
		for _, k := range s.Keys {
			assert.Zero(t, k.InFlight, "%s: %+v", s.Provider, k)
		}
	}
	for hook := range w.hooks.panicked {
		assert.Equal(t, 1, w.hooks.told[hook], "the panic in hook %s is told once", hook)
	}
	require.NoError(t, w.c.Shutdown(t.Context()))
	for _, s := range w.sites {
		err := w.c.Do(t.Context(), coordinator.Call{Provider: s.p.Slug}, func(context.Context) error { return nil })
		assert.ErrorIs(t, err, coordinator.ErrShutdown)
	}
}

// sums asserts that what is counted in different places is the same.
func (w *world) sums(t *testing.T, s *site) {
	st, err := w.c.State(s.p.Slug)
	require.NoError(t, err)
	report := w.ref.Report(s.p.Slug)
	var decided, answered int64
	for _, d := range st.Decisions {
		decided += d.Count
	}
	for _, n := range st.Outcomes {
		answered += n
	}
	assert.Equal(t, s.begun.Load()-s.undecided.Load(), decided, "%s: calls that came, and decisions", s.p.Slug)
	assert.Equal(t, st.Granted, answered, "%s: attempts that went, and outcomes", s.p.Slug)
	assert.LessOrEqual(t, report.Arrivals, st.Granted, "%s: more arrived than went", s.p.Slug)
	assert.Zero(t, report.Refused, "%s", s.p.Slug)
	if w.patient {
		assert.Equal(t, report.Arrivals, w.wire.count(s.p.Slug)+w.byHand(s), "%s: sent, and arrived", s.p.Slug)
	}
	w.sum.more("arrivals", int(report.Arrivals))
}

// byHand is how many requests have arrived that were no HTTP.
func (w *world) byHand(s *site) (n int64) {
	for _, r := range w.rides {
		if r.site == s {
			n += r.hand.Load()
		}
	}
	return n
}

// alive asserts that each provider can be asked again, once its pauses are over.
func (w *world) alive(t *testing.T) {
	for _, s := range w.sites {
		th := s.p.Clone().Throttle
		th.Excess, th.MaxQueue, th.MaxWait = provider.Queue, 0, 0
		require.NoError(t, w.c.Update(s.p.Slug, th))
		require.NoError(t, w.c.Resume(s.p.Slug))
	}
	time.Sleep(time.Hour)
	for _, s := range w.sites {
		for range s.p.Breaker.Probes + 1 {
			err := w.c.Do(t.Context(), coordinator.Call{Provider: s.p.Slug, Endpoint: "a", Wait: provider.Forever}, func(context.Context) error { return nil })
			assert.NoError(t, err, "%s", s.p.Slug)
		}
		st, err := w.c.State(s.p.Slug)
		require.NoError(t, err)
		assert.NotEqual(t, "open", st.Breaker.State)
		assert.Empty(t, st.Pauses)
	}
}
