package referee

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

// uneven is the network of these tests.
var uneven = Delay{10 * ms, 100 * ms}

// send lets clients share a schedule of one request each every, for length, and
// waits for all answers.
func send(t *testing.T, r *Referee, clients int, every, length time.Duration) {
	url, begin := r.URL("p")+"/a", time.Now()
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for at := time.Duration(i) * every; at < length; at += time.Duration(clients) * every {
				time.Sleep(time.Until(begin.Add(at)))
				status, _, _ := do(t, r, "GET", url)
				assert.Contains(t, []int{200, 429}, status)
			}
		})
	}
	wg.Wait()
}

// TestVirtualHour has 200 clients send 50 requests a second, evenly, as a limiter
// does that counts at sending: they do not arrive so. The counts are facts: no
// clock but the bubble's is read.
func TestVirtualHour(t *testing.T) {
	length := time.Hour
	if underRace || testing.Short() {
		length = 2 * time.Minute // some 70 s for the hour otherwise
	}
	p := Play{
		Limits: []provider.Limit{{Name: "rps", Max: 50, Per: "1s"}, {Name: "rph", Max: 180_000, Per: "1h"}},
		Go:     uneven, Back: uneven,
	}
	served(t, p, func(t *testing.T, r *Referee, _ string) {
		send(t, r, 200, 20*ms, length)
		rep := r.Report("p")
		assert.EqualValues(t, length/(20*ms), rep.Arrivals)
		assert.Equal(t, rep.Arrivals, rep.Answered)
		assert.Equal(t, rep.Refused, rep.Violated)
		assert.InDelta(t, 0.045, float64(rep.Violated)/float64(rep.Arrivals), 0.01)
		assert.LessOrEqual(t, rep.InFlight, 10, "90 ms of work is 5 at once or so")
	})
}

// TestViolationsAgainstARecount recounts every window of what arrived, admitted or
// not, from nothing but the instants.
func TestViolationsAgainstARecount(t *testing.T) {
	var mu sync.Mutex
	var admitted []time.Time
	p := Play{
		Limits: one(provider.Limit{Max: 50, Per: "1s"}), Go: uneven, Back: uneven,
		Answer: func(a Arrival) Answer {
			mu.Lock()
			defer mu.Unlock()
			admitted = append(admitted, a.At)
			return Answer{}
		},
	}
	served(t, p, func(t *testing.T, r *Referee, _ string) {
		send(t, r, 50, 20*ms, 30*time.Second)
		rep := r.Report("p")
		require.Len(t, rep.Violations, int(rep.Violated))
		require.NotZero(t, rep.Violated)
		slices.SortFunc(admitted, time.Time.Compare)
		inWindowUpTo := func(at time.Time) (n int) {
			for _, a := range admitted {
				if !a.After(at) && at.Sub(a) < time.Second {
					n++
				}
			}
			return n
		}
		for _, a := range admitted {
			require.LessOrEqual(t, inWindowUpTo(a), 50)
		}
		for _, v := range rep.Violations {
			require.GreaterOrEqual(t, inWindowUpTo(v.At), 50, "a 51st at %v was none", v.At)
		}
		assert.Equal(t, 1500, len(admitted)+len(rep.Violations))
	})
}

// TestCountingAtSendingIsCaughtAtTheAnswerIsNot: one call a second, a second apart
// at sending and a second after the last answer.
func TestCountingAtSendingIsCaughtAtTheAnswerIsNot(t *testing.T) {
	for _, closed := range []bool{false, true} {
		for _, l := range []provider.Limit{
			{Max: 1, Per: "1s"},
			{Max: 1, Per: "1s", Algorithm: provider.LeakyBucket},
			{Max: 1, Per: "1s", Algorithm: provider.TokenBucket},
		} {
			p := Play{Limits: one(l), Go: uneven, Back: uneven, Closed: closed}
			served(t, p, func(t *testing.T, r *Referee, _ string) {
				send(t, r, 2, time.Second, 10*time.Minute)
				share := float64(r.Report("p").Violated) / 600
				assert.Greater(t, share, 0.3, l.Algorithm)
			})
			served(t, p, func(t *testing.T, r *Referee, url string) {
				for range 600 {
					do(t, r, "GET", url+"/a")
					time.Sleep(time.Second + 1)
				}
				assert.Zero(t, r.Report("p").Violated, l.Algorithm)
				assert.EqualValues(t, 600, r.Report("p").Answered)
			})
		}
	}
}

func TestLogForgetsWhatIsOlderThanItsWindow(t *testing.T) {
	var now time.Time
	j, err := newJudge(Play{Provider: named, Limits: one(provider.Limit{Max: 1000, Per: "10s"})}, func() time.Time { return now })
	require.NoError(t, err)
	now = time.Unix(1e9, 0)
	for range 180_000 {
		j.arrive(&call{Arrival: Arrival{Cost: requests(1)}})
		now = now.Add(20 * ms)
	}
	l := j.rules[0].counters[who{}].(*log)
	assert.Equal(t, 500, len(l.entries)-l.head, "10 s of them")
	assert.LessOrEqual(t, cap(l.entries), 4096)
	assert.Zero(t, j.report.Violated)
}

// BenchmarkArrive is one arrival of 50 a second under an hourly window.
func BenchmarkArrive(b *testing.B) {
	now := time.Unix(1e9, 0)
	limits := []provider.Limit{{Name: "rps", Max: 50, Per: "1s"}, {Name: "rph", Max: 180_000, Per: "1h"}, {Name: "bucket", Max: 50, Per: "1s", Algorithm: provider.TokenBucket}}
	j, err := newJudge(Play{Provider: named, Limits: limits}, func() time.Time { return now })
	require.NoError(b, err)
	cost := requests(1)
	b.ReportAllocs()
	for b.Loop() {
		c := &call{Arrival: Arrival{Cost: cost}}
		j.arrive(c)
		j.end(c, provider.OK)
		now = now.Add(20 * ms)
	}
	assert.Zero(b, j.report.Violated)
}

func TestBubbleEndsWithNothingLeft(t *testing.T) {
	// A bubble that leaves a goroutine behind is a failure by itself.
	synctest.Test(t, func(t *testing.T) {
		r, err := New(1, Play{Provider: named})
		require.NoError(t, err)
		r.Serve(Listen())
		send(t, r, 20, ms, 100*ms)
		r.Close()
		r.Serve(Listen()) // too late: closed at once
	})
}
