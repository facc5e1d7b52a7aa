package redis

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// hand is a holder whose batches are written by hand.
type hand struct {
	t     testing.TB
	s     *Store
	name  string
	lease time.Duration
	seq   uint64
	id    ledger.Hold
	epoch string
}

func (h *hand) try(b ledger.Batch) (*ledger.Reply, error) {
	h.seq++
	b.Holder, b.Seq, b.Lease, b.Epoch = h.name, h.seq, h.lease, h.epoch
	if b.Lease == 0 {
		b.Lease = time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return h.s.Exchange(ctx, &b)
}

// say carries out a batch; the state must be the one that is known.
func (h *hand) say(b ledger.Batch) *ledger.Reply {
	h.t.Helper()
	r, err := h.try(b)
	require.NoError(h.t, err)
	if h.epoch != "" {
		require.Equal(h.t, h.epoch, r.Epoch, "the state has been lost")
	}
	h.epoch = r.Epoch
	return r
}

type got struct {
	t     testing.TB
	reply *ledger.Reply
}

func (g got) granted() ledger.Hold {
	g.t.Helper()
	require.NotZero(g.t, g.reply.Grants[0].Hold, "refused for %v by %d", g.reply.Grants[0].Wait, g.reply.Grants[0].By)
	return g.reply.Grants[0].Hold
}

func (g got) refused() ledger.Grant {
	g.t.Helper()
	require.Zero(g.t, g.reply.Grants[0].Hold, "granted")
	return g.reply.Grants[0]
}

func (h *hand) take(c *ledger.Counter, n int64) got {
	h.t.Helper()
	h.id++
	return got{h.t, h.say(ledger.Batch{Takes: []ledger.Asked{{Hold: h.id, Take: takeOf(c, n)}}})}
}

func takeOf(c *ledger.Counter, n int64) ledger.Take {
	return ledger.Take{Provider: c.Provider(), Units: []ledger.Units{{Counter: c, N: n}}}
}

func (h *hand) settle(id ledger.Hold) {
	h.t.Helper()
	h.say(ledger.Batch{Settlements: []ledger.Settlement{{Hold: id, At: time.Now()}}})
}

func (h *hand) used(c *ledger.Counter) ledger.Usage {
	h.t.Helper()
	return h.say(ledger.Batch{Peek: []*ledger.Counter{c}}).Usages[0]
}

// hourly is a counter of so many an hour.
func hourly(slug string, most int64) *ledger.Counter {
	return ledger.NewCounter(slug, provider.Limit{Name: "hourly", Max: most, Per: "1h"}, "", "")
}
