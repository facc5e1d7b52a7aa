package redis

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
)

// cluster starts three servers that share the slots.
func cluster(t testing.TB) (nodes []*server, url string) {
	t.Helper()
	for i := range 3 {
		s := serve(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes", "--cluster-node-timeout", "2000", "--cluster-port", fmt.Sprint(portOf(t, free(t))))
		c := s.client(t)
		do(t, c, "CLUSTER", "ADDSLOTSRANGE", fmt.Sprint(i*5462), fmt.Sprint(min(16383, (i+1)*5462-1)))
		for _, other := range nodes {
			// The bus has a port of its own, which MEET has to be told.
			bus := other.args[len(other.args)-1]
			do(t, c, "CLUSTER", "MEET", "127.0.0.1", fmt.Sprint(portOf(t, other.addr)), bus)
		}
		nodes = append(nodes, s)
	}
	for _, s := range nodes {
		c := s.client(t)
		require.Eventually(t, func() bool {
			info := do(t, c, "CLUSTER", "INFO")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		}, 30*time.Second, 20*time.Millisecond)
	}
	return nodes, "redis://" + nodes[0].addr + "?addr=" + nodes[1].addr + "&addr=" + nodes[2].addr
}

func portOf(t testing.TB, addr string) int {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", addr)
	require.NoError(t, err)
	return a.Port
}

// spread are providers whose keys are on three different servers, none with what is
// common.
func spread(t *testing.T, url string, nodes []*server) (slugs []string, of map[string]*server) {
	t.Helper()
	s := open(t, url)
	client, err := s.connected(context.Background())
	require.NoError(t, err)
	require.Equal(t, rueidis.ClientModeCluster, client.Mode())
	of = map[string]*server{}
	for i := 0; len(of) < 3; i++ {
		slug := fmt.Sprint("provider", i)
		slot := do(t, client, "CLUSTER", "KEYSLOT", keys{prefix: "headgate"}.place(slug))
		var n int
		_, err := fmt.Sscan(slot, &n)
		require.NoError(t, err)
		node := nodes[min(2, n/5462)]
		if !slices.ContainsFunc(slugs, func(s string) bool { return of[s] == node }) {
			slugs = append(slugs, slug)
			of[slug] = node
		}
	}
	return slugs, of
}

func TestCluster(t *testing.T) {
	nodes, url := cluster(t)
	slugs, of := spread(t, url, nodes)
	a, b := hand{t: t, s: open(t, url), name: "a"}, hand{t: t, s: open(t, url), name: "b"}
	var batch ledger.Batch
	var counters []*ledger.Counter
	for _, slug := range slugs {
		l := hourly(slug, 3)
		counters = append(counters, l)
		batch.Takes = append(batch.Takes, a.ask(l, 2).Takes...)
		batch.Peek = append(batch.Peek, l)
	}
	r := a.say(batch)
	var settle ledger.Batch
	for i, g := range r.Grants {
		require.NotZero(t, g.Hold)
		require.EqualValues(t, 2, r.Usages[i].Held)
		settle.Settlements = append(settle.Settlements, ledger.Settlement{Hold: g.Hold, At: time.Now()})
	}
	for _, c := range counters {
		b.take(c, 2).refused()
	}
	a.say(settle)
	a.say(ledger.Batch{News: []ledger.News{{Pause: &ledger.Pause{Provider: slugs[2], Scope: "provider", Until: time.Now().Add(time.Hour), Why: "banned"}}}})
	r = b.say(ledger.Batch{Peek: counters})
	require.Len(t, r.Pauses, 1)
	require.Equal(t, 2, r.Replicas)
	for _, u := range r.Usages {
		require.EqualValues(t, 2, u.Used)
	}
	require.Equal(t, "banned", b.take(counters[2], 1).refused().Pause.Why)

	// One server has lost all that it had: so the state is another one for all, and what is
	// known is told again.
	lost := of[slugs[0]]
	do(t, lost.client(t), "FLUSHALL")
	epoch := a.epoch
	require.Eventually(t, func() bool {
		r, err := a.try(ledger.Batch{Peek: counters[:1]})
		require.NoError(t, err)
		return r.Epoch != epoch
	}, 10*time.Second, 20*time.Millisecond)
	a.epoch = ""
	a.say(ledger.Batch{Charges: []ledger.Charge{{Counter: counters[0], At: time.Now(), N: 2}, {Counter: counters[1], At: time.Now(), N: 2}}})
	r, err := b.try(ledger.Batch{Peek: counters})
	require.NoError(t, err)
	require.Equal(t, a.epoch, r.Epoch)
	b.epoch = r.Epoch
	for i, want := range []int64{2, 2, 0} {
		require.Equal(t, want, b.used(counters[i]).Used)
	}
}

// That a server has lost what it had is found also where the answer that told so was not
// heard, and is not forgotten where the epoch could not be renewed at once.
func TestALossIsNotForgotten(t *testing.T) {
	_, url := cluster(t)
	s := open(t, url+"&prefix=loss")
	a := &hand{t: t, s: s, name: "a"}
	c := hourly("acme", 9)
	a.say(ledger.Batch{Charges: []ledger.Charge{{Counter: c, At: time.Now(), N: 2}}})
	place := keys{prefix: "loss"}.place("acme")
	renewed := func() bool {
		r, err := a.try(ledger.Batch{Peek: []*ledger.Counter{c}})
		require.NoError(t, err)
		return r.Epoch != a.epoch
	}
	require.False(t, renewed())

	require.NoError(t, s.client.Do(t.Context(), s.client.B().Del().Key(place).Build()).Error())
	unheard := &hand{t: t, s: open(t, url+"&prefix=loss"), name: "a", seq: a.seq, epoch: a.epoch} // says it over another connection
	a.seq++
	unheard.used(c)
	require.True(t, renewed())
	a.epoch = ""
	a.say(ledger.Batch{Charges: []ledger.Charge{{Counter: c, At: time.Now(), N: 2}}})
	require.False(t, renewed())

	s.mu.Lock()
	s.lost = true
	s.mu.Unlock()
	require.True(t, renewed())
	a.epoch = ""
	a.say(ledger.Batch{})
	require.False(t, renewed())
}
