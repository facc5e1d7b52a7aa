package batch

import (
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

const (
	// window is how many jobs of one track wait in the coordinator's queue. One
	// would do, but for the time between its going and the next one's coming: on a
	// busy machine a goroutine is some 20 ms late, and 1,000 a second are to go.
	window = 32

	leastRest = 100 * time.Millisecond // between tries whose refusals do not say when
	mostRest  = 30 * time.Second
	inVain    = 8           // refusals in a row from which on a told instant is taken with care
	look      = time.Minute // a machine that slept has a timer that is late
)

// line is the jobs of one provider. The run's mu guards it.
type line struct {
	run     *run
	ahead   int // most jobs that are pulled
	places  int // most of them that may hold a place in the coordinator's queue
	pulled  int // and not yet given to the loop
	waiting int // started; not known to have gone
	tracks  map[trackKey]*track
	ready   []*track // that may have a job to start; they take turns
	tally   Tally
}

// trackKey names jobs that wait at the same gates, in one order. The kind stands
// for the endpoint of a query that names none.
type trackKey struct {
	endpoint, key, flow string
	kind                provider.Kind
	priority            coordinator.Priority
}

// track is jobs that go first in, first out. What is refused of it says when the
// rest may go.
type track struct {
	line     *line
	key      trackKey
	jobs     list  // wait here
	entering *item // was started and has no place yet: the next one would race with it
	waiting  int   // started; not gone, or presumed so
	out      int   // started, without a result
	listed   bool  // in line.ready
	until    time.Time
	refusals int // since one of it went
	timer    *time.Timer
}

func (l *line) trackOf(job Job) *track {
	c := job.Call
	key := trackKey{endpoint: c.Endpoint, key: c.Key, flow: c.Flow, priority: c.Priority}
	if q := job.Query; q != nil && key.endpoint == "" {
		key.endpoint, key.kind = q.Endpoint, q.Kind
	}
	t := l.tracks[key]
	if t == nil {
		t = &track{line: l, key: key}
		l.tracks[key] = t
	}
	return t
}

// forget drops a track of which no job is left.
func (t *track) forget() {
	if t.jobs.n == 0 && t.out == 0 {
		delete(t.line.tracks, t.key)
	}
}

// may tells that the first job of the track may be started.
func (t *track) may() bool {
	return t.jobs.n > 0 && t.until.IsZero() && t.entering == nil && t.waiting < window
}

// enlist has a track looked at.
func (l *line) enlist(t *track) {
	if !t.listed && t.may() {
		t.listed = true
		l.ready = append(l.ready, t)
	}
}

// pump starts what may be started.
func (r *run) pump(l *line) {
	for r.over == nil && len(l.ready) > 0 && l.waiting < l.places {
		if r.unread.n >= maxUnread {
			r.held = true
			return
		}
		t := l.ready[0]
		l.ready[0] = nil
		l.ready = l.ready[1:]
		t.listed = false
		if t.may() {
			r.start(t)
			l.enlist(t)
		}
	}
}

// start gives the first job of a track to the coordinator.
func (r *run) start(t *track) {
	it, l := t.jobs.pop(), t.line
	l.tally.Waiting--
	l.tally.Out++
	l.waiting++
	t.waiting++
	t.out++
	t.entering = it
	it.waits, it.turns = true, true
	if r.blind && it.job.Query != nil && t.refusals == 0 {
		it.presumed()
	}
	r.busy.Go(func() { r.try(it) })
}

// placed: the job has its place in the coordinator's queue, or needs none any more.
func (it *item) placed() {
	if t := it.track; t.entering == it {
		t.entering = nil
		t.line.enlist(t)
	}
}

// presumed: nobody will tell when the job goes. It does not keep the next ones from
// being started, but holds its place among those that may wait.
func (it *item) presumed() {
	it.placed()
	if t := it.track; it.turns {
		it.turns = false
		t.waiting--
		t.line.enlist(t)
	}
}

// left: the job does not wait in the coordinator's queue any more.
func (it *item) left() {
	it.presumed()
	if it.waits {
		it.waits = false
		it.track.line.waiting--
	}
	delete(it.track.line.run.inside, it)
}

// went: the job is out.
func (it *item) went() {
	it.left()
	it.track.refusals = 0
}

// back puts a refused job before those that came after it, and lets none of them
// be started before at. The last refusal counts: it knows most.
func (t *track) back(it *item, at, now time.Time) {
	t.line.tally.Waiting++
	t.jobs.insert(it)
	t.until = at
	t.sleep(now)
}

// refused returns when to try again after a refusal that told at (zero: nobody
// knows). That is exact; only where it has not come true again and again is there a
// least time between two tries. Refusals of jobs that were started together are one.
func (t *track) refused(at, now time.Time) time.Time {
	if t.until.IsZero() {
		t.refusals++
	}
	switch {
	case !at.After(now):
		return now.Add(min(leastRest<<min(max(t.refusals-1, 0), inVain+1), mostRest))
	case t.refusals > inVain && at.Before(now.Add(leastRest)):
		return now.Add(leastRest)
	}
	return at
}

func (t *track) sleep(now time.Time) {
	d := min(t.until.Sub(now), look)
	if t.timer == nil {
		t.timer = time.AfterFunc(d, t.wake)
	} else {
		t.timer.Reset(d)
	}
}

// wake is the timer. The instant has come when either clock says so: a date is told
// by one, a length of time by the other.
func (t *track) wake() {
	r := t.line.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over != nil || t.until.IsZero() {
		return
	}
	now := time.Now()
	if now.Before(t.until) && now.Round(0).Before(t.until.Round(0)) {
		t.sleep(now)
		return
	}
	t.until = time.Time{}
	t.line.enlist(t)
	r.pump(t.line)
}
