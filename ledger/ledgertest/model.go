package ledgertest

import (
	"sort"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// model is a limit as its definition reads. It keeps every charge for ever and adds
// all of them up, each time it is asked. Instants are those of the play; the wall clock
// is so much ahead of them.
type model struct {
	provider.Limit
	per  time.Duration
	wall time.Duration

	charges []charged // in the order in which they were made
	held    int64
	grants  []spacedGrant // of a leaky bucket
	loose   bool          // the store may be stricter from here on
	forgot  bool          // the lateness of a leaky bucket
}

type charged struct {
	at time.Duration
	n  int64
}

type spacedGrant struct {
	at, scheduled time.Duration
	n             int64
	forgot        bool // what was before it
}

func newModel(l provider.Limit, start time.Time) *model {
	l = l.WithDefaults()
	per, _ := l.Per.Duration()
	return &model{Limit: l, per: per, wall: time.Duration(start.UnixNano())}
}

func (m *model) sent() bool {
	return m.Counted == provider.CountedSent && m.Algorithm != provider.InFlight
}

// begin is when the aligned window of an instant begins.
func (m *model) begin(t time.Duration) time.Duration {
	return t - (t+m.wall)%m.per
}

// since is what was charged at or after an instant, and before another.
func (m *model) since(from, to time.Duration) (n int64) {
	for _, c := range m.charges {
		if c.at >= from && c.at < to {
			n += c.n
		}
	}
	return n
}

const forever = time.Duration(1<<62 - 1)

// fits tells that n more units may go at an instant, if nothing else happens until then.
func (m *model) fits(t time.Duration, n int64) bool {
	n += m.outstanding()
	switch m.Algorithm {
	case provider.InFlight:
		return n <= m.Max
	case provider.FixedWindow:
		from := m.begin(t)
		if t < from+guard(m.per) { // the provider's clock may be behind
			from -= m.per
		}
		return m.since(from, forever)+n <= m.Max
	case provider.SlidingWindowCounter:
		from := m.begin(t)
		before, now := m.since(from-m.per, from), m.since(from, forever)
		return before*int64(m.per-(t-from))+(now+n)*int64(m.per) <= m.Max*int64(m.per)
	case provider.TokenBucket:
		return m.missing(t)+n*int64(m.per) <= m.Burst*int64(m.per)
	case provider.LeakyBucket:
		if !m.spaced(t) {
			return false
		}
	}
	return m.since(t-m.per, forever)+n <= m.Max
}

// outstanding is what is held and counts as such.
func (m *model) outstanding() int64 {
	if m.sent() {
		return 0
	}
	return m.held
}

// missing is what a bucket has less than when it is full, in max-ths of a nanosecond, of
// which a unit costs per. A charge that comes late may be put as late as the one before.
func (m *model) missing(t time.Duration) int64 {
	var missing int64
	var last time.Duration
	for _, c := range m.charges {
		at := max(c.at, last)
		missing = max(0, missing-int64(at-last)*m.Max) + c.n*int64(m.per)
		last = at
	}
	return max(0, missing-int64(max(t-last, 0))*m.Max)
}

// spaced tells that n intervals are over since the last grant of n units was scheduled,
// and nine tenths of them since it went.
func (m *model) spaced(t time.Duration) bool {
	if len(m.grants) == 0 {
		return true
	}
	g := m.grants[len(m.grants)-1]
	cost := g.n * int64(m.per)
	return int64(t-g.scheduled)*m.Max >= cost && int64(t-g.at)*m.Max*10 >= cost*9
}

// first is the first instant from now on at which n more units may go: what fits stays
// fitting, if nothing happens.
func (m *model) first(now time.Duration, n int64) time.Duration {
	const windows = 40
	horizon := windows * max(m.per, time.Second)
	k := sort.Search(int(horizon), func(i int) bool { return m.fits(now+time.Duration(i), n) })
	if k == int(horizon) {
		return ledger.Event
	}
	return now + time.Duration(k)
}

// room is how many units fit now.
func (m *model) room(now time.Duration) int64 {
	most := m.Max + m.Burst + 1
	return int64(sort.Search(int(most), func(i int) bool { return !m.fits(now, int64(i)+1) }))
}

// idle tells that nothing counts at an instant.
func (m *model) idle(at time.Duration) bool {
	return m.held == 0 && m.since(at-m.per, forever) == 0
}

func (m *model) take(at time.Duration, n int64) {
	m.held += n
	if m.Algorithm == provider.LeakyBucket {
		g := spacedGrant{at: at, scheduled: at, n: n, forgot: m.forgot}
		if k := len(m.grants); k > 0 && !m.forgot {
			interval := m.per / time.Duration(m.Max)
			last := m.grants[k-1]
			g.scheduled = max(last.scheduled+interval*time.Duration(last.n), at-10*interval)
		}
		m.grants, m.forgot = append(m.grants, g), false
	}
	if m.sent() {
		m.charge(at, n)
	}
}

func (m *model) charge(at time.Duration, n int64) {
	if m.Algorithm == provider.InFlight || n == 0 {
		return
	}
	if k := len(m.charges); k > 0 && at < m.charges[k-1].at && m.Algorithm != provider.SlidingWindow && m.Algorithm != provider.LeakyBucket {
		m.loose = true
	}
	m.charges = append(m.charges, charged{at, n})
}

func (m *model) settle(taken, at time.Duration, n, counts int64) {
	m.held -= n
	switch {
	case !m.sent():
		m.charge(at, counts)
	case counts > n:
		m.charge(at, counts-n)
	default:
		m.refund(taken, n-counts)
	}
}

func (m *model) giveBack(taken time.Duration, n int64) {
	m.held -= n
	if k := len(m.grants); k > 0 && m.grants[k-1].at == taken {
		m.grants, m.forgot = m.grants[:k-1], m.grants[k-1].forgot
	}
	if m.sent() {
		m.refund(taken, n)
	}
}

// refund is as if so many units had not been charged at an instant.
func (m *model) refund(at time.Duration, n int64) {
	for i := range m.charges {
		if c := &m.charges[i]; c.at == at {
			back := min(n, c.n)
			c.n -= back
			n -= back
		}
	}
}
