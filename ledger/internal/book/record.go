package book

import (
	"iter"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
)

// prepared is what is read of a counter's limit once.
type prepared struct {
	rule  *limit.Rule // never used, only asked for fresh ones
	err   error
	lower atomic.Pointer[limit.Rule] // the same, for the last lower size that was learned
}

func prepare(c *ledger.Counter) *prepared {
	return c.Prepared(func() any {
		p := &prepared{}
		p.rule, p.err = limit.New(c.Limit())
		return p
	}).(*prepared)
}

// lowered is the rule of a counter's limit of another size.
func (p *prepared) lowered(l provider.Limit, size int64) *limit.Rule {
	if l.Algorithm == provider.TokenBucket {
		l.Burst = min(l.Burst, size)
	}
	l.Max = size
	r, err := limit.New(l)
	if err != nil {
		return p.rule
	}
	if last := p.lower.Load(); last != nil && last.Alike(r) {
		return last
	}
	p.lower.Store(r)
	return r
}

// counters are all that a batch names.
func counters(b *ledger.Batch) iter.Seq[*ledger.Counter] {
	return func(yield func(*ledger.Counter) bool) {
		for i := range b.Holds {
			for _, u := range b.Holds[i].Take.Units {
				if !yield(u.Counter) {
					return
				}
			}
		}
		for i := range b.Charges {
			if !yield(b.Charges[i].Counter) {
				return
			}
		}
		for i := range b.News {
			if l := b.News[i].Learn; l != nil && !yield(l.Counter) {
				return
			}
		}
		for i := range b.Takes {
			for _, u := range b.Takes[i].Take.Units {
				if !yield(u.Counter) {
					return
				}
			}
		}
		for _, c := range b.Peek {
			if !yield(c) {
				return
			}
		}
	}
}

// load returns the record of a counter; nil: there is none.
func (x *turn) load(id string) (*Record, error) {
	if r, ok := x.records[id]; ok {
		return r, nil
	}
	r, err := x.s.Records.Get(id)
	if err != nil {
		return nil, err
	}
	x.records[id] = r
	return r, nil
}

// record returns the record of a counter, with the rule that is in force for it now.
// One that is new is stored when it is changed.
func (x *turn) record(c *ledger.Counter) (*Record, error) {
	r, err := x.load(c.ID())
	if err != nil {
		return nil, err
	}
	p := prepare(c)
	if r == nil {
		r = &Record{Rule: p.rule.Fresh()}
		x.records[c.ID()] = r
		x.made++
		return r, nil
	}
	want := p.rule
	if l := c.Limit(); r.learned(x.now.Mono) && r.Max < l.Max {
		want = p.lowered(l, r.Max)
	}
	if !r.Rule.Alike(want) {
		r.Rule = adopt(want, r.Rule, x.now)
		r.use()
	}
	return r, nil
}

func adopt(as, old *limit.Rule, now limit.Now) *limit.Rule {
	r := as.Fresh()
	r.Adopt(old, now)
	return r
}

// use notes that a record says something new.
func (r *Record) use() { r.changed, r.Idle = true, 0 }

// learned tells that the learned size is in force.
func (r *Record) learned(now time.Duration) bool { return r.Max > 0 && now < r.MaxUntil }

// opens is the first instant, not before now, at which n more units may go.
func (x *turn) opens(c *ledger.Counter, r *Record, n int64) time.Duration {
	at := r.Rule.Look(x.now, n)
	if at > r.MaxUntil && r.learned(x.now.Mono) && r.Max < c.Limit().Max {
		at = max(r.MaxUntil, adopt(prepare(c).rule, r.Rule.Clone(), x.now).Look(x.now, n))
	}
	return max(at, r.NotBefore, x.now.Mono)
}

// room is how many more units would go now.
func (x *turn) room(r *Record) int64 {
	if r.NotBefore > x.now.Mono || r.Rule.Look(x.now, 1) > x.now.Mono {
		return 0
	}
	u := r.Rule.Usage(x.now)
	n := r.Rule.Heaviest() - u.Used
	if !r.Rule.Sent() {
		n -= u.Held
	}
	return max(n, 0)
}

