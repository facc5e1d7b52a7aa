package limit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

// small are limits whose instants a model can try one by one. Those of the bucket
// do not divide evenly; the intervals of the leaky bucket are tens of nanoseconds.
var small = []provider.Limit{
	{Max: 3, Per: "40ns", Algorithm: provider.SlidingWindow},
	{Max: 7, Per: "9ns", Algorithm: provider.SlidingWindow},
	{Max: 3, Per: "60ns", Algorithm: provider.LeakyBucket},
	{Max: 8, Per: "160ns", Algorithm: provider.LeakyBucket},
	{Max: 4, Per: "500ns", Algorithm: provider.FixedWindow},
	{Max: 2, Per: "30ns", Algorithm: provider.FixedWindow},
	{Max: 4, Per: "40ns", Algorithm: provider.SlidingWindowCounter},
	{Max: 7, Per: "11ns", Algorithm: provider.SlidingWindowCounter},
	{Max: 3, Per: "40ns", Algorithm: provider.TokenBucket},
	{Max: 3, Per: "40ns", Burst: 5, Algorithm: provider.TokenBucket},
	{Max: 9, Per: "5ns", Burst: 2, Algorithm: provider.TokenBucket},
	{Max: 2, Per: "40ns", Burst: 6, Algorithm: provider.TokenBucket},
	{Max: 3, Algorithm: provider.InFlight},
}

// sent is l counted at the instant of going, where that is possible.
func sent(l provider.Limit) provider.Limit {
	if l.Algorithm != provider.InFlight {
		l.Counted = provider.CountedSent
	}
	return l
}

// call is one that a played Rule has admitted.
type call struct {
	granted, settled time.Duration
	taken, counts    int64 // units taken; units that it is charged, as far as nobody took them back
}

// play is a Rule and its model, driven by the same bytes.
type play struct {
	t       testing.TB
	rule    *Rule
	model   model
	now     time.Duration
	flying  []*call
	settled []*call
	refunds int64
}

func at(mono time.Duration) Now { return Now{Mono: mono, Wall: mono + wallAhead} }

func newPlay(t testing.TB, l provider.Limit) *play {
	r, err := New(l)
	require.NoError(t, err)
	return &play{t: t, rule: r, model: newModel(l), now: 1000}
}

func (p *play) held() (n int64) {
	for _, c := range p.flying {
		n += c.taken
	}
	return n
}

func (p *play) room(n int64) int64 {
	room := p.rule.spec.capacity - n
	if !p.rule.spec.sent {
		room -= p.held()
	}
	return room
}

// check compares the Rule with its model for every cost that may go, and one more.
func (p *play) check() {
	for n := int64(1); n <= p.rule.Heaviest()+1; n++ {
		want, got := first(p.model, p.now, p.room(n)), p.rule.Look(at(p.now), n)
		if want == got {
			continue
		}
		require.Greater(p.t, got, want, "%d units at %d: sooner than the definition allows", n, p.now)
		switch {
		case p.model.loose():
		case p.rule.spec.algorithm == provider.TokenBucket:
			require.LessOrEqual(p.t, int64(got-want), p.refunds, "%d units at %d: later by more than rounding", n, p.now)
		default:
			require.Equal(p.t, want, got, "%d units at %d", n, p.now)
		}
	}
	u := p.rule.Usage(at(p.now))
	require.Equal(p.t, p.held(), u.Held)
	counts := p.model
	if m, ok := counts.(*leakyModel); ok {
		counts = &m.windowModel // what counts, spacing apart
	}
	require.True(p.t, counts.fits(p.now, u.Used), "more counts at %d than the %d used", p.now, u.Used)
	if u.Used > 0 {
		require.Greater(p.t, u.ResetAt, p.now)
		if !p.model.loose() && p.refunds == 0 {
			require.False(p.t, counts.fits(p.now, u.Used-1), "less counts at %d than the %d used", p.now, u.Used)
		}
	}
	if p.rule.Idle(at(p.now)) {
		require.Zero(p.t, u)
	}
}

func (p *play) take(n int64) {
	if p.rule.Look(at(p.now), n) > p.now {
		return
	}
	p.rule.Take(at(p.now), n)
	if m, ok := p.model.(*leakyModel); ok {
		m.grant(p.now, n)
	}
	if p.rule.spec.sent {
		p.model.charge(p.now, n)
	}
	p.flying = append(p.flying, &call{granted: p.now, taken: n, counts: n})
}

