package limit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

// storable are limits of every algorithm, some with numbers at an end of their range.
var storable = []provider.Limit{
	{Max: 5, Per: "10s"},
	{Max: 100_000, Per: "10s"},
	{Max: math.MaxInt64, Per: "1s"},
	{Max: 5, Per: "10s", Algorithm: provider.SlidingWindowCounter},
	{Max: 5, Per: "10s", Algorithm: provider.FixedWindow},
	{Max: 5, Per: provider.Minute, Zone: "Asia/Kolkata", Anchor: "20s"},
	{Max: 5, Per: provider.Day, Zone: "Europe/Berlin", Anchor: "02:30"},
	{Max: 5, Per: provider.Month, Anchor: "31 17:00"},
	{Max: 7, Per: "10s", Burst: 3, Algorithm: provider.TokenBucket},
	{Max: 1 << 62, Per: "744h", Algorithm: provider.TokenBucket},
	{Max: 7, Per: "10s", Algorithm: provider.LeakyBucket},
	{Max: 5, Algorithm: provider.InFlight},
}

func mustNew(t testing.TB, l provider.Limit) *Rule {
	r, err := New(l)
	require.NoError(t, err)
	return r
}

// through is r as it comes out of its bytes, read by a Rule made for l.
func through(t testing.TB, r, by *Rule) *Rule {
	b, err := r.AppendBinary([]byte("x"))
	require.NoError(t, err)
	require.Equal(t, byte('x'), b[0], "it appends")
	require.NoError(t, by.UnmarshalBinary(b[1:]))
	require.True(t, by.Alike(r))
	again, err := by.AppendBinary(nil)
	require.NoError(t, err)
	require.Equal(t, b[1:], again, "what was read is written as it was")
	return by
}

// A Rule that was stored at any instant goes on as one that was not: for every
// algorithm, whoever reads it, corrections, give-backs and steps of the wall clock
// included.
func TestStoredRuleIsTheSame(t *testing.T) {
	for i, d := range storable {
		for _, d := range []provider.Limit{d, sent(d)} {
			t.Run(fmt.Sprintf("%s %d per %s %s", d.Algorithm, d.Max, d.Per, d.Counted), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(8, uint64(i)))
				for round := range 12 {
					kept := mustNew(t, d)
					kept.SetSkew(time.Duration(round) * time.Millisecond)
					require.Equal(t, kept.spec, through(t, kept, new(Rule)).spec, "what is computed from the limit is, too")
					stored, other := through(t, kept, new(Rule)), mustNew(t, storable[rng.IntN(len(storable))])
					p := &pair{t: t, rng: rng, rules: [2]*Rule{kept, stored}, now: Now{Mono: time.Hour, Wall: 1_800_000_000 * time.Second}}
					for range 400 {
						p.step()
						switch rng.IntN(12) {
						case 0:
							p.rules[1] = through(t, p.rules[1], new(Rule))
						case 1:
							p.rules[1] = through(t, p.rules[1], other)
							other = mustNew(t, storable[rng.IntN(len(storable))])
						case 2:
							p.rules[1] = through(t, p.rules[1], kept.Fresh())
						}
					}
				}
			})
		}
	}
}

// pair is two Rules that are told the same and must always say the same.
type pair struct {
	t     *testing.T
	rng   *rand.Rand
	rules [2]*Rule
	now   Now
	out   []taken
	done  []Now
}

type taken struct {
	at Now
	n  int64
}

func (p *pair) both(f func(r *Rule)) { f(p.rules[0]); f(p.rules[1]) }

func (p *pair) step() {
	step := time.Duration(p.rng.Int64N(int64(time.Second)))
	if p.rng.IntN(50) == 0 {
		step *= 1000
	}
	p.now = Now{Mono: p.now.Mono + step, Wall: p.now.Wall + step}
	if p.rng.IntN(40) == 0 {
		p.now.Wall -= time.Duration(p.rng.Int64N(int64(time.Minute)))
	}
	n := 1 + p.rng.Int64N(3)
	if p.rng.IntN(10) == 0 {
		n = max(1, p.rules[0].Heaviest()/(1+p.rng.Int64N(4)))
	}
	a, b := p.rules[0], p.rules[1]
	require.Equal(p.t, a.Look(p.now, n), b.Look(p.now, n))
	require.Equal(p.t, a.When(p.now, n), b.When(p.now, n))
	require.Equal(p.t, a.Usage(p.now), b.Usage(p.now))
	require.Equal(p.t, a.Idle(p.now), b.Idle(p.now))
	late := time.Duration(p.rng.Int64N(int64(3 * time.Second)))
	before := Now{Mono: p.now.Mono - late, Wall: p.now.Wall - late}
	switch p.rng.IntN(6) {
	case 0, 1:
		if a.Look(p.now, n) <= p.now.Mono {
			p.both(func(r *Rule) { r.Take(p.now, n) })
			p.out = append(p.out, taken{p.now, n})
		}
	case 2:
		if x, ok := p.land(); ok {
			charged := p.rng.Int64N(1 + 2*min(x.n, 1<<40))
			p.both(func(r *Rule) { r.Settle(x.at, before, x.n, charged) })
			p.done = append(p.done, before, x.at)
		}
	case 3:
		if x, ok := p.land(); ok && p.rng.IntN(3) == 0 {
			p.both(func(r *Rule) { r.GiveBack(x.at, p.now, x.n) })
		}
	default:
		if len(p.done) > 0 {
			at, delta := p.done[p.rng.IntN(len(p.done))], p.rng.Int64N(5)-3
			p.both(func(r *Rule) { r.Correct(at, p.now, delta) })
		}
	}
}

