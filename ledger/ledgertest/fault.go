package ledgertest

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
)

var faultPlays = []play{
	{name: "client/the store is cut off, and comes back", run: faultCut},
	{name: "client/the store hangs", run: faultHangs},
	{name: "client/answers are lost, all counts once", run: faultDeaf},
	{name: "client/a late grant is given back", run: faultLate},
	{name: "client/the store loses its state", can: canLose, run: faultLoses},
	{name: "client/many callers, never more than the limit and nearly all of it", days: true, run: faultCrowd},
	{name: "client/many callers, a store that fails now and then", days: true, run: faultCrowdFails},
}

// down waits until a client has found its store to be gone.
func (p *client) down() {
	p.t.Helper()
	p.soon(func() bool {
		_, err := p.Take(p.t.Context(), ledger.Take{Provider: "acme"})
		return err != nil && !p.Status().Up
	})
	_, err := p.Take(p.t.Context(), ledger.Take{Provider: "acme"})
	require.ErrorIs(p.t, err, ledger.ErrDown)
}

func (p *client) up() {
	p.t.Helper()
	p.way.Set(Fault{})
	p.soon(func() bool { return p.Status().Up })
}

func faultCut(r *rig) {
	l := r.window(9)
	l.limit.Per = r.period(500)
	a, b := r.client(), r.client()
	h := a.granted(l.n(2))
	a.way.Set(Fault{Cut: true})
	a.down()
	a.Settle(ledger.Settlement{Hold: h, At: time.Now()})
	for range 3 {
		a.Charge(ledger.Charge{Counter: a.of(l), At: time.Now(), N: 1})
	}
	p := r.pause(10000)
	a.Tell(ledger.News{Pause: &p})
	b.granted(l.n(1)) // it has heard nothing of it
	a.up()
	b.stands(l, 5, 1)
	require.Zero(r.t, b.take(l.n(1)).Hold)
	r.soon(func() bool { return b.told(begun) })
}

func faultHangs(r *rig) {
	l := r.window(9)
	l.limit.Per = r.period(500)
	a, b := r.client(), r.client()
	a.way.Set(Fault{Hang: true})
	a.down()
	a.Charge(ledger.Charge{Counter: a.of(l), At: time.Now(), N: 2})
	a.up()
	b.stands(l, 2, 0)
	a.granted(l.n(1))
}

func faultDeaf(r *rig) {
	l := r.window(90)
	l.limit.Per = r.period(500)
	a, b := r.client(), r.client()
	h := a.granted(l.n(2))
	a.way.Set(Fault{Deaf: true})
	a.Charge(ledger.Charge{Counter: a.of(l), At: time.Now(), N: 3})
	a.Settle(ledger.Settlement{Hold: h, At: time.Now()})
	a.down()
	a.Charge(ledger.Charge{Counter: a.of(l), At: time.Now(), N: 4})
	said := a.way.Stats().Carried
	r.soon(func() bool { return a.way.Stats().Carried > said+2 })
	a.up()
	b.stands(l, 9, 0)
	<-time.After(r.u)
	b.stands(l, 9, 0)
}

func faultLate(r *rig) {
	l := r.window(9)
	a, b := r.client(), r.client()
	a.way.Set(Fault{Back: 300 * time.Millisecond}) // the budget is 100
	_, err := a.Take(r.t.Context(), a.ask(l.n(5)))
	require.ErrorIs(r.t, err, ledger.ErrDown)
	a.up()
	b.stands(l, 0, 0)
	b.granted(l.n(9))
}

