package ledgertest

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// batch has a holder say some things at random, and checks all answers.
func (s *raging) batch(p *process) {
	var b ledger.Batch
	var then []func(w *world) // what it means, in the order in which it is carried out
	if s.over && s.rnd.IntN(4) == 0 {
		then = append(then, s.chargeSome(p, &b))
	}
	for range s.rnd.IntN(3) {
		if len(s.flying[p]) > 0 {
			then = append(then, s.settleSome(p, &b))
		}
	}
	for range s.rnd.IntN(3) {
		b.Takes = append(b.Takes, p.asked(p.ask(s.costs()...)))
	}
	for _, l := range s.limits {
		b.Peek = append(b.Peek, p.of(l))
	}
	reply := s.speak(p, b)
	for _, f := range then {
		for _, w := range s.worlds() {
			f(w)
		}
	}
	for _, a := range p.answers(b, reply) {
		s.check(p, a)
	}
	for i, l := range s.limits {
		s.checkUsage(l, reply.Usages[i])
	}
}

func (s *raging) costs() (all []cost) {
	for _, i := range s.rnd.Perm(len(s.limits))[:1+s.rnd.IntN(len(s.limits))] {
		l := s.limits[i]
		all = append(all, l.n(1+s.rnd.Int64N(min(3, l.limit.Max))))
	}
	return all
}

// when is an instant at which something that is told now has happened.
func (s *raging) when(from time.Duration) time.Duration {
	if s.past && s.rnd.IntN(2) == 0 && s.now > from {
		return from + time.Duration(s.rnd.Int64N(int64(s.now-from)))
	}
	return s.now
}

// heard is when a store, at the latest, takes an instant to be: it was told a length of
// time, and does not know how long that was under way.
func (s *raging) heard(p *process, w *world, at time.Duration) time.Duration {
	if w.late {
		return at + p.ended - p.began
	}
	return at
}

// chargeSome charges without asking, or takes back what was charged.
func (s *raging) chargeSome(p *process, b *ledger.Batch) func(w *world) {
	if k := len(s.spent); k > 0 && s.rnd.IntN(2) == 0 {
		i := s.rnd.IntN(k)
		x := s.spent[i]
		s.spent = slices.Delete(s.spent, i, i+1)
		b.Charges = append(b.Charges, ledger.Charge{Counter: p.of(x.of), At: s.at(x.at), N: -x.n})
		return func(w *world) {
			if s.b.Virtual || !w.late { // there its instant is another one
				w.models[x.of].refund(x.at, x.n)
			}
		}
	}
	x := spent{of: s.limits[s.rnd.IntN(len(s.limits))], at: s.when(max(0, s.now-s.u)), n: 1 + s.rnd.Int64N(2)}
	s.spent = append(s.spent, x)
	b.Charges = append(b.Charges, ledger.Charge{Counter: p.of(x.of), At: s.at(x.at), N: x.n})
	return func(w *world) { w.models[x.of].charge(s.heard(p, w, x.at), x.n) }
}

// settleSome ends a hold, or a part of one, or gives it back.
func (s *raging) settleSome(p *process, b *ledger.Batch) func(w *world) {
	i := s.rnd.IntN(len(s.flying[p]))
	f := s.flying[p][i]
	at := s.when(f.taken[1])
	x := ledger.Settlement{Hold: f.hold, At: s.at(at)}
	left := f.left
	parts := map[int]int64{}
	for u := range f.costs {
		if !left[u] {
			continue
		}
		parts[u] = f.costs[u].n
	}
	switch s.rnd.IntN(4) {
	case 0:
		x.Back = s.mayGiveBack(f)
	case 1, 2: // some units, or all, to other costs
		x.Part = []ledger.Part{}
		some := s.rnd.IntN(2) == 0
		for u := range f.costs {
			if !left[u] || some && s.rnd.IntN(2) == 0 {
				delete(parts, u)
				continue
			}
			n := s.rnd.Int64N(f.costs[u].n + 1)
			if s.over {
				n = s.rnd.Int64N(2*f.costs[u].n + 1)
			}
			parts[u] = n
			x.Part = append(x.Part, ledger.Part{Unit: u, Charged: n})
		}
	}
	b.Settlements = append(b.Settlements, x)
	if s.rnd.IntN(5) == 0 {
		b.Settlements = append(b.Settlements, x) // twice
	}
	f.left = map[int]bool{}
	for u := range left {
		if _, ended := parts[u]; !ended {
			f.left[u] = true
		}
	}
	if len(f.left) == 0 {
		s.flying[p] = slices.Delete(s.flying[p], i, i+1)
	}
	for u, n := range parts {
		if !x.Back {
			s.saw(f, u, at, n)
		}
	}
	return func(w *world) { s.settled(p, w, f, x.Back, at, parts) }
}

