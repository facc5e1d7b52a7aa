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
	"github.com/headgate/headgate/provider"
)

// chaos is everything at once: pools of keys and pools over providers, calls that pin
// a key and calls that do not, nested in one another, held, forgotten, released late,
// answered in every way, while declarations change and pauses come and go.
type chaos struct {
	rng    *rand.Rand // of the test's goroutine alone
	c      *coordinator.Coordinator
	ps     []provider.Provider
	nested bool
	all    sync.WaitGroup
}

func newChaos(t *testing.T, seed uint64) *chaos {
	x := &chaos{rng: rand.New(rand.NewPCG(seed, 99))}
	sizes := map[string]int{"x": 1 + x.rng.IntN(3), "y": 1 + x.rng.IntN(3), "": 1 + x.rng.IntN(5)}
	for i := range 6 {
		p := provider.Provider{Slug: fmt.Sprint("p", i), Category: []string{"x", "y", ""}[i%3], Throttle: x.throttle()}
		if x.rng.IntN(3) > 0 {
			p.Auth = provider.Auth{Kind: "header", Name: "K", Env: []string{"A", "B", "C"}}
		}
		p.Breaker.Off = x.rng.IntN(2) == 0
		x.ps = append(x.ps, p)
	}
	x.nested = x.rng.IntN(2) == 0
	var err error
	x.c, err = coordinator.New(pooledConfig(sizes, x.ps...))
	require.NoError(t, err)
	return x
}

func (x *chaos) ms(n int) time.Duration { return time.Duration(x.rng.IntN(n)) * time.Millisecond }

func (x *chaos) per() provider.Period { return provider.Period(fmt.Sprint(100+x.rng.IntN(900), "ms")) }

func (x *chaos) throttle() provider.Throttle {
	th := provider.Throttle{MaxInFlight: x.rng.IntN(4), MaxWait: provider.Forever, MaxQueue: 10000, Penalty: 50 * time.Millisecond}
	if x.rng.IntN(2) == 0 {
		algorithms := []provider.Algorithm{provider.SlidingWindow, provider.TokenBucket, provider.LeakyBucket}
		th.Limits = append(th.Limits, provider.Limit{Name: "k", Max: 1 + x.rng.Int64N(5), Per: x.per(), Scope: provider.ScopeKey, Algorithm: algorithms[x.rng.IntN(3)]})
	}
	if x.rng.IntN(2) == 0 {
		th.Limits = append(th.Limits, provider.Limit{Name: "s", Max: 1 + x.rng.Int64N(5), Per: x.per()})
	}
	if x.rng.IntN(3) == 0 {
		th.Limits = append(th.Limits, provider.Limit{Name: "kf", Max: 1 + x.rng.Int64N(2), Algorithm: provider.InFlight, Scope: provider.ScopeKey})
	}
	return th
}

// ride is one call, drawn before it starts.
type ride struct {
	call    coordinator.Call
	into    string // the provider of the call that it makes itself
	f       provider.Feedback
	takes   time.Duration
	kind, n int
	giveUp  time.Duration // 0: never
}

func (x *chaos) draw() ride {
	p := x.ps[x.rng.IntN(len(x.ps))]
	outcomes := []provider.Outcome{provider.OK, provider.OK, provider.OK, provider.OK, provider.OK, provider.Unauthorized, provider.QuotaSpent,
		provider.RateLimited, provider.Failed, provider.Banned, provider.Canceled, provider.Overloaded}
	r := ride{
		call: coordinator.Call{Provider: p.Slug, Flow: fmt.Sprint(x.rng.IntN(3)), Priority: coordinator.Priority(x.rng.IntN(3) - 1), Replayable: x.rng.IntN(2) == 0},
		into: x.ps[x.rng.IntN(len(x.ps))].Slug, takes: x.ms(300), kind: x.rng.IntN(6), n: x.rng.IntN(5),
		f: provider.Feedback{Outcome: outcomes[x.rng.IntN(len(outcomes))], RetryAfter: time.Duration(x.rng.IntN(3)) * x.ms(1000),
			Scope: []string{"", provider.ScopeKey, provider.ScopeProvider}[x.rng.IntN(3)]},
	}
	if len(p.Auth.Env) > 0 && x.rng.IntN(3) == 0 {
		r.call.Key = p.Auth.Env[x.rng.IntN(3)]
	}
	if x.rng.IntN(6) == 0 {
		r.call.Wait = x.ms(2000) - 200*time.Millisecond
	}
	if x.rng.IntN(3) == 0 {
		r.giveUp = x.ms(3000) + 1
	}
	return r
}

