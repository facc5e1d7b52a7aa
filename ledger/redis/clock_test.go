package redis

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
)

// clock is that of a server, which a test can set.
type clock struct {
	file   string
	offset time.Duration
}

func (c *clock) step(t testing.TB, d time.Duration) {
	t.Helper()
	c.offset += d
	b := binary.NativeEndian.AppendUint64(nil, uint64(c.offset.Microseconds())) //nolint:gosec // as the other side reads it
	f, err := os.OpenFile(c.file, os.O_WRONLY|os.O_CREATE, 0o600)
	require.NoError(t, err)
	_, err = f.WriteAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// clockwork starts a server whose clock can be set.
func clockwork(t testing.TB, program string) (*server, *clock) {
	t.Helper()
	dir := t.TempDir()
	shim := filepath.Join(dir, "clock.so")
	out, err := exec.CommandContext(t.Context(), "gcc", "-shared", "-fPIC", "-O1", "-o", shim, "testdata/clock.c").CombinedOutput() //nolint:gosec // a test's own arguments
	require.NoError(t, err, "gcc is needed for this test (make setup installs it): %s", out)
	c := &clock{file: filepath.Join(dir, "offset")}
	c.step(t, 0)
	s := &server{name: program, addr: free(t), dir: t.TempDir(), env: []string{"LD_PRELOAD=" + shim, "CLOCK_OFFSET=" + c.file}}
	s.start(t)
	return s, c
}

func TestClockStepIsTold(t *testing.T) {
	srv, c := clockwork(t, "redis-server")
	s := open(t, srv.url(""))
	l := hourly("acme", 1)
	h := hand{t: t, s: s, name: "a"}
	h.take(l, 1).granted()
	c.step(t, -10*time.Minute)
	r := h.take(l, 1)
	require.Contains(t, r.reply.Warning, "stepped back by")
	r.refused()
	// Forward again: the ledger's time goes on from where it was, with no jump back.
	c.step(t, 10*time.Minute)
	h.take(l, 1).refused()
	require.NotContains(t, h.say(ledger.Batch{}).Warning, "stepped back by 20m")
}

// A call that goes alone and tells nothing for a minute has told nothing.
func TestTrialWithoutAnEnd(t *testing.T) {
	srv, c := clockwork(t, "redis-server")
	s := open(t, srv.url(""))
	a, b, l := hand{t: t, s: s, name: "a", lease: time.Hour}, hand{t: t, s: s, name: "b"}, hourly("acme", 9)
	a.say(ledger.Batch{News: []ledger.News{{Pause: &ledger.Pause{Provider: "acme", Scope: "provider", Until: time.Now().Add(time.Second)}}}})
	b.take(l, 1).refused()
	c.step(t, 2*time.Second)
	id := a.take(l, 1).granted()
	require.Equal(t, ledger.Event, b.take(l, 1).refused().Wait)
	c.step(t, 50*time.Second)
	b.take(l, 1).refused()
	c.step(t, 11*time.Second)
	r := b.take(l, 1)
	r.granted()
	require.True(t, r.reply.Grants[0].Alone)
	a.say(ledger.Batch{Settlements: []ledger.Settlement{{Hold: id, At: time.Now(), Trial: ledger.Opens}}})
	a.take(l, 1).refused() // it is another one that decides now
	b.say(ledger.Batch{Settlements: []ledger.Settlement{{Hold: b.id, At: time.Now(), Trial: ledger.Opens}}})
	a.take(l, 1).granted()
}
