package coordinator_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

var jitter = referee.Delay{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond}

// answer is the error of an answer that is not a success.
type answer struct{ status int }

func (a answer) Error() string   { return fmt.Sprint("status ", a.status) }
func (a answer) StatusCode() int { return a.status }

// fetch makes one request over HTTP.
func fetch(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return answer{res.StatusCode}
	}
	return nil
}

// play runs callers against a played provider for a time. It returns what the
// referee saw, how many calls it admitted within that time (those who wait at its
// end come later), and how many were refused by us.
func play(t *testing.T, p provider.Provider, callers int, length time.Duration, enforce []provider.Limit) (report referee.Report, admitted, refusals int64) {
	t.Helper()
	var refused atomic.Int64
	synctest.Test(t, func(t *testing.T) {
		r, err := referee.New(1, referee.Play{Provider: p, Limits: enforce, Go: jitter, Back: jitter})
		require.NoError(t, err)
		defer r.Close()
		r.Serve(referee.Listen())
		client, url := r.Client(), r.URL(p.Slug)
		c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{p}})
		require.NoError(t, err)
		end := time.Now().Add(length)
		time.AfterFunc(length, func() { admitted = r.Report(p.Slug).Admitted })
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				call := coordinator.Call{Provider: p.Slug, Flow: fmt.Sprint(i % 5)}
				for time.Now().Before(end) {
					err := c.Do(t.Context(), call, func(ctx context.Context) error { return fetch(ctx, client, url) })
					if err != nil {
						refused.Add(1)
					}
				}
			})
		}
		wg.Wait()
		require.NoError(t, c.Shutdown(t.Context()))
		report = r.Report(p.Slug)
	})
	return report, admitted, refused.Load()
}

// possible is how many calls N per W admits in a time when each is held for a
// mean round trip.
func possible(n int64, w, trip, length time.Duration) float64 {
	return float64(n) * float64(length) / float64(w+trip)
}

const meanTrip = 110 * time.Millisecond // twice the mean of jitter

// An hour of 200 callers at 50 a second, over real HTTP in virtual time.
func TestHourWithoutARefusal(t *testing.T) {
	length := time.Hour
	if testing.Short() || raceEnabled {
		length = 2 * time.Minute // the same, as the race detector makes it ten times as slow
	}
	report, admitted, refused := play(t, once(provider.Throttle{RPS: 50}), 200, length, nil)
	assert.Zero(t, report.Violated, report.Violations)
	assert.Zero(t, refused)
	assert.Equal(t, report.Arrivals, report.Answered, "all answered")
	used := float64(admitted) / possible(50, time.Second, meanTrip, length)
	t.Logf("violations: %d  utilisation: %.4f of what is possible  answered: %d of %d", report.Violated, used, report.Answered, report.Arrivals)
	assert.GreaterOrEqual(t, used, 0.98)
}

// The referee is a judge: it counts what a limiter that counts at sending does.
func TestRefereeDoesCountViolations(t *testing.T) {
	sent := limits(provider.Limit{Name: "rps", Max: 50, Per: "1s", Counted: provider.CountedSent})
	bucket := provider.Throttle{RPS: 50, Burst: 50, Algorithm: provider.TokenBucket}
	window := []provider.Limit{{Name: "rps", Max: 50, Per: "1s"}}
	for name, throttle := range map[string]provider.Throttle{"counted: sent": sent, "token bucket of burst 50": bucket} {
		t.Run(name, func(t *testing.T) {
			p := once(throttle)
			p.Breaker.Off, p.Throttle.Penalty = true, time.Millisecond
			report, _, refused := play(t, p, 200, 30*time.Second, window)
			assert.Positive(t, report.Violated)
			assert.Positive(t, refused)
		})
	}
}

// Every algorithm, at a provider that enforces exactly that.
func TestEveryAlgorithmWithoutARefusal(t *testing.T) {
	for _, test := range []struct {
		throttle provider.Throttle
		n        int64
		w        time.Duration
	}{
		{provider.Throttle{RPS: 50}, 50, time.Second},
		{provider.Throttle{RPS: 1}, 1, time.Second},
		{provider.Throttle{RPM: 60, Burst: 10}, 60, time.Minute},
		{provider.Throttle{RPS: 20, Algorithm: provider.LeakyBucket}, 20, time.Second},
		{provider.Throttle{RPS: 1, RPM: 30, Burst: 3, Algorithm: provider.LeakyBucket}, 30, time.Minute},
		{provider.Throttle{RPM: 600, Burst: 50, Algorithm: provider.TokenBucket}, 600, time.Minute},
		{provider.Throttle{RPS: 5, Burst: 1, Algorithm: provider.TokenBucket}, 0, 0},
		{provider.Throttle{RPM: 100, Algorithm: provider.FixedWindow}, 100, time.Minute},
		{provider.Throttle{RPM: 100, Algorithm: provider.SlidingWindowCounter}, 0, 0},
		{provider.Throttle{RPS: 10, RPM: 100, RPD: 5000}, 100, time.Minute},
		{provider.Throttle{RPS: 30, MaxInFlight: 3}, 0, 0},
	} {
		t.Run(fmt.Sprintf("%+v", test.throttle.Algorithm)+fmt.Sprint(test.throttle.RPS, test.throttle.RPM), func(t *testing.T) {
			length := 5 * time.Minute
			report, admitted, refused := play(t, once(test.throttle), 120, length, nil)
			assert.Zero(t, report.Violated, report.Violations)
			assert.Zero(t, refused)
			assert.Equal(t, report.Arrivals, report.Answered)
			if test.n > 0 {
				most := math.Floor(possible(test.n, test.w, meanTrip, length))
				t.Logf("%d of %.0f", admitted, most)
				assert.GreaterOrEqual(t, float64(admitted), 0.98*most-1)
			}
		})
	}
}

// As the field's own tables say: never two in one second nor 31 in one minute.
func TestShodanAsTheRefereeCounts(t *testing.T) {
	shodan := once(provider.Throttle{RPS: 1, RPM: 30, Burst: 3, Algorithm: provider.LeakyBucket})
	report, admitted, _ := play(t, shodan, 50, 10*time.Minute, []provider.Limit{
		{Name: "second", Max: 1, Per: "1s"}, {Name: "minute", Max: 30, Per: "1m"},
	})
	assert.Zero(t, report.Violated, report.Violations)
	assert.GreaterOrEqual(t, admitted, int64(290))
}

// The same in real time, on loopback: a smoke test.
func TestLoopback(t *testing.T) {
	p := once(provider.Throttle{RPS: 50})
	delay := referee.Delay{Max: 20 * time.Millisecond}
	r, err := referee.New(1, referee.Play{Provider: p, Go: delay, Back: delay})
	require.NoError(t, err)
	defer r.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.Serve(l)
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{p}})
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	for range 120 {
		wg.Go(func() {
			assert.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p"}, func(ctx context.Context) error {
				return fetch(ctx, client, r.URL("p"))
			}))
		})
	}
	wg.Wait()
	report := r.Report("p")
	assert.Zero(t, report.Violated, report.Violations)
	assert.EqualValues(t, 120, report.Answered)
}
