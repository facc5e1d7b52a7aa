package redis

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
)

// A primary dies: its replica goes on with what was granted.
func TestSentinelFailover(t *testing.T) {
	primary := serve(t)
	replica := serve(t, "--replicaof", strings.Replace(primary.addr, ":", " ", 1), "--repl-diskless-sync-delay", "0")
	dir := t.TempDir()
	sentinel := &server{name: "redis-server", addr: free(t), dir: dir, sentinel: true}
	conf := filepath.Join(dir, "sentinel.conf")
	require.NoError(t, os.WriteFile(conf, fmt.Appendf(nil, `port %d
bind 127.0.0.1
dir %s
logfile %s
sentinel monitor main 127.0.0.1 %d 1
sentinel down-after-milliseconds main 500
sentinel failover-timeout main 5000
`, portOf(t, sentinel.addr), dir, filepath.Join(dir, "log"), portOf(t, primary.addr)), 0o600))
	sentinel.args = []string{conf, "--sentinel"}
	sentinel.start(t)
	watch := sentinel.client(t)
	require.Eventually(t, func() bool { return strings.Contains(do(t, watch, "INFO", "sentinel"), "slaves=1") }, 30*time.Second, 50*time.Millisecond)

	a := hand{t: t, s: open(t, "redis://"+sentinel.addr+"?master_set=main"), name: "a"}
	l := hourly("acme", 9)
	id := a.take(l, 2).granted()
	a.settle(a.take(l, 1).granted())
	do(t, primary.client(t), "WAIT", "1", "10000")
	primary.stop(t)
	require.Eventually(t, func() bool { _, err := a.try(ledger.Batch{}); return err == nil }, 60*time.Second, 50*time.Millisecond)
	require.Contains(t, do(t, replica.client(t), "ROLE"), "master")
	u := a.used(l)
	require.EqualValues(t, 2, u.Held)
	require.EqualValues(t, 1, u.Used)
	a.settle(id)
	require.EqualValues(t, 3, a.used(l).Used)
}
