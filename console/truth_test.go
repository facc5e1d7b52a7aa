package console

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// Every figure of the JSON is the State's, whatever has happened: calls of keys, flows
// and endpoints, advice, failures, pauses, pools, changes of limits.
func TestEveryFigureIsTheStates(t *testing.T) {
	p := provider.Provider{
		Slug: "acme", Category: "c", Timeout: 20 * time.Second, Endpoints: []provider.Endpoint{{Name: "find"}, {Name: "get"}},
		Throttle: provider.Throttle{RPS: 3, Burst: 7, Algorithm: provider.TokenBucket, MaxInFlight: 4, MaxQueue: 9, LeastRoundTrip: 2 * time.Second, Limits: []provider.Limit{
			{Name: "minute", Max: 40, Per: "1m", Basis: provider.BasisAssumed}, {Name: "day", Max: 300, Per: "day", Basis: provider.BasisPacing},
			{Name: "key", Max: 30, Per: "1h", Scope: provider.ScopeKey}, {Name: "search", Max: 25, Per: "1h", Scope: provider.ScopeEndpoint, Endpoints: []string{"find"}},
		}},
	}
	synctest.Test(t, func(t *testing.T) {
		rec := new(Recorder)
		c, err := coordinator.New(coordinator.Config{Registry: new(registry.Registry), Providers: []provider.Provider{p}, Pools: map[string]int{"c": 3, "": 5}, Traces: []*coordinator.Trace{rec.Trace()}})
		require.NoError(t, err)
		w := &world{c, New(c, Options{Recorder: rec, KeyName: func(_, alias string) string { return alias }}), t}
		defer func() {
			assert.NoError(t, w.Close())
			assert.NoError(t, w.Shutdown(context.Background()))
			synctest.Wait()
		}()
		rng := rand.New(rand.NewPCG(7, 7))
		outcomes := []provider.Outcome{provider.OK, provider.OK, provider.OK, provider.OK, provider.Failed, provider.RateLimited, provider.Unauthorized, provider.Rejected}
		seen := make(map[string]bool)
		check := func() {
			synctest.Wait()
			w.take(0) // at this very instant
			var d Detail
			w.read("/api/providers/acme", &d)
			s, err := w.State("acme")
			require.NoError(t, err)
			sameAsState(t, &d, &s, seen)
			waiting := 0
			for _, f := range d.Flows {
				waiting += f.Waiting
			}
			require.Equal(t, s.Queue.Length, waiting)
		}
		for i := range 400 {
			f := provider.Feedback{Outcome: outcomes[rng.IntN(len(outcomes))]}
			if rng.IntN(4) == 0 {
				f.Budgets = []provider.Budget{{Name: "minute", Remaining: rng.Int64N(40), HasRemaining: true, Reset: 30 * time.Second, HasReset: true}}
			}
			if f.Outcome == provider.RateLimited {
				f.Scope, f.RetryAfter = []string{"", provider.ScopeKey, provider.ScopeEndpoint}[rng.IntN(3)], time.Duration(rng.IntN(20))*time.Second
			}
			call := coordinator.Call{Provider: "acme", Key: []string{"", "A", "B"}[rng.IntN(3)], Flow: fmt.Sprint(rng.IntN(3)), Endpoint: []string{"find", "get"}[rng.IntN(2)]}
			go func() { _ = w.call(call, f) }()
			switch i {
			case 150:
				require.NoError(t, w.Pause("acme", time.Now().Add(20*time.Second), "maintenance"))
			case 200:
				next := p.Throttle
				next.Limits = slices.Clone(next.Limits)
				next.Limits[0].Max = 50
				require.NoError(t, w.Update("acme", next))
			}
			time.Sleep(time.Duration(rng.IntN(2000)) * time.Millisecond)
			check()
		}
		time.Sleep(2 * time.Hour) // all are through, and nothing counts any more
		require.NoError(t, w.Resume("acme"))
		for range 30 {
			_ = w.call(coordinator.Call{Provider: "acme", Key: "A", Wait: -1}, provider.Feedback{Outcome: provider.Failed})
			check()
		}
		for _, what := range []string{"declared", "overridden", "learned", "assumed", "pacing", "closed", "open", "pause of provider", "pause of key", "pause of endpoint", "queue", "refuted", "reset"} {
			assert.True(t, seen[what], what)
		}
	})
}

