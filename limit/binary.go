package limit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate/provider"
)

// format is the version of what AppendBinary writes. A Rule that is stored under
// another one cannot be read.
const format = 1

// codes of algorithms and words in stored Rules: a place is never used again.
var (
	algorithms = []provider.Algorithm{
		provider.SlidingWindow, provider.SlidingWindowCounter, provider.FixedWindow,
		provider.TokenBucket, provider.LeakyBucket, provider.InFlight,
	}
	words = []provider.Period{"", provider.Minute, provider.Hour, provider.Day, provider.Month}
)

// stored is an algorithm that can be written down, as all are.
type stored interface {
	append(b []byte) []byte
	// decode reads what append has written; what was there before is lost.
	decode(s *spec, d *decoder)
}

// AppendBinary appends all that r knows, what is held included, and the numbers of
// its limit: a few bytes, and 2 to 19, usually 6, for each of the instants that a
// window keeps (at most 1,032). Instants stay on the scale of Now that they were told on. The
// error is always nil.
func (r *Rule) AppendBinary(b []byte) ([]byte, error) {
	b = r.spec.append(b)
	b = binary.AppendUvarint(b, uint64(r.held))
	return r.algo.(stored).append(b), nil
}

// UnmarshalBinary makes r the Rule that was stored: it goes on as that one would
// have. r may be the zero value; one that New or Fresh has made for the same limit
// shares what it has read of it. Where the limit has changed since, r has the numbers
// that were stored: see [Rule.Alike]. What no Rule can have written is an error, and
// r must not be used afterwards.
func (r *Rule) UnmarshalBinary(data []byte) error {
	var head [64]byte
	d := &decoder{data: data}
	if r.spec == nil || !d.skip(r.spec.append(head[:0])) {
		s := d.spec()
		if d.err != nil {
			return d.err
		}
		*r = *newRule(s)
	}
	r.held = d.count()
	r.algo.(stored).decode(r.spec, d)
	if len(d.data) > 0 {
		d.fail("more bytes than there should be")
	}
	return d.err
}

// Alike tells that r and with count by the same limit. Where a stored Rule is not
// like one that is new, the new one must [Rule.Adopt] it, so that a limit which
// has changed counts at once.
func (r *Rule) Alike(with *Rule) bool {
	var a, b [64]byte
	return r.spec == with.spec || bytes.Equal(r.spec.append(a[:0]), with.spec.append(b[:0]))
}

// Window is the length of the limit's period, of a month the longest; 0 for in_flight.
func (r *Rule) Window() time.Duration { return r.spec.per }

// append writes down the limit: what two that count alike have in common.
func (s *spec) append(b []byte) []byte {
	b = append(b, format, byte(slices.Index(algorithms, s.algorithm)), flag(s.sent))
	b = binary.AppendUvarint(b, uint64(s.max))
	b = binary.AppendUvarint(b, uint64(s.capacity))
	b = binary.AppendUvarint(b, uint64(s.per))
	if s.calendar == nil {
		return append(b, 0)
	}
	c := s.calendar
	b = append(b, byte(slices.Index(words, c.word)), byte(c.day))
	b = binary.AppendUvarint(b, uint64(c.offset))
	zone := c.zone.String()
	return append(binary.AppendUvarint(b, uint64(len(zone))), zone...)
}

func (d *decoder) spec() *spec {
	if v := d.byte(); v != format && d.err == nil {
		d.fail(fmt.Sprintf("version %d is unknown: this program reads version %d", v, format))
	}
	code := d.byte()
	if int(code) >= len(algorithms) {
		d.fail("no such algorithm")
		return nil
	}
	s := &spec{algorithm: algorithms[code]}
	s.sent, s.max, s.capacity, s.per = d.flag(), d.count(), d.count(), time.Duration(d.count())
	longest, _ := provider.Month.Duration()
	switch {
	case s.max < 1 || s.capacity < 1:
		d.fail("a limit of less than 1")
	case (s.per == 0) != (s.algorithm == provider.InFlight), s.per > longest:
		d.fail("a period out of range")
	case s.algorithm != provider.TokenBucket && s.capacity != s.max, s.capacity > max(1, down(longestFill, s.max, max(1, int64(s.per)))):
		d.fail("a capacity out of range")
	}
	s.holds = s.algorithm == provider.InFlight || !s.sent && s.algorithm != provider.LeakyBucket
	if word := d.byte(); word > 0 {
		s.calendar = d.calendar(s, word)
	}
	return s
}

func (d *decoder) calendar(s *spec, word byte) *calendar {
	c := &calendar{day: int(d.byte()), offset: time.Duration(d.count()), zone: d.zone()}
	if int(word) >= len(words) || s.algorithm != provider.FixedWindow {
		d.fail("no such calendar")
		return nil
	}
	c.word = words[word]
	per, _ := c.word.Duration()
	if s.per != per || c.offset >= min(per, 24*time.Hour) || c.day > 31 || (c.day > 0) != (c.word == provider.Month) {
		d.fail("a calendar out of range")
	}
	return c
}

// zones are those that were read before: reading one takes longer than a decision.
var zones sync.Map // its name → *time.Location

func (d *decoder) zone() *time.Location {
	name := d.bytes(d.count())
	if d.err != nil {
		return nil
	}
	if z, ok := zones.Load(string(name)); ok {
		return z.(*time.Location)
	}
	z, err := time.LoadLocation(string(name))
	if err != nil {
		d.fail("a time zone that this system does not know")
		return nil
	}
	zones.Store(string(name), z)
	return z
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// appendAfter appends an instant as its distance from another one. Both may be
// anything: the difference wraps, and decoder.after wraps back.
func appendAfter(b []byte, from, t time.Duration) []byte {
	return binary.AppendVarint(b, int64(t-from))
}

// decoder reads what was stored. After its first error it reads zeros.
type decoder struct {
	data []byte
	err  error
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = errors.New("limit: a stored rule is damaged: " + what)
	}
	d.data = nil
}

// skip tells whether the data begins with head, and is then behind it.
func (d *decoder) skip(head []byte) bool {
	rest, ok := bytes.CutPrefix(d.data, head)
	if ok {
		d.data = rest
	}
	return ok
}

func (d *decoder) bytes(n int64) []byte {
	if n < 0 || n > int64(len(d.data)) {
		d.fail("it ends too early")
		return nil
	}
	b := d.data[:n]
	d.data = d.data[n:]
	return b
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) flag() bool {
	b := d.byte()
	if b > 1 {
		d.fail("a flag that is neither 0 nor 1")
	}
	return b == 1
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.data)
	if n <= 0 {
		d.fail("a number that does not end")
		return 0
	}
	d.data = d.data[n:]
	return v
}

// count reads a number that is not below 0.
func (d *decoder) count() int64 {
	v := d.uvarint()
	if v > math.MaxInt64 {
		d.fail("a number out of range")
		return 0
	}
	return int64(v)
}

// after reads what appendAfter has written.
func (d *decoder) after(from time.Duration) time.Duration {
	u := d.uvarint()
	v := int64(u >> 1)
	if u&1 != 0 {
		v = ^v
	}
	return from + time.Duration(v)
}
