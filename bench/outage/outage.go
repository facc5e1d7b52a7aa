// Package outage plays a provider that breaks down for a while under many callers, and
// tells what each peer sends into the outage, what it spends for nothing, and how soon
// it is back at its full rate.
//
// It is played in virtual time; see the package's test, which is also how the program
// runs it.
package outage

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate/bench/peer"
)

// What is played: a provider that allows Rate calls a second and answers after
// RoundTrip. Callers call again and again, with a Pause between, a half more or less: ten
// times as much as it allows. It breaks down at From, for 30 to 34 seconds: one length
// alone would be lucky for some breaker, which tries every few seconds.
const (
	Rate      = 50
	RoundTrip = 50 * time.Millisecond
	Callers   = 500
	Pause     = time.Second
	From      = 30 * time.Second
	Length    = 30 * time.Second
	Plays     = 5                // each a second longer than the one before
	After     = 60 * time.Second // is played on
	Cap       = 20
	Timeout   = 2 * time.Second // after which the HTTP client gives an attempt up
	Attempts  = 3
)

// Mode is how it breaks down.
type Mode string

// The modes.
const (
	Fails Mode = "fails" // status 500, as fast as it answers
	Hangs Mode = "hangs" // no answer at all
)

// Modes and Peers are what is combined.
var (
	Modes = []Mode{Fails, Hangs}
	Peers = []peer.Peer{peer.Headgate, peer.ByHand, peer.LimitsFirst, peer.Failsafe, peer.Breaker, peer.Spaced, peer.Retryable}
)

// Result is what came of it, on average.
type Result struct {
	Peer   string
	Mode   Mode
	Sent   float64 // requests into the outage
	Wasted float64 // permits spent in the outage on calls that were not sent; below 0: it has none
	Back   float64 // seconds from its end to the full rate; so long at least
	Before float64 // good answers a second before it
}

// Play plays a peer in a mode, on whatever clock its caller has.
func Play(p peer.Peer, m Mode) Result {
	sum := Result{Peer: p.Name, Mode: m}
	for i := range Plays {
		r := play(p, m, Callers, From+Length+time.Duration(i)*time.Second)
		sum.Sent += r.Sent / Plays
		sum.Wasted += r.Wasted / Plays
		sum.Back += r.Back / Plays
		sum.Before += r.Before / Plays
	}
	return sum
}

func play(p peer.Peer, m Mode, callers int, to time.Duration) Result {
	gate := p.New(peer.Config{
		Limits: []peer.Limit{{N: Rate, Per: time.Second}}, Kind: peer.Window,
		Cap: Cap, Breaker: true, Attempts: Attempts,
	})
	if gate.Close != nil {
		defer gate.Close()
	}
	g := &game{mode: m, to: to, gate: gate, begun: time.Now()}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() { g.caller(ctx, rand.New(rand.NewPCG(1, uint64(i)))) })
	}
	peer.Sleep(ctx, From)
	before := g.wasted()
	peer.Sleep(ctx, to-From)
	wasted := g.wasted() - before
	peer.Sleep(ctx, After)
	cancel()
	running.Wait()
	r := Result{Sent: float64(within(g.sent, From, to)), Wasted: -1}
	if gate.Permits != nil {
		r.Wasted = float64(wasted)
	}
	r.Before = float64(within(g.good, From/2, From)) / (From / 2).Seconds()
	r.Back = g.back(r.Before).Seconds()
	return r
}

// game is one play.
type game struct {
	mode  Mode
	to    time.Duration // the end of the outage
	gate  *peer.Gate
	begun time.Time

	mu   sync.Mutex
	sent []time.Duration // requests, by when
	good []time.Duration // good answers, by when
}

// wasted is how many permits have not become a request.
func (g *game) wasted() int64 {
	if g.gate.Permits == nil {
		return 0
	}
	spent := g.gate.Permits()
	g.mu.Lock()
	defer g.mu.Unlock()
	return spent - int64(len(g.sent))
}

// back is how long after the outage the good answers of two seconds are nine tenths of
// what they were.
func (g *game) back(rate float64) time.Duration {
	const span, step = 2 * time.Second, 50 * time.Millisecond
	for t := g.to; t < g.to+After-span; t += step {
		if float64(within(g.good, t, t+span)) >= 0.9*rate*span.Seconds() {
			return t - g.to
		}
	}
	return After
}

func (g *game) caller(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		_ = g.gate.Call(ctx, "", g.send) // what came of it is counted where it is sent
		peer.Sleep(ctx, Pause/2+time.Duration(rng.Int64N(int64(Pause))))
	}
}

// send is one request, judged by when it arrives.
func (g *game) send(ctx context.Context) error {
	at := time.Since(g.begun)
	g.mu.Lock()
	g.sent = append(g.sent, at)
	g.mu.Unlock()
	down := at >= From && at < g.to
	if down && g.mode == Hangs {
		if !peer.Sleep(ctx, Timeout) {
			return ctx.Err()
		}
		return context.DeadlineExceeded
	}
	if !peer.Sleep(ctx, RoundTrip) {
		return ctx.Err()
	}
	if down {
		return peer.StatusError(http.StatusInternalServerError)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.good = append(g.good, time.Since(g.begun))
	return nil
}

// within counts the instants, which are in order, from from on and before to.
func within(at []time.Duration, from, to time.Duration) int {
	first, _ := slices.BinarySearch(at, from)
	last, _ := slices.BinarySearch(at, to)
	return last - first
}
