package batch

import (
	"cmp"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/coordinator"
)

// Progress shows what a Run does, and what it did. The zero value is ready, for
// Options.Progress. Its methods are safe for concurrent use and may be called
// before, while and after the run. Given to another Run, it shows that one.
type Progress struct{ run atomic.Pointer[run] }

// Tally is how far the jobs of one provider are. Pulled is the sum of all that
// stand below it.
type Tally struct {
	Provider string // "" stands for all that nobody declared
	Skipped  int    // done before
	Pulled   int    // of the sequence, skipped ones left out

	Waiting  int // in their line
	Out      int // with the coordinator: they wait for their turn, or are in flight
	Unread   int // they have a result that the loop has not taken yet
	Done     int // without an error
	Failed   int
	Refused  int // though waiting would have cured it: Until or the deadline came first
	Canceled int // the run ended first
	Dropped  int // the loop was left first

	RetryAt time.Time // the first instant at which a refused one is tried again; zero: none waits for one
}

// Snapshot returns the tallies of the run, by provider. They are of one instant.
// It costs O(jobs that are pulled) at most.
func (p *Progress) Snapshot() []Tally {
	r := p.run.Load()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Tally, 0, len(r.lines))
	for _, l := range r.lines {
		t := l.tally
		for _, x := range l.tracks {
			if !x.until.IsZero() && (t.RetryAt.IsZero() || x.until.Before(t.RetryAt)) {
				t.RetryAt = x.until
			}
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Tally) int { return cmp.Compare(a.Provider, b.Provider) })
	return all
}

func (p *Progress) follow(r *run) {
	if p != nil {
		p.run.Store(r)
	}
}

// count counts a result that the loop takes.
func (t *Tally) count(err error) {
	var e *coordinator.Error
	switch {
	case err == nil:
		t.Done++
	case errors.As(err, &e) && e.Is(coordinator.ErrThrottled):
		t.Refused++
	case e != nil && e.Reason == coordinator.ReasonCanceled:
		t.Canceled++
	default:
		t.Failed++
	}
}
