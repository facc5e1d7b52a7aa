package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/transport"
)

// street is one coordinator that lives as long as the test, in real time, between real
// sockets: callers that never stop, and keys that never come twice.
type street struct {
	ref    *referee.Referee
	c      *coordinator.Coordinator
	client *http.Client
	ps     []provider.Provider
	asked  atomic.Int64
	heard  [3]atomic.Int64 // answers, refusals of ours, broken ones
}

const (
	callers = 24
	brief   = 3 * time.Second // of a short run
)

func newStreet(t *testing.T) *street {
	s := &street{}
	plays := make([]referee.Play, 2)
	for i := range plays {
		p := provider.Provider{
			Slug: fmt.Sprint("s", i), Category: "x", Timeout: 2 * time.Second,
			Endpoints: []provider.Endpoint{{Name: "a", Method: http.MethodPost, Path: "/a"}, {Name: "b", Method: http.MethodPost, Path: "/b"}},
			Breaker:   provider.Breaker{Failures: 3, Cooldown: 200 * time.Millisecond},
			Throttle: provider.Throttle{MaxWait: 2 * time.Second, Penalty: 20 * time.Millisecond, Limits: []provider.Limit{
				{Name: "second", Max: int64(60 + 40*i), Per: "1s"},
				{Name: "tenth", Max: 15, Per: "100ms", Algorithm: []provider.Algorithm{provider.TokenBucket, provider.FixedWindow}[i]},
				{Name: "a", Max: 30, Per: "1s", Endpoints: []string{"a"}},
			}},
		}
		delay := referee.Delay{Max: 20 * time.Millisecond}
		plays[i] = referee.Play{Provider: p, Answer: moody, Go: delay, Back: delay, Limits: p.Throttle.Limits}
		// Ours alone: keys without number are no referee's business.
		p.Throttle.Limits = append(p.Throttle.Limits, provider.Limit{Name: "key", Max: 2, Per: "200ms", Scope: provider.ScopeKey, Basis: provider.BasisPacing})
		s.ps = append(s.ps, p)
	}
	var err error
	s.ref, err = referee.New(*first, plays...)
	require.NoError(t, err)
	t.Cleanup(s.ref.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.ref.Serve(l)
	for i := range s.ps {
		s.ps[i].BaseURL = s.ref.URL(s.ps[i].Slug)
	}
	s.c, err = coordinator.New(coordinator.Config{Providers: s.ps, Pools: map[string]int{"x": 16}})
	require.NoError(t, err)
	base := &http.Transport{MaxIdleConnsPerHost: callers}
	t.Cleanup(base.CloseIdleConnections)
	through, err := transport.New(s.c, base)
	require.NoError(t, err)
	s.client = &http.Client{Transport: through}
	return s
}

// moody answers as the request's X-Mood asks. A request that its caller gives up
// before it has arrived is left out: on a busy machine nobody knows how late it is.
func moody(a referee.Arrival) referee.Answer {
	switch a.Request.Header.Get("X-Mood") {
	case "hang":
		return referee.Answer{Hang: true}
	case "drop":
		return referee.Answer{Drop: true}
	case "failed":
		return referee.Answer{Status: http.StatusBadGateway}
	case "refused":
		return referee.Answer{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"0.05"}}}
	}
	return referee.Answer{}
}

