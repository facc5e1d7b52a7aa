package referee

import (
	"math/big"
	"sort"
	"time"
)

// counter counts the units of one limit in one scope. Instants are nanoseconds
// since the Unix epoch and never run backwards, but for fits, which may be asked
// about any later instant.
type counter interface {
	// forget drops what does not count at t or later any more.
	forget(t int64)
	// fits tells whether n more units are allowed at t, and how many would then be
	// used. It changes nothing.
	fits(t, n int64) (used int64, ok bool)
	// charge counts n units of c, allowed or not. undo takes exactly them out again.
	charge(c *call, n int64) (undo func())
}

// opens returns the first instant after t at which n units would be allowed if
// nothing happened until then; false: in ten years they would not be. What is
// allowed at one instant is allowed later, so doubling and halving find it.
func opens(k counter, t, n int64) (int64, bool) {
	allowed := func(d int64) bool {
		_, ok := k.fits(t+d, n)
		return ok
	}
	d := int64(1)
	for !allowed(d) {
		if d > int64(10*365*24*time.Hour) {
			return 0, false
		}
		d *= 2
	}
	i := sort.Search(int(d-d/2), func(i int) bool { return allowed(d/2 + int64(i)) })
	return t + d/2 + int64(i), true
}

// floor is the largest multiple of w that is not above t.
func floor(t, w int64) int64 { return t - ((t%w)+w)%w }

// log remembers every arrival of the last w: never more than max in any window
// [x, x+w), or [x, x+w] if closed.
type log struct {
	max, w  int64
	closed  bool
	entries []entry
	head    int   // entries before it are dropped
	first   int64 // number of entries[0] since the beginning
	sum     int64 // of entries from head on
}

type entry struct{ at, n int64 }

// past tells that no window holds both e and t.
func (l *log) past(e entry, t int64) bool {
	if l.closed {
		return e.at+l.w < t
	}
	return e.at+l.w <= t
}

func (l *log) forget(t int64) {
	for l.head < len(l.entries) && l.past(l.entries[l.head], t) {
		l.sum -= l.entries[l.head].n
		l.head++
	}
	if l.head > len(l.entries)/2 { // moves at most as many as were dropped since the last time
		l.first += int64(l.head)
		l.entries = l.entries[:copy(l.entries, l.entries[l.head:])]
		l.head = 0
	}
}

func (l *log) fits(t, n int64) (int64, bool) {
	used := l.sum + n
	for i := l.head; i < len(l.entries) && l.past(l.entries[i], t); i++ {
		used -= l.entries[i].n
	}
	return used, used <= l.max
}

func (l *log) charge(c *call, n int64) func() {
	number := l.first + int64(len(l.entries))
	l.entries = append(l.entries, entry{c.At.UnixNano(), n})
	l.sum += n
	return func() {
		if i := int(number - l.first); i >= l.head {
			l.entries[i].n -= n
			l.sum -= n
		}
	}
}

// fixed counts in aligned windows: never more than max in one. Where windows are
// closed, the instant at which one ends and the next begins is in both.
type fixed struct {
	max    int64
	closed bool
	start  func(t int64) int64 // the start of the window that holds t
	used   map[int64]int64     // by the start of a window
}

func newFixed(max int64, closed bool, start func(int64) int64) *fixed {
	return &fixed{max: max, closed: closed, start: start, used: map[int64]int64{}}
}

// windows returns the starts of the windows that hold t.
func (f *fixed) windows(t int64) []int64 {
	s := f.start(t)
	if f.closed && s == t {
		return []int64{s, f.start(s - 1)}
	}
	return []int64{s}
}

func (f *fixed) forget(t int64) {
	oldest := f.start(f.start(t) - 1) // a closed window may still get the call at its end
	for s := range f.used {
		if s < oldest {
			delete(f.used, s)
		}
	}
}

func (f *fixed) fits(t, n int64) (int64, bool) {
	var most int64
	for _, s := range f.windows(t) {
		most = max(most, f.used[s]+n)
	}
	return most, most <= f.max
}

