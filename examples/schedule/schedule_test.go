package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/examples/internal/ledgerflag"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// asProgram has the test's binary be the program.
const asProgram = "SCHEDULE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main() // exits
	}
	goleak.VerifyTestMain(m)
}

// world is what outlives a restart, and what the sources answer.
type world struct {
	dir     string
	limits  []provider.Limit
	sources []*source
	answer  func(s *source) error // nil: all is well

	fetches map[string][]time.Time // when each was asked
}

func newWorld(t *testing.T, sources ...*source) *world {
	return &world{dir: t.TempDir(), sources: sources, fetches: make(map[string][]time.Time)}
}

// seldom is how often a ledger beats in a test of many days.
const seldom = 10 * time.Minute

// life is one process, whose ledger beats so often.
func (w *world) life(t *testing.T, beat time.Duration, f func(ctx context.Context, s *schedule) error) {
	t.Helper()
	b, err := openBook(w.dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, b.close()) }()
	led, err := ledgerflag.File(filepath.Join(w.dir, "ledger.db")).Open((&options{speed: 1, beat: beat}).settings())
	require.NoError(t, err)
	defer func() { require.NoError(t, ledgerflag.Close(led)) }()
	p := provider.Provider{Slug: "p", Throttle: provider.Throttle{Limits: w.limits}, Retry: provider.Retry{Off: true}, Breaker: provider.Breaker{Off: true}}
	c, err := coordinator.New(coordinator.Config{Registry: new(registry.Registry), Providers: []provider.Provider{p}, Ledger: led})
	require.NoError(t, err)
	s := &schedule{c: c, book: b, sources: w.sources, speed: 1, fetch: func(_ context.Context, s *source) (int64, error) {
		w.fetches[s.Name] = append(w.fetches[s.Name], time.Now())
		if w.answer != nil {
			return 0, w.answer(s)
		}
		return 1, nil
	}}
	require.NoError(t, f(t.Context(), s))
	require.NoError(t, c.Shutdown(t.Context()))
}

// aBit is more than a whole number of anything: no life ends as its ledger beats.
const aBit = 77 * time.Millisecond

func (w *world) keep(t *testing.T, d time.Duration) {
	t.Helper()
	d += aBit
	w.life(t, seldom, func(ctx context.Context, s *schedule) error {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return s.keep(ctx)
	})
}

func daily(name string) *source { return &source{Name: name, Provider: "p", Every: 24 * time.Hour} }

// What was fetched is not fetched again by a restart, however many there are, but when
// it is due.
func TestIntervalsHoldOverRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, daily("a"))
		begin := time.Now()
		for range 12 {
			w.keep(t, 5*time.Hour)
		}
		all := w.fetches["a"]
		require.Len(t, all, 3, "in 60 hours")
		assert.Equal(t, begin, all[0], "a new one is due at once")
		for i := range 2 {
			gap := all[i+1].Sub(all[i])
			assert.GreaterOrEqual(t, gap, 24*time.Hour)
			assert.LessOrEqual(t, gap, 24*time.Hour+mostJitter+aBit)
		}
	})
}

// Five days were missed: there is one fetch, at once, and the next a day later.
func TestWhatWasMissedIsCaughtUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, daily("a"))
		w.keep(t, time.Hour)
		time.Sleep(5*24*time.Hour + 12*time.Hour)
		again := time.Now()
		w.keep(t, 23*time.Hour)
		require.Len(t, w.fetches["a"], 2)
		assert.Equal(t, again, w.fetches["a"][1])
		w.life(t, ledgerBeat, func(_ context.Context, s *schedule) error {
			e, err := s.book.get(w.sources[0])
			assert.Equal(t, 4, e.Skipped, "of those of five days one was made up for")
			assert.Equal(t, 2, e.Times)
			return err
		})
		w.keep(t, 2*time.Hour)
		assert.Len(t, w.fetches["a"], 3)
	})
}

// A failure is tried again, later each time, restarts or not, until the interval is all
// that is left; a success ends that.
func TestFailuresBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, daily("a"))
		w.answer = func(*source) error { return errors.New("it burns") }
		for range 12 {
			w.keep(t, 3*time.Minute)
		}
		for range 12 {
			w.keep(t, 4*time.Hour)
		}
		all := w.fetches["a"]
		require.Greater(t, len(all), 10)
		for i := range len(all) - 1 {
			least := min(firstBackOff<<min(i, 20), lastBackOff)
			assert.GreaterOrEqual(t, all[i+1].Sub(all[i]), least, i)
			assert.LessOrEqual(t, all[i+1].Sub(all[i]), least*3/2+aBit, i)
		}
		w.answer = nil
		w.keep(t, 24*time.Hour)
		n := len(w.fetches["a"])
		w.keep(t, 23*time.Hour)
		assert.LessOrEqual(t, len(w.fetches["a"]), n+1)
		w.life(t, ledgerBeat, func(_ context.Context, s *schedule) error {
			e, err := s.book.get(w.sources[0])
			assert.Zero(t, e.Failures)
			assert.Equal(t, len(all), e.Failed)
			assert.Empty(t, e.Why)
			return err
		})
	})
}

