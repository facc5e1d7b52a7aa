package redis

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
)

// ask is a batch that asks for units of a counter.
func (h *hand) ask(c *ledger.Counter, n int64) ledger.Batch {
	h.id++
	return ledger.Batch{Takes: []ledger.Asked{{Hold: h.id, Take: takeOf(c, n)}}}
}

func TestServerRestartedEmpty(t *testing.T) {
	srv := serve(t)
	s := open(t, srv.url(""))
	a, b, l := hand{t: t, s: s, name: "a"}, hand{t: t, s: s, name: "b"}, hourly("acme", 5)
	id := a.take(l, 2).granted()
	b.say(ledger.Batch{})
	srv.stop(t)
	_, err := a.try(a.ask(l, 1))
	require.Error(t, err)
	srv.start(t)
	var r *ledger.Reply
	require.Eventually(t, func() bool { r, err = a.try(a.ask(l, 1)); return err == nil }, 10*time.Second, 20*time.Millisecond)
	require.NotEqual(t, a.epoch, r.Epoch)
	require.Zero(t, r.Grants[0].Hold, "nothing is carried out in another state")
	a.epoch = r.Epoch
	require.LessOrEqual(t, a.take(l, 1).refused().Wait, ledger.Grace)
	a.say(ledger.Batch{Holds: []ledger.Held{{Hold: id, At: time.Now(), Take: takeOf(l, 2)}}})
	u := a.used(l)
	require.EqualValues(t, 2, u.Held)
	r, err = b.try(b.ask(l, 1))
	require.NoError(t, err)
	require.Equal(t, a.epoch, r.Epoch, "one state for all")
	a.settle(id)
	require.EqualValues(t, 2, a.used(l).Used)
}

