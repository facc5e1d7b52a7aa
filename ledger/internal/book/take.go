package book

import (
	"math"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/limit"
)

// take answers one Take: everything it asks for is held afterwards, or nothing. It
// looks at all units, also where the first of them refuses: what opens last tells how
// long to wait.
func (x *turn) take(a *ledger.Asked, g *ledger.Grant) error {
	key := holdKey(x.b.Holder, a.Hold)
	switch h, err := x.s.Holds.Get(key); {
	case err != nil:
		return err
	case h != nil: // asked again, though the contract says not to: it has it
		*g = ledger.Grant{Hold: a.Hold, Alone: len(h.Trials) > 0}
		return nil
	}
	units := a.Take.Units
	records := make([]*Record, len(units))
	at, by := x.now.Mono, -1
	for i, u := range units {
		r, err := x.record(u.Counter)
		if err != nil {
			return err
		}
		records[i] = r
		n := max(u.N, 0)
		for j := range i {
			if records[j] == r {
				n += min(max(units[j].N, 0), math.MaxInt64-n)
			}
		}
		if t := x.opens(u.Counter, r, n); t > at {
			at, by = t, i
		}
	}
	p, opens := x.paused(&a.Take)
	if opens >= at {
		at, by = opens, -1
	}
	if grace := x.meta.Grace; grace > x.now.Mono && grace >= at {
		at, by = grace, -1
	}
	if at > x.now.Mono {
		*g = ledger.Grant{Wait: x.wait(at), By: by, Pause: p, Room: x.rooms(records)}
		return nil
	}
	return x.grant(a, key, records, g)
}

func (x *turn) wait(at time.Duration) time.Duration {
	if at == limit.Never {
		return ledger.Event
	}
	return at - x.now.Mono
}

func (x *turn) rooms(records []*Record) []int64 {
	rooms := make([]int64, len(records))
	for i, r := range records {
		rooms[i] = x.room(r)
	}
	return rooms
}

func (x *turn) grant(a *ledger.Asked, key string, records []*Record, g *ledger.Grant) error {
	h := &Hold{At: x.now}
	for i, u := range a.Take.Units {
		n := max(u.N, 0)
		records[i].Rule.Take(x.now, n)
		records[i].use()
		h.Units = append(h.Units, Unit{ID: u.Counter.ID(), N: n})
	}
	var err error
	if h.Trials, err = x.alone(a); err != nil {
		return err
	}
	*g = ledger.Grant{Hold: a.Hold, Alone: len(h.Trials) > 0, By: -1, Room: x.rooms(records)}
	return x.keep(key, h)
}
