package coordinator

import (
	"time"

	"github.com/headgate/headgate/queue"
)

// class is the calls of a forecast that are alike. A few of them wait, so that
// their line in the queue lives on; the next comes when one has gone, with the place
// that it would have had since the beginning: the classes came in turns.
type class struct {
	walk  *walk
	route *route
	cost  []int64
	left  int
	place uint64      // in the order of arrival, of the next
	waits int         // calls that have come and not gone
	by    *queue.Gate // what held up the first of them, last
}

// atOnce is how many calls of a class wait at a time.
const atOnce = 2

// rehearsal plays a shadow forward.
type rehearsal struct {
	*shadow
	classes []*class
	went    func(at time.Duration, by *queue.Gate) // told of each call of a class as it goes; by nil: nothing held it up
}

// run ends when the calls of all classes have gone, or when nothing moves any more.
func (r *rehearsal) run() {
	for {
		r.end()
		r.come()
		if len(r.out) > 0 && r.out[0].at <= r.now.Mono {
			continue // a round trip of no time
		}
		next := r.next()
		if r.done() || next == queue.Never {
			return
		}
		for _, c := range r.classes {
			if c.waits > 0 {
				_, c.by = r.opens(c.route, c.cost, nil)
			}
		}
		step := max(next-r.now.Mono, 1)
		r.now.Mono, r.now.Wall, r.clock = r.now.Mono+step, r.now.Wall+step, r.clock.Add(step)
	}
}

func (r *rehearsal) done() bool {
	for _, c := range r.classes {
		if c.left > 0 {
			return false
		}
	}
	return true
}

// next is the instant at which something changes.
func (r *rehearsal) next() time.Duration {
	next := r.q.Next()
	if len(r.out) > 0 {
		next = min(next, r.out[0].at)
	}
	if len(r.later) > 0 {
		next = min(next, r.later[0].at)
	}
	return next
}

// end settles what is due, and the calls whose answers are there.
func (r *rehearsal) end() {
	r.settleDue()
	for len(r.out) > 0 && r.out[0].at <= r.now.Mono {
		ls := r.out[0].ls
		r.out = r.out[1:]
		if ls.state == held {
			r.report(ls, plainOK)
		}
		r.release(ls)
	}
}

// come lets go who may go, and brings the next of each class, until all wait.
func (r *rehearsal) come() {
	for w := r.q.Expired(r.now.Mono); w != nil; w = r.q.Expired(r.now.Mono) {
		r.q.Leave(w)
		w.Owner.(*Lease).route.waits(-1)
	}
	for moved := true; moved; {
		r.q.Hand(r.now.Mono, func(w *queue.Waiter) {
			ls := w.Owner.(*Lease)
			ls.route.waits(-1)
			r.goes(ls)
			for _, c := range r.classes {
				if c.walk == ls.walk {
					c.waits--
					r.gone(c)
					r.follow(c)
				}
			}
		})
		moved = false
		for _, c := range r.classes {
			moved = r.enter(c) || moved
		}
	}
}

// enter brings the next call of a class; true: something may have moved.
func (r *rehearsal) enter(c *class) bool {
	if c.left == c.waits || c.waits == atOnce {
		return false
	}
	flow := c.walk.flow()
	if r.q.Blocked(r.now.Mono, &c.route.Route, flow, c.cost) == nil {
		r.goes(&Lease{l: r.lane, walk: c.walk, route: c.route, cost: c.cost})
		r.q.Went(&c.route.Route, flow, c.cost)
		c.place += uint64(len(r.classes))
		r.gone(c)
		return true
	}
	r.enqueue(c)
	return true
}

// follow brings the next call of a class behind one that waits, which is all that
// may be done while the queue hands out.
func (r *rehearsal) follow(c *class) {
	if c.waits > 0 && c.left > c.waits {
		r.enqueue(c)
	}
}

func (r *rehearsal) enqueue(c *class) {
	ls := &Lease{l: r.lane, walk: c.walk, route: c.route, cost: c.cost, wait: new(wait)}
	ls.wait.Owner, ls.wait.Cost, ls.wait.Deadline = ls, ls.cost, queue.Never
	ls.wait.Keep(c.place)
	c.place += uint64(len(r.classes))
	c.waits++
	c.route.waits(1)
	r.q.Enter(r.now.Mono, &ls.wait.Waiter, &c.route.Route, c.walk.flow())
}

func (r *rehearsal) gone(c *class) {
	r.went(r.now.Mono, c.by)
	c.left--
	c.by = nil
}

// goes is the turn of a call, which is out for a round trip.
func (r *rehearsal) goes(ls *Lease) {
	r.take(ls)
	r.out = append(r.out, due{r.now.Mono + r.trip, ls})
}
