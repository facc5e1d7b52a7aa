package coordinator

import (
	"time"

	"github.com/headgate/headgate/queue"
)

// Overlooked has every gate of a provider looked at afresh and returns how many
// calls go then: those that could have gone all along and waited.
func (c *Coordinator) Overlooked(slug string) (n int) {
	l := (*c.lanes.Load())[slug]
	if l == nil {
		return 0
	}
	l.lock()
	l.q.Touch(&l.door.Gate)
	for _, g := range l.pools {
		l.q.Touch(&g.Gate)
	}
	l.eachPause(func(p *pauseGate) { l.q.Touch(&p.Gate) })
	l.eachLimit(func(g *limitGate) { l.q.Touch(&g.Gate) })
	l.q.Hand(l.now.Mono, func(w *queue.Waiter) {
		n++
		l.goes(w)
	})
	l.tell(l.unlock())
	return n
}

// Parts is how many keys and endpoints a lane remembers.
func (c *Coordinator) Parts(slug string) int {
	l := (*c.lanes.Load())[slug]
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.parts) + len(l.routes) + len(l.asleep)
}

// HoldLane runs f while the lane's lock is held, then gives a lease back under the
// same lock and lets go who may go now.
func (c *Coordinator) HoldLane(slug string, f func(), ls *Lease) {
	l := (*c.lanes.Load())[slug]
	l.lock()
	f()
	l.giveBack(ls)
	l.tell(l.unlock())
}

// WakeAfterStep is the lane's timer after the wall clock was set by step.
func (c *Coordinator) WakeAfterStep(slug string, step time.Duration) {
	l := (*c.lanes.Load())[slug]
	l.lock()
	l.now.Wall += step
	l.woke()
	l.mu.Unlock()
}

// Rehearse returns the instants that ForecastAll makes portions of.
func (c *Coordinator) Rehearse(trip time.Duration, demands ...Demand) (at []time.Time) {
	l := (*c.lanes.Load())[demands[0].Call.Provider]
	r := l.rehearsal(trip, demands)
	start := r.wall().Add(-r.now.Mono)
	r.went = func(x time.Duration, _ *queue.Gate) { at = append(at, start.Add(x)) }
	r.run()
	return at
}

// Asleep is how many keys and endpoints of a lane sleep.
func (c *Coordinator) Asleep(slug string) int {
	l := (*c.lanes.Load())[slug]
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.asleep)
}
