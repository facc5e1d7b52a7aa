package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
	"github.com/headgate/headgate/transport"
)

// The events: a backlog for each hot destination at once, one for each other one
// over some seconds, and then only a few destinations are in use.
const (
	backlog   = 55 // events of a hot destination: 11 s' worth
	toDown    = 8  // events to one that is down
	streaming = 8 * time.Second
	quiet     = 3500 * time.Millisecond
	quietRate = 2.5 // events a second to each that is in use
	tick      = 10 * time.Millisecond
)

// sender delivers events. All of Headgate is in its client's transport.
type sender struct {
	client *http.Client
	world  *world

	all sync.WaitGroup

	mu      sync.Mutex
	tallies [kinds]tally
}

// tally is what became of the events to destinations of one kind.
type tally struct {
	events, delivered int
	later             int // refused by us: its turn would come too late
	failed            int // tried, and not taken
	waits             []time.Duration
	last              time.Duration // the last one's delivery, since the beginning
	faults            []error       // anything else
}

// newClient returns a client whose requests go through c, each under the key of its
// host.
func newClient(c *coordinator.Coordinator, base http.RoundTripper) *http.Client {
	return &http.Client{Transport: &transport.Transport{Coordinator: c, Base: base, Route: func(r *http.Request) (coordinator.Call, bool) {
		return coordinator.Call{Provider: slug, Key: r.URL.Host}, true
	}}}
}

// run delivers everything to n destinations.
func run(ctx context.Context, listener net.Listener, n int) (*summary, error) {
	w, err := newWorld()
	if err != nil {
		return nil, err
	}
	defer w.judge.Close()
	played := stage.Open(listener, w)
	defer played.Close()
	proxy, err := url.Parse(played.URL())
	if err != nil {
		return nil, err
	}
	played.Base().Proxy = http.ProxyURL(proxy)
	c, err := coordinator.New(coordinator.Config{
		Registry: new(registry.Registry), Providers: []provider.Provider{declared()}, Classify: classify, Traces: []*coordinator.Trace{&hooks},
	})
	if err != nil {
		return nil, err
	}
	s := &sender{client: newClient(c, played.Base()), world: w}
	m := watch(c)
	begin := time.Now()
	s.send(ctx, begin, n)
	s.all.Wait()
	sum := &summary{destinations: n, elapsed: time.Since(begin), sender: s, memory: m.stop(), report: w.judge.Report(slug)}
	return sum, errors.Join(append(sum.faults(), c.Shutdown(ctx))...)
}

// send makes the events at their times.
func (s *sender) send(ctx context.Context, begin time.Time, n int) {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	var stream []int
	for i := range n {
		switch kindOf(i) {
		case hot:
			for range backlog {
				s.post(ctx, begin, i)
			}
		case down:
			for range toDown {
				stream = append(stream, i)
			}
		default:
			stream = append(stream, i)
		}
	}
	rng.Shuffle(len(stream), func(a, b int) { stream[a], stream[b] = stream[b], stream[a] })
	s.pace(ctx, begin, begin, streaming, stream)

	inUse := n / 25
	var rest []int
	for range int(float64(inUse) * quietRate * quiet.Seconds()) {
		rest = append(rest, 10+len(rest)%inUse)
	}
	s.pace(ctx, begin, time.Now(), quiet, rest)
}

// pace posts events evenly over a time.
func (s *sender) pace(ctx context.Context, begin, from time.Time, over time.Duration, events []int) {
	sent := 0
	for sent < len(events) && stage.Sleep(ctx, tick) {
		due := min(1, float64(time.Since(from))/float64(over))
		for ; sent < int(due*float64(len(events))); sent++ {
			s.post(ctx, begin, events[sent])
		}
	}
}

// waitKey finds where a hook is to put how long a call has waited.
type waitKey struct{}

var hooks = coordinator.Trace{
	Going: func(ctx context.Context, _ coordinator.CallInfo, waited time.Duration) {
		if w, ok := ctx.Value(waitKey{}).(*time.Duration); ok {
			*w = waited // on the call's own goroutine
		}
	},
}

// post delivers one event, on a goroutine of its own.
func (s *sender) post(ctx context.Context, begin time.Time, i int) {
	s.all.Go(func() {
		var waited time.Duration
		status, err := s.deliver(context.WithValue(ctx, waitKey{}, &waited), host(i))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tallies[kindOf(i)].add(status, err, waited, time.Since(begin))
	})
}

func (s *sender) deliver(ctx context.Context, host string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+host+"/hook", http.NoBody)
	if err != nil {
		return 0, err
	}
	res, err := s.client.Do(req)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

func (t *tally) add(status int, err error, waited, at time.Duration) {
	t.events++
	var refusal *coordinator.Error
	switch {
	case errors.Is(err, coordinator.ErrThrottled):
		t.later++ // see RetryAt of the *coordinator.Error
	case errors.As(err, &refusal):
		t.faults = append(t.faults, err)
	case err != nil || status >= 300:
		t.failed++
	default:
		t.delivered++
		t.waits = append(t.waits, waited)
		t.last = max(t.last, at)
	}
}

// faults are errors that nobody expects.
func (s *summary) faults() []error {
	var all []error
	for i := range s.sender.tallies {
		if faults := s.sender.tallies[i].faults; len(faults) > 0 {
			all = append(all, fmt.Errorf("%d events to %s destinations: %w", len(faults), kind(i), faults[0]))
		}
	}
	return all
}
