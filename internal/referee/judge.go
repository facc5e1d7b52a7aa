package referee

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate/provider"
)

// maxViolations bounds the list in a Report, not the count.
const maxViolations = 1000

// Violation is one limit broken by one call.
type Violation struct {
	Provider, Limit, Key, Endpoint string
	At                             time.Time
	Used, Max                      int64 // Used: with this call, in the limit's unit, rounded up
}

// Report is what happened at one provider. Refused calls never count in Units,
// InFlight and Gaps.
type Report struct {
	Arrivals, Admitted, Refused int64            // calls
	Violated                    int64            // violations: a call that breaks two limits counts twice
	Violations                  []Violation      // the first 1,000 of them, in order
	Answered                    int64            // calls, refused ones too, whose client was there for the answer
	InFlight                    int              // the most that were served at once
	First, Last                 time.Time        // arrival; zero where there was none
	Units                       map[string]int64 // what was admitted, by unit
	// Gaps is the smallest time between two arrivals, by name of each leaky_bucket
	// limit (within one of its keys or endpoints). A network that delays calls
	// unevenly destroys spacing, so a small gap is not a violation.
	Gaps map[string]time.Duration
}

// call is one arrival and what it has taken.
type call struct {
	Arrival
	ctx   context.Context // of the request; nil: its client never goes
	ok    bool
	broke string        // the first limit that it broke
	wait  time.Duration // how long until it would be admitted; 0: not known
	told  []line        // what its answer says of the budgets
	route *route        // nil: of no declared endpoint
	page  string        // of its lookup, as the request names it; "": the first
	taken []taken
	ended bool
}

type taken struct {
	rule *rule
	undo func()
}

// gone tells that nobody waits for the answer any more.
func (c *call) gone() bool { return c.ctx != nil && c.ctx.Err() != nil }

// judge enforces the limits of one provider.
type judge struct {
	slug   string
	play   Play
	routes []*route
	voice  *voice // nil: answers in no dialect
	now    func() time.Time

	mu       sync.Mutex
	rules    []*rule
	inFlight int
	report   Report
}

func newJudge(p Play, now func() time.Time) (*judge, error) {
	j := &judge{slug: p.Provider.Slug, play: p, now: now}
	if j.slug == "" {
		return nil, fmt.Errorf("slug: is empty, would have to be a name of [a-z0-9-]+")
	}
	for name, d := range map[string]Delay{"go": p.Go, "back": p.Back} {
		if d.Min < 0 || d.Max < d.Min {
			return nil, fmt.Errorf("%s: %v to %v, would have to be 0 <= min <= max", name, d.Min, d.Max)
		}
	}
	if p.Phase < 0 {
		return nil, fmt.Errorf("phase: %v, would have to be 0 or more", p.Phase)
	}
	j.routes = newRoutes(p.Provider.Endpoints)
	limits := p.Limits
	if limits == nil {
		var err error
		if limits, err = p.Provider.Throttle.Expand(); err != nil {
			return nil, err
		}
	}
	j.report.Units = map[string]int64{}
	if err := j.enforce(limits); err != nil || !p.Speak {
		return j, err
	}
	var err error
	j.voice, err = newVoice(j)
	return j, err
}

// enforce makes the rules. A fault that would make a limit bind nobody in silence
// is an error: the caller would look better than he is.
func (j *judge) enforce(limits []provider.Limit) error {
	instead, names := map[string]bool{}, map[string]bool{}
	for i, l := range limits {
		r, err := newRule(l, j.play)
		if err == nil && names[l.Name] {
			err = fmt.Errorf("name: comes twice, would have to be unique")
		}
		for _, e := range l.Endpoints {
			if err == nil && j.named(e) == nil {
				err = fmt.Errorf("endpoints: %q is not an endpoint of this provider", e)
			}
			if l.Instead {
				instead[e] = true
			}
		}
		if err != nil {
			return fmt.Errorf("limits[%d] (%q): %w", i, l.Name, err)
		}
		names[l.Name] = true
		r.instead = instead
		j.rules = append(j.rules, r)
	}
	return nil
}