// ask makes one request: a POST, which net/http never sends again by itself.
func (s *street) ask(ctx context.Context, rng *rand.Rand) error {
	call := coordinator.Call{Key: fmt.Sprint(rng.Uint64()), Flow: fmt.Sprint(rng.IntN(3)), Priority: coordinator.Priority(rng.IntN(3) - 1)}
	if rng.IntN(5) == 0 {
		call.Wait = time.Duration(rng.IntN(100)) * time.Millisecond
	}
	url := s.ps[rng.IntN(len(s.ps))].BaseURL + pick(rng, "/a", "/b", "/other")
	req, err := http.NewRequestWithContext(transport.WithCall(ctx, call), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	if n := rng.IntN(200); n < 8 {
		req.Header.Set("X-Mood", []string{"hang", "drop", "drop", "failed", "failed", "failed", "refused", "refused"}[n])
	}
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	if rng.IntN(4) > 0 {
		_, _ = io.Copy(io.Discard, res.Body) // the rest is left unread, as a caller may
	}
	return res.Body.Close()
}

func (s *street) caller(ctx context.Context, seed uint64) {
	rng := rand.New(rand.NewPCG(*first, seed))
	for ctx.Err() == nil {
		s.asked.Add(1)
		err := s.ask(context.Background(), rng)
		var e *coordinator.Error
		switch {
		case err == nil:
			s.heard[0].Add(1)
		case errors.As(err, &e):
			s.heard[1].Add(1)
			select { // who is refused comes back later
			case <-time.After(min(max(e.RetryAfter, time.Millisecond), 50*time.Millisecond)):
			case <-ctx.Done():
			}
		default:
			s.heard[2].Add(1)
		}
	}
}

// TestSockets is the soak in real time.
func TestSockets(t *testing.T) {
	long := brief
	if *length > 0 {
		t.Parallel()
		long = *length
	}
	s := newStreet(t)
	ctx, stop := context.WithTimeout(t.Context(), long)
	defer stop()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() { s.caller(ctx, uint64(i)) })
	}
	rng, keys, beat := rand.New(rand.NewPCG(*first, 99)), 0, time.NewTicker(100*time.Millisecond)
	defer beat.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-beat.C:
			keys = max(keys, s.look(t, rng))
		}
	}
	all.Wait()
	tell(t, "%d asked: %d answered, %d refused by us, %d broken; at most %d keys known at once", s.asked.Load(), s.heard[0].Load(), s.heard[1].Load(), s.heard[2].Load(), keys)
	s.over(t)
}

// look is what happens besides, ten times a second. It returns how many keys are known.
func (s *street) look(t *testing.T, rng *rand.Rand) (keys int) {
	p := s.ps[rng.IntN(len(s.ps))]
	switch rng.IntN(8) {
	case 0:
		th := p.Clone().Throttle
		th.Limits[0].Max = 20 + rng.Int64N(th.Limits[0].Max-20)
		th.MaxQueue, th.Excess = 1+rng.IntN(100), pick(rng, provider.Queue, provider.Delay, provider.Reject)
		assert.NoError(t, s.c.Update(p.Slug, th))
	case 1:
		_ = s.c.Pause(p.Slug, time.Now().Add(50*time.Millisecond), "soak") // on a busy machine that instant may be over before it is read
	case 2:
		assert.NoError(t, s.c.Resume(p.Slug))
	}
	for _, st := range s.c.States() {
		keys = max(keys, st.KeyCount)
		assert.Less(t, st.KeyCount, 5000, "%s: keys are never forgotten", st.Provider)
		assert.LessOrEqual(t, st.InFlight, 16, "%s: more than the pool", st.Provider)
		report := s.ref.Report(st.Provider)
		require.Zero(t, report.Violated, "%+v", report.Violations)
	}
	assert.Less(t, runtime.NumGoroutine(), 40*callers, "goroutines grow")
	return keys
}

// over is the end: everything is given back, and asked again it answers.
func (s *street) over(t *testing.T) {
	assert.Equal(t, s.asked.Load(), s.heard[0].Load()+s.heard[1].Load()+s.heard[2].Load())
	assert.Greater(t, s.heard[0].Load(), int64(50), "nothing was answered")
	assert.Positive(t, s.heard[1].Load())
	for _, p := range s.ps {
		require.NoError(t, s.c.Update(p.Slug, p.Throttle))
		require.NoError(t, s.c.Resume(p.Slug))
		require.Eventually(t, func() bool {
			st, err := s.c.State(p.Slug)
			held := st.InFlight + st.Queue.Length + st.Lingering + st.Pools[0].Used
			for _, l := range limitsOf(st) {
				held += int(l.Used + l.Held)
			}
			return err == nil && held == 0
		}, 30*time.Second, 10*time.Millisecond, "%s: something stays taken: %+v", p.Slug, s.c.States())
		err := s.c.Do(t.Context(), coordinator.Call{Provider: p.Slug, Wait: time.Minute}, func(context.Context) error { return nil })
		assert.NoError(t, err, p.Slug)
		st, err := s.c.State(p.Slug)
		require.NoError(t, err)
		var answered int64
		for _, n := range st.Outcomes {
			answered += n
		}
		assert.Equal(t, st.Granted, answered, "%s: attempts that went, and outcomes", p.Slug)
		report := s.ref.Report(p.Slug)
		assert.Zero(t, report.Violated, "%+v", report.Violations)
		assert.LessOrEqual(t, report.Arrivals, st.Granted, "%s: more arrived than went", p.Slug)
	}
	require.NoError(t, s.c.Shutdown(t.Context()))
}
