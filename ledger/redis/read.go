package redis

import (
	"errors"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate/ledger"
)

var errOdd = errors.New("redis: an answer that no script of ours gives")

// reader reads a script's answer from front to back; its first error stays.
type reader struct {
	m   []rueidis.RedisMessage
	err error
}

func readerOf(m rueidis.RedisMessage) *reader {
	list, err := m.ToArray()
	return &reader{m: list, err: err}
}

func (r *reader) next() (m rueidis.RedisMessage) {
	if len(r.m) == 0 {
		r.err = errors.Join(r.err, errOdd)
		return m
	}
	m, r.m = r.m[0], r.m[1:]
	return m
}

// int reads a number, which the scripts write as a number or as text.
func (r *reader) int() int64 {
	m := r.next()
	if r.err != nil {
		return 0
	}
	n, err := m.AsInt64()
	r.err = err
	return n
}

func (r *reader) text() string {
	m := r.next()
	if r.err != nil {
		return ""
	}
	s, err := m.ToString()
	r.err = err
	return s
}

func (r *reader) list() *reader {
	m := r.next()
	if r.err != nil {
		return &reader{err: r.err}
	}
	return readerOf(m)
}

// pause reads scope, name, for how long, why, detail.
func (r *reader) pause(slug string, now time.Time) ledger.Pause {
	return ledger.Pause{
		Provider: slug, Scope: r.text(), Name: r.text(),
		Until: now.Add(length(r.int())), Why: r.text(), Detail: r.text(),
	}
}

// usage reads used, held, and for how long until a unit comes back (-1: none is out),
// nothing goes, and the learned size.
func (r *reader) usage(now time.Time) ledger.Usage {
	u := ledger.Usage{Used: r.int(), Held: r.int()}
	reset, notBefore, size := r.int(), r.int(), r.int()
	if reset >= 0 {
		u.ResetAt = now.Add(length(reset))
	}
	if notBefore > 0 {
		u.NotBefore = now.Add(length(notBefore))
	}
	u.Max = size
	return u
}

func parseHold(s string) ledger.Hold {
	n, _ := strconv.ParseUint(s, 10, 64) // it was written by us
	return ledger.Hold(n)
}