func (x *turn) peek(c *ledger.Counter) (ledger.Usage, error) {
	r, err := x.record(c)
	if err != nil {
		return ledger.Usage{}, err
	}
	ru := r.Rule.Usage(x.now)
	u := ledger.Usage{Used: ru.Used, Held: ru.Held}
	if ru.ResetAt != 0 {
		u.ResetAt = x.time(ru.ResetAt)
	}
	if r.NotBefore > x.now.Mono {
		u.NotBefore = x.time(r.NotBefore)
	}
	if r.learned(x.now.Mono) {
		u.Max = r.Max
	}
	return u, nil
}

func (x *turn) charge(c *ledger.Charge) error {
	r, err := x.record(c.Counter)
	if err != nil {
		return err
	}
	at := x.at(c.At)
	r.Rule.Correct(at, at, c.N)
	r.use()
	return nil
}

func (x *turn) learn(l *ledger.Learnt) error {
	r, err := x.record(l.Counter)
	if err != nil {
		return err
	}
	r.use()
	if !l.NotBefore.IsZero() || l.Max <= 0 {
		r.NotBefore = 0
		if !l.NotBefore.IsZero() {
			r.NotBefore = x.until(l.NotBefore)
		}
	}
	if l.Max > 0 || l.NotBefore.IsZero() {
		r.Max, r.MaxUntil = max(l.Max, 0), limit.Never
		if !l.Until.IsZero() {
			r.MaxUntil = x.until(l.Until)
		}
	}
	return nil
}

// flush stores the records that have changed.
func (x *turn) flush(*ledger.Reply) error {
	for id, r := range x.records {
		if r == nil || !r.changed {
			continue
		}
		r.changed = false
		if err := x.s.Records.Put(id, r); err != nil {
			return err
		}
	}
	return nil
}

// tidy drops what is of no use any more: it looks at two records in each batch, and at
// as many again as are new, so that there are never many more than are in use.
func (x *turn) tidy(*ledger.Reply) error {
	ids, err := x.s.Records.Some(2 + 2*x.made)
	if err != nil {
		return err
	}
	for _, id := range ids {
		r, err := x.load(id)
		if err != nil {
			return err
		}
		if r == nil || r.changed || !x.idle(r) {
			continue
		}
		x.records[id] = nil
		if err := x.s.Records.Delete(id); err != nil {
			return err
		}
	}
	return x.tidyPauses()
}

// idle tells that a record has said nothing for its window: a charge that comes late
// may lie back, and has to find what was there.
func (x *turn) idle(r *Record) bool {
	switch {
	case r.NotBefore > x.now.Mono || r.learned(x.now.Mono) || !r.Rule.Idle(x.now):
		return false
	case r.Idle == 0:
		r.Idle, r.changed = x.now.Mono, true
	}
	return x.now.Mono-r.Idle > r.Rule.Window()
}

// forget drops all that is known of a provider.
func (x *turn) forget(slug string) error {
	prefix := url.QueryEscape(slug) + "/" // as Counter.ID begins, and pauseKey
	var ids []string
	err := x.s.Records.Scan(prefix, func(id string, _ *Record) { ids = append(ids, id) })
	for _, id := range ids {
		if err == nil {
			err = x.s.Records.Delete(id)
		}
	}
	for id := range x.records {
		if strings.HasPrefix(id, prefix) {
			x.records[id] = nil
		}
	}
	if err == nil {
		err = x.forgetHolds(prefix)
	}
	if err == nil {
		err = x.resume(&ledger.Pause{Provider: slug})
	}
	return err
}

func (x *turn) forgetHolds(prefix string) error {
	touched := map[string]*Hold{}
	err := x.s.Holds.Scan("", func(key string, h *Hold) {
		for i, u := range h.Units {
			if strings.HasPrefix(u.ID, prefix) {
				h.Units[i], touched[key] = Unit{}, h
			}
		}
		if slices.ContainsFunc(h.Trials, func(p string) bool { return strings.HasPrefix(p, prefix) }) {
			h.Trials, touched[key] = nil, h
		}
	})
	for key, h := range touched {
		if err == nil {
			err = x.keep(key, h)
		}
	}
	return err
}
