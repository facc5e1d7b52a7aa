package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
	"github.com/headgate/headgate/transport"
)

// world is a few providers, a network, and those who call.
type world struct {
	rng     *rand.Rand // of the test's goroutine alone
	seed    uint64
	patient bool // nobody gives up what is out: caps are enforced, and arrivals counted one by one
	pools   bool
	alone   bool          // all calls are of one flow: then a forecast knows the order, too
	grain   time.Duration // in which calls count time: where it is coarse, much happens at one instant
	keeps   bool          // connections: then none is dropped, since net/http sends again by itself what met a dropped one
	sites   []*site
	ref     *referee.Referee
	c       *coordinator.Coordinator
	client  *http.Client // goes through the transport
	wire    *wire
	rides   []*ride
	running sync.WaitGroup
	hooks   hooks
	shut    atomic.Int64 // when it was shut down; 0: it was not
	sum     summary      // of this world
}

// site is one provider: as declared, as played, and as asked.
type site struct {
	p       provider.Provider
	dialect int
	elastic *elastic        // a limit whose size moves both ways; nil: none
	apart   map[string]bool // endpoints that leave the general limits
	adapter *adapters.HTTP

	begun, undecided atomic.Int64 // calls; those whose goroutine a hook ended before the decision
}

const calls = 200 // in a world

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0)), seed: seed}
	w.patient, w.keeps, w.alone = w.chance(2), w.chance(2), w.chance(2)
	w.grain = pick(w.rng, time.Microsecond, 20*time.Millisecond)
	for i := range 1 + w.n(4) {
		w.sites = append(w.sites, w.newSite(fmt.Sprint("p", i)))
	}
	w.build(t)
	for i := range calls {
		w.rides = append(w.rides, w.draw(i))
	}
	return w
}

func (w *world) n(n int) int           { return w.rng.IntN(n) }
func (w *world) chance(oneIn int) bool { return w.rng.IntN(oneIn) == 0 }
func (w *world) ms(most int) time.Duration {
	return (time.Duration(w.rng.IntN(most*1000)) * time.Microsecond).Truncate(w.grain)
}
func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// build makes the referee, and the coordinator with all that goes through it.
func (w *world) build(t *testing.T) {
	plays := make([]referee.Play, len(w.sites))
	for i, s := range w.sites {
		plays[i] = w.play(t, s)
	}
	var err error
	w.ref, err = referee.New(w.seed, plays...)
	require.NoError(t, err)
	t.Cleanup(w.ref.Close)
	l := referee.Listen()
	w.ref.Serve(l)
	base := &http.Transport{DialContext: l.DialContext, MaxIdleConnsPerHost: 1000, DisableKeepAlives: !w.keeps}
	t.Cleanup(base.CloseIdleConnections)
	w.wire = &wire{base: base}
	reg := new(registry.Registry)
	categories := map[string]bool{}
	for _, s := range w.sites {
		s.p.BaseURL = w.ref.URL(s.p.Slug)
		categories[s.p.Category] = true
		s.adapter, err = adapters.New(s.p, adapters.Options{Client: &http.Client{Transport: w.wire}, Getenv: alias})
		require.NoError(t, err)
		require.NoError(t, reg.Register(s.adapter))
	}
	cfg := coordinator.Config{Registry: reg, Traces: []*coordinator.Trace{w.hooks.trace(t, w)}}
	if w.pools = w.chance(2); w.pools {
		cfg.Pools = map[string]int{"": 1 + w.n(6)}
		for name := range categories {
			if name != "" {
				cfg.Pools[name] = 1 + w.n(4)
			}
		}
	}
	w.c, err = coordinator.New(cfg)
	require.NoError(t, err)
	through, err := transport.New(w.c, w.wire)
	require.NoError(t, err)
	through.Key = func(_, name string) string { return name }
	w.client = &http.Client{Transport: through}
}

// alias is the value of a key: its own name, so that both sides count by the same.
func alias(name string) string { return name }

// play is how the referee plays a site. What its dialect cannot say of these limits
// is said in another.
func (w *world) play(t *testing.T, s *site) referee.Play {
	p := referee.Play{Provider: s.p, Answer: w.answer, Go: referee.Delay{Max: w.ms(100)}, Back: referee.Delay{Max: w.ms(100)}, Speak: s.dialect > 0}
	all, err := s.p.Throttle.Expand()
	require.NoError(t, err)
	for _, l := range all {
		if enforced(l, w.patient) {
			p.Limits = append(p.Limits, l)
		}
	}
	if p.Limits == nil {
		p.Limits = []provider.Limit{{Name: "wide", Max: 1 << 40, Per: "1s"}}
	}
	if trial, err := referee.New(0, p); err == nil {
		trial.Close()
		return p
	}
	w.sum.count("dialect not to be said")
	s.dialect, p.Speak = 0, false
	s.p.Dialect = provider.Dialect{}
	p.Provider = s.p
	return p
}

// enforced tells whether the referee enforces a limit: not ours, not one that we
// count as calls are sent (which promises nothing for arrivals), and no cap where
// callers give up what is out (their slot is free before the provider knows).
func enforced(l provider.Limit, patient bool) bool {
	return l.Basis != provider.BasisPacing && l.Counted != provider.CountedSent && (patient || l.Algorithm != provider.InFlight)
}

// live runs the world to its end.
func (w *world) live(t *testing.T, all *summary) {
	shut := -1
	if w.chance(8) {
		shut = w.n(calls)
	}
	for i, r := range w.rides {
		w.start(t, r)
		if w.n(3) > 0 {
			time.Sleep(w.ms(40))
		}
		if w.chance(100) {
			time.Sleep(w.ms(60_000))
		}
		if w.chance(15) {
			w.quiet(t)
		}
		w.change(t)
		if i == shut {
			w.sum.count("shutdown")
			w.shut.Store(time.Now().UnixNano())
			w.running.Go(func() { _ = w.c.Shutdown(context.Background()) })
			synctest.Wait()
		}
	}
	w.wait(t)
	w.check(t, shut >= 0)
	all.add(&w.sum)
}

// wait is the end of all calls: none is lost.
func (w *world) wait(t *testing.T) {
	over := make(chan struct{})
	go func() {
		w.running.Wait()
		close(over)
	}()
	for begun, step := time.Now(), 100*time.Millisecond; ; step = min(2*step, time.Minute) {
		select {
		case <-over:
			return
		case <-time.After(step):
		}
		w.quiet(t)
		if time.Since(begun) > 48*time.Hour {
			t.Fatalf("calls are stuck: %+v", w.c.States())
		}
	}
}

// quiet is called between events: nobody waits who could go.
func (w *world) quiet(t *testing.T) {
	synctest.Wait()
	for _, r := range w.rides {
		if r.waits.Load() && w.alone && !w.pools { // a forecast does not know who else takes of a pool
			w.overlooked(t, r)
		}
	}
}
