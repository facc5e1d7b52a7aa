package queue

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNothingStays: 100,000 wait, half of them leave at random, the rest goes.
func TestNothingStays(t *testing.T) {
	for _, spread := range []int{100, 100_000} {
		t.Run(fmt.Sprint(spread, " flows and keys"), func(t *testing.T) {
			w := newWorld(t)
			all := w.gate(&spacing{})
			var routes []*Route
			var keys []*pause
			for range spread {
				keys = append(keys, &pause{until: Never})
				routes = append(routes, route(all, w.gate(keys[len(keys)-1])))
			}
			w.blind = true
			r := rand.New(rand.NewPCG(1, 2))
			calls := make([]*call, 100_000)
			w.classes = nil // its own book would take a minute
			var n int
			w.q.Hand(0, func(*Waiter) { n++ })
			for i := range calls {
				c := w.make(routes[i%spread], Flow{fmt.Sprint(i % spread), 1 + 15*(i%2)}, 1)
				c.Deadline = time.Duration(1 + r.IntN(1000))
				w.q.Enter(0, &c.Waiter, c.route, c.flow)
				calls[i] = c
			}
			w.q.Hand(0, func(*Waiter) { n++ })
			require.Equal(t, 100_000, w.q.Len())
			for _, i := range r.Perm(len(calls))[:50_000] {
				w.q.Leave(&calls[i].Waiter)
			}
			w.q.Hand(0, func(*Waiter) { n++ })
			require.Equal(t, 50_000, w.q.Len())
			require.Zero(t, n)
			for i, g := range w.gates[1:] {
				keys[i].until = 0
				w.q.Touch(&g.Gate)
			}
			w.q.Hand(0, func(*Waiter) { n++ })
			assert.Equal(t, 50_000, n)
			w.empty()
		})
	}
}

// TestGroupsAreForgotten: 20,000 flows, each with one call, pass a gate at
// which one queue waits all the time. What the gate remembers stays small.
func TestGroupsAreForgotten(t *testing.T) {
	w := newWorld(t)
	w.blind = true
	g := w.gate(&spacing{every: 3})
	r := route(g)
	for range 20_000 {
		w.add(r, "a", 1)
	}
	peak := 0
	for i := range 20_000 {
		w.add(r, fmt.Sprint(i), 1)
		w.hand()
		w.until(w.now + 4)
		peak = max(peak, len(g.groups))
	}
	assert.Less(t, peak, 100)
	assert.Greater(t, w.count("a"), 4000)
}

// TestOneFlowAtTenThousandKeys: first in, first out over all keys, and a grant
// looks at a few gates, not at ten thousand.
func TestOneFlowAtTenThousandKeys(t *testing.T) {
	w := newWorld(t)
	w.blind = true
	all := w.gate(&spacing{every: second})
	for range 10_000 {
		w.add(route(all, w.gate(&spacing{every: time.Hour})), "a", 1)
	}
	w.hand()
	w.peak = 0
	for range 1000 {
		w.until(w.now + second)
	}
	assert.LessOrEqual(t, w.peak, 8, "looks a grant")
	require.Len(t, w.went, 1001)
	for i, c := range w.went[1:] {
		require.True(t, w.went[i].Earlier(&c.Waiter))
	}
}

// TestBlockedAllocatesNothing holds the way of a call that need not wait.
func TestBlockedAllocatesNothing(t *testing.T) {
	w := newWorld(t)
	all := w.gate(&spacing{})
	shut := w.gate(&pause{until: Never})
	r, f := route(all, w.gate(&spacing{})), Flow{"a", 4}
	cost := []int64{1, 1}
	through := func() {
		if w.q.Blocked(0, r, f, cost) != nil {
			t.Fatal("in the way of nobody")
		}
		w.q.Went(r, f, cost)
	}
	assert.Zero(t, testing.AllocsPerRun(100, through), "an empty queue")
	w.add(route(shut, all), "b", 1)
	w.hand()
	assert.Zero(t, testing.AllocsPerRun(100, through), "another waits elsewhere")
}

// free is a rule that costs nothing, for the benchmarks.
type free struct{}

func (free) Look(now time.Duration, _ int64) time.Duration { return now }

// tick opens once an instant.
type tick struct{ next time.Duration }

func (r *tick) Look(now time.Duration, _ int64) time.Duration { return max(now, r.next) }

