package batch

import (
	"errors"
	"iter"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// pull runs the sequence.
func (r *run) pull(jobs iter.Seq[Job]) {
	returned := false
	defer func() {
		if !returned {
			r.failed(recover())
		}
		r.mu.Lock()
		r.pulled = true
		r.mu.Unlock()
		tell(r.news)
	}()
	if jobs != nil && !r.isOver() {
		jobs(r.take)
	}
	returned = true
}

// take takes one job from the sequence as soon as its line has room; false: no more.
func (r *run) take(job Job) bool {
	skip := r.skips(job.Key)
	l := r.line(job.Call.Provider)
	r.mu.Lock()
	defer r.mu.Unlock()
	if skip {
		l.tally.Skipped++
		return r.over == nil
	}
	l.tally.Pulled++
	r.live++
	r.seq++
	it := &item{job: job, seq: r.seq, since: time.Now()}
	l.tally.Waiting++
	for l.pulled >= l.ahead && r.over == nil {
		r.wants = l
		r.mu.Unlock()
		<-r.room
		r.mu.Lock()
	}
	r.wants = nil
	if err := r.ctx.Err(); err != nil {
		r.stopLocked(err) // it may be known here first
	}
	l.pulled++
	it.track = l.trackOf(job)
	it.track.jobs.push(it)
	if r.over != nil {
		r.clear(it.track)
		return false
	}
	l.enlist(it.track)
	r.pump(l)
	return true
}

func (r *run) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over != nil
}

// skips asks whether a job was done before.
func (r *run) skips(key string) bool {
	if key == "" {
		return false
	}
	return r.opt.Done != nil && r.opt.Done(key) || r.opt.Journal != nil && r.opt.Journal.Done(key)
}

// line returns the line of a provider, made at first use. Only the sequence makes
// lines. Jobs of providers that nobody declared share one, so that their names need
// no memory; the coordinator refuses them.
func (r *run) line(slug string) *line {
	if l := r.known(slug); l != nil {
		return l
	}
	if _, err := r.c.State(slug); errors.Is(err, coordinator.ErrUnknownProvider) {
		if l := r.known(""); l != nil {
			return l
		}
		slug = ""
	}
	queue := r.maxQueue(slug)
	l := &line{run: r, tally: Tally{Provider: slug}, tracks: make(map[trackKey]*track), ahead: max(queue-1, 1), places: max(queue*3/4, 1)}
	if r.opt.Ahead > 0 {
		l.ahead = max(min(r.opt.Ahead, queue)-1, 1) // and the one in hand
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines[slug] = l
	return l
}

func (r *run) known(slug string) *line {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines[slug]
}

// maxQueue is a provider's max_queue. It is read as declared, not as State tells
// it: under delay there is no bound on places, under reject there are few or none,
// and neither says how many may be pulled ahead.
func (r *run) maxQueue(slug string) int {
	for p := range r.c.Providers() {
		if p.Slug == slug {
			return p.Throttle.WithDefaults().MaxQueue
		}
	}
	return provider.Throttle{}.WithDefaults().MaxQueue
}
