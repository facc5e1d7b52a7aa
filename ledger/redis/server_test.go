package redis

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// server is a real one, started by a test.
type server struct {
	name     string // the program
	sentinel bool   // args are all that it gets
	addr     string
	dir      string
	args     []string
	env      []string
	cmd      *exec.Cmd
	done     chan error
}

// program is where a program is. Without it a test fails: none is skipped for want of it.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	require.NoError(t, err, "%s is needed for this test: make setup installs it", name)
	return path
}

// free is an address on which nobody listens.
func free(t testing.TB) string {
	t.Helper()
	given.Lock()
	defer given.Unlock()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		addr := l.Addr().String()
		require.NoError(t, l.Close())
		if !given.addrs[addr] { // a server that is not up yet, or is stopped, wants it still
			given.addrs[addr] = true
			return addr
		}
	}
}

// given are the addresses that a test has.
var given = struct {
	sync.Mutex
	addrs map[string]bool
}{addrs: map[string]bool{}}

// serve starts a server with further arguments; it ends with the test.
func serve(t testing.TB, args ...string) *server {
	t.Helper()
	s := &server{name: "redis-server", addr: free(t), dir: t.TempDir(), args: args}
	s.start(t)
	return s
}

func (s *server) start(t testing.TB) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.addr)
	require.NoError(t, err)
	args := append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no", "--logfile", filepath.Join(s.dir, "log")}, s.args...)
	if s.sentinel {
		args = s.args
	}
	s.cmd = exec.Command(program(t, s.name), args...) //nolint:gosec // a test's own arguments
	s.cmd.Env = append(os.Environ(), s.env...)
	require.NoError(t, s.cmd.Start())
	s.done = make(chan error, 1)
	cmd, done := s.cmd, s.done
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() { s.stop(t) })
	s.awake(t)
}

// awake waits until it answers.
func (s *server) awake(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool {
		c, err := net.DialTimeout("tcp", s.addr, time.Second)
		if err != nil {
			return false
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Second))
		_, err = c.Write([]byte("PING\r\n"))
		b := make([]byte, 64)
		n, _ := c.Read(b)
		return err == nil && (strings.HasPrefix(string(b[:n]), "+PONG") || strings.HasPrefix(string(b[:n]), "-NOAUTH"))
	}, 20*time.Second, 10*time.Millisecond, "%s does not answer: %s", s.name, s.log())
}

func (s *server) log() string {
	b, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(b)
}

// stop kills it, if it runs, and waits for its end.
func (s *server) stop(t testing.TB) {
	t.Helper()
	if s.done == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGCONT)
	_ = s.cmd.Process.Kill()
	<-s.done
	s.done = nil
}

func (s *server) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, s.cmd.Process.Signal(sig))
}

func (s *server) url(params string) string { return "redis://" + s.addr + "/0?" + params }

// client is a plain one, for what tests do behind the Store's back.
func (s *server) client(t testing.TB) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.addr}, DisableCache: true, ForceSingleClient: true})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// do runs a command and returns its answer as text.
func do(t testing.TB, c rueidis.Client, words ...string) string {
	t.Helper()
	r, err := c.Do(context.Background(), c.B().Arbitrary(words...).Build()).ToAny()
	if rueidis.IsRedisNil(err) {
		return ""
	}
	require.NoError(t, err, "%v", words)
	return fmt.Sprint(r)
}

func open(t testing.TB, url string) *Store {
	t.Helper()
	s, err := Open(context.Background(), url, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func allKeys(t testing.TB, c rueidis.Client) []string {
	t.Helper()
	all, err := c.Do(context.Background(), c.B().Keys().Pattern("*").Build()).AsStrSlice()
	require.NoError(t, err)
	return all
}
