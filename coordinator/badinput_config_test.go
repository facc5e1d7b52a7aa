package coordinator_test

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

type panicky struct{ *echo }

func (panicky) Provider() provider.Provider { panic("https://example.org/?key=secret") }

// An adapter that breaks as it registers takes nobody with it: it is not there, and
// the others are.
func TestAdapterThatPanicsIsNotRegistered(t *testing.T) {
	reg := registryOf(t, &echo{p: provider.Provider{Slug: "echo"}})
	err := reg.Register(panicky{})
	require.ErrorContains(t, err, "panicked")
	assert.NotContains(t, err.Error(), "secret")
	bubbleWith(t, coordinator.Config{Registry: reg}, func(t *testing.T, c *coordinator.Coordinator) {
		_, err := c.Execute(t.Context(), coordinator.Call{Provider: "echo"}, provider.Query{})
		require.NoError(t, err)
		_, err = c.Execute(t.Context(), coordinator.Call{Provider: "panicky"}, provider.Query{})
		require.ErrorIs(t, err, coordinator.ErrUnknownProvider)
	})
}

// A provider that is registered after New is found at its first call.
func TestProviderRegisteredLaterIsFound(t *testing.T) {
	reg := new(registry.Registry)
	bubbleWith(t, coordinator.Config{Registry: reg}, func(t *testing.T, c *coordinator.Coordinator) {
		require.ErrorIs(t, c.Do(t.Context(), to, ok), coordinator.ErrUnknownProvider)
		require.NoError(t, reg.Declare(declare(provider.Throttle{RPS: 1})))
		require.NoError(t, c.Do(t.Context(), to, ok))
	})
}

// New names every fault of what it is given, and then makes nothing.
func TestNewRefusesWhatMakesNoSense(t *testing.T) {
	reg := registryOf(t, &echo{p: provider.Provider{Slug: "taken", BaseURL: "https://api.example.com", Hosts: []string{"cdn.example.com"}}})
	p := func(t provider.Throttle) []provider.Provider { return []provider.Provider{declare(t)} }
	over := func(slug string, t provider.Throttle) map[string]provider.Throttle {
		return map[string]provider.Throttle{slug: t}
	}
	for name, test := range map[string]struct {
		cfg  coordinator.Config
		says []string
	}{
		"NaN":                      {coordinator.Config{Providers: p(provider.Throttle{RPS: math.NaN()})}, []string{`"p"`, "throttle.rps"}},
		"infinite":                 {coordinator.Config{Providers: p(provider.Throttle{RPM: math.Inf(1)})}, []string{"throttle.rpm"}},
		"negative":                 {coordinator.Config{Providers: p(provider.Throttle{RPH: -1, RPD: -2})}, []string{"throttle.rph", "throttle.rpd"}},
		"no slug":                  {coordinator.Config{Providers: []provider.Provider{{}}}, []string{"slug"}},
		"twice":                    {coordinator.Config{Providers: slices.Concat(p(provider.Throttle{}), p(provider.Throttle{RPS: 1}))}, []string{`"p"`, "twice"}},
		"also in the registry":     {coordinator.Config{Providers: []provider.Provider{{Slug: "taken"}}}, []string{`"taken"`, "registry", "Overrides"}},
		"override is NaN":          {coordinator.Config{Overrides: over("taken", provider.Throttle{RPS: math.NaN()})}, []string{`"taken"`, "rps"}},
		"override without a limit": {coordinator.Config{Overrides: over("taken", limits(provider.Limit{Name: "x", Per: "1s"}))}, []string{`"taken"`, "max"}},
		"override of nobody":       {coordinator.Config{Overrides: over("takne", provider.Throttle{RPS: 1})}, []string{"takne", "did you mean taken?"}},
		"all at once": {coordinator.Config{Providers: p(provider.Throttle{RPS: -1}), Overrides: over("nobody", provider.Throttle{RPM: -1})},
			[]string{"throttle.rps", "nobody", "rpm"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.cfg.Registry = reg
			c, err := coordinator.New(test.cfg)
			require.Error(t, err)
			assert.Nil(t, c)
			for _, s := range test.says {
				assert.ErrorContains(t, err, s)
			}
		})
	}
}

// Whose request is it, where two providers claim one host? The registry asks that
// when one registers; New must ask it of its own providers.
func TestNewRefusesAHostThatTwoProvidersClaim(t *testing.T) {
	reg := registryOf(t, &echo{p: provider.Provider{Slug: "taken", BaseURL: "https://api.example.com/v1", Hosts: []string{"cdn.example.com"}}})
	a := provider.Provider{Slug: "a", Hosts: []string{"shared.example.org"}}
	for name, ps := range map[string][]provider.Provider{
		"of Config.Providers":  {a, {Slug: "b", Hosts: []string{"shared.example.org"}}},
		"with the registry":    {{Slug: "b", Hosts: []string{"CDN.example.com:443"}}},
		"one base URL, two of": {{Slug: "b", BaseURL: "https://api.example.com/v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := coordinator.New(coordinator.Config{Registry: reg, Providers: ps})
			assert.ErrorContains(t, err, "example.")
		})
	}
}

