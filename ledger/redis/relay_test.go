package redis

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// relay stands between a store and its server and disturbs what passes.
type relay struct {
	addr  string
	delay atomic.Int64 // nanoseconds, of each answer
	cut   atomic.Bool  // the next answer breaks off in its middle
	dead  atomic.Bool  // nobody is let in
}

func disturb(t testing.TB, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &relay{addr: l.Addr().String()}
	var mu sync.Mutex
	var conns []net.Conn
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil || r.dead.Load() {
				_ = in.Close()
				continue
			}
			mu.Lock()
			conns = append(conns, in, out)
			mu.Unlock()
			wg.Go(func() { _, _ = io.Copy(out, in); _ = out.Close() })
			wg.Go(func() { r.answers(in, out) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return r
}

func (r *relay) answers(in, out net.Conn) {
	defer in.Close()
	b := make([]byte, 1<<16)
	for {
		n, err := out.Read(b)
		if err != nil {
			return
		}
		time.Sleep(time.Duration(r.delay.Load())) // as a long way does
		if r.cut.CompareAndSwap(true, false) {
			_, _ = in.Write(b[:n/2])
			return
		}
		if _, err := in.Write(b[:n]); err != nil {
			return
		}
	}
}
