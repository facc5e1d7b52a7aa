package ledgertest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

var randomPlays = []play{
	{name: "random/sliding window, slots", run: storm(func(r *rig) []*shared { return []*shared{r.window(5), r.flight(3)} })},
	{name: "random/counted sent", run: storm(func(r *rig) []*shared {
		return []*shared{r.window(4).sent(), r.limit(provider.FixedWindow, 5).sent().called("fixed"), r.bucket(5, 4).sent().called("bucket")}
	})},
	{name: "random/token bucket", run: storm(func(r *rig) []*shared {
		return []*shared{r.bucket(5, 3), r.bucket(5, 8).called("deep")}
	})},
	{name: "random/leaky bucket", run: storm(func(r *rig) []*shared { return []*shared{r.limit(provider.LeakyBucket, 5), r.flight(4)} })},
	{name: "random/fixed window", run: storm(func(r *rig) []*shared { return []*shared{r.limit(provider.FixedWindow, 5), r.flight(4)} })},
	{name: "random/sliding window counter", run: storm(func(r *rig) []*shared {
		return []*shared{r.limit(provider.SlidingWindowCounter, 6), r.window(9).called("sliding")}
	})},
	{name: "random/all together", run: storm(func(r *rig) []*shared {
		return []*shared{
			r.window(9), r.window(9).sent().called("sent"), r.limit(provider.FixedWindow, 12).called("fixed"),
			r.limit(provider.SlidingWindowCounter, 11).called("counter"), r.bucket(10, 6).called("bucket"),
			r.limit(provider.LeakyBucket, 10).called("leaky"), r.flight(6),
		}
	})},
}

// raging is one storm: three holders that take, settle, give back, correct, die and
// come anew, at random, and what has to be known of it.
type raging struct {
	*rig
	rnd    *rand.Rand
	limits []*shared
	procs  []*process
	born   int
	early  *world
	late   *world
	flying map[*process][]*flying
	spent  []spent            // what was charged, to be taken back
	trips  map[*shared][]trip // what providers have seen
	past   bool               // settlements come late, by instants that lie back
	over   bool               // more is charged than was taken, and without being asked
	undone map[*shared]bool   // leaky buckets whose schedule has gone back
	told   time.Duration      // when the last refusal said that it ends
	went   int
}

type spent struct {
	of *shared
	at time.Duration
	n  int64
}

// storm plays storms over limits.
func storm(limits func(r *rig) []*shared) func(r *rig) {
	return func(r *rig) {
		seeds, steps := []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 150
		if !r.b.Virtual {
			seeds, steps = []uint64{4}, 60
		}
		for _, seed := range seeds {
			s := &raging{
				rig: r, rnd: rand.New(rand.NewPCG(seed, 8)), limits: limits(r), flying: map[*process][]*flying{},
				trips: map[*shared][]trip{}, undone: map[*shared]bool{}, past: seed%3 == 1, over: seed%4 == 1 || seed%4 == 3,
			}
			for i, l := range s.limits {
				s.limits[i] = l.of(fmt.Sprintf("storm-%d", seed))
			}
			s.early, s.late = newWorld(false, r.start, s.limits), newWorld(true, r.start, s.limits)
			s.procs = []*process{s.birth(), s.birth(), s.birth()}
			for range steps {
				s.step()
			}
			require.Greater(r.t, s.went, steps/12, "next to nothing went")
			s.judge()
		}
	}
}

func (s *raging) worlds() []*world { return []*world{s.early, s.late} }

// birth is a further holder.
func (s *raging) birth() *process {
	s.born++
	p := s.process(fmt.Sprintf("%s holder %d", s.limits[0].slug, s.born))
	p.lease = s.units(4) + 7 // no round instant
	return p
}

// step lets some time pass and has a holder say something.
func (s *raging) step() {
	switch s.rnd.IntN(8) {
	case 0, 1:
	case 2, 3:
		if s.told > s.now && s.told < s.now+2*s.per() {
			s.live(s.told - s.now)
			break
		}
		fallthrough
	default:
		s.live(time.Duration(s.rnd.Int64N(int64(s.u / 2))))
	}
	i := s.rnd.IntN(len(s.procs))
	p := s.procs[i]
	if s.rnd.IntN(60) == 0 {
		s.procs[i] = s.birth()
		if s.rnd.IntN(2) == 0 {
			s.leave(p)
		}
		return // dead: never heard of again
	}
	s.batch(p)
}

// live lets time pass. Nobody dies by having nothing to say.
func (s *raging) live(d time.Duration) {
	for end := s.now + d; ; {
		s.until(min(end, s.now+s.u))
		if !s.b.Virtual {
			s.now = max(s.now, time.Since(s.start))
		}
		for _, p := range s.procs {
			if s.now-p.began > p.lease/2 {
				s.speak(p, ledger.Batch{})
			}
		}
		if s.now >= end {
			return
		}
	}
}

// speak says a batch and buries who has died until then.
func (s *raging) speak(p *process, b ledger.Batch) *ledger.Reply {
	last := p.began
	reply := p.say(b)
	if len(s.flying[p]) > 0 && p.ended-last > p.lease-s.jitter() {
		panic(late{}) // the machine has let its lease end
	}
	for _, w := range s.worlds() {
		now := p.ended
		if w.late {
			now = p.began
		}
		w.bury(now)
	}
	for _, f := range s.flying[p] {
		f.heard = [2]time.Duration{p.began, p.ended}
	}
	return reply
}

// leave has a holder say that it goes, with all that it holds.
func (s *raging) leave(p *process) {
	s.speak(p, ledger.Batch{Gone: true})
	for _, f := range s.flying[p] {
		for _, w := range s.worlds() {
			for i := range f.left {
				w.settle(f, i, f.heard[pick(w.late)], f.costs[i].n)
			}
			delete(w.out, f)
		}
		s.arrived(f, p.ended)
	}
	delete(s.flying, p)
}

// arrived notes that what is left of a call has been seen by its provider, at the latest
// at an instant.
func (s *raging) arrived(f *flying, to time.Duration) {
	for i := range f.left {
		s.saw(f, i, to, f.costs[i].n)
	}
}

// saw notes that a provider has seen n units of a call.
func (s *raging) saw(f *flying, unit int, to time.Duration, n int64) {
	l := f.costs[unit].of
	from := f.taken[1]
	if s.early.models[l].sent() { // its bounds hold for what is granted
		to = from
	}
	s.trips[l] = append(s.trips[l], trip{from: from, to: max(from, to-s.jitter()), n: n, held: f.costs[unit].n})
}

// judge has providers count what has arrived, in as many ways as it can have.
func (s *raging) judge() {
	for p, all := range s.flying {
		for _, f := range all {
			s.arrived(f, min(s.now, p.ended+p.lease))
		}
	}
	if s.over {
		return // what was not asked for may be more than was allowed
	}
	for l, trips := range s.trips {
		m := newModel(l.limit, s.start)
		if m.sent() && !s.b.Virtual {
			continue // nobody knows when it was granted
		}
		for range 40 {
			require.LessOrEqual(s.t, m.overrun(trips, s.rnd), int64(0), "a provider counts more than %s allows", l.limit.Name)
		}
	}
}
