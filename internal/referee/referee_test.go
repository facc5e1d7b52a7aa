package referee

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// named is a provider p with endpoints a and b.
var named = provider.Provider{Slug: "p", Endpoints: []provider.Endpoint{{Name: "a", Path: "/a"}, {Name: "b", Path: "/b"}}}

// bubble plays p in virtual time, which begins at midnight UTC, 2000-01-01.
func bubble(t *testing.T, p Play, f func(t *testing.T, r *Referee)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if p.Provider.Slug == "" {
			p.Provider = named
		}
		r, err := New(1, p)
		require.NoError(t, err)
		defer r.Close()
		f(t, r)
	})
}

func one(l provider.Limit) []provider.Limit {
	if l.Name == "" {
		l.Name = "limit"
	}
	return []provider.Limit{l}
}

func requests(n int64) map[string]int64 { return map[string]int64{provider.Requests: n} }

// step is one arrival, so long after the bubble's beginning.
type step struct {
	at   time.Duration
	n    int64
	want bool
}

func play(t *testing.T, r *Referee, steps []step) {
	t.Helper()
	begin := time.Now()
	for i, s := range steps {
		time.Sleep(time.Until(begin.Add(s.at)))
		assert.Equal(t, s.want, r.Arrive("p", "", "", requests(s.n)), "step %d, at %v", i, s.at)
	}
}

func TestAlgorithmsAtTheirEdges(t *testing.T) {
	const ns, s, ms = time.Nanosecond, time.Second, time.Millisecond
	window := provider.Limit{Max: 3, Per: "1s"}
	fixed := provider.Limit{Max: 3, Per: "1s", Algorithm: provider.FixedWindow}
	bucket := provider.Limit{Max: 10, Per: "1s", Burst: 3, Algorithm: provider.TokenBucket}
	for _, c := range []struct {
		name  string
		play  Play
		steps []step
	}{
		{"sliding window, half open", Play{Limits: one(window)}, []step{
			{0, 1, true}, {ms, 1, true}, {2 * ms, 1, true}, {3 * ms, 1, false},
			{s - ns, 1, false}, {s, 1, true}, {s, 1, false}, {s + ms - ns, 1, false}, {s + ms, 1, true},
		}},
		{"sliding window, closed", Play{Limits: one(window), Closed: true}, []step{
			{0, 3, true}, {s - ns, 1, false}, {s, 1, false}, {s + ns, 3, true}, {2 * s, 1, false}, {2*s + ns, 1, false}, {2*s + 2*ns, 1, true},
		}},
		{"sliding log is a sliding window", Play{Limits: one(provider.Limit{Max: 1, Per: "1s", Algorithm: provider.SlidingLog})}, []step{
			{0, 1, true}, {s - ns, 1, false}, {s, 1, true},
		}},
		{"a refused call counts too", Play{Limits: one(window), RefusedCounts: true}, []step{
			{0, 3, true}, {s - ns, 1, false}, {s, 3, false}, {2*s - ns, 1, false}, {2 * s, 2, true}, {2 * s, 1, false},
		}},
		{"fixed window, half open", Play{Limits: one(fixed)}, []step{
			{s - ns, 3, true}, {s - ns, 1, false}, {s, 3, true}, {2*s - ns, 1, false}, {2 * s, 1, true},
		}},
		{"fixed window, closed: the edge is in both", Play{Limits: one(fixed), Closed: true}, []step{
			{s - ns, 2, true}, {s, 2, false}, {s, 1, true}, {s, 1, false}, {s + ns, 2, true}, {s + 2*ns, 1, false},
			{2 * s, 1, false}, {2*s + ns, 3, true},
		}},
		{"fixed window, shifted", Play{Limits: one(fixed), Phase: 300 * ms}, []step{
			{0, 3, true}, {300*ms - ns, 1, false}, {300 * ms, 3, true}, {s, 1, false}, {1300*ms - ns, 1, false}, {1300 * ms, 1, true},
		}},
		{"window counter: 80 before, 50 now, 40 s into 60", Play{Limits: one(provider.Limit{Max: 80, Per: "60s", Algorithm: provider.SlidingWindowCounter})}, []step{
			// 76.7 used: 3 more fit, 4 do not; the fourth fits when 80 × (1 − e) is 26.
			{59 * s, 80, true}, {60 * s, 1, false}, {100 * s, 50, true}, {100 * s, 4, false}, {100 * s, 3, true},
			{100*s + 500*ms - ns, 1, false}, {100*s + 500*ms, 1, true}, {100*s + 500*ms, 1, false},
		}},
		{"token bucket", Play{Limits: one(bucket)}, []step{
			{0, 3, true}, {0, 1, false}, {100*ms - ns, 1, false}, {100 * ms, 1, true}, {100 * ms, 1, false},
			{400*ms - ns, 3, false}, {400 * ms, 3, true}, {10 * s, 4, false}, {10 * s, 3, true}, {10 * s, 1, false},
		}},
		{"token bucket without an even refill", Play{Limits: one(provider.Limit{Max: 3, Per: "1s", Burst: 1, Algorithm: provider.GCRA})}, []step{
			{0, 1, true}, {333333333 * ns, 1, false}, {333333334 * ns, 1, true}, {666666667 * ns, 1, false}, {666666668 * ns, 1, true},
		}},
		{"token bucket in debt", Play{Limits: one(bucket), RefusedCounts: true}, []step{
			{0, 3, true}, {0, 1, false}, {200*ms - ns, 1, false}, {300*ms - ns, 1, false}, {400 * ms, 1, true}, {400 * ms, 1, false},
		}},
		{"a bucket's burst is the limit's number by default", Play{Limits: one(provider.Limit{Max: 2, Per: "1s", Algorithm: provider.TokenBucket})}, []step{
			{0, 2, true}, {0, 1, false}, {500 * ms, 1, true},
		}},
		{"leaky bucket: no more in a window, spacing not judged", Play{Limits: one(provider.Limit{Max: 3, Per: "1s", Burst: 9, Algorithm: provider.LeakyBucket})}, []step{
			{0, 1, true}, {ns, 1, true}, {2 * ns, 1, true}, {s - ns, 1, false}, {s, 1, true},
		}},
		{"heavier than can ever be", Play{Limits: one(window)}, []step{{0, 4, false}, {0, 3, true}, {s, 4, false}, {s, 3, true}}},
		{"costs nothing", Play{Limits: one(window)}, []step{{0, 3, true}, {0, 0, true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, c.play, func(t *testing.T, r *Referee) { play(t, r, c.steps) })
		})
	}
}

