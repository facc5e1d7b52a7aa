package ledgertest

import (
	"context"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

var clientPlays = []play{
	{name: "client/a budget of two", run: clientBudget},
	{name: "client/give back, charge, peek, forget", run: clientSays},
	{name: "client/pauses are told to the others", run: clientPauses},
	{name: "client/one call alone after a pause", run: clientTrial},
	{name: "client/what was learned holds for all", run: clientLearns},
	{name: "client/who there is", run: clientStatus},
	{name: "client/a process that dies", run: clientDies},
}

// client is a process that speaks through a ledger.Client.
type client struct {
	*rig
	*ledger.Client
	way      *Faulty
	counters map[*shared]*ledger.Counter

	mu      sync.Mutex
	changes []ledger.Change
}

// client starts one, with a way to the store that can be disturbed.
func (r *rig) client() *client {
	r.t.Helper()
	return r.clientWith(ledger.Settings{Lease: time.Hour})
}

func (r *rig) clientWith(s ledger.Settings) *client {
	r.t.Helper()
	s.Budget = 100 * time.Millisecond
	if s.Beat = r.u / 8; r.b.Virtual {
		s.Beat = 0
	}
	way := &Faulty{Store: r.b.Store(r.t)}
	c, err := ledger.Open(way, s)
	require.NoError(r.t, err)
	p := &client{rig: r, Client: c, way: way, counters: map[*shared]*ledger.Counter{}}
	stop := c.Watch(func(ch ledger.Change) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changes = append(p.changes, ch)
	})
	r.t.Cleanup(func() {
		stop()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = c.Close(ctx) // some have lost their store
	})
	r.soon(func() bool { return c.Status().Up })
	return p
}

// soon waits for something that takes a few exchanges.
func (r *rig) soon(is func() bool) {
	r.t.Helper()
	require.True(r.t, comes(is), "it has not come about in 20 s")
}

func comes(is func() bool) bool {
	for range 4000 {
		if is() {
			return true
		}
		<-time.After(5 * time.Millisecond)
	}
	return false
}

func (p *client) ask(costs ...cost) ledger.Take {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := ledger.Take{Provider: costs[0].of.slug, Endpoint: costs[0].of.endpoint, Key: costs[0].of.key}
	for _, c := range costs {
		if p.counters[c.of] == nil {
			p.counters[c.of] = ledger.NewCounter(c.of.slug, c.of.limit, c.of.endpoint, c.of.key)
		}
		t.Units = append(t.Units, ledger.Units{Counter: p.counters[c.of], N: c.n})
	}
	return t
}

func (p *client) of(s *shared) *ledger.Counter { return p.ask(s.n(1)).Units[0].Counter }

func (p *client) take(costs ...cost) ledger.Grant {
	p.t.Helper()
	g, err := p.Take(p.t.Context(), p.ask(costs...))
	require.NoError(p.t, err)
	return g
}

func (p *client) granted(costs ...cost) ledger.Hold {
	p.t.Helper()
	g := p.take(costs...)
	require.NotZero(p.t, g.Hold, "refused, by %d, for %s", g.By, g.Wait)
	return g.Hold
}

// refused asserts a refusal that is no longer than so, and goes when it is over.
func (p *client) refused(most time.Duration, costs ...cost) {
	p.t.Helper()
	g := p.take(costs...)
	require.Zero(p.t, g.Hold, "granted")
	require.Positive(p.t, g.Wait)
	require.LessOrEqual(p.t, g.Wait, most)
	<-time.After(g.Wait)
	p.soon(func() bool { return p.take(costs...).Hold != 0 })
}

func (p *client) stands(s *shared, used, held int64) {
	p.t.Helper()
	var last ledger.Usage
	var err error
	came := comes(func() bool {
		var u []ledger.Usage
		if u, err = p.Peek(p.t.Context(), []*ledger.Counter{p.of(s)}); err == nil {
			last = u[0]
		}
		return err == nil && last.Used == used && last.Held == held
	})
	require.True(p.t, came, "after 20 s not %d used and %d held but %+v, error %v, status %+v", used, held, last, err, p.Status())
}

// told tells whether one of the changes that it has been told is so.
func (p *client) told(is func(ledger.Change) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.changes {
		if is(c) {
			return true
		}
	}
	return false
}

func begun(c ledger.Change) bool { return c.Pause != nil }
func ended(c ledger.Change) bool { return c.Resume != nil }

func clientBudget(r *rig) {
	l := r.window(3)
	a, b := r.client(), r.client()
	h := a.granted(l.n(3))
	require.Equal(r.t, ledger.Event, b.take(l.n(1)).Wait)
	a.Settle(ledger.Settlement{Hold: h, At: time.Now()})
	b.stands(l, 3, 0)
	b.refused(r.per()+r.jitter()+1, l.n(1))
}

