package limit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

// A rule that is put off is one that was told of later charges, also for what is charged
// and taken back from then on.
func TestPostponedIsChargedLater(t *testing.T) {
	for _, l := range []provider.Limit{
		{Max: 20, Per: "1000ns"}, {Max: 20, Per: "1000ns", Algorithm: provider.LeakyBucket},
		{Max: 20, Per: "1000ns", Burst: 7, Algorithm: provider.TokenBucket}, {Max: 20, Per: "1000ns", Algorithm: provider.TokenBucket},
		{Max: 20_000, Per: "1ms"},
	} {
		for seed := range uint64(50) {
			rng := rand.New(rand.NewPCG(seed, 3))
			early, err := New(l)
			require.NoError(t, err)
			late := early.Fresh()
			per, _ := l.Per.Duration()
			by := time.Duration(1 + rng.Int64N(int64(per)))
			exact := l.Max <= 1024
			var made []time.Duration
			now := 10 * per
			for range 5000*int(l.Max)/20_000 + 15 {
				now += time.Duration(rng.Int64N(int64(per)/300*20/min(l.Max, 100)*3 + 1))
				for _, r := range []*Rule{early, late} {
					r.Take(at(now), 1)
				}
				early.Settle(at(now), at(now-by), 1, 1)
				late.Settle(at(now), at(now), 1, 1)
				made = append(made, now)
			}
			early.Postpone(by)
			early.Postpone(0)
			early.Postpone(-by)
			for range 100 {
				n := 1 + rng.Int64N(early.Heaviest())
				a, b := early.Look(at(now), n), late.Look(at(now), n)
				if exact {
					require.Equal(t, b, a, "%v %d", l, seed)
				} else {
					require.InDelta(t, b, a, float64(2*slotOf(early.per)), "%v %d", l, seed)
				}
				if exact && rng.IntN(3) == 0 {
					x := made[rng.IntN(len(made))]
					early.Correct(at(x), at(now), -1)
					late.Correct(at(x), at(now), -1)
				}
				now += time.Duration(rng.Int64N(int64(per) / 50))
			}
		}
	}
}

func TestPostponeLeavesDatesAndSlotsThatAreNone(t *testing.T) {
	for _, l := range []provider.Limit{
		{Max: 3, Per: "1s", Algorithm: provider.FixedWindow}, {Max: 3, Per: "1s", Algorithm: provider.SlidingWindowCounter}, {Max: 3, Algorithm: provider.InFlight},
	} {
		r, err := New(l)
		require.NoError(t, err)
		r.Take(at(time.Second), 2)
		r.Settle(at(time.Second), at(time.Second), 1, 1)
		before := fmt.Sprint(r.Usage(at(time.Second)))
		r.Postpone(time.Hour)
		require.Equal(t, before, fmt.Sprint(r.Usage(at(time.Second))))
	}
}
