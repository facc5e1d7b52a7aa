package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
)

// job is one lookup: an indicator at one endpoint.
type job struct {
	indicator
	endpoint string
}

// target is one provider and what it is asked in this run.
type target struct {
	p       provider.Provider // as this run declares it
	limits  []provider.Limit  // its limits, written out
	adapter *adapters.HTTP
	missing error // why it cannot be asked; nil: it can
	jobs    []job

	instants []time.Duration // when its limits would let each job go, see ideals
	ideal    time.Duration   // the last of them: the least time for all
	pending  int             // lookups that wait or are out at once
}

// plan fans the indicators out to every provider that takes their kind, at the
// first endpoint that does. A provider that takes none is left out.
func plan(declared []provider.Provider, indicators []indicator) ([]*target, error) {
	var targets []*target
	for _, p := range declared {
		// This job has the time to wait, whatever a declaration says of excess.
		p.Throttle.Excess = provider.Queue
		t := &target{p: p}
		for _, i := range indicators {
			takes := func(e provider.Endpoint) bool { return slices.Contains(e.Kinds, i.kind) }
			if at := slices.IndexFunc(p.Endpoints, takes); at >= 0 {
				t.jobs = append(t.jobs, job{i, p.Endpoints[at].Name})
			}
		}
		if len(t.jobs) == 0 {
			continue
		}
		if err := t.measure(); err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// measure works out ideal and pending for the declaration in force.
func (t *target) measure() (err error) {
	if t.limits, err = t.p.Throttle.Expand(); err != nil {
		return fmt.Errorf("provider %q: %w", t.p.Slug, err)
	}
	t.instants = ideals(t.p, t.limits, t.endpoints())
	t.ideal = last(t.instants)
	t.pending = pending(t.instants, t.p.Throttle.WithDefaults())
	return nil
}

// pending is how many lookups of a provider are handed to the coordinator at a
// time: so many that its queue never runs dry, never more than it has places, and
// no more than its limits admit in a tenth of the longest wait. A lookup is then
// refused for queue_full never, and for too_late only where a quota is spent or
// the provider is ten times slower than its limits.
func pending(instants []time.Duration, t provider.Throttle) int {
	soon := 0
	for soon < len(instants) && instants[soon] <= t.MaxWait/10 {
		soon++
	}
	return max(1, min(soon, t.MaxQueue))
}

func (t *target) endpoints() []string {
	names := make([]string, len(t.jobs))
	for i, j := range t.jobs {
		names[i] = j.endpoint
	}
	return names
}

// binding is the limit that alone needs the longest for the jobs; false: none
// needs any time.
func (t *target) binding() (binding provider.Limit, found bool) {
	var longest time.Duration
	for _, l := range t.limits {
		if alone := last(ideals(t.p, []provider.Limit{l}, t.endpoints())); alone > longest {
			longest, binding, found = alone, l, true
		}
	}
	return binding, found
}

// reachable is the least time for the jobs where a round trip takes trip and a
// call counts until its window has passed since its answer: it is the ideal of
// windows that are a round trip longer. The last answer has to come back, too.
func (t *target) reachable(trip time.Duration) time.Duration {
	limits := slices.Clone(t.limits)
	least := time.Duration(0)
	for i, l := range limits {
		switch per, _ := l.Per.Duration(); l.Algorithm {
		case provider.SlidingWindow, provider.LeakyBucket:
			limits[i].Per = provider.Period((per + trip).String())
		case provider.InFlight:
			rounds := math.Ceil(float64(len(t.jobs)) / float64(l.Max))
			least = max(least, time.Duration(rounds*float64(trip)))
		}
	}
	return max(least, last(ideals(t.p, limits, t.endpoints()))+trip)
}

// left is a lower bound on the time that the jobs still take, when so many are
// done after so long.
func (t *target) left(done int, elapsed time.Duration) time.Duration {
	if done >= len(t.instants) {
		return 0
	}
	return max(t.ideal-elapsed, t.ideal-t.instants[done])
}

func last(instants []time.Duration) time.Duration {
	if len(instants) == 0 {
		return 0
	}
	return instants[len(instants)-1]
}

// slowestOf is the available target whose limits need the longest; nil: no limit
// needs any time.
func slowestOf(targets []*target) (slow *target) {
	for _, t := range targets {
		if t.missing == nil && t.ideal > 0 && (slow == nil || t.ideal > slow.ideal) {
			slow = t
		}
	}
	return slow
}
