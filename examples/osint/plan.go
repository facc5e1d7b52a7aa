package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/provider"
)

// job is one lookup: an indicator at one endpoint. It is asked once, and every list
// that wants it gets the answer. That lookups are equal is known before the first is
// sent, so equal ones are one job: asked once whether or not they would be in flight
// at the same time, which is more than golang.org/x/sync/singleflight can do, and
// nothing has to wait for another's answer.
type job struct {
	indicator
	endpoint string
}

// key names a job of a provider in the resume file, for people, too.
func (j job) key(slug string) string {
	return fmt.Sprintf("%s %s %s %s", slug, j.endpoint, j.kind, j.value)
}

// target is one provider and what it is asked in this run.
type target struct {
	source
	limits  []provider.Limit // its limits, written out
	adapter provider.Adapter
	missing error   // why it cannot be asked; nil: it can
	budget  *budget // nil: no bound
	jobs    []job

	instants []time.Duration // when its limits would let each job go, see ideals
	ideal    time.Duration   // the last of them: the least time for all

	once   sync.Once
	digest string // see version
}

// plan fans the indicators out to every provider that takes their kind. A provider
// that takes none is left out.
func plan(chosen []source, indicators []indicator) ([]*target, error) {
	var targets []*target
	for _, s := range chosen {
		t := &target{source: s}
		at := make(map[endpointKey]string)
		for _, i := range indicators {
			k := endpointKey{i.kind, isIPv6(i)}
			name, known := at[k]
			if !known {
				name = endpointFor(s.p, k)
				at[k] = name
			}
			if name != "" {
				t.jobs = append(t.jobs, job{i, name})
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

// endpointKey is what decides at which endpoint an indicator is asked.
type endpointKey struct {
	kind provider.Kind
	ipv6 bool
}

func isIPv6(i indicator) bool { return i.kind == provider.IP && strings.Contains(i.value, ":") }

// endpointFor is the first endpoint of a provider that takes the kind, is switched
// on, and needs no more than a value; "": there is none. Where one of its endpoints
// is named for IPv6, addresses of that version go there, and no others.
func endpointFor(p provider.Provider, k endpointKey) string {
	first := ""
	for _, e := range usable(p) {
		named := strings.Contains(strings.ToLower(e.Name), "ipv6")
		switch {
		case !e.Takes(k.kind) || named && !k.ipv6:
		case named:
			return e.Name
		case first == "":
			first = e.Name
		}
	}
	return first
}

// usable are the endpoints that a bulk lookup can ask.
func usable(p provider.Provider) []provider.Endpoint {
	return slices.DeleteFunc(slices.Clone(p.Endpoints), func(e provider.Endpoint) bool {
		return !p.Throttle.Switched(e.Name) || len(p.Needs(e)) > 0
	})
}

// kindsOf are the kinds that a bulk lookup can ask a provider for, in their order.
func kindsOf(p provider.Provider) (kinds []provider.Kind) {
	for _, k := range allKinds {
		if slices.ContainsFunc(usable(p), func(e provider.Endpoint) bool { return e.Takes(k) }) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// measure works out ideal for the declaration in force.
func (t *target) measure() (err error) {
	if t.limits, err = t.p.Throttle.Expand(); err != nil {
		return fmt.Errorf("provider %q: %w", t.p.Slug, err)
	}
	t.instants = ideals(t.p, t.limits, t.endpoints())
	t.ideal = last(t.instants)
	return nil
}

// paged tells whether a lookup may be several calls.
func (t *target) paged() bool {
	return slices.ContainsFunc(t.jobs, func(j job) bool { return pages(t.p, j.endpoint) })
}

func pages(p provider.Provider, endpoint string) bool {
	return slices.ContainsFunc(p.Endpoints, func(e provider.Endpoint) bool { return e.Name == endpoint && e.Paging != nil })
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
