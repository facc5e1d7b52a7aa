package book

import (
	"strconv"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/limit"
)

// holdsOf is what the keys of a holder's holds begin with, and of no other's.
func holdsOf(holder string) string { return strconv.Itoa(len(holder)) + ":" + holder + ":" }

func holdKey(holder string, h ledger.Hold) string {
	return holdsOf(holder) + strconv.FormatUint(uint64(h), 36)
}

// restore takes up a hold that a lost state knew. It asks nobody: the units are out.
func (x *turn) restore(held *ledger.Held) error {
	key := holdKey(x.b.Holder, held.Hold)
	if h, err := x.s.Holds.Get(key); err != nil || h != nil {
		return err
	}
	h := &Hold{At: x.at(held.At), Units: make([]Unit, len(held.Take.Units))}
	part := held.Part
	if part == nil {
		for i := range held.Take.Units {
			part = append(part, i)
		}
	}
	for _, i := range part {
		if i < 0 || i >= len(h.Units) || h.Units[i].ID != "" {
			continue
		}
		u := held.Take.Units[i]
		r, err := x.record(u.Counter)
		if err != nil {
			return err
		}
		n := max(u.N, 0)
		r.Rule.Take(h.At, n)
		r.use()
		h.Units[i] = Unit{ID: u.Counter.ID(), N: n}
	}
	return x.keep(key, h)
}

// keep stores a hold, or deletes it where nothing of it is out.
func (x *turn) keep(key string, h *Hold) error {
	if h.out() || len(h.Trials) > 0 {
		return x.s.Holds.Put(key, h)
	}
	return x.s.Holds.Delete(key)
}

func (h *Hold) out() bool {
	for _, u := range h.Units {
		if u.ID != "" {
			return true
		}
	}
	return false
}

func (x *turn) settle(s *ledger.Settlement) error {
	key := holdKey(x.b.Holder, s.Hold)
	h, err := x.s.Holds.Get(key)
	if err != nil || h == nil {
		return err
	}
	at := x.at(s.At)
	at = limit.Now{Mono: max(at.Mono, h.At.Mono), Wall: at.Wall + max(0, h.At.Mono-at.Mono)}
	if err := x.settleUnits(h, s, at); err != nil {
		return err
	}
	if s.Trial != "" || !h.out() {
		if err := x.tried(key, h, s.Trial == ledger.Opens); err != nil {
			return err
		}
	}
	return x.keep(key, h)
}

func (x *turn) settleUnits(h *Hold, s *ledger.Settlement, at limit.Now) error {
	part := s.Part
	if part == nil {
		for i, u := range h.Units {
			part = append(part, ledger.Part{Unit: i, Charged: u.N})
		}
	}
	for _, p := range part {
		if p.Unit < 0 || p.Unit >= len(h.Units) || h.Units[p.Unit].ID == "" {
			continue
		}
		u := h.Units[p.Unit]
		h.Units[p.Unit] = Unit{}
		r, err := x.load(u.ID)
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		r.use()
		if s.Back {
			r.Rule.GiveBack(h.At, x.now, u.N)
		} else {
			r.Rule.Settle(h.At, at, u.N, p.Charged)
		}
	}
	return nil
}