// An override is checked against the provider that it is for, as an update is: a
// limit on an endpoint that does not exist would bind nobody, in silence.
func TestOverrideNamesAnEndpointThatDoesNotExist(t *testing.T) {
	p := declare(provider.Throttle{})
	p.Endpoints = []provider.Endpoint{{Name: "search"}}
	th := limits(provider.Limit{Name: "x", Max: 1, Per: "1s", Endpoints: []string{"serach"}})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.ErrorContains(t, c.Update("p", th), "serach")
	}, p)
	_, err := coordinator.New(coordinator.Config{Registry: registryOf(t), Providers: []provider.Provider{p}, Overrides: map[string]provider.Throttle{"p": th}})
	assert.ErrorContains(t, err, "serach")
}

// What its caller does with his values after New changes nothing in it.
func TestNewKeepsItsOwnCopy(t *testing.T) {
	ps := []provider.Provider{declare(limits(provider.Limit{Name: "x", Max: 1, Per: "1h"})), {Slug: "q"}}
	over := map[string]provider.Throttle{"q": limits(provider.Limit{Name: "x", Max: 1, Per: "1h"})}
	bubbleWith(t, coordinator.Config{Registry: registryOf(t), Providers: ps, Overrides: over}, func(t *testing.T, c *coordinator.Coordinator) {
		ps[0].Throttle.Limits[0].Max = 100
		over["q"].Limits[0].Max = 100
		delete(over, "q")
		for _, slug := range []string{"p", "q"} {
			call := coordinator.Call{Provider: slug, Wait: -1}
			require.NoError(t, c.Do(t.Context(), call, ok))
			assert.ErrorIs(t, c.Do(t.Context(), call, ok), coordinator.ErrRateLimited, slug)
		}
	})
}

// An update that is not valid changes nothing: who waits stays, in order, and goes
// when he would have gone.
func TestInvalidUpdateChangesNothing(t *testing.T) {
	p := declare(provider.Throttle{RPS: 1, MaxQueue: 5})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start := time.Now()
		require.NoError(t, c.Do(t.Context(), to, ok))
		var wg sync.WaitGroup
		var went atomic.Int64
		for i := range int64(3) {
			wg.Go(func() {
				assert.NoError(t, c.Do(t.Context(), to, ok))
				assert.Equal(t, i+1, went.Add(1), "in order")
				assert.Equal(t, time.Duration(i+1)*(second+1), time.Since(start))
			})
			synctest.Wait()
		}
		before := state(t, c)
		for name, th := range map[string]provider.Throttle{
			"NaN": {RPS: math.NaN()}, "negative": {MaxQueue: -1}, "no maximum": limits(provider.Limit{Name: "x", Per: "1s"}),
			"no period": limits(provider.Limit{Name: "x", Max: 1}), "two of a name": {RPS: 1, Limits: []provider.Limit{{Name: "rps", Max: 1, Per: "1s"}}},
			"no such zone":     limits(provider.Limit{Name: "x", Max: 1, Per: provider.Day, Zone: "Atlantis"}),
			"no such endpoint": limits(provider.Limit{Name: "x", Max: 1, Per: "1s", Endpoints: []string{"nowhere"}}),
		} {
			require.ErrorContains(t, c.Update("p", th), `"p"`, name)
			require.Equal(t, before, state(t, c), name)
			require.Equal(t, []provider.Provider{p}, slices.Collect(c.Providers()), name)
		}
		wg.Wait()
	}, p)
}

func TestPauseIntoThePast(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for _, until := range []time.Time{{}, time.Now().Add(-time.Hour), time.Now()} {
			require.ErrorContains(t, c.Pause("p", until, "test"), "not in the future")
		}
		assert.Empty(t, state(t, c).Pauses)
		require.NoError(t, c.Do(t.Context(), to, ok))
		require.NoError(t, c.Resume("p"), "of what is not paused")
		require.NoError(t, c.Pause("p", time.Now().Add(1<<62), "for ever"))
		e := refusal(t, c.Do(t.Context(), to, ok))
		assert.Equal(t, coordinator.ReasonTooLate, e.Reason)
		require.NoError(t, c.Resume("p"))
		require.NoError(t, c.Do(t.Context(), to, ok))
	}, declare(provider.Throttle{}))
}

// Two coordinators on one registry share its descriptions and nothing else.
func TestTwoCoordinatorsShareNothing(t *testing.T) {
	reg := registryOf(t, &echo{p: declare(provider.Throttle{RPM: 1})})
	bubbleWith(t, coordinator.Config{Registry: reg}, func(t *testing.T, c *coordinator.Coordinator) {
		other, err := coordinator.New(coordinator.Config{Registry: reg})
		require.NoError(t, err)
		require.NoError(t, c.Do(t.Context(), to, ok))
		require.NoError(t, c.Pause("p", time.Now().Add(time.Hour), "test"))
		require.NoError(t, c.Update("p", provider.Throttle{RPM: 7}))
		require.NoError(t, other.Do(t.Context(), to, ok))
		assert.Empty(t, state(t, other).Pauses)
		assert.EqualValues(t, 1, state(t, other).Limits[0].Max)
		e, _ := reg.Lookup("p")
		assert.EqualValues(t, 1, e.Provider.Throttle.RPM)
	})
}
