package book

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/limit"
)

// remembered is for how long it is known what a dead holder had said, in case that it
// says it again.
const remembered = time.Minute

// bury ends the leases that are over, before anything else is looked at, in the order
// in which they ended: so it makes no difference who comes next, and when.
func (x *turn) bury(*ledger.Reply) error {
	dead, forgotten := map[string]*Holder{}, []string{}
	err := x.s.Holders.Scan("", func(name string, h *Holder) {
		switch {
		case h.Dead && x.now.Mono-h.Until > remembered:
			forgotten = append(forgotten, name)
		case !h.Dead && h.Until <= x.now.Mono:
			dead[name] = h
		case !h.Dead && name != x.b.Holder:
			x.others = append(x.others, name)
		}
	})
	for _, name := range forgotten {
		if err == nil {
			err = x.s.Holders.Delete(name)
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(dead), func(a, b string) int {
		return cmp.Or(cmp.Compare(dead[a].Until, dead[b].Until), cmp.Compare(a, b))
	}) {
		if err == nil {
			err = x.end(name, dead[name])
		}
	}
	return err
}

// end settles all that a holder holds as fully charged, as of the end of its lease.
func (x *turn) end(name string, who *Holder) error {
	who.Dead = true
	left := map[string]*Hold{}
	err := x.s.Holds.Scan(holdsOf(name), func(key string, h *Hold) { left[key] = h })
	at := limit.Now{Mono: who.Until, Wall: x.now.Wall - (x.now.Mono - who.Until)}
	for key, h := range left {
		if err == nil {
			err = x.settleUnits(h, &ledger.Settlement{}, at)
		}
		if err == nil {
			err = x.tried(key, h, false)
		}
		if err == nil {
			err = x.keep(key, h)
		}
	}
	if err != nil {
		return err
	}
	return x.s.Holders.Put(name, who)
}

// greet begins or renews the lease of who speaks.
func (x *turn) greet(*ledger.Reply) error {
	h, err := x.s.Holders.Get(x.b.Holder)
	if err != nil {
		return err
	}
	if h == nil {
		h = &Holder{}
	}
	h.Until, h.Dead = x.now.Mono+max(x.b.Lease, time.Millisecond), false
	x.holder = h
	return nil
}

// leave ends the lease of who speaks, or stores it.
func (x *turn) leave(*ledger.Reply) error {
	if x.b.Gone {
		x.holder.Until = x.now.Mono
		return x.end(x.b.Holder, x.holder)
	}
	return x.s.Holders.Put(x.b.Holder, x.holder)
}

// count tells how many holders there are.
func (x *turn) count(reply *ledger.Reply) error {
	reply.Replicas = len(x.others)
	for _, name := range x.others {
		if name < x.b.Holder {
			reply.Rank++
		}
	}
	if !x.b.Gone {
		reply.Replicas++
	}
	return nil
}
