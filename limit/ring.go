package limit

import (
	"math"
	"time"
)

const (
	exact = 1024 // entries that are kept as they are
	most  = 1032 // entries that are kept at all: what exact slots and a window's ends can make
)

// entry is what was charged at one instant, with everything before it.
type entry struct {
	at  time.Duration
	sum uint64 // of all units up to this entry; wraps, only differences mean something
}

// ring is what was charged, in order of time, at most one entry an instant. Its
// total never exceeds MaxInt64: then the oldest units are dropped, so that what
// any entry and all after it weigh stays true.
//
// Up to exact entries it is exact. When more are needed all instants are rounded up
// to the end of a slot (per/1024), which is later and so the strict side, and new
// ones too for as long as more than half as many entries are left.
type ring struct {
	entries    []entry
	base       uint64 // sum before the first entry
	head, size uint16
	slotted    bool
}

func (r *ring) index(i int) int {
	i += int(r.head)
	if i >= len(r.entries) {
		i -= len(r.entries)
	}
	return i
}

func (r *ring) entry(i int) *entry { return &r.entries[r.index(i)] }

// before is the sum in front of entry i.
func (r *ring) before(i int) uint64 {
	if i == 0 {
		return r.base
	}
	return r.entry(i - 1).sum
}

func (r *ring) total() uint64 {
	if r.size == 0 {
		return 0
	}
	return r.entries[r.index(int(r.size)-1)].sum - r.base
}

// search is the first entry at or after at.
func (r *ring) search(at time.Duration) int {
	lo, hi := 0, int(r.size)
	if hi > 0 { // the usual cases: after the last, or in its slot
		switch last := r.entry(hi - 1).at; {
		case last < at:
			return hi
		case last == at:
			return hi - 1
		}
	}
	for lo < hi {
		mid := (lo + hi) / 2
		if r.entry(mid).at < at {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// leaves is the first entry after which no more than room is left. There is one
// where the total is more than that.
func (r *ring) leaves(room uint64) int {
	last := r.before(int(r.size))
	if last-r.entry(0).sum <= room { // the usual case under load
		return 0
	}
	lo, hi := 1, int(r.size)-1
	for lo < hi {
		mid := (lo + hi) / 2
		if last-r.entry(mid).sum > room {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// since is what was charged at or after at.
func (r *ring) since(at time.Duration) uint64 {
	return r.before(int(r.size)) - r.before(r.search(at))
}

// shift drops the first entry with its units.
func (r *ring) shift() {
	r.base = r.entries[r.head].sum
	r.fold()
}

// fold drops the first entry; its units join the next, which is strict.
func (r *ring) fold() {
	r.head++
	if int(r.head) == len(r.entries) {
		r.head = 0
	}
	r.size--
}

// drop forgets what was charged before at.
func (r *ring) drop(at time.Duration) {
	for r.size > 0 && r.entries[r.head].at < at {
		r.shift()
	}
	if r.slotted && r.size <= exact/2 {
		r.slotted = false
	}
}

// insert adds n units at an instant, which may precede others.
func (r *ring) insert(at time.Duration, n int64, slot time.Duration) {
	if r.extend(at, n, slot) {
		return
	}
	if r.slotted {
		at = ceil(at, slot)
	}
	i := r.search(at)
	if i == int(r.size) || r.entry(i).at != at {
		if r.size == exact && !r.slotted {
			r.compact(slot)
			r.insert(at, n, slot)
			return
		}
		i = r.open(i)
		*r.entry(i) = entry{at: at, sum: r.before(i)}
	}
	for j := i; j < int(r.size); j++ {
		r.entry(j).sum += uint64(n)
	}
	r.saturate()
}

// extend is insert for the usual cases, where the total is far from the most: as late
// as the last entry (or in its slot), or later, or next before it: the end of a slot
// that others have left is ahead of the clock.
func (r *ring) extend(at time.Duration, n int64, slot time.Duration) bool {
	if r.size == 0 {
		return false
	}
	i := r.index(int(r.size) - 1)
	last := &r.entries[i]
	if last.sum-r.base > math.MaxInt64/2 || n > math.MaxInt64/2 {
		return false
	}
	if at == last.at || r.slotted && at < last.at && at > last.at-slot {
		last.sum += uint64(n)
		return true
	}
	if r.slotted || r.size >= exact || int(r.size) == len(r.entries) {
		return false
	}
	before := r.base
	if at < last.at && r.size > 1 {
		prev := r.entry(int(r.size) - 2)
		if prev.at == at {
			prev.sum += uint64(n)
			last.sum += uint64(n)
			return true
		}
		if prev.at > at {
			return false
		}
		before = prev.sum
	}
	next := i + 1
	if next == len(r.entries) {
		next = 0
	}
	e := entry{at: at, sum: last.sum + uint64(n)}
	if at < last.at {
		e, *last = entry{at: last.at, sum: e.sum}, entry{at: at, sum: before + uint64(n)}
	}
	r.entries[next] = e
	r.size++
	return true
}

// open makes a place before entry i and returns where it is. A full ring folds
// its first entry for it.
func (r *ring) open(i int) int {
	if r.size == most {
		r.fold()
		i = max(i-1, 0)
	}
	if int(r.size) == len(r.entries) {
		r.grow()
	}
	r.size++
	for j := int(r.size) - 1; j > i; j-- {
		*r.entry(j) = *r.entry(j - 1)
	}
	return i
}

func (r *ring) grow() {
	entries := make([]entry, min(max(2, 2*len(r.entries)), most))
	n := copy(entries, r.entries[r.head:])
	copy(entries[n:], r.entries[:r.head])
	r.entries, r.head = entries, 0
}

// compact rounds every instant up to the end of its slot and merges a slot's
// entries.
func (r *ring) compact(slot time.Duration) {
	kept := 0
	for i := range int(r.size) {
		e := entry{at: ceil(r.entry(i).at, slot), sum: r.entry(i).sum}
		if kept > 0 && r.entry(kept-1).at == e.at {
			kept--
		}
		*r.entry(kept) = e
		kept++
	}
	r.size, r.slotted = uint16(kept), true
}

// saturate keeps the total at MaxInt64.
func (r *ring) saturate() {
	if total := r.total(); total > math.MaxInt64 {
		r.base += total - math.MaxInt64
		for int64(r.entries[r.head].sum-r.base) <= 0 {
			r.fold()
		}
	}
}

// remove takes up to n units away that were charged at an instant. They lie there,
// or at the end of its slot, or have gone.
func (r *ring) remove(at time.Duration, n int64, slot time.Duration) {
	n -= r.subtract(at, n)
	if end := ceil(at, slot); n > 0 && end != at {
		r.subtract(end, n)
	}
}

// subtract takes up to n units from the entry at an instant and returns how many
// it took.
func (r *ring) subtract(at time.Duration, n int64) int64 {
	i := r.search(at)
	if i == int(r.size) || r.entry(i).at != at {
		return 0
	}
	weight := r.entry(i).sum - r.before(i)
	took := min(uint64(n), weight)
	for j := i; j < int(r.size); j++ {
		r.entry(j).sum -= took
	}
	if took == weight {
		for j := i; j < int(r.size)-1; j++ {
			*r.entry(j) = *r.entry(j + 1)
		}
		r.size--
	}
	return int64(took)
}