func TestNoCostOverflows(t *testing.T) {
	for _, algorithm := range []provider.Algorithm{provider.SlidingWindow, provider.FixedWindow, provider.SlidingWindowCounter, provider.TokenBucket, provider.LeakyBucket} {
		l := provider.Limit{Max: largest, Per: "744h", Algorithm: algorithm}
		for _, refusedCounts := range []bool{false, true} {
			bubble(t, Play{Limits: one(l), RefusedCounts: refusedCounts}, func(t *testing.T, r *Referee) {
				require.True(t, r.Arrive("p", "", "", requests(largest)), algorithm)
				for range 100 {
					require.False(t, r.Arrive("p", "", "", requests(math.MaxInt64)), algorithm)
				}
				assert.Greater(t, r.Report("p").Violations[99].Used, int64(largest))
			})
		}
	}
}

func TestViolationTellsAll(t *testing.T) {
	l := provider.Limit{Name: "tpm", Max: 80, Per: "60s", Unit: "tokens", Scope: provider.ScopeKeyEndpoint, Algorithm: provider.SlidingWindowCounter}
	bubble(t, Play{Limits: one(l)}, func(t *testing.T, r *Referee) {
		time.Sleep(59 * time.Second)
		require.True(t, r.Arrive("p", "a", "k", map[string]int64{"tokens": 80}))
		time.Sleep(41 * time.Second)
		require.True(t, r.Arrive("p", "a", "k", map[string]int64{"tokens": 50}))
		require.False(t, r.Arrive("p", "a", "k", map[string]int64{"tokens": 4}))
		rep := r.Report("p")
		begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		require.Len(t, rep.Violations, 1)
		v := rep.Violations[0]
		assert.True(t, v.At.Equal(begin.Add(100*time.Second)), v.At)
		v.At = time.Time{}
		assert.Equal(t, Violation{Provider: "p", Limit: "tpm", Key: "k", Endpoint: "a", Used: 81, Max: 80}, v)
		assert.True(t, rep.First.Equal(begin.Add(59*time.Second)))
		assert.True(t, rep.Last.Equal(begin.Add(100*time.Second)))
		rep.First, rep.Last, rep.Violations = time.Time{}, time.Time{}, nil
		assert.Equal(t, Report{
			Arrivals: 3, Admitted: 2, Refused: 1, Violated: 1, InFlight: 1,
			Units: map[string]int64{"tokens": 130, "requests": 2}, Gaps: map[string]time.Duration{},
		}, rep)
	})
}

func TestChargesSettleAtTheAnswer(t *testing.T) {
	for _, l := range []provider.Limit{
		{Max: 2, Per: "1m"},
		{Max: 2, Per: "1m", Algorithm: provider.FixedWindow},
		{Max: 2, Per: "day"},
		{Max: 2, Per: "1m", Algorithm: provider.SlidingWindowCounter},
		{Max: 2, Per: "1m", Algorithm: provider.TokenBucket},
		{Max: 2, Per: "1m", Algorithm: provider.LeakyBucket},
	} {
		l.Charges = []provider.Outcome{provider.OK, provider.Rejected}
		for _, refusedCounts := range []bool{false, true} {
			bubble(t, Play{Limits: one(l), RefusedCounts: refusedCounts}, func(t *testing.T, r *Referee) {
				failed, ok1 := r.Enter("p", "", "", nil)
				fine, ok2 := r.Enter("p", "", "", nil)
				refused, ok3 := r.Enter("p", "", "", nil)
				assert.Equal(t, []bool{true, true, false}, []bool{ok1, ok2, ok3}, "counts until the answer says otherwise")
				refused(provider.RateLimited)
				fine(provider.OK)
				fine(provider.Failed) // too late
				failed(provider.Failed)
				failed(provider.Failed)
				gone, ok := r.Enter("p", "", "", nil)
				assert.True(t, ok, "%s: the failed one was given back", l.Algorithm)
				gone(provider.Canceled)
				assert.False(t, r.Arrive("p", "", "", nil), "%s: no answer, charged", l.Algorithm)
			})
		}
	}
}

