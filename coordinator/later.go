package coordinator

import (
	"container/heap"
	"slices"
	"time"

	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
)

const (
	minLinger = 250 * time.Millisecond
	maxLinger = 10 * time.Second
)

// later is a settlement to come: of a call without an answer, or (early) of the
// requests of a call that must have arrived by then. It needs no timer of its own:
// it is done at the next decision, as of its instant.
type later struct {
	at    time.Duration
	ls    *Lease
	early bool
}

type laters []*later

func (h laters) Len() int           { return len(h) }
func (h laters) Less(i, j int) bool { return h[i].at < h[j].at }
func (h laters) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *laters) Push(x any)        { *h = append(*h, x.(*later)) }
func (h *laters) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}

func (l *lane) settleLater(s *later) { heap.Push((*laters)(&l.later), s) }

// settleDue settles what is due, in order, as of its instant.
func (l *lane) settleDue() {
	for len(l.later) > 0 && l.later[0].at <= l.now.Mono {
		s := heap.Pop((*laters)(&l.later)).(*later)
		at := l.then(s.at)
		if s.early {
			l.arrived(s.ls, at)
		} else {
			l.settle(s.ls, at, s.ls.f)
		}
	}
	if len(l.later) == 0 {
		l.later = nil
	}
}

// arrived settles the requests of a call that still waits for its answer: they
// have arrived by the time that the provider declares. Other units wait for it,
// unless a nested call waits for them.
func (l *lane) arrived(ls *Lease, at limit.Now) {
	if ls.state != held || ls.early {
		return
	}
	ls.early, ls.all = true, ls.rare != nil && ls.rare.nested
	ls.rarely().arrived = at.Mono
	for i, g := range ls.route.limits {
		n := ls.wait.Cost[ls.route.skip+i]
		if n != 0 && !g.caps() && ls.hasArrived(g) {
			g.rule.Settle(instant(ls.granted), at, n, n)
			l.settleThere(ls, i, at.Mono, n)
			l.q.Touch(&g.Gate)
		}
	}
}

// hasArrived tells that the lease's units in g are settled before its answer.
func (ls *Lease) hasArrived(g *limitGate) bool {
	return ls.early && (ls.all || g.d.Unit == provider.Requests)
}

// waitsInside notes that a call waits which is nested in others. They may hold the
// very units that it needs, until their functions end, which wait for it. So they
// are taken to have sent their requests by now, as calls that end without an answer
// are: their units count from linger after now on.
func (l *lane) waitsInside(ls *Lease) {
	for p := ls.outer(); p != nil; p = p.outer() {
		x := p.rarely()
		if !x.nested && p.state == held {
			l.settleLater(&later{at: after(l.now.Mono, l.linger()), ls: p, early: true})
		}
		x.nested = true
	}
}

// linger is how long a call without an answer may still be on its way.
func (l *lane) linger() time.Duration {
	if aw := l.t.ArrivalWithin; aw > 0 {
		return aw
	}
	return min(max(l.trips.longest(l.now.Mono), minLinger), maxLinger)
}

// trips remembers round trips: the longest of the last minute, and a median of the
// last few.
type trips struct {
	n     int
	worst worst             // of the ten seconds of now
	until time.Duration     // their end
	last  [15]time.Duration // a ring
	past  [6]worst          // a ring: of the minute before
}

// worst is the longest round trip of ten seconds.
type worst struct {
	slot int64
	trip time.Duration
}

func (t *trips) add(now, trip time.Duration) {
	t.last[t.n%len(t.last)] = trip
	t.n++
	if now >= t.until {
		t.past[t.worst.slot%int64(len(t.past))] = t.worst
		slot := int64(now / (10 * time.Second))
		t.worst, t.until = worst{slot: slot}, time.Duration(slot+1)*10*time.Second
	}
	t.worst.trip = max(t.worst.trip, trip)
}

func (t *trips) longest(now time.Duration) (trip time.Duration) {
	slot := int64(now / (10 * time.Second))
	for _, w := range append(t.past[:], t.worst) {
		if slot-w.slot <= int64(len(t.past)) {
			trip = max(trip, w.trip)
		}
	}
	return trip
}

// median is that of the last 15 round trips; 0: none yet.
func (t *trips) median() time.Duration {
	n := min(t.n, len(t.last))
	if n == 0 {
		return 0
	}
	some := t.last
	slices.Sort(some[:n])
	return some[n/2]
}