func (s *raging) settled(p *process, w *world, f *flying, back bool, at time.Duration, parts map[int]int64) {
	for u := range f.costs {
		n, ended := parts[u]
		switch {
		case !ended:
		case back:
			w.giveBack(f, u)
		default:
			w.settle(f, u, s.heard(p, w, at), n)
		}
	}
	if len(f.left) == 0 {
		delete(w.out, f)
	}
}

// mayGiveBack is false where a leaky bucket's schedule would go back twice without a
// grant in between: it need not remember what was before the one before.
func (s *raging) mayGiveBack(f *flying) bool {
	for _, c := range f.costs {
		if c.of.limit.Algorithm != provider.LeakyBucket {
			continue
		}
		if s.undone[c.of] {
			return false
		}
		s.undone[c.of] = true
	}
	return true
}

// check compares an answer with what the models say, and carries it out there.
func (s *raging) check(p *process, a answer) {
	costs := make([]cost, 0, len(a.take.Units))
	for _, u := range a.take.Units {
		for _, l := range s.limits {
			if p.of(l) == u.Counter {
				costs = append(costs, l.n(u.N))
			}
		}
	}
	early, late := s.early, s.late
	if a.Hold == 0 {
		require.True(s.t, late.loose(costs) || !late.fits(p.began-s.b.Resolution-s.jitter(), costs), "refused, by %d for %s, though it fits", a.By, a.Wait)
		s.checkWait(p, a, costs)
		return
	}
	require.True(s.t, early.fits(p.ended+s.jitter(), costs), "granted, though it does not fit")
	s.went++
	f := &flying{p: p, hold: a.Hold, costs: costs, left: map[int]bool{}}
	f.taken = [2]time.Duration{p.began, p.ended}
	f.heard = f.taken
	for i, c := range costs {
		f.left[i] = true
		s.undone[c.of] = false
	}
	for _, w := range s.worlds() {
		w.take(f)
	}
	s.flying[p] = append(s.flying[p], f)
	if s.exact(costs) && a.Room != nil {
		for i, c := range costs {
			require.LessOrEqual(s.t, a.Room[i], early.models[c.of].room(s.now), "room in %s", c.of.limit.Name)
			require.GreaterOrEqual(s.t, a.Room[i], late.models[c.of].room(s.now), "room in %s", c.of.limit.Name)
		}
	}
}

// exact tells that the models know all to the nanosecond.
func (s *raging) exact(costs []cost) bool {
	return s.b.Virtual && s.b.Resolution == 0 && !s.early.loose(costs)
}

func (s *raging) checkWait(p *process, a answer, costs []cost) {
	early, late := s.early, s.late
	from, _ := early.first(p.ended, costs)
	to, last := late.first(p.began, costs)
	s.told = 0
	if a.Wait == ledger.Event {
		require.True(s.t, to == ledger.Event || late.loose(costs), "only an event opens it, but time does, in %s", to-p.began)
		return
	}
	s.told = s.now + a.Wait
	require.NotEqual(s.t, ledger.Event, from, "opens in %s, but only an event opens it", a.Wait)
	require.GreaterOrEqual(s.t, p.ended+a.Wait+s.jitter(), from, "opens in %s, too early by %s", a.Wait, from-p.ended-a.Wait)
	if to == ledger.Event || late.loose(costs) {
		return
	}
	require.LessOrEqual(s.t, p.began+a.Wait, to+s.b.Resolution+s.jitter(), "opens in %s, too late by %s", a.Wait, p.began+a.Wait-to)
	if s.exact(costs) {
		by, _ := early.first(p.began, costs[a.By:a.By+1])
		require.LessOrEqual(s.t, by, to, "%d opens last, not %d", last, a.By)
		by, _ = late.first(p.began, costs[a.By:a.By+1])
		require.GreaterOrEqual(s.t, by, from, "%d opens last, not %d", last, a.By)
	}
}

// checkUsage compares what a counter stands at.
func (s *raging) checkUsage(l *shared, u ledger.Usage) {
	m := s.early.models[l]
	if !s.exact([]cost{l.n(1)}) {
		return
	}
	require.Equal(s.t, m.held, u.Held, "held of %s", l.limit.Name)
	if m.Algorithm == provider.SlidingWindow || m.Algorithm == provider.LeakyBucket {
		require.Equal(s.t, m.since(s.now-m.per, forever), u.Used, "used of %s", l.limit.Name)
	}
}