// arrive judges c, now: all limits are asked first; then all of them are charged,
// or none.
func (j *judge) arrive(c *call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c.At = j.now() // inside the lock: instants must not run backwards
	t := c.At.UnixNano()
	j.report.Arrivals++
	c.N = int(j.report.Arrivals)
	if j.report.First.IsZero() {
		j.report.First = c.At
	}
	j.report.Last = c.At

	c.ok = true
	for _, r := range j.rules {
		if n := r.cost(c); n > 0 {
			k := r.counter(c)
			k.forget(t)
			if used, ok := k.fits(t, n); !ok {
				j.violatedLocked(c, r, used)
			}
		}
	}
	if c.ok {
		j.admitLocked(c)
	} else {
		j.refuseLocked(c)
	}
	if j.voice != nil {
		c.told = j.voice.tell(c)
	}
}

func (j *judge) refuseLocked(c *call) {
	j.report.Refused++
	if j.play.RefusedCounts {
		j.chargeLocked(c)
	}
	c.wait = j.waitLocked(c)
}

func (j *judge) violatedLocked(c *call, r *rule, used int64) {
	if c.ok {
		c.ok, c.broke = false, r.limit.Name
	}
	j.report.Violated++
	if len(j.report.Violations) < maxViolations {
		j.report.Violations = append(j.report.Violations, Violation{
			Provider: j.slug, Limit: r.limit.Name, Key: c.Key, Endpoint: c.Endpoint,
			At: c.At, Used: used, Max: r.most(),
		})
	}
}

func (j *judge) admitLocked(c *call) {
	j.report.Admitted++
	for unit, n := range c.Cost {
		j.report.Units[unit] += n
	}
	j.inFlight++
	j.report.InFlight = max(j.report.InFlight, j.inFlight)
	j.chargeLocked(c)
}

// chargeLocked counts c in every limit that matches it.
func (j *judge) chargeLocked(c *call) {
	for _, r := range j.rules {
		n := r.cost(c)
		if n == 0 || !c.ok && r.limit.Algorithm == provider.InFlight {
			continue
		}
		if c.ok {
			r.space(c)
		}
		c.taken = append(c.taken, taken{r, r.counter(c).charge(c, n)})
	}
}

// waitLocked is how long it takes until c would be admitted if nothing else
// arrived; 0 where no time cures it.
func (j *judge) waitLocked(c *call) time.Duration {
	t, last := c.At.UnixNano(), int64(0)
	for _, r := range j.rules {
		n := r.cost(c)
		if n == 0 {
			continue
		}
		if r.limit.Algorithm == provider.InFlight {
			if _, ok := r.counter(c).fits(t, n); !ok {
				last = max(last, t+int64(time.Second)) // nobody knows: ask again soon
			}
			continue
		}
		at, ok := opens(r.counter(c), t, n)
		if !ok {
			return 0
		}
		last = max(last, at)
	}
	return time.Duration(last - t)
}

// answered settles c whose answer is about to be written.
func (j *judge) answered(c *call, o provider.Outcome) {
	j.end(c, o)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.report.Answered++
}

// end settles c: it is out of flight, and what its answer is not charged for is
// taken back. Only the first end of a call counts.
func (j *judge) end(c *call, o provider.Outcome) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	if c.ok {
		j.inFlight--
	}
	for _, x := range c.taken {
		if x.rule.limit.Algorithm == provider.InFlight || x.rule.free(o) {
			x.undo()
		}
	}
	c.taken = nil
}

func (j *judge) reported() Report {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.report
	r.Violations = slices.Clone(r.Violations)
	r.Units = maps.Clone(r.Units)
	r.Gaps = map[string]time.Duration{}
	for _, x := range j.rules {
		if x.gap >= 0 {
			r.Gaps[x.limit.Name] = x.gap
		}
	}
	return r
}