func TestLateTakeBackTakesNothingElse(t *testing.T) {
	for _, algorithm := range []provider.Algorithm{provider.SlidingWindow, provider.FixedWindow, provider.SlidingWindowCounter, provider.TokenBucket} {
		l := provider.Limit{Max: 3, Per: "1s", Algorithm: algorithm, Charges: []provider.Outcome{provider.OK}}
		bubble(t, Play{Limits: one(l)}, func(t *testing.T, r *Referee) {
			leave, _ := r.Enter("p", "", "", nil)
			time.Sleep(10 * time.Second)
			require.True(t, r.Arrive("p", "", "", requests(3)))
			leave(provider.Failed)
			assert.False(t, r.Arrive("p", "", "", nil), algorithm)
		})
	}
	// The log has dropped the call, but not yet moved what came after it.
	l := provider.Limit{Max: 3, Per: "1s", Charges: []provider.Outcome{provider.OK}}
	bubble(t, Play{Limits: one(l)}, func(t *testing.T, r *Referee) {
		leave, _ := r.Enter("p", "", "", nil)
		time.Sleep(time.Second - 1)
		require.True(t, r.Arrive("p", "", "", nil))
		require.True(t, r.Arrive("p", "", "", nil))
		time.Sleep(time.Nanosecond)
		require.True(t, r.Arrive("p", "", "", nil))
		leave(provider.Failed)
		assert.False(t, r.Arrive("p", "", "", nil))
	})
}

func TestMostInFlight(t *testing.T) {
	l := provider.Limit{Max: 4, Per: "1m"}
	bubble(t, Play{Limits: one(l)}, func(t *testing.T, r *Referee) {
		first, _ := r.Enter("p", "", "", nil)
		r.Enter("p", "", "", nil)
		first(provider.OK)
		first(provider.OK) // as if it had been two
		refused, ok := r.Enter("p", "", "", requests(5))
		require.False(t, ok)
		refused(provider.RateLimited) // was never in flight
		r.Enter("p", "", "", nil)
		assert.Equal(t, 2, r.Report("p").InFlight)
		r.Enter("p", "", "", nil)
		assert.Equal(t, 3, r.Report("p").InFlight)
	})
}

func TestInFlight(t *testing.T) {
	bubble(t, Play{Limits: one(provider.Limit{Max: 2, Algorithm: provider.InFlight})}, func(t *testing.T, r *Referee) {
		first, ok := r.Enter("p", "", "", requests(5))
		assert.True(t, ok, "a heavy call is one call")
		_, ok = r.Enter("p", "", "", requests(0))
		assert.True(t, ok)
		refused, ok := r.Enter("p", "", "", nil)
		assert.False(t, ok)
		refused(provider.RateLimited)
		time.Sleep(time.Hour)
		assert.False(t, r.Arrive("p", "", "", nil))
		first(provider.Canceled)
		first(provider.Canceled)
		assert.True(t, r.Arrive("p", "", "", nil))
		assert.True(t, r.Arrive("p", "", "", nil))
		rep := r.Report("p")
		assert.Equal(t, 2, rep.InFlight)
		assert.EqualValues(t, 3, rep.Violations[0].Used)
		assert.EqualValues(t, 2, rep.Violations[0].Max)
	})
}

func TestSmallestGapOfALeakyBucket(t *testing.T) {
	l := provider.Limit{Max: 10, Per: "10s", Algorithm: provider.LeakyBucket, Scope: provider.ScopeKey}
	bubble(t, Play{Limits: one(l)}, func(t *testing.T, r *Referee) {
		r.Arrive("p", "", "x", nil)
		assert.Empty(t, r.Report("p").Gaps, "one call has no gap")
		time.Sleep(time.Second)
		r.Arrive("p", "", "x", nil)
		time.Sleep(900 * time.Millisecond)
		r.Arrive("p", "", "y", nil)
		r.Arrive("p", "", "x", nil)
		r.Arrive("p", "", "x", requests(99)) // refused
		time.Sleep(5 * time.Second)
		r.Arrive("p", "", "x", nil)
		assert.Equal(t, map[string]time.Duration{"limit": 900 * time.Millisecond}, r.Report("p").Gaps)
	})
}

func TestListOfViolationsIsBoundedTheCountIsNot(t *testing.T) {
	bubble(t, Play{Limits: one(provider.Limit{Max: 1, Per: "1s"})}, func(t *testing.T, r *Referee) {
		for range 1 + maxViolations + 500 {
			r.Arrive("p", "", "", nil)
		}
		rep := r.Report("p")
		assert.Len(t, rep.Violations, maxViolations)
		assert.EqualValues(t, maxViolations+500, rep.Violated)
	})
}
