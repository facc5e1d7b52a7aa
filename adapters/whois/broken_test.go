package whois_test

import (
	"io"
	"net"
	"strings"
)

// broken is a connection that fails as it says.
type broken struct {
	net.Conn
	data        string
	write, read error
}

func (b *broken) Write(p []byte) (int, error) { return len(p), b.write }

func (b *broken) Read(p []byte) (int, error) {
	if b.data == "" {
		return 0, b.read
	}
	n, _ := io.ReadFull(strings.NewReader(b.data), p[:min(len(p), len(b.data))])
	b.data = b.data[n:]
	return n, nil
}

func (b *broken) Close() error { return nil }
