package soak

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/headgate/headgate/provider"
)

// elastic is a limit whose size is raised and lowered while calls are under way. The
// referee enforces its largest size; this log judges by what was in force: of the
// calls that arrive within any window the last was let go under some size, and by
// then all the others counted.
type elastic struct {
	limit provider.Limit // at its largest
	per   time.Duration

	mu      sync.Mutex
	sizes   []amount // each in force from its instant on
	arrived []amount
}

type amount struct {
	at time.Time
	n  int64
}

// late is how long a call may be under way to the provider.
const late = 100 * time.Millisecond

// newElastic adds the limit to a declaration.
func (w *world) newElastic(p *provider.Provider) *elastic {
	e := &elastic{per: 200*time.Millisecond + time.Duration(w.n(2000))*time.Millisecond}
	e.limit = provider.Limit{Name: "elastic", Max: int64(10 + w.n(10)), Per: provider.Period(e.per.String())}
	p.Throttle.Limits = append(p.Throttle.Limits, e.limit)
	p.Throttle.Learn = "" // what the referee tells is its own, larger size
	e.sizes = []amount{{time.Now(), e.limit.Max}}
	return e
}

// resize draws another size, which is in force from now on.
func (e *elastic) resize(w *world) int64 {
	n := 3 + w.rng.Int64N(e.limit.Max-2)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sizes = append(e.sizes, amount{time.Now(), n})
	return n
}

func (e *elastic) note(at time.Time, n int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.arrived = append(e.arrived, amount{at, n})
}

// most is the largest size in force at any time from a to b. A size that gives way
// at a itself is among them.
func (e *elastic) most(a, b time.Time) (most int64) {
	for i, s := range e.sizes {
		ends := b
		if i+1 < len(e.sizes) {
			ends = e.sizes[i+1].at
		}
		if !s.at.After(b) && !ends.Before(a) {
			most = max(most, s.n)
		}
	}
	return most
}

// check counts every window that ends with an arrival.
func (e *elastic) check(t *testing.T) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	slices.SortStableFunc(e.arrived, func(a, b amount) int { return a.at.Compare(b.at) })
	first, sum := 0, int64(0)
	for _, x := range e.arrived {
		sum += x.n
		for ; x.at.Sub(e.arrived[first].at) >= e.per; first++ {
			sum -= e.arrived[first].n
		}
		if most := e.most(x.at.Add(-e.per-late), x.at); !assert.LessOrEqual(t, sum, most, "of limit elastic within %v before %v", e.per, x.at) {
			return
		}
	}
}
