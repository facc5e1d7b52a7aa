package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/headgate/headgate/bench/peer"
	"github.com/headgate/headgate/bench/stat"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

const slug = "played"

// Play plays a cell on whatever clock its caller has, and returns when nothing of it
// is left.
func Play(c Cell, quick bool) (Result, error) {
	p := c.plan(quick)
	scores, errs := make([]score, p.times), make([]error, p.times)
	var running sync.WaitGroup
	for i := range p.times {
		play := func() { scores[i], errs[i] = c.play(p, seed+uint64(i), c.phase(i, p.times)) }
		if c.Peer.Blind { // it lasts as long as it plays: at once
			running.Go(play)
		} else {
			play()
		}
	}
	running.Wait()
	var all score
	for _, s := range scores {
		all.add(s)
	}
	if err := errors.Join(errs...); err != nil {
		return Result{}, fmt.Errorf("conformance: %s at %s, %s, %s, %s: %w", c.Peer.Name, c.Set.Name, c.Kind, c.Network.Name, c.Demand, err)
	}
	return c.result(&all), nil
}

// score is what has been measured.
type score struct {
	arrived, refused, admitted int64
	length                     time.Duration
	waits                      []time.Duration
}

func (s *score) add(t score) {
	s.arrived += t.arrived
	s.refused += t.refused
	s.admitted += t.admitted
	s.length += t.length
	s.waits = append(s.waits, t.waits...)
}

// play plays a cell once.
func (c Cell) play(p plan, seed uint64, phase time.Duration) (score, error) {
	r, err := referee.New(seed, c.provider(phase))
	if err != nil {
		return score{}, err
	}
	defer r.Close()
	gate := c.Peer.New(peer.Config{Kind: c.Kind, Limits: c.Set.Limits, Jitter: c.Network.Max - c.Network.Min, LeastRoundTrip: 2 * c.Network.Min})
	if gate.Close != nil {
		defer gate.Close()
	}
	from, length := time.Duration(p.warm)*c.Set.Window, time.Duration(p.windows)*c.Set.Window
	from += c.Set.Window / 2                                // not when calls go: one at the very edge would be luck
	ctx, cancel := context.WithCancel(context.Background()) // no deadline: a peer would refuse who cannot make it
	defer time.AfterFunc(from+length, cancel).Stop()
	defer cancel()
	g := &game{cell: c, gate: gate, referee: r, end: cancel}
	var before referee.Report
	g.running.Go(func() {
		pause(ctx, from)
		before = r.Report(slug)
	})
	g.demand(ctx)
	<-ctx.Done()
	after := r.Report(slug) // what is under way arrives too late to count
	g.running.Wait()
	return score{
		arrived: after.Arrivals - before.Arrivals, refused: after.Refused - before.Refused,
		admitted: after.Admitted - before.Admitted, length: length, waits: g.waits,
	}, g.err
}

// seed makes the network's delays the same for every peer that sends the same calls. Each
// phase has one of its own: what is luck with one is none with twelve.
const seed = 20261101

// grace is how much shorter than declared the provider's periods are: nobody shall be
// refused because of a division that rounds, which only virtual time brings to light.
const grace = time.Microsecond

// provider is the provider as the referee plays it.
func (c Cell) provider(phase time.Duration) referee.Play {
	p := referee.Play{
		Provider:      provider.Provider{Slug: slug},
		Go:            referee.Delay{Min: c.Network.Min, Max: c.Network.Max},
		Back:          referee.Delay{Min: c.Network.Min, Max: c.Network.Max},
		RefusedCounts: c.Strict,
		Phase:         phase,
	}
	for _, l := range c.Set.Limits {
		d := provider.Limit{Name: l.Per.String(), Max: int64(l.N), Per: provider.Period((l.Per - grace).String())}
		switch c.Kind {
		case peer.Fixed:
			d.Algorithm, d.Per = provider.FixedWindow, provider.Period(l.Per.String()) // its edges are anywhere anyhow
		case peer.Bucket:
			d.Algorithm, d.Burst = provider.TokenBucket, int64(l.N)
		}
		p.Limits = append(p.Limits, d)
	}
	return p
}

// game is one cell being played.
type game struct {
	cell    Cell
	gate    *peer.Gate
	referee *referee.Referee
	end     func()
	running sync.WaitGroup

	mu    sync.Mutex
	waits []time.Duration
	err   error // the first that no cell should meet
}

// fault ends the game.
func (g *game) fault(err error) {
	g.end()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = err
	}
}

// demand starts the calls.
func (g *game) demand(ctx context.Context) {
	s := g.cell.Set
	switch g.cell.Demand {
	case Steady:
		for range s.Callers {
			g.running.Go(func() {
				for ctx.Err() == nil {
					g.call(ctx)
				}
			})
		}
	case Bursty:
		g.running.Go(func() {
			for ctx.Err() == nil {
				for range s.Burst {
					g.running.Go(func() { g.call(ctx) })
				}
				pause(ctx, s.Every)
			}
		})
	case OnOff:
		g.running.Go(func() {
			for ctx.Err() == nil {
				for on := time.Duration(0); on < s.On && ctx.Err() == nil; on += s.Gap {
					g.running.Go(func() { g.call(ctx) })
					pause(ctx, s.Gap)
				}
				pause(ctx, s.Off)
			}
		})
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// call is one call until it has been admitted or the game is over.
func (g *game) call(ctx context.Context) {
	came := time.Now()
	sent := came
	var err error
	for done := false; !done; {
		err = g.gate.Call(ctx, "", func(context.Context) error {
			sent = time.Now()
			return g.send()
		})
		done = err == nil || ctx.Err() != nil
		var r *peer.RefusedError
		switch {
		case done:
		case errors.As(err, &r): // the peer has given up for the rate: the call comes again
			pause(ctx, r.RetryAfter)
		default:
			g.fault(err)
			return
		}
	}
	wait := sent.Sub(came)
	if err != nil {
		wait = time.Since(came)
		if g.cell.Demand == Steady {
			return // who comes again at once is represented by those before
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waits = append(g.waits, wait)
}

// send is one request. It is not given up when the game is over: what is on its way
// arrives, and nobody counts it any more.
func (g *game) send() error {
	a := answer{header: http.Header{}}
	g.referee.ServeHTTP(&a, request)
	if a.status != http.StatusTooManyRequests {
		return nil
	}
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil {
		return fmt.Errorf("a refusal without advice: %w", err)
	}
	return &peer.RefusedError{RetryAfter: time.Duration(seconds) * time.Second}
}

// request is read only, so one will do.
var request = &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/" + slug + "/"}}

// answer is what a referee writes, as far as it matters here.
type answer struct {
	header http.Header
	status int
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) Write(b []byte) (int, error) { return len(b), nil }
func (a *answer) WriteHeader(status int)      { a.status = status }

func (c Cell) result(s *score) Result {
	r := Result{Peer: c.Peer.Name, Set: c.Set.Name, Network: c.Network.Name, Kind: c.Kind, Demand: c.Demand, Strict: c.Strict,
		Arrived: s.arrived, Refused: s.refused}
	r.Goodput = float64(s.admitted) / s.length.Seconds()
	longest := c.Set.Limits[len(c.Set.Limits)-1] // the one that binds for good
	r.Utilisation = r.Goodput * longest.Per.Seconds() / float64(longest.N)
	r.Bound = longest.Per.Seconds() / (longest.Per + c.Network.RoundTrip()).Seconds()
	slices.Sort(s.waits)
	r.P50, r.P99 = stat.Quantile(s.waits, 0.5).Seconds(), stat.Quantile(s.waits, 0.99).Seconds()
	return r
}
