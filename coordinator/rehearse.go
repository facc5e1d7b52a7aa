package coordinator

import (
	"slices"
	"time"

	"github.com/headgate/headgate/queue"
)

// class is the calls of a forecast that are alike. A few of them wait, so that
// their line in the queue lives on; the next comes when one has gone, with the place
// that it would have had since the beginning: the classes came in turns.
type class struct {
	call  Call
	left  int         // calls that have not gone
	place uint64      // in the order of arrival, of the next to come
	line  []*Lease    // that have come and wait
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
			if len(c.line) > 0 {
				_, c.by = r.opensFor(c.line[0], c.line[0].wait.options)
			}
		}
		step := max(next-r.now.Mono, 1)
		r.wallTime = r.wall().Add(step)
		r.now.Mono, r.now.Wall = r.now.Mono+step, r.now.Wall+step
		r.wallAt = r.now.Mono
	}
}

func (r *rehearsal) done() bool {
	return !slices.ContainsFunc(r.classes, func(c *class) bool { return c.left > 0 })
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
		r.unline(w.Owner.(*Lease), nil)
	}
	for moved := true; moved; {
		r.q.Hand(r.now.Mono, func(w *queue.Waiter) {
			ls := w.Owner.(*Lease)
			r.unline(ls, w)
			r.goes(ls)
			for _, c := range r.classes {
				if i := slices.Index(c.line, ls); i >= 0 {
					c.line = slices.Delete(c.line, i, i+1)
					r.gone(c)
					if len(c.line) > 0 && c.left > len(c.line) {
						r.wait(c, r.call(c)) // behind one that waits, which is all that may be done while the queue hands out
					}
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
	if c.left == len(c.line) || len(c.line) == atOnce {
		return false
	}
	ls := r.call(c)
	all := []*option{{route: ls.route, cost: ls.cost}}
	if r.pooled(&c.call) {
		all, _ = r.options(ls.walk)
	}
	flow := ls.walk.flow()
	for _, o := range all {
		if r.q.Blocked(r.now.Mono, &o.route.Route, flow, o.cost) == nil {
			ls.route, ls.cost = o.route, o.cost
			r.goes(ls)
			r.q.Went(&o.route.Route, flow, o.cost)
			r.gone(c)
			return true
		}
	}
	r.wait(c, ls)
	return true
}

// call makes the next call of a class.
func (r *rehearsal) call(c *class) *Lease {
	w := &walk{steps: steps{call: c.call, l: r.lane, place: c.place}}
	c.place += uint64(len(r.classes))
	ls := &w.first
	ls.l, ls.walk = r.lane, w
	ls.route = r.lane.route(c.call.Endpoint, c.call.Key)
	ls.cost = r.costFor(w, ls.route)
	return ls
}

func (r *rehearsal) wait(c *class, ls *Lease) {
	ls.wait = &wait{deadline: queue.Never}
	if r.pooled(&c.call) {
		ls.wait.options, _ = r.options(ls.walk)
	}
	r.line(ls)
	c.line = append(c.line, ls)
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