// What a stopped server has in its ears is carried out when it goes on, and must not be
// held for ever.
func TestServerPaused(t *testing.T) {
	srv := serve(t)
	s := open(t, srv.url(""))
	a, l := hand{t: t, s: s, name: "a"}, hourly("acme", 5)
	a.say(ledger.Batch{})
	srv.signal(t, syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	batch := a.ask(l, 2)
	a.seq++
	batch.Holder, batch.Seq, batch.Lease, batch.Epoch = a.name, a.seq, time.Minute, a.epoch
	_, err := s.Exchange(ctx, &batch)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	srv.signal(t, syscall.SIGCONT)
	a.say(ledger.Batch{Settlements: []ledger.Settlement{{Hold: a.id, At: time.Now(), Back: true}}})
	u := a.used(l)
	require.Zero(t, u.Held)
	require.Zero(t, u.Used)
}

// A batch that arrives after a later one of its holder is not carried out: its takes have
// been given back already.
func TestBatchOvertaken(t *testing.T) {
	srv := serve(t)
	s := open(t, srv.url(""))
	a, l := hand{t: t, s: s, name: "a"}, hourly("acme", 5)
	a.take(l, 1).granted()
	client, err := s.connected(context.Background())
	require.NoError(t, err)
	x := exchange{s: s, client: client, keys: s.keysOf(client)}
	p := newPart("acme", &place{}, ruler{now: time.Now()})
	p.addTake(0, 77, share{slug: "acme", own: true, units: []unit{{spec: specOf(l), n: 3}}})
	c, err := p.call(x.keys, who{holder: "a", mode: asHolder, send: 1, seq: 1, lease: time.Minute, epoch: parseEpoch(a.epoch)}, time.Now())
	require.NoError(t, err)
	m, err := x.do(context.Background(), []call{c}, nil)
	require.NoError(t, err)
	status, err := m[0][0].AsInt64()
	require.NoError(t, err)
	require.EqualValues(t, statusStale, status)
	require.EqualValues(t, 1, a.used(l).Held)
}

func TestScriptsFlushed(t *testing.T) {
	srv := serve(t)
	s := open(t, srv.url(""))
	a, one, two := hand{t: t, s: s, name: "a"}, hourly("one", 5), hourly("two", 5)
	a.take(one, 1).granted()
	do(t, srv.client(t), "SCRIPT", "FLUSH")
	batch := a.ask(one, 1)
	a.id++
	batch.Takes = append(batch.Takes, ledger.Asked{Hold: a.id, Take: takeOf(two, 1)})
	r := a.say(batch)
	require.NotZero(t, r.Grants[0].Hold)
	require.NotZero(t, r.Grants[1].Hold)
	require.EqualValues(t, 2, a.used(one).Held)
	require.EqualValues(t, 1, a.used(two).Held)
}

// An answer that breaks off: the batch has been carried out, and counts once.
func TestAnswerCut(t *testing.T) {
	srv := serve(t)
	r := disturb(t, srv.addr)
	s := open(t, "redis://"+r.addr)
	a, l := hand{t: t, s: s, name: "a"}, hourly("acme", 9)
	id := a.take(l, 2).granted()
	// No other answer is cut: the server has been asked how it is.
	require.Eventually(t, func() bool { return a.say(ledger.Batch{}).Warning != "" }, 10*time.Second, time.Millisecond)
	batch := ledger.Batch{
		Charges:     []ledger.Charge{{Counter: l, At: time.Now(), N: 3}},
		Settlements: []ledger.Settlement{{Hold: id, At: time.Now()}},
	}
	r.cut.Store(true)
	_, err := a.try(batch)
	require.Error(t, err)
	require.False(t, r.cut.Load())
	require.Eventually(t, func() bool {
		a.seq-- // said again
		_, err := a.try(batch)
		return err == nil
	}, 10*time.Second, 20*time.Millisecond)
	u := a.used(l)
	require.EqualValues(t, 5, u.Used)
	require.Zero(t, u.Held)
}

// Half a second away, a ledger is down, and says so; nothing that it asked stays held.
func TestFarAway(t *testing.T) {
	srv := serve(t)
	r := disturb(t, srv.addr)
	near, far := open(t, srv.url("")), open(t, "redis://"+r.addr)
	c, err := ledger.Open(far, ledger.Settings{})
	require.NoError(t, err)
	l := hourly("acme", 9)
	require.Eventually(t, func() bool { _, err := c.Take(context.Background(), takeOf(l, 1)); return err == nil }, 10*time.Second, 20*time.Millisecond)
	r.delay.Store(int64(500 * time.Millisecond))
	_, err = c.Take(context.Background(), takeOf(l, 3))
	require.ErrorIs(t, err, ledger.ErrDown)
	require.Eventually(t, func() bool { return !c.Status().Up }, 20*time.Second, time.Millisecond)
	b := hand{t: t, s: near, name: "b"}
	require.Eventually(t, func() bool { u := b.used(l); return u.Held == 1 && u.Used == 0 }, 20*time.Second, 50*time.Millisecond)
	r.delay.Store(0)
	require.Eventually(t, func() bool { return c.Status().Up }, 20*time.Second, 20*time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, c.Close(ctx))
}

// Where a server has no memory left, nothing of a batch is carried out.
func TestNoMemory(t *testing.T) {
	srv := serve(t)
	s := open(t, srv.url(""))
	plain := srv.client(t)
	a, l := hand{t: t, s: s, name: "a"}, hourly("acme", 9)
	id := a.take(l, 2).granted()
	do(t, plain, "CONFIG", "SET", "maxmemory", "1mb")
	do(t, plain, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	_, err := a.try(ledger.Batch{Settlements: []ledger.Settlement{{Hold: id, At: time.Now()}}, Takes: a.ask(l, 3).Takes})
	require.ErrorContains(t, err, "OOM")
	do(t, plain, "CONFIG", "SET", "maxmemory", "0")
	u := a.used(l)
	require.EqualValues(t, 2, u.Held)
	require.Zero(t, u.Used)
}

func TestWarnings(t *testing.T) {
	srv := serve(t)
	s := open(t, srv.url(""))
	a, plain := hand{t: t, s: s, name: "a"}, srv.client(t)
	says := func(words string) {
		t.Helper()
		s.mu.Lock()
		s.health.asked = time.Time{}
		s.mu.Unlock()
		require.Eventually(t, func() bool {
			warning := a.say(ledger.Batch{}).Warning
			return words == "" && warning == "" || words != "" && strings.Contains(warning, words)
		}, 10*time.Second, 10*time.Millisecond, words)
	}
	says("keeps nothing on disk")
	do(t, plain, "CONFIG", "SET", "save", "3600 1")
	says("")
	do(t, plain, "CONFIG", "SET", "save", "")
	says("keeps nothing on disk")
	do(t, plain, "CONFIG", "SET", "appendonly", "yes")
	says("")
	do(t, plain, "CONFIG", "SET", "maxmemory", "100mb")
	do(t, plain, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	says("maxmemory-policy allkeys-lru")
	do(t, plain, "CONFIG", "SET", "maxmemory", "0") // it never drops anything then
	says("")
	do(t, plain, "CONFIG", "SET", "appendonly", "no")
}

// Keys of another kind, of each kind of ours: an error, and nothing is written.
func TestWrongTypes(t *testing.T) {
	srv := serve(t)
	plain := srv.client(t)
	l := hourly("acme", 9)
	for i := range 6 {
		prefix := fmt.Sprint("w", i)
		k := keys{prefix: prefix}
		record, list := k.counter("acme", l.ID())
		key := []string{k.place("acme"), k.leases("acme"), k.pauses("acme"), k.holds("acme", "a"), record, list}[i]
		a := hand{t: t, s: open(t, srv.url("prefix="+prefix)), name: "a"}
		for range 3 { // so that there is a list
			a.settle(a.take(l, 1).granted())
		}
		a.take(l, 1).granted()
		a.say(ledger.Batch{News: []ledger.News{{Pause: &ledger.Pause{Provider: "acme", Scope: "key", Name: "x", Until: time.Now().Add(time.Hour)}}}})
		before := a.used(l)
		kept := do(t, plain, "DUMP", key)
		do(t, plain, "RENAME", key, "aside")
		if key == list || key == k.place("acme") {
			do(t, plain, "SET", key, "x")
		} else {
			do(t, plain, "RPUSH", key, "x")
		}
		_, err := a.try(ledger.Batch{
			Charges: []ledger.Charge{{Counter: l, At: time.Now().Add(-time.Minute), N: 1}},
			Takes:   a.ask(l, 1).Takes,
		})
		require.ErrorContains(t, err, "another kind under our names", key)
		require.NotEmpty(t, kept)
		do(t, plain, "RENAME", "aside", key)
		a.seq++
		require.Equal(t, before.Used, a.used(l).Used, key)
		require.Equal(t, before.Held, a.used(l).Held, key)
		do(t, plain, "FLUSHALL")
	}
}

// A server that was put back to an older state is found out.
func TestServerWentBack(t *testing.T) {
	srv := serve(t)
	plain := srv.client(t)
	s := open(t, srv.url(""))
	a, l := hand{t: t, s: s, name: "a"}, hourly("acme", 9)
	a.take(l, 1).granted()
	do(t, plain, "SAVE")
	id := a.take(l, 3).granted()
	srv.stop(t)
	srv.start(t) // from the dump: the second take is not in it
	require.Eventually(t, func() bool {
		r, err := a.try(ledger.Batch{Peek: []*ledger.Counter{l}})
		return err == nil && strings.Contains(r.Warning, "gone back")
	}, 10*time.Second, 20*time.Millisecond)
	require.EqualValues(t, 4, a.used(l).Held, "what is held has been told again")
	a.settle(id)
	require.EqualValues(t, 3, a.used(l).Used)

	// By more than a few seconds its state counts as lost.
	s.mu.Lock()
	s.holders["a"].acked["acme"] += uint64((back + time.Second).Microseconds())
	s.mu.Unlock()
	r, err := a.try(ledger.Batch{Peek: []*ledger.Counter{l}})
	require.NoError(t, err)
	require.NotEqual(t, a.epoch, r.Epoch)
}
