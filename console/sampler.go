package console

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

const (
	freshFor    = 250 * time.Millisecond // a snapshot serves all who ask so soon after it
	declaredFor = 400 * time.Millisecond // likewise the declarations: an update shows within a second
	share       = 20                     // of the time: looking takes at most a twentieth
)

// snapshot is everything at one instant. It does not change.
type snapshot struct {
	at       time.Time
	down     bool // the coordinator is shut down
	rows     []*row
	bySlug   map[string]*row
	counts   map[Condition]int
	used     int // providers that were called
	inFlight int
	waiting  int
	rate     float64
}

// row is one provider in a snapshot.
type row struct {
	state   *coordinator.State // nil: never called
	about   *about
	verdict verdict
	search  string // what a text is looked for in
	pieces  [2]piece
}

// about is what is needed of a declaration.
type about struct {
	slug, name, category string
	throttle             provider.Throttle
	declaration          provider.Provider
}

// declarations are all of them, at one instant.
type declarations struct {
	at  time.Time
	all map[string]*about
}

// watch looks at the coordinator until Close: often while somebody does, else when a
// sample of the history is due.
func (k *Console) watch() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	done := k.c.Done()
	for {
		select {
		case <-k.closed:
			return
		case <-done: // is shown at once
			done = nil
		case <-k.streams.first:
		case <-timer.C:
		}
		cost := k.take(0)
		wait := k.history.due(time.Now())
		if k.streams.any() {
			wait = min(wait, pace(cost, k.opt.Interval))
		}
		timer.Reset(wait)
	}
}

// pace is the time from one look to the next, while somebody looks on.
func pace(cost, interval time.Duration) time.Duration { return max(interval, share*cost) }

// now returns a snapshot that is fresh enough to be shown.
func (k *Console) now() *snapshot {
	k.take(freshFor)
	return k.latest.Load()
}

// take takes a snapshot, unless there is one that is younger than that, and tells all
// streams of it. It returns what it took.
func (k *Console) take(young time.Duration) (cost time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	begin := time.Now()
	if last := k.latest.Load(); last != nil && young > 0 && begin.Sub(last.at) < young {
		return 0
	}
	states := k.c.States()
	k.history.add(states, begin)
	k.latest.Store(k.snap(begin, states))
	k.streams.tell()
	return time.Since(begin)
}

// renew has the next snapshot read the declarations again, and takes it.
func (k *Console) renew() {
	k.mu.Lock()
	k.declared = nil
	k.mu.Unlock()
	k.take(0)
}

// declarations returns them, no older than they may be. k.mu is held.
func (k *Console) declarationsLocked(now time.Time) map[string]*about {
	if k.declared == nil || now.Sub(k.declared.at) > declaredFor {
		all := make(map[string]*about)
		for p := range k.c.Providers() {
			all[p.Slug] = &about{p.Slug, cmp.Or(p.Name, p.Slug), p.Category, p.Throttle, p}
		}
		k.declared = &declarations{now, all}
	}
	return k.declared.all
}

func (k *Console) snap(now time.Time, states []coordinator.State) *snapshot {
	s := &snapshot{at: now, bySlug: make(map[string]*row), counts: make(map[Condition]int)}
	select {
	case <-k.c.Done():
		s.down = true
	default:
	}
	declared := k.declarationsLocked(now)
	for i := range states {
		state := &states[i]
		d := declared[state.Provider]
		if d == nil { // registered since
			d = &about{slug: state.Provider, name: state.Provider}
		}
		s.put(&row{state: state, about: d, verdict: judge(state, d.throttle.Off)})
		s.inFlight += state.InFlight
		s.waiting += state.Queue.Length
		s.rate += state.Lately.RPS
	}
	for slug, d := range declared {
		if s.bySlug[slug] == nil {
			s.put(&row{about: d, verdict: judgeUnused(d.throttle.Off)})
		}
	}
	order := make(map[Condition]int, len(conditions))
	for i, c := range conditions {
		order[c] = i
	}
	// By name within a condition: rows that changed places with every call could not be read.
	slices.SortFunc(s.rows, func(a, b *row) int {
		return cmp.Or(cmp.Compare(order[a.verdict.condition], order[b.verdict.condition]), cmp.Compare(a.about.slug, b.about.slug))
	})
	return s
}

func (s *snapshot) put(r *row) {
	r.search = strings.ToLower(r.about.slug + "\n" + r.about.name + "\n" + r.about.category)
	s.rows = append(s.rows, r)
	s.bySlug[r.about.slug] = r
	s.counts[r.verdict.condition]++
	if r.state != nil {
		s.used++
	}
}
