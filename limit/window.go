package limit

import (
	"slices"
	"time"
)

// window is sliding_window: never more than max in any window of length per. An
// entry counts while now <= at+per and is free strictly after: a provider whose
// windows are closed counts both ends.
type window struct{ ring }

// free is the first instant at which entry i no longer counts.
func (w *window) free(s *spec, i int) time.Duration {
	return add(w.entry(i).at, s.per+1)
}

func (w *window) look(s *spec, now Now, room int64) time.Duration {
	if w.total() <= uint64(room) {
		return now.Mono
	}
	return max(now.Mono, w.free(s, w.leaves(uint64(room))))
}

func (w *window) charge(s *spec, at Now, n int64) { w.count(s.per, at, n) }

func (w *window) count(per time.Duration, at Now, n int64) {
	w.drop(sub(at.Mono, per))
	w.insert(at.Mono, n, slotOf(per))
}

// slotOf is the length of a slot of a window that counts in slots.
func slotOf(per time.Duration) time.Duration { return (per + exact - 1) / exact }

func (w *window) refund(s *spec, charged Now, n int64) {
	w.remove(charged.Mono, n, slotOf(s.per))
}

// when: of max units each comes free once in per+1, so the calls go in rounds of
// max, each at the same place in its round.
func (w *window) when(s *spec, now Now, held, n int64) time.Duration {
	round, place := (n-1)/s.capacity, (n-1)%s.capacity+1
	all := add(now.Mono, s.per+1) // by then everything is free that counts or is held
	t := all
	if room := s.capacity - place - held; room >= 0 {
		t = w.look(s, now, room)
	}
	if round == 0 {
		return t
	}
	// Entries in slots may come free after all; the next round must not be put
	// later for it.
	return add(min(t, all), times(s.per+1, round))
}

func (w *window) used(s *spec, now Now) int64 {
	return int64(w.since(sub(now.Mono, s.per)))
}

func (w *window) idle(s *spec, now Now) bool { return w.used(s, now) == 0 }

func (w *window) adopt(s *spec, from algorithm, _ *spec, now Now) {
	w.ring = from.(*window).ring
	w.resize(s, now)
}

// resize puts what is in slots into those of another length.
func (w *window) resize(s *spec, now Now) {
	if w.drop(sub(now.Mono, s.per)); w.slotted {
		w.compact(slotOf(s.per))
	}
}

func (w *window) copy(from algorithm) {
	*w = *from.(*window)
	w.entries = slices.Clone(w.entries)
}
