package referee

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

func TestCanceledRequestArrivesAllTheSame(t *testing.T) {
	p := Play{Limits: one(provider.Limit{Max: 1, Per: "1m"}), Go: Delay{50 * ms, 50 * ms}}
	served(t, p, func(t *testing.T, r *Referee, url string) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*ms)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, "GET", url+"/a", nil)
		_, err := r.Client().Do(req)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Zero(t, r.Report("p").Arrivals)
		time.Sleep(30 * ms)
		synctest.Wait()
		rep := r.Report("p")
		assert.EqualValues(t, 1, rep.Arrivals)
		assert.Zero(t, rep.Answered)
		status, _, _ := do(t, r, "GET", url+"/a")
		assert.Equal(t, 429, status)
	})
}

func TestInFlightUntilTheAnswerOrTheClientHasGone(t *testing.T) {
	p := Play{
		Limits: one(provider.Limit{Max: 1, Algorithm: provider.InFlight}),
		Back:   Delay{10 * ms, 10 * ms},
		Answer: func(a Arrival) Answer {
			return Answer{Hang: a.Request.URL.Query().Has("hang"), Delay: 90 * ms}
		},
	}
	served(t, p, func(t *testing.T, r *Referee, url string) {
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() { do(t, r, "GET", url+"/a") })
		time.Sleep(100*ms - 1)
		assert.False(t, r.Arrive("p", "", "", nil), "the answer is under way")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.True(t, r.Arrive("p", "", "", nil))

		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			req, _ := http.NewRequestWithContext(ctx, "GET", url+"/a?hang", nil)
			_, err := r.Client().Do(req)
			assert.ErrorIs(t, err, context.Canceled)
		})
		time.Sleep(time.Hour)
		assert.False(t, r.Arrive("p", "", "", nil))
		cancel()
		synctest.Wait()
		assert.True(t, r.Arrive("p", "", "", nil))
		assert.EqualValues(t, 2, r.Report("p").Violated)
		assert.EqualValues(t, 1, r.Report("p").Answered)
	})
}

// TestGoneBeforeItsHandlerKnows: a client that has gone is not in flight, even
// while its handler has not come to its end.
func TestGoneBeforeItsHandlerKnows(t *testing.T) {
	bubble(t, Play{Limits: one(provider.Limit{Max: 1, Algorithm: provider.InFlight})}, func(t *testing.T, r *Referee) {
		ctx, cancel := context.WithCancel(t.Context())
		j := r.judge("p")
		c := &call{Arrival: Arrival{Cost: requests(1)}, ctx: ctx}
		j.arrive(c)
		require.True(t, c.ok)
		assert.False(t, r.Arrive("p", "", "", nil))
		cancel()
		assert.True(t, r.Arrive("p", "", "", nil))
	})
}

func TestHangEndsWithClose(t *testing.T) {
	p := Play{Answer: func(a Arrival) Answer { return Answer{Hang: true} }}
	served(t, p, func(t *testing.T, r *Referee, url string) {
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				status, _, _ := do(t, r, "GET", url+"/a")
				assert.Zero(t, status)
			})
		}
		time.Sleep(24 * time.Hour)
		assert.Equal(t, 10, r.Report("p").InFlight)
		r.Close()
		wg.Wait()
		r.Close()
		status, _, _ := do(t, r, "GET", url+"/a")
		assert.Zero(t, status, "closed")
		assert.EqualValues(t, 10, r.Report("p").Arrivals)
	})
}

func TestDelayedCallsEndWithClose(t *testing.T) {
	p := Play{Go: Delay{time.Hour, time.Hour}}
	served(t, p, func(t *testing.T, r *Referee, url string) {
		var wg sync.WaitGroup
		wg.Go(func() { do(t, r, "GET", url+"/a") })
		time.Sleep(time.Minute)
		begin := time.Now()
		r.Close()
		wg.Wait()
		assert.Zero(t, time.Since(begin))
		assert.Zero(t, r.Report("p").Arrivals)
	})
}

func TestDrop(t *testing.T) {
	p := Play{
		Limits: one(provider.Limit{Max: 3, Per: "1m", Charges: []provider.Outcome{provider.OK}}),
		Answer: func(a Arrival) Answer {
			if a.Request.Method == "GET" {
				return Answer{}
			}
			return Answer{Drop: true, Delay: time.Second}
		},
	}
	served(t, p, func(t *testing.T, r *Referee, url string) {
		do(t, r, "GET", url+"/a")
		begin := time.Now()
		req, _ := http.NewRequestWithContext(t.Context(), "POST", url+"/a", strings.NewReader("x"))
		req.GetBody = nil // else net/http may send it again
		_, err := r.Client().Do(req)
		assert.ErrorIs(t, err, io.EOF)
		assert.Equal(t, time.Second, time.Since(begin))
		rep := r.Report("p")
		assert.Equal(t, []int64{2, 2, 1}, []int64{rep.Arrivals, rep.Admitted, rep.Answered})
		assert.True(t, r.Arrive("p", "", "", nil))
		assert.False(t, r.Arrive("p", "", "", nil), "a dropped call was not answered: charged")
	})
}

// TestDropOfAKeptConnectionArrivesTwice shows what net/http does by itself; who
// counts calls at RoundTrip counts one.
func TestDropOfAKeptConnectionArrivesTwice(t *testing.T) {
	p := Play{Answer: func(a Arrival) Answer { return Answer{Drop: a.N == 2} }}
	served(t, p, func(t *testing.T, r *Referee, url string) {
		do(t, r, "GET", url+"/a")
		status, _, _ := do(t, r, "GET", url+"/a")
		assert.Equal(t, 200, status)
		assert.EqualValues(t, 3, r.Report("p").Arrivals)
	})
}

func TestPanicInAnAnswerLeavesNothingInFlight(t *testing.T) {
	p := Play{
		Limits: one(provider.Limit{Max: 1, Algorithm: provider.InFlight}),
		Answer: func(a Arrival) Answer { panic(http.ErrAbortHandler) },
	}
	served(t, p, func(t *testing.T, r *Referee, url string) {
		status, _, _ := do(t, r, "GET", url+"/a")
		assert.Zero(t, status)
		assert.True(t, r.Arrive("p", "", "", nil))
		assert.Equal(t, 1, r.Report("p").InFlight)
	})
}

// TestCloseWaitsForHandlersOfOtherServers: Close ends calls whose connections are
// not its own, and waits until nothing of them is left.
func TestCloseWaitsForHandlersOfOtherServers(t *testing.T) {
	for name, a := range map[string]Answer{
		"hangs": {Hang: true}, "works": {Delay: time.Hour}, "drops": {Drop: true, Delay: time.Hour},
	} {
		bubble(t, Play{Answer: func(Arrival) Answer { return a }}, func(t *testing.T, r *Referee) {
			req, err := http.NewRequestWithContext(t.Context(), "GET", "/p/a", nil)
			require.NoError(t, err)
			aborted := func() {
				assert.PanicsWithValue(t, http.ErrAbortHandler, func() { r.ServeHTTP(httptest.NewRecorder(), req) }, name)
			}
			inFlight := func() int {
				j := r.judge("p")
				j.mu.Lock()
				defer j.mu.Unlock()
				return j.inFlight
			}
			for range 50 {
				go aborted()
			}
			time.Sleep(time.Minute)
			assert.Equal(t, 50, inFlight(), name)
			begin := time.Now()
			r.Close()
			assert.Zero(t, inFlight(), name)
			assert.Zero(t, time.Since(begin), name)
			aborted()
			assert.EqualValues(t, 50, r.Report("p").Arrivals)
		})
	}
}