func sameAsState(t *testing.T, d *Detail, s *coordinator.State, seen map[string]bool) {
	t.Helper()
	limits := func(want []coordinator.LimitState, got []Limit) {
		require.Len(t, got, len(want))
		for i, l := range want {
			seen[l.Origin] = true
			seen["reset"] = seen["reset"] || !l.ResetAt.IsZero()
			n := got[i]
			n.Endpoint, n.Reset = "", time.Time{}
			require.Equal(t, Limit{Name: l.Name, Unit: l.Unit, Max: l.Max, Room: l.Room, Used: l.Used, Held: l.Held, Left: l.Left, Per: string(l.Per), Origin: l.Origin, Shared: l.Shared}, n)
			require.WithinDuration(t, l.ResetAt, got[i].Reset, time.Millisecond)
		}
	}
	all := slices.Clone(s.Limits)
	for _, e := range slices.Sorted(maps.Keys(s.Endpoints)) {
		all = append(all, s.Endpoints[e]...)
	}
	limits(all, d.Limits)
	require.Len(t, d.Keys, len(s.Keys))
	for i, k := range s.Keys {
		require.Equal(t, []any{k.Key, k.InFlight, k.Pause != nil}, []any{d.Keys[i].Name, d.Keys[i].InFlight, d.Keys[i].Pause != nil})
		limits(k.Limits, d.Keys[i].Limits)
	}
	require.Len(t, d.Pauses, len(s.Pauses))
	for i, p := range s.Pauses {
		seen["pause of "+p.Scope] = true
		require.Equal(t, []any{p.Scope, p.Name, p.Why, p.Trial}, []any{d.Pauses[i].Scope, d.Pauses[i].Name, d.Pauses[i].Why, d.Pauses[i].Trial})
		require.WithinDuration(t, p.Until, d.Pauses[i].Until, time.Millisecond)
	}
	require.Len(t, d.Pools, len(s.Pools))
	for i, p := range s.Pools {
		require.Equal(t, Pool{p.Name, p.Size, p.Used, p.Waiting}, d.Pools[i])
	}
	seen[s.Breaker.State], seen["queue"] = true, seen["queue"] || s.Queue.Length > 0
	require.Equal(t, []any{s.Breaker.State, s.Breaker.Failures}, []any{d.Breaker.State, d.Breaker.Failures})
	require.WithinDuration(t, s.Breaker.Until, d.Breaker.Until, time.Millisecond)
	require.Equal(t, []int{s.Queue.Length, s.Queue.Capacity, s.InFlight, s.KeyCount, s.Lingering}, []int{d.Queue.Length, d.Queue.Capacity, d.InFlight, d.KeyCount, d.Lingering})
	require.Equal(t, []int64{s.Granted, s.Retries, s.Ignored, s.Lately.Refusals}, []int64{d.Granted, d.Retries, d.Ignored, d.Refusals})
	require.Equal(t, []float64{s.RetryBudget, s.Lately.RPS, s.Lately.ErrorRate}, []float64{d.Budget, d.Rate, d.Errors})
	for i, v := range []time.Duration{s.Queue.Wait, s.RoundTrip, s.LeastRoundTrip, s.Lately.P50, s.Lately.P99} {
		require.InDelta(t, v.Seconds(), []float64{d.Queue.Wait, d.RoundTrip, d.LeastTrip, d.P50, d.P99}[i], 0.001)
	}
	if s.Queue.Length > 0 {
		require.InDelta(t, s.Oldest.Seconds(), d.Queue.Oldest, 0.001)
		require.WithinDuration(t, s.At.Add(-s.Oldest), d.Queue.Since, time.Millisecond)
	}
	if s.InFlight > 0 {
		require.WithinDuration(t, s.At.Add(-s.OldestOut), d.OutSince, time.Millisecond)
	}
	require.Equal(t, s.LeastRoundTripRefuted, d.Refuted)
	seen["refuted"] = seen["refuted"] || d.Refuted
	if len(s.Outcomes) > 0 {
		require.Equal(t, s.Outcomes, d.Outcomes)
	}
	if len(s.Refused) > 0 {
		require.Equal(t, s.Refused, d.Reasons)
	}
}
