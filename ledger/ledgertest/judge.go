package ledgertest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headgate/headgate/provider"
)

// trip is a call as its provider may have seen it: it arrived somewhere from its grant
// to its settlement, and counts there as n units.
type trip struct {
	from, to time.Duration
	n, held  int64
}

// arrivals puts each trip at an instant within it: its begin, its end, or any.
func arrivals(trips []trip, rnd *rand.Rand) []charged {
	out := make([]charged, 0, len(trips))
	where := rnd.IntN(4)
	for _, t := range trips {
		at := t.from
		switch how := max(where, 1+rnd.IntN(3)); {
		case where == 0: // all as early as they can
		case where == 1 || how == 1: // all, or this one, as late as they can
			at = t.to
		default:
			at += time.Duration(rnd.Int64N(int64(max(t.to-t.from, 0) + 1)))
		}
		out = append(out, charged{at, t.n})
	}
	slices.SortFunc(out, func(a, b charged) int { return cmp.Compare(a.at, b.at) })
	return out
}

// overrun is by how much a provider that enforces the limit finds it exceeded, at worst,
// in its own measure; 0 or less: never.
func (m *model) overrun(trips []trip, rnd *rand.Rand) int64 {
	switch m.Algorithm {
	case provider.InFlight:
		return m.tooMany(trips)
	case provider.FixedWindow:
		return m.tooManyAligned(arrivals(trips, rnd), time.Duration(rnd.Int64N(int64(guard(m.per)))))
	case provider.SlidingWindowCounter:
		return m.overEstimate(arrivals(trips, rnd))
	case provider.TokenBucket:
		return m.tooLittle(arrivals(trips, rnd))
	}
	return m.tooManySliding(arrivals(trips, rnd))
}

// tooMany counts those who are out together.
func (m *model) tooMany(trips []trip) (over int64) {
	over = -m.Max
	for _, t := range trips {
		var out int64
		for _, o := range trips {
			if o.from <= t.from && t.from < o.to {
				out += o.held
			}
		}
		over = max(over, out-m.Max)
	}
	return over
}

// tooManySliding counts every window, both ends in.
func (m *model) tooManySliding(all []charged) (over int64) {
	over = -m.Max
	for i := range all {
		var n int64
		for j := i; j >= 0 && all[j].at >= all[i].at-m.per; j-- {
			n += all[j].n
		}
		over = max(over, n-m.Max)
	}
	return over
}

// tooManyAligned counts the windows of a clock that is behind ours.
func (m *model) tooManyAligned(all []charged, behind time.Duration) (over int64) {
	over = -m.Max
	counts := map[time.Duration]int64{}
	for _, c := range all {
		window := m.begin(c.at - behind)
		counts[window] += c.n
		over = max(over, counts[window]-m.Max)
	}
	return over
}

func (m *model) overEstimate(all []charged) (over int64) {
	over = -m.Max
	counts := map[time.Duration]int64{}
	for _, c := range all {
		from := m.begin(c.at)
		counts[from] += c.n
		estimate := counts[from-m.per]*int64(m.per-(c.at-from)) + counts[from]*int64(m.per)
		over = max(over, estimate-m.Max*int64(m.per))
	}
	return over
}

func (m *model) tooLittle(all []charged) (over int64) {
	var missing int64
	last := time.Duration(0)
	over = -m.Max
	for _, c := range all {
		missing = max(0, missing-int64(c.at-last)*m.Max) + c.n*int64(m.per)
		last = c.at
		over = max(over, missing-m.Burst*int64(m.per))
	}
	return over
}
