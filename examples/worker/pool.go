package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headgate/headgate/internal/referee"
)

const (
	lookEvery = 200 * time.Millisecond
	tellEvery = 2 * time.Second

	// ledgerPatience is the ledger's time for a decision. No job waits for milliseconds, and
	// a busy machine must not pass for a ledger that is lost.
	ledgerPatience = 250 * time.Millisecond
)

// pool is the first process.
type pool struct {
	options
	stdout, stderr io.Writer

	queue *jobQueue
	told  settings // what all workers are told
	begin time.Time

	mu       sync.Mutex
	stats    map[string]stats // by worker, as it said last
	members  []*member
	count    int   // of those that were started
	broken   error // why no worker can work
	stopping bool  // none is started any more
}

func newPool(o options, stdout, stderr io.Writer) *pool {
	return &pool{options: o, stdout: stdout, stderr: stderr, stats: make(map[string]stats)}
}

// run opens everything, has the workers work, and sums up.
func (p *pool) run(ctx context.Context) (err error) {
	dir, remove, err := p.folder()
	if err != nil {
		return err
	}
	defer func() { remove(err == nil) }()
	p.told = settings{
		NATS: p.nats, URL: p.live, Ledger: p.ledger, At: p.at, Tries: p.tries, Processes: p.processes, Wait: p.wait,
		AckWait: p.ackWait, Lease: p.lease, StatsEvery: lookEvery, LedgerBudget: ledgerPatience,
	}
	if p.told.Ledger == "" {
		p.told.Ledger = "sqlite:" + filepath.Join(dir, "budget.db")
	}
	if p.told.Provider, err = shared(p.provider); err != nil {
		return err
	}
	var judge *referee.Referee
	if p.live == "" {
		if judge, p.told.URL, err = play(p.told.Provider); err != nil {
			return err
		}
		defer judge.Close()
		p.told.World = "played"
	}
	if p.nats == "" {
		server, url, err := serveQueue(dir)
		if err != nil {
			return err
		}
		defer stopQueue(server)
		p.told.NATS = url
	}
	return p.withQueue(ctx, dir, judge)
}

// folder is where the queue and the ledger are. A temporary one is removed where nothing
// is left to do.
func (p *pool) folder() (dir string, remove func(over bool), err error) {
	if p.dir != "" {
		return p.dir, func(bool) {}, os.MkdirAll(p.dir, 0o700)
	}
	dir, err = os.MkdirTemp("", "headgate-worker-")
	return dir, func(over bool) {
		if over {
			os.RemoveAll(dir)
		}
	}, err
}

func (p *pool) withQueue(ctx context.Context, dir string, judge *referee.Referee) error {
	nc, err := connect(p.told.NATS, "worker pool")
	if err != nil {
		return err
	}
	defer nc.Close()
	if p.queue, err = openQueue(ctx, nc, p.ackWait); err != nil {
		return err
	}
	sub, err := nc.Subscribe(statsSubject, p.hear)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection goes, too
	if p.nats == "" {
		fmt.Fprintf(p.stdout, "queue and ledger: %s\n", dir)
	}
	if err := p.putAll(ctx); err != nil {
		return err
	}
	p.begin = time.Now()
	err = p.watch(ctx)
	p.stop()
	_ = nc.FlushTimeout(aMoment) // what they said at last
	summed, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*aMoment)
	defer cancel()
	s, e := p.sum(summed, judge)
	if e != nil {
		return errors.Join(err, e)
	}
	s.write(p.stdout)
	if s.left > 0 && p.nats == "" {
		fmt.Fprintf(p.stdout, "%d jobs are left; this does them: worker -dir %s -jobs 0\n", s.left, dir)
	}
	if err == nil && s.left > 0 {
		err = context.Cause(ctx)
	}
	return err
}

// hear takes in what a worker says of itself.
func (p *pool) hear(msg *nats.Msg) {
	var s stats
	if json.Unmarshal(msg.Data, &s) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats[s.Name] = s
}

// putAll puts the jobs of this run into the queue.
func (p *pool) putAll(ctx context.Context) error {
	before, err := p.queue.left(ctx)
	if err != nil {
		return err
	}
	if before > 0 {
		fmt.Fprintf(p.stdout, "%d jobs are in the queue already\n", before)
	}
	run := strings.ToLower(rand.Text()[:6])
	put := func(n int, body []byte) error { return p.queue.put(ctx, fmt.Sprintf("%s-%05d", run, n), body) }
	if p.list == "" {
		for n := range p.jobs {
			if err := put(n+1, madeUp(n+1)); err != nil {
				return err
			}
		}
		return nil
	}
	f, err := os.Open(p.list)
	if err != nil {
		return fmt.Errorf("-f: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		if n++; len(lines.Bytes()) > 0 {
			if err := put(n, lines.Bytes()); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("-f: %s:%d: %w", p.list, n+1, err)
	}
	return nil
}

// watch starts the workers and returns when the queue is empty, or nobody can work, or
// ctx has ended.
func (p *pool) watch(ctx context.Context) error {
	for range p.processes {
		if err := p.start(ctx); err != nil {
			return err
		}
	}
	first, err := p.queue.left(ctx)
	if err != nil {
		return err
	}
	look, tell := time.NewTicker(lookEvery), time.NewTicker(tellEvery)
	defer look.Stop()
	defer tell.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tell.C:
			p.mu.Lock()
			text := progress(time.Since(p.begin), maps.Values(p.stats))
			p.mu.Unlock()
			fmt.Fprintln(p.stderr, text)
		case <-look.C:
			left, err := p.queue.left(ctx)
			p.mu.Lock()
			broken := p.broken
			p.mu.Unlock()
			switch {
			case broken != nil:
				return broken
			case err != nil && ctx.Err() == nil:
				fmt.Fprintf(p.stderr, "worker: the queue's server does not answer: %v\n", err)
			case err == nil && left == 0 && !p.stay:
				return nil
			case err == nil && p.crash && left < first*2/3:
				p.crash = false
				p.kill()
			}
		}
	}
}
