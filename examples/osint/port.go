package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	portTime   = 10 * time.Second // Prometheus's own bound, for a request and for its answer
	portHeader = 64 << 10
	lastMoment = time.Second // that a request may take which is out as the run ends
)

// port is where others look at a run.
type port struct {
	listener net.Listener
	server   http.Server
	running  sync.WaitGroup
}

// openPort takes the address that a flag names, as example does. Nothing is served
// before serve.
func (w *world) openPort(p *port, name, addr, example string) (err error) {
	if p.listener, err = w.listenAt(addr); err != nil {
		return fmt.Errorf("-%s: %w; want a free HOST:PORT, as %s", name, err, example)
	}
	return nil
}

// serve begins to serve.
func (p *port) serve() {
	p.running.Go(func() { _ = p.server.Serve(p.listener) }) // ends by close; its error says no more than that
}

// close ends the server. A request that is out has a moment to end.
func (p *port) close() {
	ctx, done := context.WithTimeout(context.Background(), lastMoment)
	defer done()
	if p.server.Shutdown(ctx) != nil {
		p.server.Close()
	}
	p.listener.Close() // where it was never served
	p.running.Wait()
}

// url is where the port is really reached: a port of 0 is one that was free.
func (p *port) url() string {
	addr := p.listener.Addr().String()
	if host, port, err := net.SplitHostPort(addr); err == nil && net.ParseIP(host).IsUnspecified() {
		addr = net.JoinHostPort("localhost", port)
	}
	return "http://" + addr + "/"
}
