package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate/ledger"
)

// connected is the client, once there is one. Attempts are made one at a time, in the
// background: a dial does not end with ctx.
func (s *Store) connected(ctx context.Context) (rueidis.Client, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errClosed
	}
	if s.client != nil {
		defer s.mu.Unlock()
		return s.client, nil
	}
	done := s.dialing
	if done == nil {
		done = make(chan struct{})
		s.dialing = done
		s.beside.Go(func() { s.dial(done) })
	}
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("redis: still connecting: %w", ctx.Err())
	case <-done:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errClosed
	case s.client == nil:
		return nil, s.dialErr
	}
	return s.client, nil
}

func (s *Store) dial(done chan struct{}) {
	client, err := rueidis.NewClient(s.option)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*s.option.Dialer.Timeout)
		if err = s.check(ctx, client); err != nil {
			client.Close()
			client = nil
		}
		cancel()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialing, s.dialErr = nil, s.explain(err)
	if err == nil && s.closed {
		client.Close()
	} else if err == nil {
		s.client = client
	}
	close(done)
}

// oldest is the first version that is known to do what the scripts need.
var oldest = [2]int{6, 2}

// check finds out whether it is the right server.
func (s *Store) check(ctx context.Context, client rueidis.Client) error {
	hello, err := client.Do(ctx, client.B().Arbitrary("HELLO").Build()).AsStrMap()
	if err == nil {
		err = checkVersion(hello["version"])
	}
	if err != nil {
		return err
	}
	k := s.keysOf(client)
	if role := hello["role"]; !k.apart && role != "" && role != "master" {
		return wrong("the server is a read-only %s: give the address of the primary, or of the sentinels", role)
	}
	x := exchange{s: s, client: client, keys: k, sent: time.Now(), b: &ledger.Batch{}, reply: &ledger.Reply{}}
	results, err := x.do(ctx, []call{{script: commonScript, keys: k.common(), args: []string{"0", "", "0", "0", "0", "0", "0"}}}, nil)
	if err != nil {
		return err
	}
	_, err = x.hearCommon(results[0]) // its clock, above all
	return err
}

func checkVersion(version string) error {
	var v [2]int
	for i, part := range strings.SplitN(version, ".", 3) {
		if n, err := strconv.Atoi(part); err == nil && i < 2 {
			v[i] = n
		}
	}
	if v[0] < oldest[0] || v[0] == oldest[0] && v[1] < oldest[1] {
		return wrong("the server's version is %s: Redis %d.%d or any Valkey is needed", version, oldest[0], oldest[1])
	}
	return nil
}

// wrongError is a definite answer that something is wrong, which trying again does not
// cure.
type wrongError struct {
	text  string
	cause error
}

func (e *wrongError) Error() string { return "redis: " + e.text }
func (e *wrongError) Unwrap() error { return e.cause }

func wrong(format string, args ...any) error { return &wrongError{text: fmt.Sprintf(format, args...)} }

func definite(err error) bool {
	var w *wrongError
	return errors.As(err, &w)
}

// hints are what a person can do about what a server says.
var hints = []struct{ prefix, hint string }{
	{"WRONGPASS", "user or password are wrong"},
	{"NOAUTH", "a password is needed"},
	{"NOPERM", "the user may not do what is needed (see the package's documentation)"},
	{"DB index", "there is no such database"},
	{"invalid DB index", "there is no such database"},
	{"SELECT is not allowed in cluster mode", "a Cluster has only database 0"},
	{"WRONGTYPE", "there are keys of another kind under our names: choose another prefix"},
	{"HEADGATE schema", "what is stored is of a newer version of this package"},
	{"unknown command", "the server is too old: Redis 6.2 or any Valkey is needed"},
	{"READONLY", "the server is a read-only replica"},
}

// explain makes an error of ours of one of the client's. A server's own words hold no
// secret.
func (s *Store) explain(err error) error {
	if err == nil {
		return nil
	}
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var plain tls.RecordHeaderError
	switch {
	case definite(err), errors.Is(err, errClosed):
		return err
	case errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &invalid), errors.As(err, &plain):
		return &wrongError{text: "TLS: " + err.Error(), cause: err}
	case strings.HasPrefix(err.Error(), "redis: "):
		return err
	}
	if e, ok := rueidis.IsRedisErr(err); ok {
		text := strings.TrimSpace(strings.TrimPrefix(e.Error(), "ERR "))
		for _, h := range hints {
			if strings.Contains(e.Error(), h.prefix) {
				return &wrongError{text: h.hint + " (" + text + ")", cause: err}
			}
		}
		return fmt.Errorf("redis: the server says: %w", err)
	}
	return fmt.Errorf("redis: %w", err)
}