func (x *chaos) start(ctx context.Context, r ride) {
	ctx, cancel := context.WithCancel(ctx)
	if r.giveUp > 0 {
		time.AfterFunc(r.giveUp, cancel)
	}
	x.all.Go(func() {
		defer cancel()
		if r.kind == 0 {
			x.lease(ctx, r)
			return
		}
		_ = x.c.Do(ctx, r.call, func(ctx context.Context) error { return x.attempt(ctx, r) })
	})
}

// lease is a call that is no function: reported, or not, and released twice.
func (x *chaos) lease(ctx context.Context, r ride) {
	ls, err := x.c.Acquire(ctx, r.call)
	if err != nil {
		return
	}
	time.Sleep(r.takes)
	switch r.n {
	case 0:
		ls.Forget()
	case 1:
		ls.Sent()
		time.Sleep(r.takes)
	case 2:
		ls.Report(r.f)
		time.Sleep(2 * time.Second)
	}
	ls.Release()
	ls.Release()
}

func (x *chaos) attempt(ctx context.Context, r ride) error {
	if err := sleep(ctx, r.takes); err != nil {
		return err
	}
	ls, _ := coordinator.LeaseFrom(ctx)
	switch {
	case r.kind == 1 && x.nested:
		in, cancel := context.WithTimeout(ctx, time.Duration(r.n+1)*500*time.Millisecond)
		defer cancel()
		_ = x.c.Do(in, coordinator.Call{Provider: r.into}, func(ctx context.Context) error { return sleep(ctx, r.takes) })
	case r.kind == 2 && r.n == 0:
		ls.Hold(nil)
		time.AfterFunc(400*time.Millisecond, ls.Release)
	case r.kind == 2 && r.n == 1:
		ls.Forget()
	}
	return r.f.Err(nil)
}

// change is what happens to a provider besides.
func (x *chaos) change(t *testing.T, slug string, th provider.Throttle) {
	if x.rng.IntN(40) == 0 {
		if x.rng.IntN(2) == 0 {
			th = x.throttle()
		}
		require.NoError(t, x.c.Update(slug, th))
	}
	if x.rng.IntN(60) == 0 {
		_, err := x.c.Forecast(coordinator.Call{Provider: slug}, 20)
		require.NoError(t, err)
	}
	if x.rng.IntN(80) == 0 {
		require.NoError(t, x.c.Pause(slug, time.Now().Add(300*time.Millisecond), "chaos"))
	}
	if x.rng.IntN(80) == 0 {
		require.NoError(t, x.c.Resume(slug))
	}
}

// quiet asserts that nobody waits who could go.
func (x *chaos) quiet(t *testing.T) {
	synctest.Wait()
	for _, p := range x.ps {
		require.Zero(t, x.c.Overlooked(p.Slug), "a call that could go waits at %s", p.Slug)
	}
}

func (x *chaos) run(t *testing.T) {
	for range 300 {
		r := x.draw()
		x.start(t.Context(), r)
		if x.rng.IntN(3) == 0 {
			time.Sleep(x.ms(60))
		}
		if x.rng.IntN(20) == 0 {
			x.quiet(t)
		}
		for _, p := range x.ps {
			if p.Slug == r.call.Provider {
				x.change(t, p.Slug, p.Throttle)
			}
		}
	}
	over := make(chan struct{})
	go func() { x.all.Wait(); close(over) }()
	begin, shut := time.Now(), x.rng.IntN(3) == 0
	for {
		select {
		case <-over:
			return
		case <-time.After(100 * time.Millisecond):
		}
		x.quiet(t)
		if shut && time.Since(begin) > time.Second {
			shut = false
			go func() { assert.NoError(t, x.c.Shutdown(context.Background())) }()
		}
		require.Less(t, time.Since(begin), 2*time.Hour, "calls are stuck")
	}
}

// Nothing is overlooked, nothing stays taken, whatever comes together.
func TestStormsOfEverything(t *testing.T) {
	for seed := range uint64(size(100, 20)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newChaos(t, seed)
				x.run(t)
				time.Sleep(5 * time.Second)
				for _, s := range x.c.States() {
					for _, p := range s.Pools {
						assert.Zero(t, p.Used+p.Waiting, s.Provider)
					}
					assert.Zero(t, s.Queue.Length+s.InFlight, s.Provider)
				}
				require.NoError(t, x.c.Shutdown(t.Context()))
			})
		})
	}
}
