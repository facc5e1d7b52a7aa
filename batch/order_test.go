package batch_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/batch"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// logged are n jobs that note who went, and when.
type logged struct {
	t     *testing.T
	start time.Time
	went  chan string
	jobs  []batch.Job
}

func newLog(t *testing.T) *logged {
	t.Helper()
	return &logged{t: t, start: time.Now(), went: make(chan string, 10_000)}
}

// add adds n jobs; the function, if any, is what each does.
func (g *logged) add(n int, call coordinator.Call, do func(context.Context) error) *logged {
	for i := range n {
		name := fmt.Sprint(call.Flow, call.Endpoint, call.Key, i)
		if call.Priority == coordinator.Interactive {
			name = "now" + name
		}
		g.jobs = append(g.jobs, batch.Job{Key: name, Call: call, Do: func(ctx context.Context) error {
			g.went <- fmt.Sprintf("%s@%v", name, time.Since(g.start))
			if do == nil {
				return nil
			}
			return do(ctx)
		}})
	}
	return g
}

func (g *logged) order() (all []string) {
	close(g.went)
	for s := range g.went {
		all = append(all, s)
	}
	return all
}

// run does all jobs and requires that all are done.
func (g *logged) run(c *coordinator.Coordinator, opt batch.Options) []outcome {
	all := collect(batch.Run(g.t.Context(), c, slices.Values(g.jobs), opt))
	require.Len(g.t, all, len(g.jobs))
	for _, o := range all {
		require.NoError(g.t, o.res.Err)
	}
	return all
}

func TestFirstInFirstOut(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		g := newLog(t).add(100, coordinator.Call{Provider: "p"}, nil)
		all := g.run(c, batch.Options{})
		for i, o := range all {
			at := time.Duration(i)*time.Second + time.Duration(i) // free strictly after its second
			require.Equal(t, fmt.Sprint(i), o.job.Key)
			require.Equal(t, at, o.at)
			require.Equal(t, at, o.res.Waited)
			require.Equal(t, 1, o.res.Attempts)
		}
	}, declare("p", every("1s")))
}

// One call of a flow goes within one round, however many of another were pulled
// before it.
func TestFlowsShareAProvider(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		g := newLog(t).add(200, coordinator.Call{Provider: "p", Flow: "a"}, nil)
		g.add(10, coordinator.Call{Provider: "p", Flow: "b"}, nil)
		g.run(c, batch.Options{})
		var last int
		for i, s := range g.order() {
			if s[0] == 'b' {
				last = i
			}
		}
		assert.LessOrEqual(t, last, 21, "ten of b among the first twenty or so")
	}, declare("p", every("1s")))
}

func TestPrioritiesWeigh(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		g := newLog(t).add(200, coordinator.Call{Provider: "p", Priority: coordinator.Bulk}, nil)
		g.add(160, coordinator.Call{Provider: "p", Priority: coordinator.Interactive}, nil)
		g.run(c, batch.Options{})
		n := 0
		for _, s := range g.order()[:170] {
			if s[0] == 'n' {
				n++
			}
		}
		assert.InDelta(t, 160, n, 2, "16 to 1")
	}, declare("p", every("1s")))
}

// Jobs that wait for a cold endpoint or key hold up no others that were pulled.
func TestAColdGateBlocksNobody(t *testing.T) {
	p := declare("p", provider.Throttle{Limits: []provider.Limit{
		{Name: "cold", Max: 1, Per: "1h", Endpoints: []string{"cold"}},
		{Name: "warm", Max: 1, Per: "1s", Endpoints: []string{"warm"}, Scope: provider.ScopeKey},
	}})
	p.Endpoints = []provider.Endpoint{{Name: "cold"}, {Name: "warm"}}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		g := newLog(t).add(3, coordinator.Call{Provider: "p", Endpoint: "cold"}, nil)
		g.add(500, coordinator.Call{Provider: "p", Endpoint: "cold", Key: "k"}, nil)
		g.add(5, coordinator.Call{Provider: "p", Endpoint: "warm", Key: "k"}, nil)
		g.add(5, coordinator.Call{Provider: "p", Endpoint: "warm", Key: "l"}, nil)
		var warm []time.Duration
		for job, res := range batch.Run(t.Context(), c, slices.Values(g.jobs), batch.Options{}) {
			require.NoError(t, res.Err)
			if job.Call.Endpoint == "warm" {
				warm = append(warm, time.Since(g.start).Truncate(time.Second))
			}
			if len(warm) == 10 {
				break
			}
		}
		s := time.Second
		assert.Equal(t, []time.Duration{0, 0, s, s, 2 * s, 2 * s, 3 * s, 3 * s, 4 * s, 4 * s}, warm)
	}, p)
}

// Every provider is kept busy, though they are of one sequence.
func TestProvidersRunSideBySide(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		g := newLog(t)
		for range 50 {
			g.add(1, coordinator.Call{Provider: "p"}, nil)
			g.add(10, coordinator.Call{Provider: "q"}, nil)
		}
		all := g.run(c, batch.Options{})
		last := map[string]time.Duration{}
		for _, o := range all {
			last[o.job.Call.Provider] = o.at.Truncate(time.Second)
		}
		assert.Equal(t, map[string]time.Duration{"p": 490 * time.Second, "q": 499 * time.Second}, last)
	}, declare("p", every("10s")), declare("q", every("1s")))
}

// A provider without limits has as many in flight as are pulled ahead.
func TestAFreeProviderHasAllThatIsPulledInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		g := newLog(t).add(3*999, coordinator.Call{Provider: "p"}, func(ctx context.Context) error { return sleep(ctx, time.Second) })
		all := g.run(c, batch.Options{})
		assert.Equal(t, 3*time.Second, all[len(all)-1].at, "three rounds of 999: one more is in hand")
	}, declare("p", provider.Throttle{}))
}

// However many jobs wait, other callers of the provider find a place.
func TestPlacesAreLeftToOthers(t *testing.T) {
	for name, most := range map[string]int{"one flow": 32, "many flows": 75} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				g := newLog(t)
				for i := range 400 {
					flow := ""
					if name == "many flows" {
						flow = fmt.Sprint(i)
					}
					g.add(1, coordinator.Call{Provider: "p", Flow: flow}, nil)
				}
				left := len(g.jobs)
				for range batch.Run(t.Context(), c, slices.Values(g.jobs), batch.Options{}) {
					left--
					synctest.Wait()
					s, err := c.State("p")
					require.NoError(t, err)
					require.Equal(t, min(most, left), s.Queue.Length, "%d left", left)
				}
			}, declare("p", provider.Throttle{MaxQueue: 100, Limits: []provider.Limit{{Name: "l", Max: 1, Per: "1s"}}}))
		})
	}
}
