package outage

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

const (
	roleVar = "HEADGATE_OUTAGE_ROLE" // a role as JSON
	nameKey = "X-Process"            // the header that tells the referee who calls
	ready   = "ready"                // what a process says when it can begin
)

// role is what a process is told: to call a provider with a budget that it shares.
type role struct {
	Name     string
	Slug     string
	URL      string // of the provider
	Limit    provider.Limit
	Callers  int
	Place    string // of the store; "": it has the budget to itself, without a ledger
	Settings ledger.Settings
	Team     int // it waits until so many processes share the store
}

// live is the whole life of a process: it says ready, begins at a line of its standard
// input, and ends when that is closed. All calls have ended then.
func (r *role) live(t *testing.T, store func(t *testing.T, place string) ledger.Store) {
	config := coordinator.Config{Providers: []provider.Provider{declare(r.Slug, r.Limit)}}
	if r.Place != "" {
		led, err := ledger.Open(store(t, r.Place), r.Settings)
		require.NoError(t, err)
		config.Ledger = led
		require.Eventually(t, func() bool { s := led.Status(); return s.Up && s.Replicas >= r.Team }, time.Minute, time.Millisecond)
	}
	c, err := coordinator.New(config)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: r.Callers}}
	defer client.CloseIdleConnections()
	x := &crowd{t: t, slug: r.Slug, send: func(ctx context.Context) (bool, error) { return r.get(ctx, client) }}

	in := bufio.NewReader(os.Stdin)
	_, err = fmt.Fprintln(os.Stdout, ready)
	require.NoError(t, err)
	_, err = in.ReadString('\n')
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range r.Callers {
		wg.Go(func() { x.call(ctx, c) })
	}
	_, _ = in.ReadString('\n')
	stop()
	wg.Wait()

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	require.NoError(t, c.Shutdown(ctx))
	if config.Ledger != nil {
		require.NoError(t, config.Ledger.Close(ctx))
	}
}

// get is a call. What is under way when the process is to end has its answer first.
func (r *role) get(ctx context.Context, client *http.Client) (admitted bool, err error) {
	q, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, r.URL, http.NoBody)
	if err != nil {
		return false, err
	}
	q.Header.Set(nameKey, r.Name)
	a, err := client.Do(q)
	if err != nil {
		return false, err
	}
	defer a.Body.Close()
	if _, err := io.Copy(io.Discard, a.Body); err != nil {
		return false, err
	}
	if a.StatusCode != http.StatusOK && a.StatusCode != http.StatusTooManyRequests {
		return false, fmt.Errorf("status %d", a.StatusCode)
	}
	return a.StatusCode == http.StatusOK, nil
}

// process is one that has been started.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	done chan struct{} // closed when it has ended, with this error:
	err  error

	mu   sync.Mutex
	said strings.Builder
}

// start starts this program anew, in a role; it ends with the test at the latest. whole
// is the name of the test that calls Processes.
func start(t *testing.T, whole string, r role) *process {
	t.Helper()
	text, err := json.Marshal(r)
	require.NoError(t, err)
	p := &process{t: t, name: r.Name, done: make(chan struct{})}
	p.cmd = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+whole+"$", "-test.timeout=5m") //nolint:gosec // this very program
	p.cmd.Env = append(os.Environ(), roleVar+"="+string(text))
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() { <-p.done })
	return p
}

// Write hears what the process says.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.Write(b)
}

func (p *process) heard() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// begin waits until all are ready, and has them call.
func begin(all ...*process) {
	for _, p := range all {
		require.Eventually(p.t, func() bool { return strings.HasPrefix(p.heard(), ready) || p.ended() }, time.Minute, time.Millisecond)
		require.False(p.t, p.ended(), "process %s: %s", p.name, p.heard())
	}
	for _, p := range all {
		_, err := io.WriteString(p.in, "go\n")
		require.NoError(p.t, err)
	}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// end has all end, and waits for it: no call is stuck, and nobody has met an error.
func end(all ...*process) {
	for _, p := range all {
		assert.False(p.t, p.ended(), "process %s has ended before", p.name)
		_ = p.in.Close()
	}
	for _, p := range all {
		ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
		select {
		case <-p.done:
			assert.NoError(p.t, p.err, "process %s: %s", p.name, p.heard())
		case <-ctx.Done():
			assert.Fail(p.t, "stuck", "process %s: %s", p.name, p.heard())
		}
		cancel()
	}
}

// kill is kill -9.
func (p *process) kill() {
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGKILL))
	<-p.done
}
