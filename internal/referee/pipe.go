package referee

import (
	"context"
	"net"
	"sync"
	"syscall"
)

// PipeListener is a listener in memory: connections are net.Pipe's. Unlike real
// sockets they let a synctest bubble's time go on while everybody waits, provided
// that the listener was made inside that bubble. Safe for concurrent use.
type PipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

var _ net.Listener = (*PipeListener)(nil)

// Listen returns a listener in memory.
func Listen() *PipeListener {
	return &PipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for the next connection. After Close it returns net.ErrClosed.
func (l *PipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and refuses new connections; those that exist live on.
// Idempotent.
func (l *PipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns an address that only DialContext understands.
func (l *PipeListener) Addr() net.Addr { return pipeAddr{} }

// DialContext connects to l whatever network and address are, as
// http.Transport.DialContext. It waits until the connection is accepted. A closed
// listener refuses the connection (ECONNREFUSED).
func (l *PipeListener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	var err error
	select {
	case l.conns <- server:
		return client, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-l.closed:
		err = syscall.ECONNREFUSED
	}
	client.Close()
	server.Close()
	return nil, &net.OpError{Op: "dial", Net: "pipe", Addr: pipeAddr{}, Err: err}
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "referee" }
