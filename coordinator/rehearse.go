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
				_, c.by = r.opensFor(c.line[0], c.line[0].options())
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
	all := []*option{{route: ls.route, Waiter: queue.Waiter{Cost: ls.wait.Cost}}}
	if r.pooled(&c.call) {
		all, _ = r.options(ls, c.call.Endpoint)
	}
	flow := ls.flowOf()
	for _, o := range all {
		if r.q.Blocked(r.now.Mono, &o.route.Route, flow, o.Cost) == nil {
			ls.route, ls.wait.Cost = o.route, o.Cost
			r.goes(ls)
			r.q.Went(&o.route.Route, flow, o.Cost)
			r.gone(c)
			return true
		}
	}
	r.wait(c, ls)
	return true
}

// call makes the next call of a class.
func (r *rehearsal) call(c *class) *Lease {
	ls := r.draft(c.call)
	ls.wait.Keep(c.place)
	c.place += uint64(len(r.classes))
	return ls
}

// draft is a lease of a call that is only thought of.
func (l *lane) draft(call Call) *Lease {
	ls := &Lease{terms: terms{l: l, route: l.route(call.Endpoint, call.Key)}}
	ls.of(&call)
	ls.wait.Cost = l.costFor(ls, ls.route)
	return ls
}

func (r *rehearsal) wait(c *class, ls *Lease) {
	ls.wait.Deadline = queue.Never
	if r.pooled(&c.call) {
		ls.rarely().options, _ = r.options(ls, c.call.Endpoint)
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
