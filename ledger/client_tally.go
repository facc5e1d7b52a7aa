package ledger

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/headgate/headgate/provider"
)

// slots is into how many parts a tally divides the time for which its units count.
const slots = 64

// tally is what was charged of one counter, as far as it counts: a sum for each slot of
// time, at the latest instant in it, which is the strict side. So it needs no more memory
// for a million charges than for a hundred.
type tally struct {
	counter *Counter
	span    time.Duration // for how long a unit counts
	origin  time.Time     // where slot 0 begins
	sums    []sum         // in the order of their slots
	learnt  *Learnt
	place   int // in history.all
}

type sum struct {
	slot int64
	at   time.Time
	n    int64
}

// span is for how long a unit may count, at most; 0 where it counts only while it is
// held. (A day has up to 25 hours, and opens for us a little late; two windows matter to
// the two-counter estimate; a bucket counts until it is full again.)
func span(l provider.Limit) time.Duration {
	w, _ := l.Per.Duration()
	switch l.Algorithm {
	case provider.FixedWindow:
		return w + w/16
	case provider.SlidingWindowCounter:
		return 2 * w
	case provider.TokenBucket:
		const most = 10 * 365 * 24 * time.Hour
		return time.Duration(min(float64(w)*max(1, float64(l.Burst)/float64(l.Max)), float64(most)))
	}
	return w
}

// of has t count for a counter, which may be a newer one of the same ID than before.
func (t *tally) of(c *Counter) {
	if t.counter == c {
		return
	}
	t.counter = c
	w := span(c.Limit())
	if w == t.span {
		return
	}
	old := t.sums
	t.span, t.sums = w, nil
	for _, s := range old {
		t.put(s.at, s.n)
	}
}

func (t *tally) slot(at time.Time) int64 {
	width := max(1, t.span/slots)
	d := at.Sub(t.origin)
	k := int64(d / width)
	if d%width < 0 {
		k--
	}
	return k
}

func (t *tally) find(at time.Time) (place int, there bool) {
	return slices.BinarySearchFunc(t.sums, t.slot(at), func(s sum, k int64) int { return cmp.Compare(s.slot, k) })
}

// add counts n more units at an instant that is not after now.
func (t *tally) add(now, at time.Time, n int64) {
	t.drop(now)
	if now.Sub(at) <= t.span {
		t.put(at, n)
	}
}

func (t *tally) put(at time.Time, n int64) {
	if len(t.sums) == 0 {
		t.origin = at
	}
	i, there := t.find(at)
	if !there {
		t.sums = slices.Insert(t.sums, i, sum{slot: t.slot(at), at: at, n: n})
		return
	}
	s := &t.sums[i]
	s.n = min(s.n, math.MaxInt64-n) + n
	if at.After(s.at) {
		s.at = at
	}
}

// takeBack takes up to n units of the slot of an instant away and returns how many are
// missing.
func (t *tally) takeBack(at time.Time, n int64) (rest int64) {
	i, there := t.find(at)
	if !there {
		return n
	}
	took := min(n, t.sums[i].n)
	if t.sums[i].n -= took; t.sums[i].n == 0 {
		t.sums = slices.Delete(t.sums, i, i+1)
	}
	return n - took
}

// drop forgets what counts no more.
func (t *tally) drop(now time.Time) {
	gone := 0
	for gone < len(t.sums) && now.Sub(t.sums[gone].at) > t.span {
		gone++
	}
	t.sums = slices.Delete(t.sums, 0, gone)
}

func (t *tally) charges(to []Charge) []Charge {
	for _, s := range t.sums {
		to = append(to, Charge{Counter: t.counter, At: s.at, N: s.n})
	}
	return to
}

// history is what this client has charged and learned lately of all counters: what a
// store that has lost its state must be told.
type history struct {
	byID map[string]*tally
	all  []*tally // the same, in no order
	hand int      // which one is looked at next
}

// charge notes a charge. It tells whether units of that counter count over time at all.
func (h *history) charge(now time.Time, ch Charge) bool {
	h.sweep(now, 2)
	if ch.At.After(now) {
		ch.At = now
	}
	t := h.tally(ch.Counter)
	switch {
	case t.span == 0:
		return false
	case ch.N > 0:
		t.add(now, ch.At, ch.N)
	case ch.N < 0:
		t.takeBack(ch.At, -max(ch.N, -math.MaxInt64))
	}
	return true
}

func (h *history) learn(l Learnt) {
	t := h.tally(l.Counter)
	l = l.over(t.learnt)
	t.learnt = &l
}

func (h *history) tally(c *Counter) *tally {
	t := h.byID[c.ID()]
	if t == nil {
		if h.byID == nil {
			h.byID = map[string]*tally{}
		}
		t = &tally{place: len(h.all)}
		h.byID[c.ID()] = t
		h.all = append(h.all, t)
	}
	t.of(c)
	return t
}

// sweep looks at n of them and drops those that count no more. Two with each charge keep
// their number near that of those that do count.
func (h *history) sweep(now time.Time, n int) {
	for range min(n, len(h.all)) {
		h.hand = (h.hand + 1) % len(h.all)
		t := h.all[h.hand]
		t.drop(now)
		if t.learnt != nil && !t.learnt.inForce(now) {
			t.learnt = nil
		}
		if len(t.sums) == 0 && t.learnt == nil {
			h.remove(t)
		}
		if len(h.all) == 0 {
			*h = history{}
			return
		}
	}
}

// charges are those that still count, for a queue.
func (h *history) charges(now time.Time) map[string]*tally {
	all := map[string]*tally{}
	for id, t := range h.byID {
		if t.drop(now); len(t.sums) > 0 {
			all[id] = &tally{counter: t.counter, span: t.span, origin: t.origin, sums: slices.Clone(t.sums)}
		}
	}
	return all
}

// lessons are what was learned and is in force.
func (h *history) lessons(now time.Time) (all []*Learnt) {
	for _, t := range h.all {
		if t.learnt != nil && t.learnt.inForce(now) {
			all = append(all, t.learnt)
		}
	}
	return all
}

func (h *history) remove(t *tally) {
	delete(h.byID, t.counter.ID())
	last := len(h.all) - 1
	h.all[t.place] = h.all[last]
	h.all[t.place].place = t.place
	h.all[last] = nil
	h.all = h.all[:last]
}

func (h *history) forget(slug string) {
	for i := len(h.all) - 1; i >= 0; i-- {
		if h.all[i].counter.Provider() == slug {
			h.remove(h.all[i])
		}
	}
}

func (l *Learnt) inForce(now time.Time) bool {
	return l.NotBefore.After(now) || l.Max > 0 && l.Until.After(now)
}