func faultLoses(r *rig) {
	l := r.window(9)
	l.limit.Per = r.period(6000) // not over before all is told again, on a busy machine either
	a, b := r.client(), r.client()
	a.Settle(ledger.Settlement{Hold: a.granted(l.n(2)), At: time.Now()})
	h := a.granted(l.n(1))
	b.Charge(ledger.Charge{Counter: b.of(l), At: time.Now(), N: 3})
	b.stands(l, 5, 1)
	p := r.pause(10000)
	p.Scope, p.Name = "key", "k"
	a.Tell(ledger.News{Pause: &p})
	r.soon(func() bool { return b.told(begun) })
	r.b.Lose(r.t)
	b.stands(l, 5, 1)
	a.stands(l, 5, 1)
	a.Settle(ledger.Settlement{Hold: h, At: time.Now()})
	b.stands(l, 6, 0)
	r.soon(func() bool { return b.take(l.n(3)).Hold != 0 })
	require.Zero(r.t, b.take(l.n(1)).Hold)
	require.Equal(r.t, -1, func() int {
		g, err := b.Take(r.t.Context(), ledger.Take{Provider: "acme", Key: "k"})
		require.NoError(r.t, err)
		require.Zero(r.t, g.Hold)
		return g.By
	}())
}

// crowd is callers of several processes that go as often as they may, and a provider
// that counts them.
type crowd struct {
	*rig
	of  *shared
	end time.Time

	mu    sync.Mutex
	trips []trip
}

// crowd lets many callers of three processes, each with a network of its own, go for so
// long, with some trouble now and then. It returns how many have gone, and asserts that
// no provider has counted more than its limit allows.
func (r *rig) crowd(l *shared, callers int, lasts time.Duration, trouble func(*Faulty)) int {
	c := &crowd{rig: r, of: l, end: time.Now().Add(lasts)}
	var all sync.WaitGroup
	for i := range 3 {
		p := r.client()
		p.way.Set(Fault{There: time.Duration(i+1) * time.Millisecond, Back: time.Duration(3-i) * time.Millisecond})
		if trouble != nil {
			all.Go(func() { c.disturb(p.way, trouble) })
		}
		for k := range callers {
			all.Go(func() { c.call(p, rand.New(rand.NewPCG(uint64(i), uint64(k)))) })
		}
	}
	all.Wait()
	m, rnd := newModel(l.limit, r.start), rand.New(rand.NewPCG(1, 2))
	for range 20 {
		require.LessOrEqual(r.t, m.overrun(c.trips, rnd), int64(0), "a provider counts more than it allows")
	}
	return len(c.trips)
}

func (c *crowd) disturb(way *Faulty, trouble func(*Faulty)) {
	for time.Now().Before(c.end) {
		<-time.After(7 * time.Second)
		trouble(way)
	}
	way.Set(Fault{})
}

// call asks again and again, waits for as long as it is told, and goes. Its answer takes
// up to 200 ms.
func (c *crowd) call(p *client, rnd *rand.Rand) {
	for time.Now().Before(c.end) {
		g, err := p.Take(c.t.Context(), p.ask(c.of.n(1)))
		if err != nil {
			<-time.After(100 * time.Millisecond)
			continue
		}
		if g.Hold == 0 {
			<-time.After(min(g.Wait, time.Second))
			continue
		}
		from := time.Since(c.start)
		<-time.After(time.Duration(rnd.Int64N(int64(200 * time.Millisecond))))
		p.Settle(ledger.Settlement{Hold: g.Hold, At: time.Now()})
		c.mu.Lock()
		c.trips = append(c.trips, trip{from: from, to: time.Since(c.start), n: 1, held: 1})
		c.mu.Unlock()
	}
}

func faultCrowd(r *rig) {
	const minutes, rate, callers = 4, 60, 12
	went := r.crowd(r.window(rate), callers, minutes*time.Minute, nil)
	require.Greater(r.t, went, minutes*rate*95/100)
}

func faultCrowdFails(r *rig) {
	const minutes, rate, callers = 4, 60, 12
	rnd, mu := rand.New(rand.NewPCG(3, 4)), sync.Mutex{}
	went := r.crowd(r.window(rate), callers, minutes*time.Minute, func(way *Faulty) {
		mu.Lock()
		defer mu.Unlock()
		way.Set([]Fault{{Cut: true}, {Hang: true}, {Deaf: true}, {Back: 300 * time.Millisecond}, {}, {There: time.Millisecond}}[rnd.IntN(6)])
	})
	require.Greater(r.t, went, minutes*rate/2)
}
