package limit

import (
	"encoding/binary"
	"math"
	"time"
)

// Each algorithm writes what it knows and reads it again. What can be computed from
// the rest is computed.

func (w *window) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(w.size))
	b = append(b, flag(w.slotted))
	var at time.Duration
	for i := range int(w.size) {
		e := w.entry(i)
		b = appendAfter(b, at, e.at)
		b = binary.AppendUvarint(b, e.sum-w.before(i))
		at = e.at
	}
	return b
}

func (w *window) decode(_ *spec, d *decoder) {
	size := d.count()
	if size > most {
		d.fail("more entries than a window keeps")
		return
	}
	w.ring = ring{size: uint16(size), slotted: d.flag(), entries: make([]entry, size)}
	var at time.Duration
	for i := range w.entries {
		next, n := d.after(at), d.count()
		if d.err == nil && i > 0 && next <= at {
			d.fail("entries that are not in order")
		}
		at = next
		w.entries[i] = entry{at: at, sum: w.before(i) + uint64(n)}
		if w.entries[i].sum > math.MaxInt64 {
			d.fail("more units than a window keeps")
		}
	}
}

func (l *leaky) append(b []byte) []byte {
	b = l.window.append(b)
	return l.earlier.append(l.last.append(b))
}

func (l *leaky) decode(s *spec, d *decoder) {
	l.window.decode(s, d)
	l.last.decode(d)
	l.earlier.decode(d)
}

func (g grant) append(b []byte) []byte {
	if b = binary.AppendUvarint(b, uint64(g.n)); g.n == 0 {
		return b
	}
	return appendAfter(appendAfter(b, 0, g.at), g.at, g.scheduled)
}

func (g *grant) decode(d *decoder) {
	if *g = (grant{n: d.count()}); g.n > 0 {
		g.at = d.after(0)
		g.scheduled = d.after(g.at)
	}
}

func (a *aligned) append(b []byte) []byte {
	if a.start == a.end {
		return binary.AppendUvarint(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(a.end-a.start))
	b = appendAfter(b, 0, a.start)
	b = appendAfter(b, a.start, a.since)
	b = appendAfter(b, a.since, a.earlier)
	b = appendAfter(b, a.since, a.last)
	b = binary.AppendUvarint(b, uint64(a.cur))
	b = binary.AppendUvarint(b, uint64(a.old))
	return append(b, flag(a.follows))
}

// longestWindow is more than any period is: a month in which a zone skips a day back.
const longestWindow = 40 * 24 * time.Hour

func (a *aligned) decode(_ *spec, d *decoder) {
	length := time.Duration(d.count())
	if *a = (aligned{}); length == 0 {
		return
	}
	a.start = d.after(0)
	a.end = add(a.start, length)
	a.since = d.after(a.start)
	a.earlier = d.after(a.since)
	a.last = d.after(a.since)
	a.cur, a.old, a.follows = d.count(), d.count(), d.flag()
	if length > longestWindow || a.end-a.start != length {
		d.fail("a window that is too long")
	}
}

func (f *fixed) append(b []byte) []byte {
	return f.aligned.append(binary.AppendUvarint(b, uint64(f.skew)))
}

func (f *fixed) decode(s *spec, d *decoder) {
	*f = fixed{skew: time.Duration(d.count())}
	f.aligned.decode(s, d)
	if d.err == nil {
		f.measure(s)
	}
}

func (b *bucket) append(to []byte) []byte {
	to = appendAfter(to, 0, b.full)
	to = binary.AppendUvarint(to, uint64(b.over))
	to = append(to, byte(len(b.past)))
	from := dip{}
	for _, p := range b.past {
		to = appendAfter(to, from.at, p.at)
		to = appendAfter(to, from.level, p.level)
		from = p
	}
	return to
}

func (b *bucket) decode(s *spec, d *decoder) {
	*b = bucket{full: d.after(0), over: d.count()}
	n := int(d.byte())
	if b.over >= s.max || n > remembered {
		d.fail("a bucket out of range")
		return
	}
	if n > 0 {
		b.past = make(dips, n)
	}
	var from dip
	for i := range b.past {
		p := dip{at: d.after(from.at), level: d.after(from.level)}
		if d.err == nil && (p.level < from.level || i > 0 && p.at <= from.at) {
			d.fail("a bucket's history that is not in order")
		}
		b.past[i], from = p, p
	}
}

func (*flight) append(b []byte) []byte { return b }

func (*flight) decode(*spec, *decoder) {}