func (f *fixed) charge(c *call, n int64) func() {
	t := c.At.UnixNano()
	for _, s := range f.windows(t) {
		f.used[s] += n
	}
	return func() {
		for _, s := range f.windows(t) {
			f.used[s] -= n // one that was forgotten meanwhile is never asked again
		}
	}
}

// estimate is the two-counter approximation of a sliding window, aligned to the
// epoch: previous × (1 − elapsed share) + current ≤ max.
type estimate struct {
	max, w int64
	used   map[int64]int64 // by the start of a window
}

func (e *estimate) forget(t int64) {
	for s := range e.used {
		if s < floor(t, e.w)-e.w {
			delete(e.used, s)
		}
	}
}

func (e *estimate) fits(t, n int64) (int64, bool) {
	s := floor(t, e.w)
	// Both sides times w: previous × (w − elapsed) + (current + n) × w ≤ max × w.
	sum := product(e.used[s-e.w], e.w-(t-s))
	sum.Add(sum, product(e.used[s]+n, e.w))
	return ceil(sum, e.w), sum.Cmp(product(e.max, e.w)) <= 0
}

func (e *estimate) charge(c *call, n int64) func() {
	s := floor(c.At.UnixNano(), e.w)
	e.used[s] += n
	return func() { e.used[s] -= n } // harmless where it was forgotten meanwhile
}

// bucket holds at most burst tokens and gains rate of them in each w, evenly. Its
// level is kept in tokens × w: a whole number at every nanosecond. What a call in
// flight took is kept apart, and its level computed anew each time: what is taken
// back must be as if it had never been taken, where simply adding it would bring
// back a token that a full bucket had lost meanwhile.
type bucket struct {
	rate, w, burst int64
	level          *big.Int // at the instant at
	at             int64
	after          []*draw // since then
}

type draw struct {
	c *call
	n int64
}

// newBucket returns a bucket that is full since the epoch.
func newBucket(rate, w, burst int64) *bucket {
	return &bucket{rate: rate, w: w, burst: burst, level: product(burst, w)}
}

// filled is the level that becomes of level in a time.
func (b *bucket) filled(level *big.Int, d int64) *big.Int {
	sum := product(d, b.rate)
	if sum.Add(sum, level); sum.Cmp(product(b.burst, b.w)) > 0 {
		return product(b.burst, b.w)
	}
	return sum
}

// drawn is the level after d, given that it was level at the instant at.
func (b *bucket) drawn(level *big.Int, at int64, d *draw) (*big.Int, int64) {
	t := d.c.At.UnixNano()
	level = b.filled(level, t-at)
	return level.Sub(level, product(d.n, b.w)), t
}

func (b *bucket) levelAt(t int64) *big.Int {
	level, at := b.level, b.at
	for _, d := range b.after {
		level, at = b.drawn(level, at, d)
	}
	return b.filled(level, t-at)
}

func (b *bucket) forget(int64) {
	for len(b.after) > 0 && b.after[0].c.ended {
		b.level, b.at = b.drawn(b.level, b.at, b.after[0])
		b.after = b.after[1:]
	}
}

func (b *bucket) fits(t, n int64) (int64, bool) {
	used := product(b.burst+n, b.w) // burst − level + n tokens
	used.Sub(used, b.levelAt(t))
	return ceil(used, b.w), used.Cmp(product(b.burst, b.w)) <= 0
}

func (b *bucket) charge(c *call, n int64) func() {
	d := &draw{c, n}
	b.after = append(b.after, d)
	return func() { d.n = 0 }
}

// flights counts the calls that are being served and whose client is there.
type flights struct {
	max  int64
	live map[*call]int64
}

func (f *flights) forget(int64) {}

func (f *flights) fits(_, n int64) (int64, bool) {
	for c, m := range f.live {
		if !c.gone() {
			n += m
		}
	}
	return n, n <= f.max
}

func (f *flights) charge(c *call, n int64) func() {
	f.live[c] = n
	return func() { delete(f.live, c) }
}

func product(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

// ceil is a/b rounded up, for b above 0.
func ceil(a *big.Int, b int64) int64 {
	q, m := new(big.Int).DivMod(a, big.NewInt(b), new(big.Int))
	if m.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q.Int64()
}
