package redis

import (
	"context"
	"time"
)

// touch is how often the counters of which something is held are named, so that their
// keys live on.
const touch = time.Minute

// planner splits a batch by provider.
type planner struct {
	*exchange
	h     *holder
	now   time.Time
	parts map[string]*part
	order []*part
}

func (x *exchange) plan() {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	p := planner{exchange: x, h: x.s.holderLocked(x.b.Holder), now: time.Now(), parts: map[string]*part{}}
	for _, slug := range x.b.Forget {
		p.of(slug).forget = true
	}
	for _, told := range x.b.Holds {
		h := &held{at: told.At, shares: sharesOf(told.Take, told.Part)}
		p.h.holds[told.Hold] = h
		for _, s := range h.shares {
			p.of(s.slug).addHold(told.Hold, h.at, s)
		}
	}
	for _, ch := range x.b.Charges {
		p.of(ch.Counter.Provider()).addCharge(ch)
	}
	for _, s := range x.b.Settlements {
		if h := p.h.holds[s.Hold]; h != nil {
			for _, share := range h.shares {
				p.of(share.slug).addSettlement(s, share)
			}
		}
	}
	p.news()
	for i, a := range x.b.Takes {
		h := &held{shares: sharesOf(a.Take, nil), asked: true}
		p.h.holds[a.Hold] = h
		for _, s := range h.shares {
			p.of(s.slug).addTake(i, a.Hold, s)
		}
	}
	for i, c := range x.b.Peek {
		p.of(c.Provider()).addPeek(i, specOf(c))
	}
	p.renew()
	x.parts = p.order
}

func (p *planner) news() {
	for _, n := range p.b.News {
		switch {
		case n.Pause != nil:
			p.of(n.Pause.Provider).addPause(n.Pause)
		case n.Resume != nil:
			p.of(n.Resume.Provider).addResume(n.Resume)
		case n.Learn != nil:
			p.of(n.Learn.Counter.Provider()).addLearnt(n.Learn)
		}
	}
}

func (p *planner) of(slug string) *part {
	x := p.parts[slug]
	if x == nil {
		x = p.s.newPartLocked(p.keys, slug, p.now)
		p.parts[slug] = x
		p.order = append(p.order, x)
		p.retell(x)
	}
	return x
}

// retell says again what is held, where the server has gone back a little.
func (p *planner) retell(x *part) {
	if !x.place.retell[p.b.Holder] {
		return
	}
	delete(x.place.retell, p.b.Holder)
	for id, h := range p.h.holds {
		for _, s := range h.shares {
			if s.slug == x.slug && !h.asked {
				x.addHold(id, h.at, s)
			}
		}
	}
}

// renew has the holder's lease, and the keys of what it holds, live on also at providers
// of which the batch says nothing.
func (p *planner) renew() {
	for _, h := range p.h.holds {
		old := !h.asked && p.now.Sub(h.named) > touch
		for _, s := range h.shares {
			if p.parts[s.slug] == nil && !p.b.Gone && p.now.Sub(p.h.said[s.slug]) < p.b.Lease/4 {
				continue
			}
			x := p.of(s.slug)
			for _, u := range s.units {
				if old && u.n > 0 {
					x.counter(u.spec)
					h.named = p.now
				}
			}
		}
	}
}

// locate finds holds that this process does not know (the holder spoke over another
// connection): it looks at all providers. A hold that is nowhere is ignored, as it must
// be.
func (x *exchange) locate(ctx context.Context) error {
	missing := x.missing()
	if len(missing) == 0 {
		return nil
	}
	slugs, err := x.client.Do(ctx, x.client.B().Smembers().Key(x.keys.providers()).Build()).AsStrSlice()
	if err != nil {
		return err
	}
	for _, slug := range slugs {
		got, err := x.client.Do(ctx, x.client.B().Hmget().Key(x.keys.holds(slug, x.b.Holder)).Field(missing...).Build()).ToArray()
		if err != nil {
			return err
		}
		x.s.mu.Lock()
		h := x.s.holderLocked(x.b.Holder)
		for i, m := range got {
			if text, err := m.ToString(); err == nil {
				h.holds[parseHold(missing[i])] = &held{at: time.Now(), shares: []share{{slug: slug, own: true, units: parseUnits(slug, text)}}}
			}
		}
		x.s.mu.Unlock()
	}
	return nil
}

func (x *exchange) missing() (names []string) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	h := x.s.holderLocked(x.b.Holder)
	for _, s := range x.b.Settlements {
		if h.holds[s.Hold] == nil {
			names = append(names, hold(s.Hold))
		}
	}
	return names
}
