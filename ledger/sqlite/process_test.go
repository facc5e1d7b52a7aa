package sqlite_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Tests with several real processes start this program anew: what a process does is a
// role, and its arguments follow.
var roles = map[string]func(args []string) error{}

const roleVar = "HEADGATE_LEDGER_ROLE"

func TestMain(m *testing.M) {
	role, ok := os.LookupEnv(roleVar)
	if !ok {
		os.Exit(m.Run())
	}
	args := strings.Split(role, "\n")
	if err := roles[args[0]](args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// process is one that has been started.
type process struct {
	*exec.Cmd
	stderr strings.Builder
	done   chan struct{}

	mu    sync.Mutex
	lines []string
}

// start starts a process in a role; it ends with the test at the latest.
func start(t testing.TB, role string, args ...any) *process {
	t.Helper()
	words := []string{role}
	for _, a := range args {
		words = append(words, fmt.Sprint(a))
	}
	p := &process{Cmd: exec.CommandContext(t.Context(), os.Args[0]), done: make(chan struct{})}
	p.Env = append(os.Environ(), roleVar+"="+strings.Join(words, "\n"))
	p.Stderr = &p.stderr
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	go func() {
		defer close(p.done)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, s.Text())
			p.mu.Unlock()
		}
	}()
	return p
}

// said are the lines that it has written up to now.
func (p *process) said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines[:len(p.lines):len(p.lines)]
}

// end waits until it has ended by itself, and returns what it wrote.
func (p *process) end(t testing.TB) []string {
	t.Helper()
	<-p.done
	require.NoError(t, p.Wait(), p.stderr.String())
	return p.said()
}

// kill ends it at once, and returns what it had written.
func (p *process) kill(t testing.TB) []string {
	t.Helper()
	require.NoError(t, p.Process.Kill())
	<-p.done
	p.Wait()
	return p.said()
}
