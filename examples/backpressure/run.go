package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
	"github.com/headgate/headgate/transport"
)

const (
	slug      = "enricher"
	perSecond = 100                                  // what the provider takes
	places    = 100                                  // in its queue
	every     = time.Second / 300                    // what the producer makes, if it may
	away      = 10 * time.Millisecond                // the network, each way, at least
	furthest  = 3 * away                             // and at most
	patience  = 2 * places * time.Second / perSecond // a full queue's wait, and as much again
)

var declared = provider.Provider{
	Slug:     slug,
	Throttle: provider.Throttle{RPS: perSecond, MaxQueue: places, MaxWait: patience},
}

// summary is what became of the messages.
type summary struct {
	heeds bool
	sent  int
	took  time.Duration
	stops int

	mu                        sync.Mutex
	answered, refused, failed int
	longest                   int // of the queue
	err                       error

	report referee.Report
}

// run has a producer make n messages for a provider of its own.
func run(ctx context.Context, listener net.Listener, n int, heeds bool) (*summary, error) {
	network := referee.Delay{Min: away, Max: furthest}
	judge, err := referee.New(1, referee.Play{Provider: declared, Go: network, Back: network})
	if err != nil {
		listener.Close()
		return nil, err
	}
	judge.Serve(listener)
	defer judge.Close()
	s, tap := &summary{heeds: heeds}, newTap()
	c, err := coordinator.New(coordinator.Config{
		Registry: new(registry.Registry), Providers: []provider.Provider{declared}, Traces: []*coordinator.Trace{tap.hooks(), s.hooks()},
	})
	if err != nil {
		return nil, err
	}
	tap.c = c
	client := &http.Client{Transport: &transport.Transport{Coordinator: c, Base: judge.Client().Transport,
		Route: func(*http.Request) (coordinator.Call, bool) { return coordinator.Call{Provider: slug}, true }}}
	if !heeds {
		tap = nil
	}
	begin := time.Now()
	s.produce(ctx, tap, client, judge.URL(slug), n)
	s.took, s.report = time.Since(begin), judge.Report(slug)
	if tap != nil {
		s.stops = tap.stops
	}
	return s, errors.Join(s.err, c.Shutdown(ctx))
}

// produce takes messages from the broker at the producer's own speed, or that of the
// tap, and waits until all have been dealt with.
func (s *summary) produce(ctx context.Context, tap *tap, client *http.Client, url string, n int) {
	var all sync.WaitGroup
	defer all.Wait()
	ready := time.NewTicker(every)
	defer ready.Stop()
	for ; s.sent < n; s.sent++ {
		select {
		case <-ready.C:
		case <-ctx.Done():
			return
		}
		if tap != nil {
			if err := tap.pass(ctx, slug); err != nil {
				s.note(err)
				return
			}
		}
		all.Go(func() { s.note(enrich(ctx, client, url)) })
	}
}

// enrich is one message.
func enrich(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/enrich", http.NoBody)
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
		return fmt.Errorf("status %d", res.StatusCode)
	}
	return nil
}

func (s *summary) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.answered++
	case errors.Is(err, coordinator.ErrThrottled):
		s.refused++
	case errors.Is(err, context.Canceled):
	default:
		s.failed++
		s.err = errors.Join(s.err, err)
	}
}

// hooks look at the queue.
func (s *summary) hooks() *coordinator.Trace {
	return &coordinator.Trace{Waiting: func(_ context.Context, _ coordinator.CallInfo, q coordinator.QueueState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.longest = max(s.longest, q.Length)
	}}
}

func (s *summary) write(w io.Writer) {
	name, stops := "heedless", "never"
	if s.heeds {
		name, stops = "heeding", fmt.Sprintf("%d times", s.stops)
	}
	ideal := float64((s.report.Admitted - 1) / perSecond) // seconds: each one's worth goes at once
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d of %d\t%s\t%s\t%s\t%d\t\n", name, s.sent, s.answered, s.refused, s.failed,
		s.longest, places, stops, s.took.Round(100*time.Millisecond), stage.Percent(ideal, s.took.Seconds()), s.report.Violated)
}
