package coordinator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

// ways are what a network takes there and back, each drawn evenly and apart.
type ways struct{ out, back referee.Delay }

func between(from, to time.Duration) referee.Delay {
	return referee.Delay{Min: from * ms, Max: to * ms}
}

func (w ways) String() string { return fmt.Sprint(w.out, w.back) }

// least is what no round trip is below; mean is what they take on average.
func (w ways) least() time.Duration { return w.out.Min + w.back.Min }
func (w ways) mean() time.Duration {
	return (w.out.Min + w.out.Max + w.back.Min + w.back.Max) / 2
}

// far is a provider far away, and what it has seen.
type far struct {
	ways
	r     *referee.Referee
	short time.Time // from then on every fourth call finds a way there of no time; zero: none does

	mu  sync.Mutex
	rng *rand.Rand
}

func (f *far) draw(d referee.Delay) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return d.Min + time.Duration(f.rng.Int64N(int64(d.Max-d.Min)+1))
}

// send is a call on its way: it arrives though its caller may have gone.
func (f *far) send(ctx context.Context) error {
	out, back := f.draw(f.out), f.draw(f.back)
	if !f.short.IsZero() && time.Now().After(f.short) && f.draw(referee.Delay{Max: 3}) == 0 {
		out = 0
	}
	o, err := onItsWay(ctx, out, back, func() provider.Outcome {
		o := provider.OK
		leave, ok := f.r.Enter("p", "", "", nil)
		if !ok {
			o = provider.RateLimited
		}
		leave(o)
		return o
	})
	if err != nil || o == provider.OK {
		return err
	}
	return provider.Feedback{Outcome: o, RetryAfter: 1}.Err(nil) // it insists: one violation is no excuse
}

// over runs f with a coordinator of p, which has a network in between.
func over(t *testing.T, w ways, p provider.Provider, play referee.Play, f func(t *testing.T, c *coordinator.Coordinator, x *far)) {
	t.Helper()
	p.Breaker.Off = true
	p.Throttle.MaxQueue, p.Throttle.MaxWait = 1<<20, provider.Forever
	play.Provider, play.Closed = p, true
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		r, err := referee.New(1, play)
		require.NoError(t, err)
		defer r.Close()
		f(t, c, &far{ways: w, r: r, rng: rand.New(rand.NewPCG(5, 0))})
		time.Sleep(time.Minute) // what is on its way arrives
	}, p)
}

// steady has more callers than can ever go at once, for a time; one call in so many is
// given up as it is out. It returns how many arrived in that time.
func (f *far) steady(t *testing.T, c *coordinator.Coordinator, callers int, length time.Duration, givesUp int) int64 {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				one, cancel := context.WithCancel(t.Context())
				if givesUp > 0 && n%givesUp == 0 {
					time.AfterFunc(length/100, cancel)
				}
				over := context.AfterFunc(ctx, cancel)
				_ = c.Do(one, to, f.send)
				over()
				cancel()
			}
		})
	}
	<-ctx.Done()
	n := f.r.Report("p").Arrivals
	all.Wait()
	return n
}

var networks = []ways{
	{between(10, 100), between(10, 100)},
	{between(20, 300), between(20, 300)},
	{between(5, 100), between(100, 300)},
	{between(150, 200), between(5, 80)},
	{between(100, 100), between(100, 100)},
}

// What no round trip is below need not be waited for twice: nothing more is refused, by
// any way of counting, and W/(W + round trip − least) of the rate gets through.
func TestLeastRoundTripIsNotWaitedForTwice(t *testing.T) {
	rows := []struct {
		limit provider.Limit
		pace  time.Duration // what the round trip adds to: the window, or how long a whole bucket takes to fill
		play  referee.Play  // how the provider counts where that is otherwise
	}{
		{limit: provider.Limit{Max: 50, Per: "1s"}, pace: second},
		{limit: provider.Limit{Max: 1, Per: "1s"}, pace: second},
		{limit: provider.Limit{Max: 4, Per: "10s"}, pace: 10 * second},
		{limit: provider.Limit{Max: 1500, Per: "10s"}, pace: 10 * second}, // in slots
		{limit: provider.Limit{Max: 50, Per: "1s", Algorithm: provider.LeakyBucket}, pace: second},
		{limit: provider.Limit{Max: 1, Per: "1s", Algorithm: provider.LeakyBucket}, pace: second},
		{limit: provider.Limit{Max: 50, Per: "1s", Algorithm: provider.TokenBucket}, pace: second},
		{limit: provider.Limit{Max: 600, Per: "1m", Burst: 50, Algorithm: provider.GCRA}, pace: 5 * second},
		{limit: provider.Limit{Max: 3, Per: "1s", Burst: 1, Algorithm: provider.TokenBucket}, pace: second / 3},
		{limit: provider.Limit{Max: 50, Per: "1s"}, pace: second, play: referee.Play{Phase: 370 * ms, Limits: []provider.Limit{{Name: "l", Max: 50, Per: "1s", Algorithm: provider.FixedWindow}}}},
		{limit: provider.Limit{Max: 1, Per: "1s"}, pace: second, play: referee.Play{Phase: 610 * ms, Limits: []provider.Limit{{Name: "l", Max: 1, Per: "1s", Algorithm: provider.FixedWindow}}}},
	}
	for _, row := range rows {
		for _, w := range networks {
			row.limit.Name = "l"
			t.Run(fmt.Sprintf("%s %d per %s burst %d %v %v", row.limit.Algorithm, row.limit.Max, row.limit.Per, row.limit.Burst, w, row.play.Phase), func(t *testing.T) {
				p := once(provider.Throttle{LeastRoundTrip: w.least(), Limits: []provider.Limit{row.limit}})
				over(t, w, p, row.play, func(t *testing.T, c *coordinator.Coordinator, x *far) {
					per, _ := row.limit.Per.Duration()
					length := max(60*per, 200*row.pace)
					if raceEnabled {
						length /= 4
					}
					if row.limit.Max > 1000 {
						length /= 10
					}
					n := x.steady(t, c, int(row.limit.Max)*2+8, length, 0)
					report := x.r.Report("p")
					assert.Zero(t, report.Violated, "%+v", report.Violations)
					ideal := float64(row.limit.Max) * float64(length) / float64(per) * float64(row.pace) / float64(row.pace+w.mean()-w.least())
					assert.GreaterOrEqual(t, float64(n), 0.98*ideal, "%.3f", float64(n)/ideal)
					s := state(t, c)
					assert.Equal(t, w.least(), s.LeastRoundTrip)
					assert.False(t, s.LeastRoundTripRefuted)
				})
			})
		}
	}
}

