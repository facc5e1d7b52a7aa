package ledger

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/headgate/headgate/provider"
)

const (
	// atOnce bounds a batch: so many takes, counters to peek at, and things queued.
	atOnce = 512
	// mostBacks is how many charges that take something back are kept for a store that
	// is down. Without the others units stay charged: the strict side.
	mostBacks = 4096
)

// queue is what the store has to hear, merged so that it stays small.
type queue struct {
	holds   []Held
	charges map[string]*tally // by counter
	settled []settled
	backs   []Charge // what takes back, maybe from a settlement that is queued
	ready   []Charge // the same, of which all settlements have been told
	news    map[newsKey]numbered
	order   uint64
}

// settled is a settlement and the scopes of which it ends a pause.
type settled struct {
	Settlement
	opens []scope
}

// scope is what a pause is of.
type scope struct{ provider, scope, name string }

func scopeOf(p *Pause) scope { return scope{p.Provider, p.Scope, p.Name} }

// scopesOf are those of which a call asks the pauses.
func scopesOf(t Take) []scope {
	return []scope{
		{t.Provider, provider.ScopeProvider, ""},
		{t.Provider, provider.ScopeEndpoint, t.Endpoint},
		{t.Provider, provider.ScopeKey, t.Key},
	}
}

// newsKey is what news are of; later ones of the same replace them.
type newsKey struct {
	scope
	counter string
	resume  bool
}

type numbered struct {
	News
	newsKey
	order uint64
}

func (q *queue) empty() bool {
	return len(q.holds)+len(q.charges)+len(q.settled)+len(q.backs)+len(q.ready)+len(q.news) == 0
}

// settledUp tells that requests may be asked. What takes back they need not wait for.
func (q *queue) settledUp() bool {
	return len(q.holds)+len(q.charges)+len(q.settled)+len(q.news) == 0
}

func (q *queue) charge(now time.Time, ch Charge) {
	id := ch.Counter.ID()
	t := q.charges[id]
	if ch.N < 0 {
		rest := -max(ch.N, -math.MaxInt64)
		if t != nil {
			if rest = t.takeBack(ch.At, rest); len(t.sums) == 0 {
				delete(q.charges, id)
			}
		}
		if ch.N = -rest; rest > 0 && len(q.backs)+len(q.ready) < mostBacks {
			q.backs = append(q.backs, ch)
		}
		return
	}
	if t == nil {
		if q.charges == nil {
			q.charges = map[string]*tally{}
		}
		t = &tally{}
		q.charges[id] = t
	}
	t.of(ch.Counter)
	if t.add(now, ch.At, ch.N); len(t.sums) == 0 {
		delete(q.charges, id) // so long ago that it counts no more
	}
}

// tell queues news; they replace what they make needless.
func (q *queue) tell(n News) {
	var k newsKey
	switch {
	case n.Pause != nil:
		k.scope = scopeOf(n.Pause)
		if old, there := q.news[k]; there && !n.Pause.Until.After(old.Pause.Until) {
			return
		}
	case n.Resume != nil:
		k.scope, k.resume = scopeOf(n.Resume), true
		maps.DeleteFunc(q.news, func(x newsKey, _ numbered) bool {
			return x.scope == k.scope || k.scope.scope == "" && x.provider == k.provider
		})
	case n.Learn != nil:
		k.counter = n.Learn.Counter.ID()
		if n.Learn.NotBefore.IsZero() && n.Learn.Max <= 0 { // forgets: what is learned after it comes after it
			delete(q.news, k)
			k.resume = true
		} else if old, there := q.news[k]; there {
			l := n.Learn.over(old.Learn)
			n.Learn = &l
		}
	default:
		return
	}
	if q.news == nil {
		q.news = map[newsKey]numbered{}
	}
	q.order++
	q.news[k] = numbered{n, k, q.order}
}

// fill puts what is queued into a batch, as much as it holds. What has no room waits, and
// so does all that comes after it in a batch: a settlement for the hold that it ends.
func (q *queue) fill(s *said) {
	room := atOnce
	s.Holds, q.holds = cut(q.holds, &room)
	s.Charges, q.ready = cut(q.ready, &room)
	for id, t := range q.charges {
		if room <= 0 {
			break
		}
		room -= len(t.sums)
		s.Charges = t.charges(s.Charges)
		delete(q.charges, id)
	}
	if len(q.charges) == 0 {
		q.charges = nil
	}
	q.fillSettlements(s, &room)
	if room > 0 && len(q.settled) == 0 {
		q.fillNews(s, room)
	}
}

// fillSettlements: what takes back waits for the batch after them, since a store carries
// out charges first.
func (q *queue) fillSettlements(s *said, room *int) {
	var some []settled
	some, q.settled = cut(q.settled, room)
	s.Settlements = slices.Grow(s.Settlements, len(some))
	for _, x := range some {
		s.Settlements = append(s.Settlements, x.Settlement)
		s.opened = append(s.opened, x.opens...)
	}
	if len(q.settled) > 0 {
		return
	}
	q.ready, q.backs = append(q.ready, q.backs...), nil
	if len(some) == 0 {
		var more []Charge
		more, q.ready = cut(q.ready, room)
		s.Charges = append(s.Charges, more...)
	}
}

func (q *queue) fillNews(s *said, room int) {
	all := q.newsInOrder()
	for _, n := range all[:min(room, len(all))] {
		s.News = append(s.News, n.News)
		delete(q.news, n.newsKey)
	}
}

func (q *queue) newsInOrder() []numbered {
	return slices.SortedFunc(maps.Values(q.news), func(a, b numbered) int { return cmp.Compare(a.order, b.order) })
}

// cut takes off the head of a list for which there is room.
func cut[T any](list []T, room *int) (head, rest []T) {
	n := min(len(list), max(*room, 0))
	*room -= n
	if n == len(list) {
		return list, nil
	}
	return list[:n:n], list[n:]
}

// forget drops what is queued of a provider's counters and pauses.
func (q *queue) forget(slug string) {
	of := func(ch Charge) bool { return ch.Counter.Provider() == slug }
	q.backs, q.ready = slices.DeleteFunc(q.backs, of), slices.DeleteFunc(q.ready, of)
	maps.DeleteFunc(q.charges, func(_ string, t *tally) bool { return t.counter.Provider() == slug })
	maps.DeleteFunc(q.news, func(k newsKey, n numbered) bool {
		return k.provider == slug || n.Learn != nil && n.Learn.Counter.Provider() == slug
	})
}

// clone is n for keeping.
func (n News) clone() News {
	if n.Pause != nil {
		p := *n.Pause
		n.Pause = &p
	}
	if n.Resume != nil {
		p := *n.Resume
		n.Resume = &p
	}
	if n.Learn != nil {
		l := *n.Learn
		n.Learn = &l
	}
	return n
}
