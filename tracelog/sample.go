package tracelog

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// kind is what is counted together.
type kind struct {
	provider string
	event    Event
}

// more is how many events of a kind were not written since its interval began.
type more struct {
	kind
	more  int64
	since time.Duration
}

// sampler lets the first events of each kind in an interval through, and counts the
// rest. nil lets all through. An interval begins with the first event after the one
// before; it has no timer, so its end is seen by the next event of any kind.
type sampler struct {
	first    int
	interval time.Duration
	begun    time.Time    // instants are counted from it: a clock that is set changes nothing
	due      atomic.Int64 // the first end of an interval with something to tell; 0: none has

	mu    sync.Mutex
	kinds map[kind]*interval
}

type interval struct {
	begin   time.Duration
	written int
	more    int64
}

func newSampler(first int, length time.Duration) *sampler {
	return &sampler{first: first, interval: length, begun: time.Now(), kinds: make(map[kind]*interval)}
}

// turn tells whether an event is written now.
func (s *sampler) turn(k kind) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.begun)
	i := s.kinds[k]
	if i == nil {
		i = &interval{begin: now}
		s.kinds[k] = i
	}
	if now-i.begin >= s.interval && i.more == 0 { // else the next overdue tells of it first
		*i = interval{begin: now}
	}
	if i.written < s.first {
		i.written++
		return true
	}
	i.more++
	if end := max(1, int64(i.begin+s.interval)); s.due.Load() == 0 || end < s.due.Load() {
		s.due.Store(end)
	}
	return false
}

// overdue returns what was not written in intervals that are over, by provider and
// event, once. It costs a look where nothing is.
func (s *sampler) overdue() (all []more) {
	if s == nil || s.due.Load() == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Since(s.begun)
	if due := s.due.Load(); due == 0 || int64(now) < due {
		return nil
	}
	next := int64(0)
	for k, i := range s.kinds {
		end := i.begin + s.interval
		switch {
		case i.more == 0:
		case end <= now:
			all = append(all, more{k, i.more, now - i.begin})
			*i = interval{begin: now}
		case next == 0 || int64(end) < next:
			next = int64(end)
		}
	}
	s.due.Store(next)
	slices.SortFunc(all, func(a, b more) int {
		return cmp.Or(cmp.Compare(a.provider, b.provider), cmp.Compare(a.event, b.event))
	})
	return all
}