// Where it would not be right it changes nothing: windows that follow the clock begin
// for us when they do, a slot is free at the answer, and what counts as it is sent counts
// so already.
func TestLeastRoundTripLeavesTheRestAsItIs(t *testing.T) {
	rows := map[string]provider.Limit{
		"fixed":    {Max: 10, Per: "1s", Algorithm: provider.FixedWindow},
		"one":      {Max: 1, Per: "1s", Algorithm: provider.FixedWindow},
		"calendar": {Max: 20, Per: provider.Minute},
		"counter":  {Max: 30, Per: "1s", Algorithm: provider.SlidingWindowCounter},
		"cap":      {Max: 3, Algorithm: provider.InFlight},
		"sent":     {Max: 5, Per: "1s", Counted: provider.CountedSent},
	}
	for name, l := range rows {
		l.Name = "l"
		went := func(least time.Duration) (at []time.Duration) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				time.Sleep(time.Minute - 350*ms - time.Duration(time.Now().UnixNano())%time.Minute)
				at = calls(t, c, 70, to, 450*ms)
			}, once(provider.Throttle{LeastRoundTrip: least, MaxWait: provider.Forever, Limits: []provider.Limit{l}}))
			return at
		}
		assert.Equal(t, went(0), went(400*ms), name)
		if l.Counted != "" {
			continue // what is refused then is its price
		}
		for _, w := range networks {
			t.Run(fmt.Sprint(name, w), func(t *testing.T) {
				over(t, w, once(provider.Throttle{LeastRoundTrip: w.least(), Limits: []provider.Limit{l}}), referee.Play{}, func(t *testing.T, c *coordinator.Coordinator, x *far) {
					per, _ := l.Per.Duration()
					x.steady(t, c, int(l.Max)+8, max(100*second, 15*per), 0)
					report := x.r.Report("p")
					assert.Zero(t, report.Violated, "%+v", report.Violations)
				})
			})
		}
	}
}

// Beside other limits, in bursts, and with calls that are given up on their way.
func TestLeastRoundTripBesideOtherLimits(t *testing.T) {
	th := provider.Throttle{MaxInFlight: 7, Limits: []provider.Limit{
		{Name: "second", Max: 6, Per: "1s"}, {Name: "ten", Max: 40, Per: "10s", Algorithm: provider.FixedWindow},
		{Name: "bucket", Max: 5, Per: "1s", Burst: 9, Algorithm: provider.TokenBucket}, {Name: "counter", Max: 45, Per: "9s", Algorithm: provider.SlidingWindowCounter},
		{Name: "pace", Max: 20, Per: "2s", Algorithm: provider.LeakyBucket},
	}}
	for _, w := range networks {
		t.Run(w.String(), func(t *testing.T) {
			th.LeastRoundTrip = w.least()
			over(t, w, once(th), referee.Play{}, func(t *testing.T, c *coordinator.Coordinator, x *far) {
				for range 20 {
					x.steady(t, c, 15, 7*second, 5)
					time.Sleep(x.draw(between(0, 13_000)))
				}
				report := x.r.Report("p")
				assert.Zero(t, report.Violated, "%+v", report.Violations)
				assert.Greater(t, report.Arrivals, int64(400))
			})
		})
	}
}

// The same under everything that a storm has: keys, endpoints, costs, estimates, caps.
func TestStormsFarAway(t *testing.T) {
	for _, x := range [][2]time.Duration{{150 * ms, 150 * ms}, {5 * ms, 300 * ms}, {140 * ms, 5 * ms}} {
		t.Run(fmt.Sprint(x), func(t *testing.T) {
			stormsFarAway(t, size(60, 12), 300, true, 0, x[0], x[1])
			stormsFarAway(t, size(30, 6), 300, false, 2, x[0], x[1])
		})
	}
}
