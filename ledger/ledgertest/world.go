package ledgertest

import (
	"time"

	"github.com/headgate/headgate/ledger"
)

// world is what a store has to know, by models. Where time is real nobody knows the
// instant at which the store has carried out a batch, only that it lies between saying it
// and hearing the answer. So there are two worlds: in the early one everything has
// happened as early as it can have, and what it refuses nobody may grant; in the late one
// everything as late as it can have, and what it grants nobody may refuse. It also has
// forgotten what a store may forget.
type world struct {
	late   bool
	models map[*shared]*model
	out    map[*flying]bool
}

// flying is a grant that is not settled in all its parts.
type flying struct {
	p     *process
	hold  ledger.Hold
	costs []cost
	// By late: when it was granted, and since when its process has not been heard of.
	taken, heard [2]time.Duration
	left         map[int]bool // units that are held still
}

func pick(late bool) int {
	if late {
		return 1
	}
	return 0
}

func newWorld(late bool, start time.Time, limits []*shared) *world {
	w := &world{late: late, models: map[*shared]*model{}, out: map[*flying]bool{}}
	for _, l := range limits {
		w.models[l] = newModel(l.limit, start)
	}
	return w
}

// bury settles what those held whose lease has ended at an instant. In the late world
// it also forgets what a store may that drops what is idle.
func (w *world) bury(now time.Duration) {
	for f := range w.out {
		if end := f.heard[pick(w.late)] + f.p.lease; now > end {
			for i := range f.left {
				w.settle(f, i, end, f.costs[i].n)
			}
			delete(w.out, f)
		}
	}
	for _, m := range w.models {
		m.forgot = m.forgot || w.late && m.idle(now)
	}
}

func (w *world) fits(t time.Duration, costs []cost) bool {
	for _, c := range costs {
		if !w.models[c.of].fits(t, c.n) {
			return false
		}
	}
	return true
}

// first is when all of the costs fit, and the place of one that opens last.
func (w *world) first(now time.Duration, costs []cost) (at time.Duration, last int) {
	for i, c := range costs {
		if t := w.models[c.of].first(now, c.n); t > at {
			at, last = t, i
		}
	}
	return at, last
}

func (w *world) loose(costs []cost) bool {
	for _, c := range costs {
		if w.models[c.of].loose {
			return true
		}
	}
	return false
}

func (w *world) take(f *flying) {
	for _, c := range f.costs {
		w.models[c.of].take(f.taken[pick(w.late)], c.n)
	}
	w.out[f] = true
}

func (w *world) settle(f *flying, unit int, at time.Duration, charged int64) {
	c := f.costs[unit]
	w.models[c.of].settle(f.taken[pick(w.late)], at, c.n, charged)
}

func (w *world) giveBack(f *flying, unit int) {
	c := f.costs[unit]
	w.models[c.of].giveBack(f.taken[pick(w.late)], c.n)
}