func clientSays(r *rig) {
	l, other := r.window(9), r.window(9).of("other")
	l.limit.Per, other.limit.Per = r.period(500), r.period(500)
	a, b := r.client(), r.client()
	h := a.granted(l.n(4), other.n(2))
	a.Settle(ledger.Settlement{Hold: h, At: time.Now(), Back: true, Part: []ledger.Part{{Unit: 1}}})
	b.stands(other, 0, 0)
	at := time.Now()
	a.Charge(ledger.Charge{Counter: a.of(l), At: at, N: 3})
	a.Charge(ledger.Charge{Counter: a.of(other), At: at, N: 3})
	b.stands(l, 3, 4)
	b.stands(other, 3, 0)
	a.Charge(ledger.Charge{Counter: a.of(l), At: at, N: -2})
	b.stands(l, 1, 4)
	a.Settle(ledger.Settlement{Hold: h, At: time.Now(), Part: []ledger.Part{{Unit: 0, Charged: 6}}})
	b.stands(l, 7, 0)
	require.NoError(r.t, b.Forget(r.t.Context(), l.slug))
	a.stands(l, 0, 0)
	a.stands(other, 3, 0)
}

func clientPauses(r *rig) {
	l := r.window(9)
	a, b := r.client(), r.client()
	p := r.pause(100)
	a.Tell(ledger.News{Pause: &p})
	r.soon(func() bool { return b.told(begun) })
	g := b.take(l.n(1))
	require.Zero(r.t, g.Hold)
	require.Equal(r.t, -1, g.By)
	require.NotNil(r.t, g.Pause)
	require.Equal(r.t, p.Why, g.Pause.Why)
	require.InDelta(r.t, time.Until(p.Until), g.Wait, float64(r.u))
	require.Zero(r.t, a.take(l.n(1)).Hold)
	b.Tell(ledger.News{Resume: &ledger.Pause{Provider: "acme", Scope: provider.ScopeProvider}})
	r.soon(func() bool { return a.told(ended) })
	a.granted(l.n(1))
	require.False(r.t, a.told(begun), "who told it is not told it")
	require.False(r.t, b.told(ended), "who ended it is not told so")
}

func clientTrial(r *rig) {
	l := r.window(9)
	a, b := r.client(), r.client()
	p := r.pause(0)
	p.Until = time.Now().Add(r.u)
	a.Tell(ledger.News{Pause: &p})
	r.soon(func() bool { return b.told(begun) })
	<-time.After(r.u)
	var g ledger.Grant
	r.soon(func() bool { g = b.take(l.n(1)); return g.Hold != 0 })
	require.True(r.t, g.Alone)
	require.Zero(r.t, a.take(l.n(1)).Hold)
	b.Settle(ledger.Settlement{Hold: g.Hold, At: time.Now(), Trial: ledger.Again})
	r.soon(func() bool { g = a.take(l.n(1)); return g.Hold != 0 })
	require.True(r.t, g.Alone)
	require.Zero(r.t, b.take(l.n(1)).Hold)
	a.Settle(ledger.Settlement{Hold: g.Hold, At: time.Now(), Trial: ledger.Opens})
	r.soon(func() bool { return b.told(ended) })
	require.False(r.t, b.take(l.n(1)).Alone)
	b.granted(l.n(1))
}

func clientLearns(r *rig) {
	l := r.window(9)
	a, b := r.client(), r.client()
	a.Tell(ledger.News{Learn: &ledger.Learnt{Counter: a.of(l), NotBefore: time.Now().Add(2 * r.u)}})
	r.soon(func() bool {
		u, err := b.Peek(r.t.Context(), []*ledger.Counter{b.of(l)})
		return err == nil && !u[0].NotBefore.IsZero()
	})
	b.refused(2*r.u+r.jitter(), l.n(1))
}

func clientStatus(r *rig) {
	a := r.client()
	b, c := r.client(), r.client()
	all := []*client{a, b, c}
	r.soon(func() bool {
		ranks := map[int]bool{}
		for _, p := range all {
			s := p.Status()
			if !s.Up || !s.Reached || s.Replicas != len(all) {
				return false
			}
			ranks[s.Rank] = true
		}
		return len(ranks) == len(all)
	})
	require.NoError(r.t, c.Close(r.t.Context()))
	_, err := c.Take(r.t.Context(), c.ask(r.window(1).n(1)))
	require.ErrorIs(r.t, err, ledger.ErrClosed)
	r.soon(func() bool { return a.Status().Replicas == 2 && b.Status().Replicas == 2 })
	r.soon(func() bool {
		return a.told(func(ch ledger.Change) bool { return ch.Status != nil && ch.Status.Replicas == 3 })
	})
}

func clientDies(r *rig) {
	l, slots := r.window(2), r.flight(1)
	l.limit.Per = r.period(500)
	a, b := r.clientWith(ledger.Settings{Lease: time.Second}), r.client()
	a.granted(l.n(2), slots.n(1))
	require.Equal(r.t, ledger.Event, b.take(slots.n(1)).Wait)
	a.way.Set(Fault{Hang: true})
	b.stands(l, 2, 0)
	b.granted(slots.n(1))
	require.Zero(r.t, b.take(l.n(1)).Hold)
}
