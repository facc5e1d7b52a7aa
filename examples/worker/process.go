package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/examples/internal/ledgerflag"
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// asWorker is the environment variable that makes the program a worker process.
const asWorker = "HEADGATE_EXAMPLE_WORKER"

// settings are what a worker process is told, on its standard input: command lines and
// environments can be seen by others, and the URLs may hold secrets. The input's end is
// the end of the process that started it.
type settings struct {
	Name         string
	NATS, URL    string
	Ledger       string // as -ledger
	World        string // the budget's name in it; "": that of the real provider
	Provider     provider.Provider
	At, Tries    int
	Processes    int // of this pool: so many share the budget at least, where the ledger is lost before all have been seen
	Wait         time.Duration
	AckWait      time.Duration
	Lease        time.Duration
	StatsEvery   time.Duration
	LedgerBudget time.Duration
}

// tally is what a worker has done so far.
type tally struct{ done, refused, failed, dead atomic.Int64 }

// stats is a tally as it is told.
type stats struct {
	Name                        string
	Done, Refused, Failed, Dead int64
}

func (t *tally) stats(name string) stats {
	return stats{name, t.done.Load(), t.refused.Load(), t.failed.Load(), t.dead.Load()}
}

// workerMain is a worker process.
func workerMain(in io.Reader, stderr io.Writer) int {
	signal.Ignore(os.Interrupt) // Ctrl-C reaches all processes of a terminal; the first one ends the others
	if err := workUntil(in, stderr); err != nil {
		fmt.Fprintf(stderr, "worker: %v\n", err)
		return 1
	}
	return 0
}

func workUntil(in io.Reader, stderr io.Writer) error {
	input := bufio.NewReader(in)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("a worker process is started by the first one, which tells it what to do: %w", err)
	}
	var s settings
	if err := json.Unmarshal(line, &s); err != nil {
		return fmt.Errorf("what a worker is told cannot be read: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, input)
		cancel()
	}()
	return s.work(ctx, stderr)
}

// work is the worker until ctx ends.
func (s settings) work(ctx context.Context, stderr io.Writer) error {
	nc, err := connect(s.NATS, "worker "+s.Name)
	if err != nil {
		return err
	}
	defer nc.Close()
	queue, err := openQueue(ctx, nc, s.AckWait)
	if err != nil {
		return err
	}
	c, led, err := s.coordinator(stderr)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: s.At, Proxy: http.ProxyFromEnvironment}}
	defer client.CloseIdleConnections()
	w := &worker{
		name: s.Name, queue: queue, c: c, provider: s.Provider, url: s.URL, client: client,
		wait: s.Wait, ackWait: s.AckWait, tries: s.Tries, stderr: stderr,
	}
	stop := s.telling(nc, &w.tally)
	err = w.work(ctx, s.At)
	stop()
	return errors.Join(err, ledgerflag.Close(led))
}

// coordinator makes the one coordinator of the process. The ledger is nil where it has
// the limits to itself.
func (s settings) coordinator(stderr io.Writer) (*coordinator.Coordinator, *ledger.Client, error) {
	lost := &coordinator.Trace{Ledger: func(x coordinator.LedgerChange) {
		text := "answers again"
		if !x.Up {
			text = "does not answer (" + x.State.Detail + "): until it does the worker keeps to its share of each limit"
		}
		fmt.Fprintf(stderr, "worker: %s: the ledger %s\n", s.Name, text)
	}}
	cfg := coordinator.Config{Registry: new(registry.Registry), Providers: []provider.Provider{s.Provider}, Traces: []*coordinator.Trace{lost}}
	place, err := ledgerflag.Parse(s.Ledger)
	if err != nil {
		return nil, nil, err
	}
	if s.World != "" {
		place = place.Within(s.World)
	}
	led, err := place.Open(ledger.Settings{Lease: s.Lease, Budget: s.LedgerBudget, Replicas: s.Processes})
	if err != nil {
		return nil, nil, err
	}
	if led != nil {
		cfg.Ledger = led
	}
	c, err := coordinator.New(cfg)
	return c, led, err
}

// telling tells the first process how the worker does, now and then and at its end.
func (s settings) telling(nc *nats.Conn, t *tally) (stop func()) {
	tell := func() {
		if text, err := json.Marshal(t.stats(s.Name)); err == nil {
			_ = nc.Publish(statsSubject, text)
		}
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		every := time.NewTicker(s.StatsEvery)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				tell()
			case <-quit:
				tell()
				_ = nc.FlushTimeout(time.Second)
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// shared is a provider whose limits are all in the ledger: its workers are one client to
// it. One attempt a delivery: the queue brings a job back, and two layers that retry would
// multiply.
func shared(p provider.Provider) (provider.Provider, error) {
	limits, err := p.Throttle.Expand()
	if err != nil {
		return p, err
	}
	for i := range limits {
		limits[i].Shared = true
	}
	t := &p.Throttle
	t.RPS, t.RPM, t.RPH, t.RPD, t.Burst, t.Algorithm, t.MaxInFlight = 0, 0, 0, 0, 0, "", 0
	t.Limits = limits
	p.Retry.Off = true
	return p, nil
}
