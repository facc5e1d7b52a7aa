package book

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/limit"
)

// How values are written where a Storage keeps bytes: fields in order, numbers as
// varints, texts with their length. The version of this is the store's: where it
// changes, so does the version of the store's schema.

var errDamaged = errors.New("a stored value is damaged")

// AppendBinary appends m as UnmarshalBinary reads it. The error is always nil.
func (m *Meta) AppendBinary(b []byte) ([]byte, error) {
	b = appendText(b, m.Epoch)
	b = binary.AppendUvarint(b, m.Version)
	b = binary.AppendUvarint(b, m.Rev)
	return appendTimes(b, m.Grace, m.Last, m.Offset, m.Stepped, m.By), nil
}

// UnmarshalBinary reads what AppendBinary has written.
func (m *Meta) UnmarshalBinary(data []byte) error {
	d := &reader{data: data}
	*m = Meta{
		Epoch: d.text(), Version: d.uvarint(), Rev: d.uvarint(),
		Grace: d.time(), Last: d.time(), Offset: d.time(), Stepped: d.time(), By: d.time(),
	}
	return d.end()
}

// AppendBinary appends h as UnmarshalBinary reads it. The error is always nil.
func (h *Holder) AppendBinary(b []byte) ([]byte, error) {
	b = appendTimes(b, h.Until)
	dead := byte(0)
	if h.Dead {
		dead = 1
	}
	return binary.AppendUvarint(append(b, dead), h.Seq), nil
}

// UnmarshalBinary reads what AppendBinary has written.
func (h *Holder) UnmarshalBinary(data []byte) error {
	d := &reader{data: data}
	*h = Holder{Until: d.time(), Dead: d.uvarint() == 1, Seq: d.uvarint()}
	return d.end()
}

// AppendBinary appends r as UnmarshalBinary reads it. The error is always nil.
func (r *Record) AppendBinary(b []byte) ([]byte, error) {
	b = appendTimes(b, r.NotBefore, r.MaxUntil, r.Idle)
	b = binary.AppendVarint(b, r.Max)
	return r.Rule.AppendBinary(b)
}

// UnmarshalBinary reads what AppendBinary has written.
func (r *Record) UnmarshalBinary(data []byte) error {
	d := &reader{data: data}
	*r = Record{NotBefore: d.time(), MaxUntil: d.time(), Idle: d.time(), Max: d.varint(), Rule: new(limit.Rule)}
	if d.err != nil {
		return d.err
	}
	return r.Rule.UnmarshalBinary(d.data)
}

// AppendBinary appends h as UnmarshalBinary reads it. The error is always nil.
func (h *Hold) AppendBinary(b []byte) ([]byte, error) {
	b = appendTimes(b, h.At.Mono, h.At.Wall)
	b = binary.AppendUvarint(b, uint64(len(h.Units)))
	for _, u := range h.Units {
		if b = appendText(b, u.ID); u.ID != "" {
			b = binary.AppendVarint(b, u.N)
		}
	}
	for _, key := range h.Trials {
		b = appendText(b, key)
	}
	return b, nil
}

// UnmarshalBinary reads what AppendBinary has written.
func (h *Hold) UnmarshalBinary(data []byte) error {
	d := &reader{data: data}
	*h = Hold{At: limit.Now{Mono: d.time(), Wall: d.time()}}
	for n := d.uvarint(); n > 0 && d.err == nil; n-- {
		u := Unit{ID: d.text()}
		if u.ID != "" {
			u.N = d.varint()
		}
		h.Units = append(h.Units, u)
	}
	for len(d.data) > 0 {
		h.Trials = append(h.Trials, d.text())
	}
	return d.end()
}

// AppendBinary appends p as UnmarshalBinary reads it. The error is always nil.
func (p *Pause) AppendBinary(b []byte) ([]byte, error) {
	for _, s := range []string{p.Provider, p.Scope, p.Name, p.Why, p.Detail, p.Holder} {
		b = appendText(b, s)
	}
	b = binary.AppendUvarint(b, uint64(p.Hold))
	return appendTimes(b, p.Until, p.Since), nil
}

// UnmarshalBinary reads what AppendBinary has written.
func (p *Pause) UnmarshalBinary(data []byte) error {
	d := &reader{data: data}
	*p = Pause{
		Provider: d.text(), Scope: d.text(), Name: d.text(), Why: d.text(), Detail: d.text(), Holder: d.text(),
		Hold: ledger.Hold(d.uvarint()), Until: d.time(), Since: d.time(),
	}
	return d.end()
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendTimes(b []byte, times ...time.Duration) []byte {
	for _, t := range times {
		b = binary.AppendVarint(b, int64(t))
	}
	return b
}

// reader reads values in their order. After its first error it reads zeros.
type reader struct {
	data []byte
	err  error
}

func (d *reader) fail() {
	d.data, d.err = nil, errDamaged
}

func (d *reader) uvarint() uint64 {
	v, n := binary.Uvarint(d.data)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.data = d.data[n:]
	return v
}

func (d *reader) varint() int64 {
	v, n := binary.Varint(d.data)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.data = d.data[n:]
	return v
}

func (d *reader) time() time.Duration { return time.Duration(d.varint()) }

func (d *reader) text() string {
	n := d.uvarint()
	if n > math.MaxInt32 || int(n) > len(d.data) {
		d.fail()
		return ""
	}
	s := string(d.data[:n])
	d.data = d.data[n:]
	return s
}

// end is the error of all that was read; bytes that are left over are one.
func (d *reader) end() error {
	if len(d.data) > 0 {
		d.fail()
	}
	return d.err
}
