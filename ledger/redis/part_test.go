package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
)

// A take whose counters are of several providers: where one refuses, the others have
// nothing of it.
func TestTakeOfSeveralProviders(t *testing.T) {
	srv := serve(t)
	s := open(t, srv.url(""))
	a, one, two := hand{t: t, s: s, name: "a"}, hourly("one", 9), hourly("two", 2)
	take := ledger.Take{Provider: "one", Units: []ledger.Units{{Counter: two, N: 2}, {Counter: one, N: 3}}}
	ask := func() *ledger.Reply {
		a.id++
		return a.say(ledger.Batch{Takes: []ledger.Asked{{Hold: a.id, Take: take}}})
	}
	got{t, ask()}.granted()
	g := got{t, ask()}.refused()
	require.Equal(t, 0, g.By)
	require.Equal(t, ledger.Event, g.Wait)
	require.EqualValues(t, 3, a.used(one).Held)
	require.EqualValues(t, 2, a.used(two).Held)
	a.say(ledger.Batch{Settlements: []ledger.Settlement{{Hold: a.id - 1, At: time.Now(), Part: []ledger.Part{{Unit: 1, Charged: 1}}}}})
	require.EqualValues(t, 1, a.used(one).Used)
	require.EqualValues(t, 2, a.used(two).Held)
}

// A dead holder with more holds than are settled at once, and one with none.
func TestBuryMany(t *testing.T) {
	srv, clock := clockwork(t, "redis-server")
	s := open(t, srv.url(""))
	l := hourly("acme", 5000)
	a, b := hand{t: t, s: s, name: "a", lease: 20 * time.Second}, hand{t: t, s: open(t, srv.url("")), name: "b"}
	var batch ledger.Batch
	for i := range portion*2 + 10 {
		batch.Takes = append(batch.Takes, ledger.Asked{Hold: ledger.Hold(i + 1), Take: takeOf(l, 1)})
	}
	a.say(batch)
	b.say(ledger.Batch{})
	clock.step(t, time.Minute)
	u := b.used(l)
	require.EqualValues(t, portion*2+10, u.Used)
	require.Zero(t, u.Held)
	require.InDelta(t, time.Hour-40*time.Second, time.Until(u.ResetAt), float64(20*time.Second), "from the lease's end on")
	require.Empty(t, do(t, srv.client(t), "ZRANGE", keys{prefix: "headgate"}.leases("acme"), "0", "-1")[2:])
	a.settle(3) // it is alive again: what it held has been charged
	require.EqualValues(t, portion*2+10, b.used(l).Used)
}

// Calls alike are decided together, but not past a grant: what is left has changed.
func TestRefusedAgain(t *testing.T) {
	srv := serve(t)
	a, l := hand{t: t, s: open(t, srv.url("")), name: "a"}, hourly("acme", 5)
	a.take(l, 3).granted()
	var b ledger.Batch
	for i, n := range []int64{3, 3, 1, 3} {
		b.Takes = append(b.Takes, ledger.Asked{Hold: ledger.Hold(10 + i), Take: takeOf(l, n)})
	}
	r := a.say(b)
	for i, room := range []int64{2, 2, 1, 1} {
		require.Equal(t, []int64{room}, r.Grants[i].Room, i)
		require.Equal(t, i == 2, r.Grants[i].Hold != 0, i)
	}
}
