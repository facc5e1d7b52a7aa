package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// serveQueue starts a server of our own, whose files are in dir. Only who knows the URL
// can use it: others of this machine do not.
func serveQueue(dir string) (s *server.Server, url string, err error) {
	token := rand.Text()
	s, err = server.NewServer(&server.Options{
		ServerName: "worker", Host: "127.0.0.1", Port: server.RANDOM_PORT, Authorization: token,
		JetStream: true, StoreDir: filepath.Join(dir, "queue"),
		SyncAlways: true, // a job that was taken is on the disk
		NoSigs:     true, NoLog: true, DisableJetStreamBanner: true,
	})
	if err != nil {
		return nil, "", fmt.Errorf("the queue's server cannot be started: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(2*aMoment) || !s.JetStreamEnabled() {
		s.Shutdown()
		return nil, "", errors.New("the queue's server does not start: is its folder in use by another one, or not to be written?")
	}
	return s, fmt.Sprintf("nats://%s@%s", token, s.Addr()), nil
}

// stopQueue ends a server and waits for it.
func stopQueue(s *server.Server) {
	s.Shutdown()
	ended := make(chan struct{})
	go func() {
		s.WaitForShutdown()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(2 * aMoment):
	}
}
