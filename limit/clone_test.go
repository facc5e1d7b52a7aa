package limit

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

// kinds are limits of every algorithm, and what differs within one.
var kinds = []provider.Limit{
	{Name: "window", Max: 5, Per: "10s"},
	{Name: "slots", Max: 100_000, Per: "10s"},
	{Name: "sent", Max: 5, Per: "10s", Counted: provider.CountedSent},
	{Name: "log", Max: 5, Per: "10s", Algorithm: provider.SlidingLog},
	{Name: "counter", Max: 5, Per: "10s", Algorithm: provider.SlidingWindowCounter},
	{Name: "fixed", Max: 5, Per: "10s", Algorithm: provider.FixedWindow},
	{Name: "day", Max: 5, Per: provider.Day, Zone: "Europe/Berlin"},
	{Name: "bucket", Max: 5, Per: "10s", Burst: 7, Algorithm: provider.TokenBucket},
	{Name: "leaky", Max: 5, Per: "10s", Algorithm: provider.LeakyBucket},
	{Name: "flight", Max: 5, Algorithm: provider.InFlight},
}

// A clone goes on as its original would have, and neither sees what the other does.
func TestCloneIsTheSameAndApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, d := range kinds {
		for range 20 {
			r, err := New(d)
			require.NoError(t, err)
			now := Now{Mono: time.Second, Wall: 1_800_000_000 * time.Second}
			out := scramble(rng, r, &now, nil, 3000)
			twin, other := r.Clone(), r.Clone()
			foreign := now
			scramble(rng, other, &foreign, append([]Now(nil), out...), 50)
			require.Equal(t, r.Usage(now), twin.Usage(now), d.Name)

			seed := rng.Uint64()
			later, at := now, now
			outA := scramble(rand.New(rand.NewPCG(seed, 1)), r, &later, append([]Now(nil), out...), 200)
			outB := scramble(rand.New(rand.NewPCG(seed, 1)), twin, &at, append([]Now(nil), out...), 200)
			assert.Equal(t, outA, outB, d.Name)
			assert.Equal(t, r.Usage(later), twin.Usage(at), d.Name)
			assert.Equal(t, r.Look(later, 3), twin.Look(at, 3), d.Name)
			assert.Equal(t, r.When(later, 12), twin.When(at, 12), d.Name)
		}
	}
}

// A rule in memory of the caller's goes on as any, also where another has gone on from it.
func TestFreshInIsFresh(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for _, d := range kinds {
		one, err := New(d)
		require.NoError(t, err)
		begin := Now{Mono: time.Second, Wall: 1_800_000_000 * time.Second}
		used := begin
		scramble(rng, one, &used, nil, 100)

		var m Room
		assert.Zero(t, m.Ahead(), d.Name)
		r, fresh := one.FreshIn(&m), one.Fresh()
		seed := rng.Uint64()
		now, at := begin, begin
		outR := scramble(rand.New(rand.NewPCG(seed, 1)), r, &now, nil, 3000)
		outF := scramble(rand.New(rand.NewPCG(seed, 1)), fresh, &at, nil, 3000)
		assert.Equal(t, outF, outR, d.Name)
		m.Ahead()
		require.Equal(t, fresh.Usage(at), r.Usage(now), d.Name)

		d.Max = 3 // the rule in there ends: the one that goes on has memory of its own
		next, err := Replace(r, d, now)
		require.NoError(t, err)
		other, err := Replace(fresh, d, at)
		require.NoError(t, err)
		out := append([]Now(nil), outR...)
		assert.Equal(t, scramble(rand.New(rand.NewPCG(seed, 2)), other, &at, append([]Now(nil), out...), 3000),
			scramble(rand.New(rand.NewPCG(seed, 2)), next, &now, append([]Now(nil), out...), 3000), d.Name)
		m.Ahead()
		require.Equal(t, other.Usage(at), next.Usage(now), d.Name)
	}
}

// scramble takes, settles and gives back at random.
func scramble(rng *rand.Rand, r *Rule, now *Now, out []Now, steps int) []Now {
	for range steps {
		step := time.Duration(rng.Int64N(int64(time.Second) / 4))
		now.Mono, now.Wall = now.Mono+step, now.Wall+step
		switch rng.IntN(3) {
		case 0:
			if r.Look(*now, 1) <= now.Mono {
				r.Take(*now, 1)
				out = append(out, *now)
			}
		case 1:
			if len(out) > 0 {
				r.Settle(out[0], *now, 1, rng.Int64N(2))
				out = out[1:]
			}
		default:
			if len(out) > 0 && rng.IntN(3) == 0 {
				r.GiveBack(out[len(out)-1], *now, 1)
				out = out[:len(out)-1]
			}
		}
	}
	return out
}
