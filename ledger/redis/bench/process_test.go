// Package bench measures the Redis store beside what one would take instead, on one
// server. It is a module of its own, so that nobody else gets the peers.
package bench

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

const (
	processes = 4
	callers   = 250 // of each process, all of them waiting for a decision all the time
)

// ask is one decision.
type ask func(ctx context.Context) error

// kinds are what is measured: each makes an ask in a process of its own.
var kinds = map[string]func(url string) (ask, func(), error){
	"headgate/granted":   headgate(1_000_000_000, time.Minute),
	"headgate/refused":   headgate(1000, time.Second),
	"headgate/three":     headgate(1_000_000_000, time.Second, time.Minute, time.Hour),
	"redis_rate/granted": redisRate(1_000_000_000),
	"redis_rate/refused": redisRate(1000),
}

func TestMain(m *testing.M) {
	if kind := os.Getenv("HEADGATE_BENCH"); kind != "" {
		if err := child(kind, os.Getenv("HEADGATE_BENCH_URL")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child makes as many decisions as a line on its standard input says.
func child(kind, url string) error {
	decide, end, err := kinds[kind](url)
	if err != nil {
		return err
	}
	defer end()
	fmt.Println("ready")
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return err
	}
	var left, failed atomic.Int64
	left.Store(n)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := decide(context.Background()); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if failed.Load() > 0 {
		return fmt.Errorf("%d of %d decisions failed", failed.Load(), n)
	}
	fmt.Println("done")
	return nil
}

// BenchmarkProcesses is one decision of four processes with 1,000 callers in all.
func BenchmarkProcesses(b *testing.B) {
	addr := serve(b)
	plain, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		b.Fatal(err)
	}
	defer plain.Close()
	for _, kind := range []string{"headgate/granted", "headgate/refused", "headgate/three", "redis_rate/granted", "redis_rate/refused"} {
		b.Run(kind, func(b *testing.B) { together(b, kind, addr, plain) })
	}
}

func together(b *testing.B, kind, addr string, plain rueidis.Client) {
	ctx := context.Background()
	if err := plain.Do(ctx, plain.B().Flushall().Build()).Error(); err != nil {
		b.Fatal(err)
	}
	var all []*worker
	for range processes {
		all = append(all, start(b, kind, "redis://"+addr+"/0"))
	}
	if err := plain.Do(ctx, plain.B().ConfigResetstat().Build()).Error(); err != nil {
		b.Fatal(err)
	}
	before := serverTime(b, plain)
	b.ResetTimer()
	for i, w := range all {
		w.say(b, b.N/processes+min(1, max(0, b.N%processes-i)))
	}
	for _, w := range all {
		w.hear(b, "done")
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(float64(scripts(b, plain))/float64(b.N), "scripts/decision")
	b.ReportMetric(float64((serverTime(b, plain)-before).Nanoseconds())/float64(b.N), "server-cpu-ns/decision")
	var own time.Duration
	for _, w := range all {
		own += w.end(b)
	}
	b.ReportMetric(float64(own.Nanoseconds())/float64(b.N), "client-cpu-ns/decision")
}

// serverTime is the processor's time that the server has used.
func serverTime(b *testing.B, plain rueidis.Client) (d time.Duration) {
	text, err := plain.Do(context.Background(), plain.B().Info().Section("cpu").Build()).ToString()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(text) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), ":")
		if k == "used_cpu_user" || k == "used_cpu_sys" {
			seconds, err := strconv.ParseFloat(v, 64)
			if err != nil {
				b.Fatal(err)
			}
			d += time.Duration(seconds * 1e9)
		}
	}
	return d
}

// scripts is how many the server has run.
func scripts(b *testing.B, plain rueidis.Client) (n int64) {
	text, err := plain.Do(context.Background(), plain.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(text) {
		for _, name := range []string{"cmdstat_evalsha:calls=", "cmdstat_eval:calls="} {
			if rest, ok := strings.CutPrefix(line, name); ok {
				count, _, _ := strings.Cut(rest, ",")
				c, err := strconv.ParseInt(count, 10, 64)
				if err != nil {
					b.Fatal(err)
				}
				n += c
			}
		}
	}
	return n
}

type worker struct {
	cmd *exec.Cmd
	in  interface {
		Write(p []byte) (int, error)
		Close() error
	}
	out *bufio.Reader
}

func start(b *testing.B, kind, url string) *worker {
	w := &worker{cmd: exec.Command(os.Args[0])} //nolint:gosec // this very program
	w.cmd.Env = append(os.Environ(), "HEADGATE_BENCH="+kind, "HEADGATE_BENCH_URL="+url)
	w.cmd.Stderr = os.Stderr
	in, err := w.cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	w.in, w.out = in, bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	w.hear(b, "ready")
	return w
}

func (w *worker) say(b *testing.B, n int) {
	if _, err := fmt.Fprintln(w.in, n); err != nil {
		b.Fatal(err)
	}
}

func (w *worker) hear(b *testing.B, want string) {
	line, err := w.out.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != want {
		b.Fatalf("a process says %q (%v) instead of %q", line, err, want)
	}
}

// end waits for the process's end and returns the processor's time that it has used.
func (w *worker) end(b *testing.B) time.Duration {
	if err := w.in.Close(); err != nil {
		b.Fatal(err)
	}
	if err := w.cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	return w.cmd.ProcessState.UserTime() + w.cmd.ProcessState.SystemTime()
}

// serve starts a server that keeps nothing and ends with the benchmark.
func serve(b *testing.B) string {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		b.Fatalf("redis-server is needed: make setup installs it: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--dir", b.TempDir(), "--save", "", "--appendonly", "no") //nolint:gosec // a benchmark's own arguments
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 1000 {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return addr
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.Fatal("redis-server does not answer")
	return ""
}