func (p *pair) land() (x taken, ok bool) {
	if len(p.out) == 0 {
		return x, false
	}
	i := p.rng.IntN(len(p.out))
	x = p.out[i]
	p.out = append(p.out[:i], p.out[i+1:]...)
	return x, true
}

// What was stored under other numbers is adopted: a lowered limit counts at once,
// and nothing is refilled.
func TestStoredRuleOfAChangedLimit(t *testing.T) {
	for _, d := range []provider.Limit{
		{Max: 10, Per: "1h"}, {Max: 10, Per: "1h", Counted: provider.CountedSent},
		{Max: 10, Per: "1h", Algorithm: provider.FixedWindow}, {Max: 10, Per: provider.Day, Zone: "Asia/Tokyo"},
		{Max: 10, Per: "1h", Algorithm: provider.SlidingWindowCounter}, {Max: 10, Per: "1h", Algorithm: provider.TokenBucket},
		{Max: 10, Algorithm: provider.InFlight},
	} {
		r := mustNew(t, d)
		now := Now{Mono: time.Hour, Wall: 1_800_000_000 * time.Second}
		r.Take(now, 6)
		r.Settle(now, now, 2, 2)
		b, err := r.AppendBinary(nil)
		require.NoError(t, err)

		d.Max, d.Burst = 6, 0
		if d.Algorithm == provider.InFlight {
			d.Max = 4
		}
		low := mustNew(t, d)
		old := low.Fresh()
		require.NoError(t, old.UnmarshalBinary(b))
		require.Equal(t, int64(10), old.Heaviest(), "until it is adopted it has its own numbers")
		require.False(t, old.Alike(low))
		require.True(t, low.Alike(low.Fresh()))
		now.Mono, now.Wall = now.Mono+1, now.Wall+1
		low.Adopt(old, now)
		u := low.Usage(now)
		require.Equal(t, int64(4), u.Held, "%v", d)
		switch {
		case low.Sent():
			require.Equal(t, int64(6), u.Used, "%v", d)
		case d.Algorithm != provider.InFlight:
			require.Equal(t, int64(2), u.Used, "%v", d)
		}
		require.Greater(t, low.Look(now, 1), now.Mono, "%v: the lowered limit is full", d)
	}
}

// Two limits that differ in anything that counts are not alike.
func TestAlike(t *testing.T) {
	require.Equal(t, 31*24*time.Hour, mustNew(t, provider.Limit{Max: 5, Per: provider.Month}).Window())
	require.Zero(t, mustNew(t, provider.Limit{Max: 5, Algorithm: provider.InFlight}).Window())
	for i, a := range storable {
		for j, b := range storable {
			require.Equal(t, i == j, mustNew(t, a).Alike(mustNew(t, b)), "%v, %v", a, b)
		}
		named := a
		named.Name, named.Scope, named.Source = "other", provider.ScopeKey, "somewhere"
		require.True(t, mustNew(t, a).Alike(mustNew(t, named)), "what has nothing to do with counting")
		if a.Algorithm != provider.InFlight {
			require.False(t, mustNew(t, a).Alike(mustNew(t, sent(a))))
		}
	}
}

// Every prefix and every other version of what was stored is refused.
func TestStoredRuleCutOff(t *testing.T) {
	for _, d := range storable {
		r := mustNew(t, d)
		now := Now{Mono: time.Hour, Wall: 1_800_000_000 * time.Second}
		r.Take(now, 1)
		r.Take(Now{Mono: now.Mono + time.Minute, Wall: now.Wall + time.Minute}, 1)
		r.Settle(now, now, 1, 1)
		b, err := r.AppendBinary(nil)
		require.NoError(t, err)
		for n := range b {
			require.ErrorContains(t, mustNew(t, d).UnmarshalBinary(b[:n]), "limit: a stored rule is damaged", "%d bytes of %v", n, d)
			require.Error(t, new(Rule).UnmarshalBinary(b[:n]))
		}
		require.ErrorContains(t, mustNew(t, d).UnmarshalBinary(append(b, 0)), "more bytes")
		b[0] = format + 1
		require.ErrorContains(t, new(Rule).UnmarshalBinary(b), "version 2 is unknown: this program reads version 1")
	}
}

// What a stored Rule takes: the figures of AppendBinary's documentation.
func TestStoredRuleIsSmall(t *testing.T) {
	r := mustNew(t, provider.Limit{Max: 1 << 40, Per: "744h"})
	b, err := r.AppendBinary(nil)
	require.NoError(t, err)
	require.LessOrEqual(t, len(b), 32, "one that is new")
	now := Now{Mono: 1_800_000_000 * time.Second, Wall: 1_800_000_000 * time.Second}
	for i := range int64(1100) {
		now.Mono += time.Duration(i) * time.Second
		r.Take(now, 1)
		r.Settle(now, now, 1, 1)
	}
	b, err = r.AppendBinary(nil)
	require.NoError(t, err)
	require.Less(t, len(b), 10_000, "a full window")
}

// A window that counts in slots goes on to do so.
func TestStoredRuleInSlots(t *testing.T) {
	r := mustNew(t, provider.Limit{Max: 3000, Per: "3s"})
	now := time.Duration(0)
	for range 1100 {
		now += 2 * time.Millisecond
		spend(t, r, at(now), 1)
	}
	stored := through(t, r, new(Rule))
	for range 100 {
		now += time.Millisecond / 10
		spend(t, r, at(now), 1)
		spend(t, stored, at(now), 1)
	}
	kept, _ := r.AppendBinary(nil)
	read, _ := stored.AppendBinary(nil)
	require.Equal(t, kept, read)
	require.True(t, r.algo.(*window).slotted)
}
