package coordinator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

// A storm is a random declaration under random calls: keys, endpoints, flows,
// priorities, costs, cancellations, forgotten and failing calls, pauses, updates.
type storm struct {
	rng    *rand.Rand
	mu     sync.Mutex
	c      *coordinator.Coordinator
	r      *referee.Referee
	p      provider.Provider
	ended  int
	strict bool // nothing is sent that the provider answers with a failure

	out, back time.Duration // that each way takes at the least
}

func (s *storm) n(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(n)
}

func (s *storm) ms(n int) time.Duration { return time.Duration(s.n(n*1000)) * time.Microsecond }

// anyLimits draws what a provider declares.
func (s *storm) anyLimits() []provider.Limit {
	scopes := []string{provider.ScopeProvider, provider.ScopeKey, provider.ScopeEndpoint, provider.ScopeKeyEndpoint}
	algorithms := []provider.Algorithm{provider.SlidingWindow, provider.TokenBucket, provider.LeakyBucket,
		provider.FixedWindow, provider.SlidingWindowCounter}
	var ls []provider.Limit
	for i := range 1 + s.n(4) {
		l := provider.Limit{Name: fmt.Sprint("l", i), Max: int64(3 + s.n(20)), Per: provider.Period(fmt.Sprint(200+s.n(3000), "ms")),
			Scope: scopes[s.n(len(scopes))], Algorithm: algorithms[s.n(len(algorithms))]}
		switch s.n(5) {
		case 0:
			l.Unit, l.Max = provider.Tokens, int64(20+s.n(100))
		case 1:
			l.Endpoints = []string{"a"}
		case 2:
			l.Charges = []provider.Outcome{provider.OK}
		}
		ls = append(ls, l)
	}
	if s.n(2) == 0 {
		ls = append(ls, provider.Limit{Name: "cap", Max: int64(1 + s.n(6)), Algorithm: provider.InFlight, Scope: scopes[s.n(len(scopes))]})
	}
	return ls
}

func (s *storm) call() coordinator.Call {
	c := coordinator.Call{Provider: "p", Flow: fmt.Sprint(s.n(3)), Priority: coordinator.Priority(s.n(3) - 1),
		Endpoint: []string{"", "a", "b", "c"}[s.n(4)], Key: []string{"", "k", "l", "m"}[s.n(4)]}
	if n := len(s.p.Auth.Env); n > 0 && s.n(3) > 0 {
		c.Key = "" // any
	} else if n > 0 {
		c.Key = s.p.Auth.Env[s.n(n)]
	}
	switch s.n(4) {
	case 0:
		c.Cost = map[string]int64{provider.Tokens: int64(1 + s.n(15))}
	case 1:
		c.Cost = map[string]int64{provider.Requests: int64(1 + s.n(3)), provider.Tokens: 2}
	}
	return c
}

// attempt is a call on its way: it arrives even where its caller has gone.
func (s *storm) attempt(ctx context.Context, call coordinator.Call) error {
	ls, _ := coordinator.LeaseFrom(ctx)
	if s.n(20) == 0 {
		ls.Forget()
		return context.Canceled
	}
	ls.Sent()
	there, back := s.out+s.ms(100), s.back+s.ms(100)
	o, err := onItsWay(ctx, there, back, func() provider.Outcome {
		leave, ok := s.r.Enter("p", call.Endpoint, ls.Key(), call.Cost)
		o := provider.OK
		switch {
		case !ok:
			o = provider.RateLimited
		case !s.strict && s.n(15) == 0:
			o = []provider.Outcome{provider.RateLimited, provider.Failed, provider.Unauthorized, provider.Banned, provider.QuotaSpent}[s.n(5)]
		case s.n(10) == 0:
			o = provider.Rejected
		}
		leave(o)
		return o
	})
	if err != nil || o == provider.OK {
		return err
	}
	return provider.Feedback{Outcome: o, RetryAfter: s.ms(300)}.Err(nil)
}

