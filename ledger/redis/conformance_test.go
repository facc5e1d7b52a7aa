package redis

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/ledgertest"
)

func TestConformance(t *testing.T) {
	names := []string{"redis-server"}
	if _, err := exec.LookPath("valkey-server"); err == nil {
		names = append(names, "valkey-server")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			srv, clock := clockwork(t, name)
			plain := srv.client(t)
			conform(t, srv.url(""), func(t *testing.T) { do(t, plain, "FLUSHALL") }, clock)
		})
	}
}

func TestConformanceOfACluster(t *testing.T) {
	nodes, url := cluster(t)
	conform(t, url, func(t *testing.T) {
		for _, s := range nodes {
			do(t, s.client(t), "FLUSHALL")
		}
	}, nil)
}

// conform plays the suite: each play has a prefix of its own.
func conform(t *testing.T, url string, lose func(t *testing.T), c *clock) {
	n := 0
	ledgertest.Run(t, func(t *testing.T) ledgertest.Bench {
		n++
		if c != nil { // a play before may have set it
			c.step(t, -c.offset)
		}
		b := ledgertest.Bench{
			Store:      func(t *testing.T) ledger.Store { return open(t, fmt.Sprintf("%s&prefix=suite%d", url, n)) },
			Resolution: 5 * time.Millisecond, // above all the way there
			Exact:      most,
			Lose:       lose,
		}
		if c != nil {
			b.Step = func(t *testing.T, d time.Duration) { c.step(t, -d) }
		}
		return b
	})
}
