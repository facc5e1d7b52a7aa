package limit

import (
	"slices"
	"sort"
	"time"
)

// remembered is how many dips a bucket keeps.
const remembered = 64

// dip is how much a bucket missed just before a charge: between two charges it
// fills, so these are the instants at which it missed least.
type dip struct {
	at    time.Duration
	level time.Duration
}

// dips are those that are the least of all from then on, in order of time and so
// of level. The least that the bucket missed since any instant is the first one
// after it, or what it misses now: that much of a charge made at that instant can
// come back; what is beyond would have been lost to a full bucket.
//
// When there are more than remembered the two oldest become one that is as late
// as the one and as low as the other: older charges come back in part.
type dips []dip

// note records the level before a charge. What is recorded of a later or the same
// instant is as low or lower.
func (d *dips) note(at, level time.Duration) {
	h := *d
	n := len(h)
	if n > 0 && at <= h[n-1].at {
		return
	}
	for n > 0 && h[n-1].level >= level {
		n--
	}
	if h = h[:n]; n == remembered {
		h[1].level = h[0].level
		h = h[:copy(h, h[1:])]
	}
	*d = append(h, dip{at, level})
}

// take gives back up to cost of a charge that was made at an instant, as far as
// the dips since then allow, and returns how much; the dips are then as if the
// charge had been less by it.
func (d *dips) take(charged, cost time.Duration) time.Duration {
	h := *d
	first := sort.Search(len(h), func(i int) bool { return h[i].at > charged })
	if first == len(h) {
		return cost
	}
	cost = min(cost, h[first].level)
	for i := first; i < len(h); i++ {
		h[i].level -= cost
	}
	keep := first
	for keep > 0 && h[keep-1].level >= h[first].level {
		keep--
	}
	*d = slices.Delete(h, keep, first)
	return cost
}
