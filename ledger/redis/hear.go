package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate/ledger"
)

// back is how far a server may have gone back (after a failover to a copy that lags, or a
// crash) before its state counts as lost.
const back = 5 * time.Second

// hearPart takes in what a provider's script has answered. A part that has not been
// carried out is put back.
func (x *exchange) hearPart(ctx context.Context, p *part, m []rueidis.RedisMessage) (foreign bool, err error) {
	r := reader{m: m}
	switch status := r.int(); status {
	case statusOK:
		return false, x.hearOK(p, &r)
	case statusForeign:
		// Of a provider that has seen a later epoch than the common record knows, the
		// common script has to be told.
		x.epoch = max(x.epoch, r.int())
		return true, r.err
	case statusBury:
		x.parts = append(x.parts, p)
		return false, x.bury(ctx, p, r.text())
	case statusBounds:
		x.parts = append(x.parts, p)
		wall := time.UnixMicro(r.int())
		x.s.mu.Lock()
		x.s.ahead = time.Until(wall)
		x.s.mu.Unlock()
		return false, r.err
	default:
		return false, fmt.Errorf("redis: a later batch of this holder has been carried out (%d)", status)
	}
}

func (x *exchange) hearOK(p *part, r *reader) error {
	told, before, born, step, version, lives := r.int(), r.int(), r.int(), r.int(), r.int(), length(r.int())
	grants, refusals, usages, pauses := r.list(), r.list(), r.list(), r.list()
	x.stepped(step)
	now := time.Now()
	known := map[string]*ledger.Pause{}
	var news []string
	for len(pauses.m) >= 5 {
		us := pauses.m[2]
		q := pauses.pause(p.slug, now)
		known[q.Scope+" "+q.Name] = &q
		left, _ := us.AsInt64()
		news = append(news, q.Scope, q.Name, number(left), q.Why, q.Detail)
	}
	if version > 0 {
		x.told = append(append(x.told, p.slug, number(version), strconv.Itoa(len(news)/5)), news...)
	}
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.lookBack(p, before, born, now)
	p.place.expires, p.place.born = now.Add(lives), born
	x.s.heardOf(x.keys, p.place).told(told, x.sent, now)
	h := x.s.holderLocked(x.b.Holder)
	h.said[p.slug], h.acked[p.slug] = now, p.send
	x.settled(p, h)
	x.decided(p, grants, refusals.m, known)
	for _, i := range p.peeked {
		x.reply.Usages[i] = usages.usage(now)
	}
	return errors.Join(r.err, grants.err, usages.err, pauses.err)
}

// lookBack compares what the server knew with what it has known before. That its state is
// lost is remembered until the common record has another epoch: that may not be heard of
// in this exchange, and what has lost its state looks like any other in the next.
func (x *exchange) lookBack(p *part, before, born int64, now time.Time) {
	h := x.s.holders[x.b.Holder]
	acked := h.acked[p.slug]
	switch seen := now.Before(p.place.expires.Add(-time.Minute)); {
	case !seen:
	case born != p.place.born:
		x.renew, x.s.lost = true, true
	case acked > 0 && uint64(before) < acked: //nolint:gosec // not below 0
		gone := time.Duration(acked-uint64(before)) * time.Microsecond //nolint:gosec // see above
		if gone > back {
			x.renew, x.s.lost = true, true
			return
		}
		p.place.retell[x.b.Holder] = true
		x.warning = append(x.warning, fmt.Sprintf("the server has gone back by %v: what went in that time is not counted", gone))
	}
}

// settled takes note of what is not held any more.
func (x *exchange) settled(p *part, h *holder) {
	if p.forget {
		for id, u := range h.holds {
			if !u.asked {
				u.settled(p.slug, nil)
			}
			if !u.asked && !u.left() {
				delete(h.holds, id)
			}
		}
	}
	for _, s := range x.b.Settlements {
		u := h.holds[s.Hold]
		if u == nil {
			continue
		}
		if u.settled(p.slug, s.Part); !u.left() {
			delete(h.holds, s.Hold)
		}
	}
}

// verdict is what is known so far of a take.
type verdict struct {
	refused bool
	granted []asked // shares of it
}

// decided takes in what a provider has decided of takes, or of its shares of them.
func (x *exchange) decided(p *part, grants *reader, refusals []rueidis.RedisMessage, known map[string]*ledger.Pause) {
	for _, a := range p.asked {
		g, v := &x.reply.Grants[a.take], &x.verdicts[a.take]
		if g.Room == nil {
			g.Room = make([]int64, len(x.b.Takes[a.take].Take.Units))
		}
		code := grants.int()
		if code <= 1 {
			v.granted = append(v.granted, a)
			g.Alone = g.Alone || code == 1
			a.room(g, grants)
			continue
		}
		if code-2 >= int64(len(refusals)) {
			grants.err = errOdd
			return
		}
		v.refused = true
		a.refuse(g, readerOf(refusals[code-2]), known)
	}
}

func (a asked) room(g *ledger.Grant, r *reader) {
	for _, u := range a.share.units {
		g.Room[u.place] = r.int()
	}
}

// refuse notes a refusal, if it is the one that opens last.
func (a asked) refuse(g *ledger.Grant, r *reader, known map[string]*ledger.Pause) {
	wait, by, pause := r.int(), r.int(), r.text()
	a.room(g, r)
	d := ledger.Event
	if wait >= 0 {
		d = max(1, length(wait))
	}
	if d <= g.Wait {
		return
	}
	g.Wait, g.By, g.Pause = d, -1, known[pause]
	if by >= 0 && by < int64(len(a.share.units)) {
		g.By = a.share.units[by].place
	}
}

// conclude gives each take its answer. One that some providers have granted and others
// not is taken back there: all or nothing.
func (x *exchange) conclude(ctx context.Context) error {
	undone := map[string]*part{}
	now := time.Now()
	x.s.mu.Lock()
	h := x.s.holderLocked(x.b.Holder)
	for i, v := range x.verdicts {
		g, id := &x.reply.Grants[i], x.b.Takes[i].Hold
		if x.keys.apart && x.quiet > 0 { // the provider's server did not know it yet
			v.refused = true
			g.Wait, g.By = max(g.Wait, x.quiet), -1
		}
		if !v.refused {
			g.Hold = id
			if u := h.holds[id]; u != nil {
				u.asked, u.at, u.named = false, now, now
			}
			if len(g.Room) == 0 && !g.Alone {
				delete(h.holds, id)
			}
			continue
		}
		delete(h.holds, id)
		g.Alone = false
		for _, a := range v.granted {
			slug := a.share.slug
			if undone[slug] == nil {
				undone[slug] = x.s.newPartLocked(x.keys, slug, now)
			}
			undone[slug].addSettlement(ledger.Settlement{Hold: id, At: now, Back: true}, a.share)
		}
	}
	if x.b.Gone {
		delete(x.s.holders, x.b.Holder)
	}
	x.s.mu.Unlock()
	var calls []call
	for _, p := range undone {
		c, err := p.call(x.keys, who{holder: x.b.Holder, mode: asUndone, lease: x.b.Lease, epoch: x.epoch}, now.Add(x.s.aheadNow()))
		if err != nil {
			return err
		}
		calls = append(calls, c)
	}
	if len(calls) == 0 {
		return nil
	}
	_, err := x.do(ctx, calls, nil)
	return err
}
