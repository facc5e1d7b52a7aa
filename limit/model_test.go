package limit

import (
	"slices"
	"time"

	"github.com/headgate/headgate/provider"
)

// model is an algorithm as its definition reads, without any cleverness: it keeps
// every charge for ever and looks at all of them. Instants are small numbers, so
// that first can try each one. The wall clock is Mono + wallAhead.
type model interface {
	fits(t time.Duration, room int64) bool // no more than room counts at t
	charge(at time.Duration, n int64)
	refund(charged time.Duration, n int64) // as if these had not been charged
	loose() bool                           // the Rule may be stricter from here on
}

const wallAhead = 1_000_000

// first is the first instant at which n units may go.
func first(m model, now time.Duration, room int64) time.Duration {
	if room < 0 {
		return Never
	}
	for t := now; t < now+100_000; t++ {
		if m.fits(t, room) {
			return t
		}
	}
	panic("the model never opens")
}

type charged struct {
	at time.Duration
	n  int64
}

type charges []charged

func (c charges) sum(from, to time.Duration) (n int64) {
	for _, x := range c {
		if from <= x.at && x.at <= to {
			n += x.n
		}
	}
	return n
}

func (c charges) take(at time.Duration, n int64) {
	for i := range c {
		if c[i].at == at {
			took := min(n, c[i].n)
			c[i].n -= took
			n -= took
		}
	}
}

func newModel(l provider.Limit) model {
	per, _ := time.ParseDuration(string(l.Per))
	switch l.Algorithm {
	case provider.SlidingWindow:
		return &windowModel{per: per}
	case provider.LeakyBucket:
		return &leakyModel{windowModel: windowModel{per: per}, interval: per / time.Duration(l.Max)}
	case provider.FixedWindow:
		return &fixedModel{per: per, guard: min(per/100, time.Second)}
	case provider.SlidingWindowCounter:
		return &counterModel{per: per}
	case provider.TokenBucket:
		return &bucketModel{per: int64(per), max: l.Max}
	}
	return flightModel{}
}

type windowModel struct {
	charges
	per time.Duration
}

func (m *windowModel) fits(t time.Duration, room int64) bool { return m.sum(t-m.per, t) <= room }
func (m *windowModel) charge(at time.Duration, n int64) {
	m.charges = append(m.charges, charged{at, n})
}
func (m *windowModel) refund(at time.Duration, n int64) { m.take(at, n) }
func (m *windowModel) loose() bool                      { return false }

// leakyModel: interval must be a multiple of 10 ns.
type leakyModel struct {
	windowModel
	interval time.Duration
	grants   []leakyGrant
	undone   bool
}

type leakyGrant struct {
	at, scheduled time.Duration
	n             int64
}

func (m *leakyModel) fits(t time.Duration, room int64) bool {
	if k := len(m.grants); k > 0 {
		g := m.grants[k-1]
		if t < g.at+m.interval*9/10*time.Duration(g.n) || t < g.scheduled+m.interval*time.Duration(g.n) {
			return false
		}
	}
	return m.windowModel.fits(t, room)
}

func (m *leakyModel) grant(t time.Duration, n int64) {
	g := leakyGrant{t, t, n}
	if k := len(m.grants); k > 0 {
		g.scheduled = max(m.grants[k-1].scheduled+m.interval*time.Duration(m.grants[k-1].n), t-10*m.interval)
	}
	m.grants, m.undone = append(m.grants, g), false
}

func (m *leakyModel) undo(t time.Duration) {
	if k := len(m.grants); k > 0 && m.grants[k-1].at == t && !m.undone {
		m.grants, m.undone = m.grants[:k-1], true
	}
}

type fixedModel struct {
	charges
	per, guard time.Duration
	late       bool
}

func (m *fixedModel) start(t time.Duration) time.Duration {
	return (t+wallAhead)/m.per*m.per - wallAhead
}

func (m *fixedModel) fits(t time.Duration, room int64) bool {
	s := m.start(t)
	if t < s+m.guard {
		return m.sum(s-m.per, t) <= room
	}
	return m.sum(s, t) <= room
}

// charge that comes late, into another window than that of the last one, may be
// counted longer.
func (m *fixedModel) charge(at time.Duration, n int64) {
	for _, x := range m.charges {
		m.late = m.late || m.start(x.at) > m.start(at)
	}
	m.charges = append(m.charges, charged{at, n})
}
func (m *fixedModel) refund(at time.Duration, n int64) { m.take(at, n) }
func (m *fixedModel) loose() bool                      { return m.late }

type counterModel struct {
	fixedModel
	per time.Duration
}

func (m *counterModel) fits(t time.Duration, room int64) bool {
	m.fixedModel.per = m.per
	s := m.start(t)
	return m.sum(s-m.per, s-1)*int64(m.per-(t-s))+m.sum(s, t)*int64(m.per) <= room*int64(m.per)
}

func (m *counterModel) charge(at time.Duration, n int64) {
	m.fixedModel.per = m.per
	m.fixedModel.charge(at, n)
}

// bucketModel plays all charges again for each question. What is missing is
// counted in max-ths of a nanosecond, of which a unit costs per.
//
// A charge that comes late, with an instant before the last one, may be put as late
// as that.
type bucketModel struct {
	charges
	per, max int64
	late     bool
}

func (m *bucketModel) fits(t time.Duration, room int64) bool {
	var missing int64
	var last time.Duration
	for _, x := range m.charges {
		at := max(last, x.at)
		missing = max(0, missing-int64(at-last)*m.max) + x.n*m.per
		last = at
	}
	return missing-int64(t-last)*m.max <= room*m.per
}

func (m *bucketModel) charge(at time.Duration, n int64) {
	k := len(m.charges)
	m.late = m.late || k > 0 && m.charges[k-1].at > at
	m.charges = append(m.charges, charged{at, n})
}

func (m *bucketModel) refund(at time.Duration, n int64) { m.take(at, n) }
func (m *bucketModel) loose() bool                      { return m.late }

type flightModel struct{}

func (flightModel) fits(time.Duration, int64) bool { return true }
func (flightModel) charge(time.Duration, int64)    {}
func (flightModel) refund(time.Duration, int64)    {}
func (flightModel) loose() bool                    { return false }

// clone is a Rule that goes on as r would.
func clone(r *Rule) *Rule {
	c := newRule(r.spec)
	c.held = r.held
	switch a := r.algo.(type) {
	case *window:
		*c.algo.(*window) = *a
		c.algo.(*window).entries = slices.Clone(a.entries)
	case *leaky:
		*c.algo.(*leaky) = *a
		c.algo.(*leaky).entries = slices.Clone(a.entries)
	case *fixed:
		*c.algo.(*fixed) = *a
	case *counter:
		*c.algo.(*counter) = *a
	case *bucket:
		*c.algo.(*bucket) = *a
		c.algo.(*bucket).past = slices.Clone(a.past)
	}
	return c
}
