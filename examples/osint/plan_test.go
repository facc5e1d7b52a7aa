package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

func of(declared ...provider.Provider) (all []source) {
	for _, p := range declared {
		all = append(all, source{base: p, p: p})
	}
	return all
}

// named is a target with so many jobs.
func named(slug string, n int) *target {
	return &target{source: source{p: provider.Provider{Slug: slug}}, jobs: jobs(n)}
}

func TestPlanFansOutByKind(t *testing.T) {
	both := provider.Provider{Slug: "both", Throttle: provider.Throttle{RPS: 1, Off: []string{"off"}}, Endpoints: []provider.Endpoint{
		{Name: "any", Kinds: []provider.Kind{provider.URL}},
		{Name: "off", Kinds: []provider.Kind{provider.IP}},
		{Name: "more", Path: "/{value}/{account}", Kinds: []provider.Kind{provider.IP}},
		{Name: "address", Kinds: []provider.Kind{provider.IP}},
		{Name: "name", Kinds: []provider.Kind{provider.Domain, provider.IP}},
		{Name: "IPv6", Kinds: []provider.Kind{provider.IP}},
	}}
	emails := provider.Provider{Slug: "emails", Endpoints: []provider.Endpoint{{Name: "e", Kinds: []provider.Kind{provider.Email}}}}
	l := []string{"l"}
	ip, six, name, hash := indicator{provider.IP, "1.1.1.1", l}, indicator{provider.IP, "::1", l}, indicator{provider.Domain, "a.b", l}, indicator{provider.Hash, "00", l}
	targets, err := plan(of(both, emails), []indicator{ip, six, name, hash})
	require.NoError(t, err)
	require.Len(t, targets, 1, "who takes nothing of it is left out")
	assert.Equal(t, []job{{ip, "address"}, {six, "IPv6"}, {name, "name"}}, targets[0].jobs,
		"the first endpoint that takes the kind, is on, and needs no more than a value")
	assert.Equal(t, 2*time.Second, targets[0].ideal)
	assert.Equal(t, []provider.Kind{provider.IP, provider.Domain, provider.URL}, kindsOf(both))

	both.Throttle.RPS = -1
	_, err = plan(of(both), []indicator{ip})
	assert.ErrorContains(t, err, `provider "both"`)
}

func TestBinding(t *testing.T) {
	x := &target{jobs: jobs(40), limits: expand(t,
		provider.Limit{Name: "second", Max: 1, Per: "1s"}, provider.Limit{Name: "minute", Max: 30, Per: "1m"}, provider.Limit{Name: "day", Max: 500, Per: "day"})}
	l, ok := x.binding()
	assert.True(t, ok)
	assert.Equal(t, "minute", l.Name)
	x.jobs = jobs(20)
	l, _ = x.binding()
	assert.Equal(t, "second", l.Name)
	x.jobs = jobs(1)
	_, ok = x.binding()
	assert.False(t, ok)
}

func TestReachable(t *testing.T) {
	trip := 100 * time.Millisecond
	one := &target{jobs: jobs(11), limits: expand(t, provider.Limit{Max: 1, Per: "1s"})}
	assert.Equal(t, 11*time.Second+trip, one.reachable(trip), "ten windows, each a round trip longer, and the way back")
	alone := &target{jobs: jobs(11), limits: expand(t, provider.Limit{Max: 2, Algorithm: provider.InFlight})}
	assert.Equal(t, 600*time.Millisecond, alone.reachable(trip), "two at a time")
	free := &target{jobs: jobs(11)}
	assert.Equal(t, trip, free.reachable(trip))
}

func TestLeft(t *testing.T) {
	x := &target{ideal: 2 * time.Minute, instants: []time.Duration{0, time.Minute, 2 * time.Minute}}
	assert.Equal(t, 2*time.Minute, x.left(0, 0))
	assert.Equal(t, 90*time.Second, x.left(1, 30*time.Second), "on schedule: what the schedule says")
	assert.Equal(t, time.Minute, x.left(1, 5*time.Minute), "late: still two windows for two jobs")
	assert.Zero(t, x.left(3, time.Second))
	assert.Zero(t, (&target{}).left(0, 0))
}

func TestSlowestOf(t *testing.T) {
	a, b := &target{ideal: 1}, &target{ideal: 2}
	assert.Same(t, b, slowestOf([]*target{a, b}))
	b.missing = assert.AnError
	assert.Same(t, a, slowestOf([]*target{a, b}))
	assert.Nil(t, slowestOf([]*target{{}}))
}
