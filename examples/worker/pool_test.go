package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// asProgram has the test's binary be the program.
const asProgram = "WORKER_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" || os.Getenv(asWorker) != "" {
		main() // exits
	}
	goleak.VerifyTestMain(m)
}

// buffer is a bytes.Buffer for many goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// quick is a provider whose windows a test can wait for.
const quick = "slug: acme\nthrottle: {limits: [{name: rate, max: 5, per: 400ms, basis: pacing}]}\n"

// quickly is a file that declares it.
func quickly(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "provider.yaml")
	require.NoError(t, os.WriteFile(path, []byte(quick), 0o600))
	return path
}

// quickPool is a pool whose dead are found soon.
func quickPool(t *testing.T, args ...string) (p *pool, stdout, stderr *buffer) {
	t.Helper()
	o, err := parse(append([]string{"-provider", quickly(t), "-at-once", "4"}, args...), os.Stderr)
	require.NoError(t, err)
	o.ackWait, o.lease = 1500*time.Millisecond, time.Second
	stdout, stderr = new(buffer), new(buffer)
	return newPool(o, stdout, stderr), stdout, stderr
}

// done is how many jobs the workers have told to be done.
func (p *pool) done() (n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.stats {
		n += s.Done
	}
	return n
}

// A worker that is killed loses no job, what nobody can do ends in the dead letters, and
// three processes together keep to the limit.
func TestKilledWorkerLosesNoJob(t *testing.T) {
	t.Parallel()
	p, stdout, stderr := quickPool(t, "-jobs", "40", "-crash", "-processes", "3")
	require.NoError(t, p.run(t.Context()), stderr.String())
	got := stdout.String()
	assert.Contains(t, got, "jobs: 40, done: 38, dead letters: 2, left: 0, lost: 0,")
	assert.Regexp(t, `dead letter: \w+-00013 \(rejected: status 400 Bad Request, tried 1 times\)`, got)
	assert.Regexp(t, `dead letter: \w+-00029 \(failed: status 500 Internal Server Error, tried 3 times\)`, got)
	assert.Regexp(t, `violations: 0 in 4\d calls`, got)
	assert.Regexp(t, `(?m)^ +1 .* killed *$`, got)
	assert.Regexp(t, `(?m)^ +4 +\d`, got, "another one takes its place")
	assert.Contains(t, stderr.String(), "1 was killed (signal: killed): another one takes its place")
	m := regexp.MustCompile(`queue and ledger: (\S+)`).FindStringSubmatch(got)
	require.NotNil(t, m)
	assert.NoDirExists(t, m[1], "nothing is left")
}

// Each process by itself is too many: the referee can tell, and no job is lost to the
// refusals.
func TestWithoutALedgerTheLimitIsBroken(t *testing.T) {
	t.Parallel()
	p, stdout, stderr := quickPool(t, "-jobs", "24", "-ledger", "none", "-tries", "1000")
	require.NoError(t, p.run(t.Context()), stderr.String())
	assert.Regexp(t, `violations: [1-9]\d* in \d+ calls`, stdout.String())
	assert.Contains(t, stdout.String(), "done: 23, dead letters: 1, left: 0, lost: 0,")
}

// Ctrl-C: what is out is finished, the rest stays in the queue, and the next run does it.
func TestInterruptedPoolGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	p, stdout, stderr := quickPool(t, "-jobs", "40", "-dir", dir)
	var wrong error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wrong = p.run(ctx)
	}()
	require.Eventually(t, func() bool { return p.done() >= 8 }, time.Minute, 5*time.Millisecond, "it never came so far")
	cancel()
	<-ended
	require.ErrorIs(t, wrong, context.Canceled, stderr.String())
	first := regexp.MustCompile(`jobs: 40, done: (\d+), dead letters: (\d), left: (\d+), lost: 0,`).FindStringSubmatch(stdout.String())
	require.NotNil(t, first, stdout.String())
	assert.Contains(t, stdout.String(), first[3]+" jobs are left; this does them: worker -dir "+dir+" -jobs 0")
	assert.Contains(t, stdout.String(), "violations: 0 in ")
	assert.Equal(t, 40, number(t, first[1])+number(t, first[2])+number(t, first[3]))
	assert.Positive(t, number(t, first[3]))

	p, stdout, stderr = quickPool(t, "-jobs", "0", "-dir", dir)
	require.NoError(t, p.run(t.Context()), stderr.String())
	assert.Contains(t, stdout.String(), first[3]+" jobs are in the queue already\n")
	assert.Contains(t, stdout.String(), "jobs: 40, done: 38, dead letters: 2, left: 0, lost: 0,")
	assert.Contains(t, stdout.String(), "violations: 0 in ")
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// The first process is killed, and the queue's server with it: its workers end, and the
// jobs are still there.
func TestKilledPoolGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-provider", quickly(t), "-jobs", "40", "-dir", dir)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	out, in, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	cmd.Stderr = in // the workers have it, too
	require.NoError(t, cmd.Start())
	require.NoError(t, in.Close())
	var stderr buffer
	ended := make(chan bool)
	go func() {
		_, _ = io.Copy(&stderr, out)
		close(ended)
	}()
	working := regexp.MustCompile(`s  [1-9]\d* done`)
	require.Eventually(t, func() bool { return working.MatchString(stderr.String()) }, time.Minute, 5*time.Millisecond, "it never came so far")
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("its workers go on")
	}

	p, stdout, said := quickPool(t, "-jobs", "0", "-dir", dir)
	require.NoError(t, p.run(t.Context()), said.String())
	assert.Regexp(t, `\d+ jobs are in the queue already`, stdout.String())
	assert.Contains(t, stdout.String(), "jobs: 40, done: 38, dead letters: 2, left: 0, lost: 0,")
	assert.Contains(t, stdout.String(), "violations: 0 in ")
}

// A worker that cannot work says why, and nobody starts it again and again.
func TestWorkersThatCannotWorkEndThePool(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "diary")
	require.NoError(t, os.WriteFile(file+"-played", []byte("my diary"), 0o600))
	p, stdout, stderr := quickPool(t, "-ledger", "sqlite:"+file, "-processes", "2", "-dir", dir)
	require.ErrorContains(t, p.run(t.Context()), "has given up")
	assert.Contains(t, stderr.String(), file+"-played")
	assert.Contains(t, stdout.String(), "jobs: 60, done: 0, dead letters: 0, left: 60, lost: 0,")
	assert.LessOrEqual(t, p.count, 2)

	require.Error(t, workUntil(strings.NewReader(""), stderr))
	require.Error(t, workUntil(strings.NewReader("{}x\n"), stderr))
}

func TestBodiesComeFromAFile(t *testing.T) {
	list := filepath.Join(t.TempDir(), "jobs")
	require.NoError(t, os.WriteFile(list, []byte("{\"job\":1}\n\nno JSON\n"), 0o600))
	p, stdout, stderr := quickPool(t, "-f", list, "-processes", "1")
	require.NoError(t, p.run(t.Context()), stderr.String())
	assert.Contains(t, stdout.String(), "jobs: 2, done: 2, dead letters: 0, left: 0, lost: 0,")
}