// A provider that says when to come back is not asked before.
func TestToldWhenToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, daily("a"))
		w.answer = func(*source) error {
			return provider.Feedback{Outcome: provider.Overloaded, RetryAfter: 3 * time.Hour}.Err(errors.New("later"))
		}
		w.keep(t, 5*time.Hour)
		require.Len(t, w.fetches["a"], 2)
		assert.GreaterOrEqual(t, w.fetches["a"][1].Sub(w.fetches["a"][0]), 3*time.Hour)
		w.life(t, ledgerBeat, func(_ context.Context, s *schedule) error {
			e, err := s.book.get(w.sources[0])
			assert.Equal(t, 2, e.Failed)
			assert.GreaterOrEqual(t, e.Due.Sub(w.fetches["a"][1]), 3*time.Hour)
			return err
		})
	})
}

// However it fails and however often it is restarted: never more often than the provider's
// limits say, which all of its sources share.
func TestLimitsHoldWhateverFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, daily("a"), daily("b"), daily("c"))
		w.limits = []provider.Limit{{Name: "pace", Max: 1, Per: "10m", Basis: provider.BasisPacing}}
		w.answer = func(*source) error { return errors.New("it burns") }
		for range 36 {
			w.keep(t, 10*time.Minute)
		}
		var all []time.Time
		for _, times := range w.fetches {
			all = append(all, times...)
		}
		require.Greater(t, len(all), 10)
		for i, x := range all {
			for _, y := range all[:i] {
				assert.GreaterOrEqual(t, x.Sub(y).Abs(), 10*time.Minute)
			}
		}
		for _, s := range w.sources {
			assert.Greater(t, len(w.fetches[s.Name]), 2, s.Name)
		}
	})
}

// Who must wait for the limits has not failed.
func TestThrottledIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, daily("a"), daily("b"), daily("c"))
		w.limits = []provider.Limit{{Name: "pace", Max: 1, Per: "1h", Basis: provider.BasisPacing}}
		begin := time.Now()
		w.keep(t, 4*time.Hour)
		for _, s := range w.sources {
			assert.Len(t, w.fetches[s.Name], 1, s.Name)
			assert.Less(t, w.fetches[s.Name][0].Sub(begin), 3*time.Hour)
		}
		w.life(t, ledgerBeat, func(_ context.Context, s *schedule) error {
			for _, x := range w.sources {
				e, err := s.book.get(x)
				require.NoError(t, err)
				assert.Zero(t, e.Failed)
				assert.Zero(t, e.Skipped)
				assert.Empty(t, e.Why)
			}
			return nil
		})
	})
}

// What is out as the process ends was not fetched: it is still due.
func TestBrokenOffIsStillDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, daily("a"))
		w.life(t, ledgerBeat, func(ctx context.Context, s *schedule) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			s.fetch = func(ctx context.Context, _ *source) (int64, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return s.keep(ctx)
		})
		again := time.Now()
		w.keep(t, time.Minute)
		require.Len(t, w.fetches["a"], 1)
		assert.Equal(t, again, w.fetches["a"][0])
	})
}

// Another interval counts from the last fetch.
func TestChangedInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, daily("a"))
		begin := time.Now()
		w.keep(t, time.Hour)
		w.sources[0] = &source{Name: "a", Provider: "p", Every: 2 * time.Hour}
		w.keep(t, time.Hour+time.Minute)
		require.Len(t, w.fetches["a"], 2)
		assert.WithinDuration(t, begin.Add(2*time.Hour), w.fetches["a"][1], aBit)
	})
}

// Once: what is due, and only that; who fails is told.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, daily("a"), daily("b"))
		once := func() (failed int) {
			w.life(t, ledgerBeat, func(ctx context.Context, s *schedule) (err error) {
				failed, err = s.due(ctx)
				return err
			})
			return failed
		}
		w.answer = func(s *source) error {
			if s.Name == "b" {
				return errors.New("it burns")
			}
			return nil
		}
		begin := time.Now()
		assert.Equal(t, 1, once())
		assert.Equal(t, 0, once(), "b is due later")
		time.Sleep(2 * time.Minute)
		assert.Equal(t, 1, once())
		assert.Len(t, w.fetches["a"], 1)
		assert.Len(t, w.fetches["b"], 2)
		time.Sleep(24*time.Hour + mostJitter)
		w.answer = nil
		assert.Equal(t, 0, once())
		assert.Len(t, w.fetches["a"], 2)
		assert.Len(t, w.fetches["b"], 3)
		assert.Less(t, time.Since(begin), 25*time.Hour, "it waits for nothing")
	})
}

func TestOneScheduleAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		b, err := openBook(dir)
		require.NoError(t, err)
		_, err = openBook(dir)
		require.ErrorContains(t, err, "another schedule is running on it")
		require.NoError(t, b.close())
	})
	_, err := openBook("/dev/null/x")
	require.Error(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "schedule.db"), []byte("my diary, which is no database of anybody's"), 0o600))
	_, err = openBook(dir)
	require.ErrorContains(t, err, "cannot be used")
}
