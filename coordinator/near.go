package coordinator

import (
	"time"

	"github.com/headgate/headgate/limit"
)

// Of thousands of lanes none is in the processor's cache when its next call comes, and
// what a decision waits for then is memory. So what most calls need is in one piece with
// the lane, and is read all at once beforehand: reads that do not wait for one another
// take hardly longer than one. Nothing but speed depends on it: after an Update a lane has
// its route elsewhere, and of its limits those that are new.

// nearGate is a limitGate with its rule beside it.
type nearGate struct {
	limitGate
	room limit.Room
}

// cold is how long a lane has to be left alone to be taken for forgotten by the cache.
const cold = 100 * time.Microsecond

// ahead reads what a decision on the plain route will read.
func (l *lane) ahead() {
	x := l.timerAt + l.lately.until + l.lately.ten + l.trips.until + l.trips.last[len(l.trips.last)-1] + l.least.holds + l.pause.warm + l.pause.told.until + l.route1.used
	n := l.q.Len() + len(l.counts.admitted) + l.route1.pool
	m := l.counts.granted + l.route1.cost1[0]
	if l.few[0] != nil || l.route1.limits1[0] == nil || !l.breaker.Closed() {
		n++
	}
	for i := range l.near {
		g := &l.near[i]
		if g.rule == nil {
			break
		}
		m += g.told.went + g.room.Ahead()
	}
	l.seen = int64(x) + int64(n) + m
}