func (s *storm) run(t *testing.T, calls int) {
	var wg sync.WaitGroup
	for range calls {
		call := s.call()
		ctx, cancel := context.WithCancel(t.Context())
		if s.n(3) == 0 {
			time.AfterFunc(s.ms(3000), cancel)
		}
		wg.Go(func() {
			defer cancel()
			_ = s.c.Do(ctx, call, func(ctx context.Context) error { return s.attempt(ctx, call) })
			s.mu.Lock()
			s.ended++
			s.mu.Unlock()
		})
		time.Sleep(s.ms(20))
		if s.n(10) == 0 {
			synctest.Wait()
			require.Zero(t, s.c.Overlooked("p"), "a call that could go waits")
		}
		if !s.strict && s.n(100) == 0 {
			require.NoError(t, s.c.Resume("p"))
		}
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for range 10_000 {
		select {
		case <-done:
			return
		case <-time.After(s.ms(400)):
			synctest.Wait()
			require.Zero(t, s.c.Overlooked("p"), "a call that could go waits")
		}
	}
	t.Fatalf("calls are stuck: %+v", state(t, s.c))
}

// storms runs n storms; of a provider that has so many keys, of which a call that
// pins none takes any.
func storms(t *testing.T, n, calls int, strict bool, keys int) {
	t.Helper()
	stormsFarAway(t, n, calls, strict, keys, 0, 0)
}

// stormsFarAway runs them at a provider of which it is known how far away it is.
func stormsFarAway(t *testing.T, n, calls int, strict bool, keys int, out, back time.Duration) {
	for seed := range uint64(n) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &storm{rng: rand.New(rand.NewPCG(seed, 7)), strict: strict, out: out, back: back}
				s.p = once(provider.Throttle{Limits: s.anyLimits(), MaxQueue: 10_000, MaxWait: provider.Forever, Penalty: 100 * time.Millisecond, LeastRoundTrip: out + back})
				s.p.Endpoints = []provider.Endpoint{{Name: "a"}, {Name: "b"}, {Name: "c"}}
				if keys > 0 {
					s.p.Auth = provider.Auth{Kind: "header", Name: "Key", Env: []string{"k", "l", "m"}[:keys]}
				}
				s.p.Breaker = provider.Breaker{Failures: 3, Cooldown: time.Second}
				var err error
				s.r, err = referee.New(seed, referee.Play{Provider: s.p})
				require.NoError(t, err)
				defer s.r.Close()
				s.c, err = coordinator.New(coordinator.Config{Providers: []provider.Provider{s.p}})
				require.NoError(t, err)
				s.run(t, calls)
				report := s.r.Report("p")
				assert.Zero(t, report.Violated, "%+v\n%+v", s.p.Throttle.Limits, report.Violations)
				assert.Equal(t, calls, s.ended)
				require.NoError(t, s.c.Shutdown(t.Context()))
				end := state(t, s.c)
				assert.Zero(t, end.InFlight)
				assert.Zero(t, end.Queue.Length)
				time.Sleep(time.Minute) // all windows are over: nothing may stay charged
				for _, l := range state(t, s.c).Limits {
					assert.Zero(t, l.Used+l.Held, l)
				}
			})
		})
	}
}

func size(long, short int) int {
	if testing.Short() || raceEnabled {
		return short
	}
	return long
}

// Never a violation, and no call that could go waits, whatever is declared and
// whoever leaves.
func TestStorms(t *testing.T) { storms(t, size(300, 60), 400, true, 0) }

// The same with pauses, breaker and failures.
func TestStormsWithFailures(t *testing.T) { storms(t, size(300, 60), 400, false, 0) }

// The same with pools of keys.
func TestStormsOverSeveralKeys(t *testing.T) {
	storms(t, size(200, 40), 400, true, 3)
	storms(t, size(200, 40), 400, false, 2)
}