// load is a queue in which 100,000 calls wait for one gate, in so many flows and
// keys. Each has three more gates on its way.
type load struct {
	q       Queue
	tick    tick
	gate    Gate
	open    [2]Gate
	routes  []*Route
	flows   []Flow
	calls   []Waiter
	now     time.Duration
	granted int
}

var cost4 = []int64{1, 1, 1, 1}

func newLoad(flows, keys int) *load {
	const n = 100_000
	l := &load{calls: make([]Waiter, n)}
	l.gate.Init(&l.tick, false)
	l.tick.next = 1
	for i := range l.open {
		l.open[i].Init(free{}, false)
	}
	for range keys {
		g := new(Gate)
		g.Init(free{}, false)
		l.routes = append(l.routes, &Route{Gates: []*Gate{&l.open[0], &l.open[1], &l.gate, g}})
	}
	for i := range flows {
		l.flows = append(l.flows, Flow{fmt.Sprint("flow ", i), 4})
	}
	for i := range l.calls {
		l.calls[i] = Waiter{Cost: cost4, Deadline: time.Duration(i)*100 + time.Hour, Owner: i}
		l.enter(&l.calls[i])
	}
	l.q.Hand(0, l.goes)
	return l
}

func (l *load) enter(w *Waiter) {
	i := w.Owner.(int)
	l.q.Enter(l.now, w, l.routes[i%len(l.routes)], l.flows[i%len(l.flows)])
}

func (l *load) goes(w *Waiter) {
	l.tick.next = l.now + 1
	l.granted++
}

var loads = []struct {
	name        string
	flows, keys int
}{{"1_line", 1, 1}, {"1000_flows", 1000, 1}, {"10000_keys", 1, 10_000}, {"100000_keys", 1, 100_000}}

// BenchmarkEnter is a call that comes, and leaves again, where 100,000 wait.
func BenchmarkEnter(b *testing.B) {
	for _, x := range loads {
		b.Run(x.name, func(b *testing.B) {
			l := newLoad(x.flows, x.keys)
			w := Waiter{Cost: cost4, Deadline: Never}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				w.Owner = i
				w.Keep(0)
				l.enter(&w)
				l.q.Leave(&w)
			}
			l.q.Hand(l.now, l.goes)
		})
	}
}

// BenchmarkGrant is one turn where 100,000 wait; each who goes comes back last.
func BenchmarkGrant(b *testing.B) {
	for _, x := range loads {
		b.Run(x.name, func(b *testing.B) {
			l := newLoad(x.flows, x.keys)
			var last *Waiter
			goes := func(w *Waiter) { last = w; l.goes(w) }
			b.ReportAllocs()
			for b.Loop() {
				l.now++
				l.q.Hand(l.now, goes)
				last.Keep(0)
				l.enter(last)
			}
			if l.granted < b.N {
				b.Fatal("a turn without a call")
			}
		})
	}
}

// BenchmarkCancel is a call in the middle that gives up, and one that takes its
// place at the end, where 100,000 wait.
func BenchmarkCancel(b *testing.B) {
	for _, x := range loads {
		b.Run(x.name, func(b *testing.B) {
			l := newLoad(x.flows, x.keys)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				w := &l.calls[i*7919%len(l.calls)]
				l.q.Leave(w)
				l.q.Hand(l.now, l.goes)
				w.Keep(0)
				l.enter(w)
				i++
			}
		})
	}
}

// BenchmarkBlocked is the decision on a call that need not wait.
func BenchmarkBlocked(b *testing.B) {
	l := newLoad(1, 1)
	g := new(Gate)
	g.Init(free{}, false)
	r := &Route{Gates: []*Gate{&l.open[0], &l.open[1], g}}
	f, cost := Flow{"a", 4}, []int64{1, 1, 1}
	b.ReportAllocs()
	for b.Loop() {
		if l.q.Blocked(0, r, f, cost) == nil {
			l.q.Went(r, f, cost)
		}
	}
}

// BenchmarkWaiting tells what a call costs that waits.
func BenchmarkWaiting(b *testing.B) {
	for _, x := range loads {
		b.Run(x.name, func(b *testing.B) {
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				l := newLoad(x.flows, x.keys)
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(l.q.Len()), "B/call")
			}
		})
	}
}
