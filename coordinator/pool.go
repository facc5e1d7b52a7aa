package coordinator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/queue"
)

// pool caps what is in flight in all lanes of a category, or in all lanes. Each of
// its lanes has a gate for it.
//
// Locks. A lane's decision looks at its pools and takes of them at one instant, so
// its critical section holds their mutexes: the lane's first, then its category's,
// then that of all lanes. No lane has two categories, nobody takes a lane's mutex
// while holding a pool's, and no critical section has two lanes: so there is no
// cycle. Who frees a slot wakes the lane whose turn it is after he has left his own
// section (see lane.unlock).
//
// Turns. A lane with a call that waits at the pool's gate is in ring; the first of
// ring alone may take a slot while others wait, and goes to its end when it has. One
// whose call waits elsewhere by then has left. So a lane waits for no more slots
// than there are lanes in ring, and holds nothing meanwhile.
type pool struct {
	name string // the category; "": all
	size int

	mu   crowd
	used int
	ring []*poolGate // lanes that wait, in turn
	vain int         // turns in a row that nobody used: at len(ring) all have had one
}

// poolGate is a pool as a gate of one lane.
type poolGate struct {
	queue.Gate
	l *lane
	p *pool
}

func newPoolGate(l *lane, p *pool) *poolGate {
	g := &poolGate{l: l, p: p}
	g.Init(g, true) // an answer opens it
	g.Share()
	return g
}

// Look needs the pool's lock, which the lane's critical section has.
func (g *poolGate) Look(now time.Duration, _ int64) time.Duration {
	if g.p.used < g.p.size && g.turn() {
		return now
	}
	return queue.Never
}

// turn tells that the lane may take the next slot: it is the first, or all have had
// their turn in vain.
func (g *poolGate) turn() bool {
	p := g.p
	return len(p.ring) == 0 || p.ring[0] == g || p.vain >= len(p.ring)
}

// full is why a call waits at the gate, for people.
func (g *poolGate) full() string {
	if g.p.name == "" {
		return fmt.Sprintf("all providers together have %d calls in flight, which is the most", g.p.used)
	}
	return fmt.Sprintf("providers of the category %q have %d calls in flight, which is the most", g.p.name, g.p.used)
}

func (g *poolGate) take() {
	p := g.p
	p.used++
	p.vain = 0
	if len(p.ring) > 0 && p.ring[0] == g {
		p.pass()
	}
}

func (g *poolGate) free() {
	g.p.used--
	g.p.vain = 0
	g.l.q.Touch(&g.Gate)
}

// pass gives the turn to the next.
func (p *pool) pass() {
	first := p.ring[0]
	copy(p.ring, p.ring[1:])
	p.ring[len(p.ring)-1] = first
}

// settle puts the lane into ring or takes it out, by whether a call of it waits at
// the gate, and returns the lane whose turn it is: to be woken, as a slot is free.
// nil: there is none, or all have had their turn in vain.
func (g *poolGate) settle() *lane {
	p := g.p
	i := slices.Index(p.ring, g)
	switch waits := g.Waiting(); {
	case waits && i < 0:
		p.ring = append(p.ring, g)
		p.vain = 0
	case !waits && i >= 0:
		p.ring = slices.Delete(p.ring, i, i+1)
		p.vain = 0
	case waits && i == 0 && p.used < p.size:
		p.vain++ // it could have gone, and waits: for a call that has claimed the gate, and waits elsewhere
		p.pass()
	}
	if p.used >= p.size || len(p.ring) == 0 || p.vain >= len(p.ring) {
		return nil
	}
	return p.ring[0].l
}

// PoolState is one pool, as a provider sees it.
type PoolState struct {
	Name    string `json:"name"` // the category; "": all providers together
	Size    int    `json:"size"`
	Used    int    `json:"used"`    // in flight now, whoever's
	Waiting int    `json:"waiting"` // providers that wait for a slot
}

func (g *poolGate) state() PoolState {
	return PoolState{g.p.name, g.p.size, g.p.used, len(g.p.ring)}
}

// inside tells that a call runs in another one that is out, of a provider with pools.
// It takes no slot of its own, in none of them: two such calls, each with a slot that
// the other waits for, would wait for ever.
func (c *Coordinator) inside(ctx context.Context) bool {
	for ls, ctx := around(ctx); ls != nil; ls, ctx = around(ctx) {
		if l := ls.l; l.c == c && len(l.pools) > 0 {
			l.mu.Lock()
			out := ls.state == held || ls.state == answered
			l.mu.Unlock()
			if out {
				return true
			}
		}
	}
	return false
}

// newPools makes the pools of a Config; all are the categories that there are.
func newPools(sizes map[string]int, all []string) (map[string]*pool, error) {
	var faults []error
	pools := make(map[string]*pool, len(sizes))
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		size := sizes[name]
		if size < 1 {
			faults = append(faults, fmt.Errorf("coordinator: pool %q: %d is too small: it must be at least 1", name, size))
		}
		if name != "" && !slices.Contains(all, name) {
			faults = append(faults, fmt.Errorf("coordinator: pool %q: no provider has this category: it must be one of %q, or \"\" for all", name, all))
		}
		pools[name] = &pool{name: name, size: size}
	}
	return pools, errors.Join(faults...)
}

// categories are those of the providers that there are, sorted.
func (c *Coordinator) categories() (all []string) {
	for _, slug := range c.slugs() {
		if e, ok := c.declared(slug); ok && e.Provider.Category != "" {
			all = append(all, e.Provider.Category)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// poolsOf are the gates of a provider's pools, in the order of their locks.
func (c *Coordinator) poolsOf(l *lane, p provider.Provider) (gates []*poolGate) {
	if own := c.pools[p.Category]; own != nil && p.Category != "" {
		gates = append(gates, newPoolGate(l, own))
	}
	if all := c.pools[""]; all != nil {
		gates = append(gates, newPoolGate(l, all))
	}
	return gates
}
