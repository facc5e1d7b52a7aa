package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// member is a worker process.
type member struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser // its end is the worker's
	ended  chan struct{}
	killed bool // it did not end by itself
}

const lastWords = 15 * time.Second // that a worker may take to end

// start starts a worker. One that is killed gets a successor; one that fails by itself
// would fail again, and ends the pool.
func (p *pool) start(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return nil
	}
	p.count++
	m := &member{name: strconv.Itoa(p.count), ended: make(chan struct{})}
	s := p.told
	s.Name = m.name
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	m.cmd = exec.Command(program) // ended by its standard input, not by a context: it has jobs to give back
	m.cmd.Env = append(os.Environ(), asWorker+"=1")
	m.cmd.Stderr = p.stderr
	if m.stdin, err = m.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := m.cmd.Start(); err != nil {
		return fmt.Errorf("no worker can be started: %w", err)
	}
	if _, err := m.stdin.Write(append(text, '\n')); err != nil {
		fmt.Fprintf(p.stderr, "worker: %s: %v\n", m.name, err) // it has ended: that is told below
	}
	p.members = append(p.members, m)
	go p.await(ctx, m)
	return nil
}

// await waits for a worker's end, and replaces it where that was not its own.
func (p *pool) await(ctx context.Context, m *member) {
	err := m.cmd.Wait()
	p.mu.Lock()
	stopping := p.stopping || ctx.Err() != nil
	var exit *exec.ExitError
	m.killed = errors.As(err, &exit) && !exit.Exited()
	if !stopping && !m.killed {
		p.broken = errors.Join(p.broken, fmt.Errorf("worker %s has given up", m.name))
	}
	p.mu.Unlock()
	if !stopping && m.killed {
		fmt.Fprintf(p.stderr, "worker: %s was killed (%v): another one takes its place\n", m.name, err)
		if err := p.start(ctx); err != nil {
			p.mu.Lock()
			p.broken = errors.Join(p.broken, err)
			p.mu.Unlock()
		}
	}
	close(m.ended)
}

// kill kills a worker, as a machine's end would.
func (p *pool) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.members[0]
	fmt.Fprintf(p.stderr, "worker: -crash: killing %s\n", m.name)
	_ = m.cmd.Process.Kill() // it may have ended
}

// stop ends all workers: they finish what is out, and give the rest back. Who does not is
// killed, and the queue gives his jobs to others.
func (p *pool) stop() {
	p.mu.Lock()
	p.stopping = true
	members := p.members
	p.mu.Unlock()
	for _, m := range members {
		m.stdin.Close()
	}
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(func() {
			select {
			case <-m.ended:
			case <-time.After(lastWords):
				_ = m.cmd.Process.Kill()
				<-m.ended
			}
		})
	}
	all.Wait()
}