// land removes the ith call in flight.
func (p *play) land(i int) *call {
	c := p.flying[i]
	p.flying = append(p.flying[:i:i], p.flying[i+1:]...)
	return c
}

func (p *play) settle(i int, charged int64, late time.Duration) {
	c := p.land(i)
	c.settled = max(c.granted, p.now-late)
	p.rule.Settle(at(c.granted), at(c.settled), c.taken, charged)
	switch {
	case !p.rule.spec.sent:
		c.counts = charged
		if charged > 0 {
			p.model.charge(c.settled, charged)
		}
	case charged > c.taken:
		p.model.charge(c.settled, charged-c.taken)
	case charged < c.taken:
		c.counts = charged
		p.refund(c.granted, c.taken-charged)
	}
	if p.rule.spec.sent {
		c.settled = c.granted
	}
	p.settled = append(p.settled, c)
}

func (p *play) refund(charged time.Duration, n int64) {
	p.refunds += 2
	p.model.refund(charged, n)
}

func (p *play) giveBack(i int) {
	c := p.land(i)
	p.rule.GiveBack(at(c.granted), at(p.now), c.taken)
	if m, ok := p.model.(*leakyModel); ok {
		m.undo(c.granted)
	}
	if p.rule.spec.sent {
		p.refund(c.granted, c.taken)
	}
}

func (p *play) correct(i int, delta int64) {
	c := p.settled[i]
	delta = max(delta, -c.counts)
	p.rule.Correct(at(c.settled), at(p.now), delta)
	if delta > 0 {
		p.model.charge(p.now, delta)
	} else if delta < 0 {
		c.counts += delta
		p.refund(c.settled, -delta)
	}
}

// step reads one operation.
func (p *play) step(op, arg byte) {
	n := int64(arg>>4) + 1
	switch op % 8 {
	case 0, 1, 2:
		p.take(int64(arg)%p.rule.Heaviest() + 1)
	case 3:
		p.now += time.Duration(arg) % (p.rule.spec.per + 2)
	case 4:
		p.now += time.Duration(arg % 8)
	case 5, 6:
		if k := len(p.flying); k > 0 {
			i := int(arg) % k
			charged := []int64{p.flying[i].taken, p.flying[i].taken, 0, n % 5}[arg>>2&3]
			p.settle(i, charged, []time.Duration{0, 0, 0, time.Duration(n)}[op>>3&3])
		}
	case 7:
		if k := len(p.flying); k > 0 && op&8 == 0 {
			p.giveBack(int(arg) % k)
		} else if k := len(p.settled); k > 0 {
			p.correct(int(arg)%k, n%6-4)
		}
	}
	p.check()
}

func (p *play) run(data []byte) {
	for ; len(data) >= 2; data = data[2:] {
		p.step(data[0], data[1])
	}
}

// FuzzRule: the bytes choose a limit and drive it against its definition.
func FuzzRule(f *testing.F) {
	for i := range 2 * len(small) {
		f.Add(append([]byte{byte(i)}, "\x00\x01\x00\x02\x05\x00\x03\x10\x00\x00\x07\x00\x1d\x33\x0f\x20"...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		l := small[int(data[0])%len(small)]
		if int(data[0])/len(small)%2 == 1 {
			l = sent(l)
		}
		newPlay(t, l).run(data[1:min(len(data), 121)])
	})
}

// TestRuleIsItsDefinition plays the same at random: at each step, what Look says is
// the first instant at which the definition lets the call go. "No call that could
// go waits" and "no bound is broken" are both in it.
func TestRuleIsItsDefinition(t *testing.T) {
	for i, l := range small {
		for _, l := range []provider.Limit{l, sent(l)} {
			t.Run(fmt.Sprintf("%s %d per %s %s", l.Algorithm, l.Max, l.Per, l.Counted), func(t *testing.T) {
				for seed := range uint64(60) {
					rnd := rand.New(rand.NewPCG(seed, uint64(i)))
					data := make([]byte, 120)
					for i := range data {
						data[i] = byte(rnd.Uint32())
					}
					newPlay(t, l).run(data)
				}
			})
		}
	}
}
