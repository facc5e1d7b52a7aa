package coordinator_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// What is used, what is held, and when units come back, by each algorithm.
func TestStateOfALimit(t *testing.T) {
	type step struct {
		used, held int64
		reset      time.Duration // from the start; 0: none is out
	}
	for name, test := range map[string]struct {
		throttle         provider.Throttle
		out, after, done step // three are out; they are answered at 1 s; 40 s later
	}{
		"sliding": {ten(), step{0, 3, 0}, step{3, 0, 61*second + 1}, step{3, 0, 61*second + 1}},
		"fixed":   {ten(by(provider.FixedWindow)), step{0, 3, 0}, step{3, 0, 60*second + 600*ms}, step{3, 0, 60*second + 600*ms}},
		"bucket":  {ten(by(provider.TokenBucket)), step{0, 3, 0}, step{3, 0, 7 * second}, step{0, 0, 0}},
		"sent":    {ten(sent), step{3, 0, 60*second + 1}, step{3, 0, 60*second + 1}, step{3, 0, 60*second + 1}},
		"cap":     {provider.Throttle{MaxInFlight: 10}, step{0, 3, 0}, step{0, 0, 0}, step{0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				start := time.Now()
				check := func(want step) {
					t.Helper()
					l := state(t, c).Limits[0]
					got := step{l.Used, l.Held, 0}
					if !l.ResetAt.IsZero() {
						got.reset = l.ResetAt.Sub(start)
					}
					assert.Equal(t, want, got)
					assert.EqualValues(t, 10, l.Max)
					assert.Equal(t, "requests", l.Unit)
				}
				check(step{})
				for range 3 {
					go func() { assert.NoError(t, c.Do(t.Context(), to, takes(second))) }()
				}
				synctest.Wait()
				check(test.out)
				time.Sleep(second)
				synctest.Wait()
				check(test.after)
				time.Sleep(40 * second)
				check(test.done)
				time.Sleep(time.Hour)
				check(step{})
			}, declare(test.throttle))
		})
	}
}

// Every number says where it comes from.
func TestStateTellsTheOriginOfEachNumber(t *testing.T) {
	th := limits(provider.Limit{Name: "told", Max: 10, Per: "1m"}, provider.Limit{Name: "guess", Max: 10, Per: "1m", Basis: provider.BasisAssumed})
	origins := func(c *coordinator.Coordinator) []string {
		s := state(t, c)
		return []string{s.Limits[0].Origin, s.Limits[1].Origin}
	}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		assert.Equal(t, []string{"declared", "assumed"}, origins(c))
		require.Error(t, c.Do(t.Context(), to, func(context.Context) error {
			return provider.Feedback{Outcome: provider.QuotaSpent, Limit: "told", RetryAfter: 5 * time.Minute}.Err(nil)
		}))
		assert.Equal(t, []string{"learned", "assumed"}, origins(c))
		assert.Equal(t, time.Now().Add(5*time.Minute), state(t, c).Limits[0].ResetAt)
		time.Sleep(5 * time.Minute)
		assert.Equal(t, []string{"declared", "assumed"}, origins(c), "what was told is over")
		plan := limits(provider.Limit{Name: "told", Max: 20, Per: "1m"}, th.Limits[1], provider.Limit{Name: "new", Max: 1, Per: "1s"})
		require.NoError(t, c.Update("p", plan))
		assert.Equal(t, []string{"overridden", "assumed"}, origins(c), "of those that differ")
		assert.Equal(t, "overridden", state(t, c).Limits[2].Origin)
		require.NoError(t, c.Update("p", th))
		assert.Equal(t, []string{"declared", "assumed"}, origins(c), "as declared again")
	}, once(th))
	pacing := limits(provider.Limit{Name: "ours", Max: 10, Per: "1m", Basis: provider.BasisPacing}, provider.Limit{Name: "b", Max: 1, Per: "1m"})
	pacing.BadAnswers = &provider.Limit{Max: 3, Per: "1m"}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		assert.Equal(t, []string{"pacing", "declared"}, origins(c))
		assert.Equal(t, "declared", state(t, c).Limits[2].Origin, "of bad answers")
	}, declare(pacing))
	cfg := coordinator.Config{Providers: []provider.Provider{declare(provider.Throttle{})}, Overrides: map[string]provider.Throttle{"p": th}}
	bubbleWith(t, cfg, func(t *testing.T, c *coordinator.Coordinator) {
		assert.Equal(t, []string{"overridden", "overridden"}, origins(c))
	})
}

func TestStateOfAProvider(t *testing.T) {
	p := once(provider.Throttle{RPS: 2, MaxQueue: 10})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.NoError(t, c.Do(t.Context(), to, takes(200*ms)))
		require.Error(t, c.Do(t.Context(), to, answers(provider.Failed, 0)))
		time.Sleep(2 * second)
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			go func() { _ = c.Do(ctx, to, takes(time.Hour)) }()
		}
		synctest.Wait()
		for range 3 {
			go func() { _ = c.Do(t.Context(), to, ok) }()
			synctest.Wait()
			time.Sleep(300 * ms)
		}
		s := state(t, c)
		assert.Equal(t, "p", s.Provider)
		assert.Equal(t, time.Now(), s.At)
		assert.Equal(t, 2, s.InFlight)
		assert.Equal(t, 3, s.Queue.Length)
		assert.Equal(t, 10, s.Queue.Capacity)
		assert.Positive(t, s.Queue.Wait)
		assert.Equal(t, 900*ms, s.Oldest)
		assert.EqualValues(t, 4, s.Granted)
		assert.Equal(t, 200*ms, s.RoundTrip)
		assert.Equal(t, coordinator.BreakerState{State: "closed", Failures: 1}, s.Breaker)
		assert.Equal(t, map[provider.Outcome]int64{provider.OK: 1, provider.Failed: 1}, s.Outcomes)
		cancel()
		synctest.Wait()
		assert.Equal(t, 2, state(t, c).Lingering, "they may be on their way")
		time.Sleep(10 * second)
		assert.Zero(t, state(t, c).Lingering)
	}, p)
	p.Breaker.Off = true
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		assert.Equal(t, coordinator.BreakerState{State: "off"}, state(t, c).Breaker)
	}, p)
}

func keyed(key string) coordinator.Call { return coordinator.Call{Provider: "p", Key: key} }

// askForAnother asks for one more key often enough that each other one is looked at:
// two are with each decision.
func askForAnother(t *testing.T, c *coordinator.Coordinator) {
	t.Helper()
	call := keyed("another")
	call.Wait = -1
	require.NoError(t, c.Do(t.Context(), call, ok))
	for range 200 {
		_ = c.Do(t.Context(), call, ok)
	}
}

// keys are the names of the keys that State shows.
func keys(t *testing.T, c *coordinator.Coordinator) (names []string) {
	t.Helper()
	for _, k := range state(t, c).Keys {
		if k.Key != "" {
			names = append(names, k.Key)
		}
	}
	return names
}

// A limit by key, of which no key has been asked for, has no state to show: neither
// as that of a key nor as that of an endpoint.
func TestStateShowsNoKeyThatIsNone(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		s := state(t, c)
		assert.Zero(t, s.KeyCount)
		assert.Empty(t, s.Keys)
		assert.Empty(t, s.Endpoints)
		require.NoError(t, c.Do(t.Context(), keyed("k"), ok))
		s = state(t, c)
		assert.Equal(t, 1, s.KeyCount)
		assert.Empty(t, s.Endpoints)
	}, declare(ten(scoped(provider.ScopeKey))))
}

// Of many keys the busiest are shown, the others counted; when their longest window
// is over they are forgotten.
func TestStateShowsTheBusiestKeysAndForgetsIdleOnes(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for k := range 150 {
			for range k%10 + 1 {
				require.NoError(t, c.Do(t.Context(), keyed(fmt.Sprintf("k%03d", k)), ok))
			}
		}
		s := state(t, c)
		assert.Len(t, slices.DeleteFunc(s.Keys, func(k coordinator.KeyState) bool { return k.Key == "" }), 100)
		assert.GreaterOrEqual(t, s.KeyCount, 150)
		assert.Equal(t, "k009", s.Keys[0].Key)
		for i, k := range s.Keys {
			assert.GreaterOrEqual(t, k.Limits[0].Used, int64(4), "the 60 less busy ones are not among them, nor all of the next")
			if i > 0 {
				assert.LessOrEqual(t, k.Limits[0].Used, s.Keys[i-1].Limits[0].Used)
			}
		}
		time.Sleep(time.Hour)
		askForAnother(t, c)
		assert.Len(t, keys(t, c), 100, "an hour is over strictly after it")
		time.Sleep(time.Hour + 1)
		askForAnother(t, c)
		assert.Equal(t, []string{"another"}, keys(t, c))
		assert.LessOrEqual(t, c.Parts("p"), 3)
	}, declare(provider.Throttle{Limits: ten(scoped(provider.ScopeKey), per("1h")).Limits}))
}

// A key is not forgotten while something is known of it, and in the end it is,
// whatever its last answer was.
func TestKeysAreForgottenInTheEnd(t *testing.T) {
	for name, answer := range map[string]provider.Feedback{
		"ok": {}, "unauthorized": {Outcome: provider.Unauthorized},
		"paused": {Outcome: provider.RateLimited, Scope: provider.ScopeKey, RetryAfter: second},
		"spent":  {Outcome: provider.QuotaSpent, RetryAfter: second}, "unanswered": {Outcome: provider.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				for k := range 50 {
					ls, err := c.Acquire(t.Context(), keyed(fmt.Sprint(k)))
					require.NoError(t, err)
					ls.Report(answer)
					ls.Release()
				}
				assert.Len(t, keys(t, c), 50)
				time.Sleep(24 * time.Hour)
				askForAnother(t, c)
				assert.Len(t, keys(t, c), 1, "the one that is in use")
				assert.Empty(t, state(t, c).Pauses)
			}, once(provider.Throttle{Limits: ten(scoped(provider.ScopeKey), per("1m")).Limits}))
		})
	}
}

// In flight is what is out: neither who waits, nor less after an update.
func TestStateCountsAKeysCallsInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		go func() { assert.NoError(t, c.Do(t.Context(), keyed("k"), takes(time.Minute))) }()
		synctest.Wait()
		assert.Equal(t, 1, state(t, c).Keys[0].InFlight)
		go func() { assert.NoError(t, c.Do(t.Context(), keyed("k"), ok)) }()
		synctest.Wait()
		assert.Equal(t, 1, state(t, c).Keys[0].InFlight, "the other one waits")
		require.NoError(t, c.Update("p", provider.Throttle{MaxInFlight: 1, RPS: 5}))
		assert.Equal(t, 1, state(t, c).Keys[0].InFlight, "after an update")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Zero(t, state(t, c).Keys[0].InFlight)
	}, declare(provider.Throttle{MaxInFlight: 1}))
}

// Providers are shown as in force, States where something was asked, both sorted.
func TestProvidersAndStates(t *testing.T) {
	reg := registryOf(t, &echo{p: provider.Provider{Slug: "b", Throttle: provider.Throttle{RPS: 1}}}, &echo{p: provider.Provider{Slug: "d"}})
	cfg := coordinator.Config{Registry: reg, Providers: []provider.Provider{{Slug: "c"}, {Slug: "a"}},
		Overrides: map[string]provider.Throttle{"b": {RPS: 2}, "a": {RPS: 3}}}
	bubbleWith(t, cfg, func(t *testing.T, c *coordinator.Coordinator) {
		rates := func() map[string]float64 {
			got := make(map[string]float64)
			var order []string
			for p := range c.Providers() {
				got[p.Slug] = p.Throttle.RPS
				order = append(order, p.Slug)
			}
			assert.Equal(t, []string{"a", "b", "c", "d"}, order)
			return got
		}
		assert.Equal(t, map[string]float64{"a": 3, "b": 2, "c": 0, "d": 0}, rates())
		assert.Empty(t, c.States(), "nothing was asked")
		for _, slug := range []string{"d", "a", "b"} {
			require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: slug}, ok))
		}
		require.NoError(t, c.Update("d", provider.Throttle{RPS: 4}))
		require.NoError(t, c.Update("c", provider.Throttle{RPS: 5}))
		assert.Equal(t, map[string]float64{"a": 3, "b": 2, "c": 5, "d": 4}, rates())
		var seen []string
		for _, s := range c.States() {
			seen = append(seen, s.Provider)
		}
		assert.Equal(t, []string{"a", "b", "c", "d"}, seen)
		for range c.Providers() {
			break // leaving the loop early is fine
		}
	})
}

// What a caller does with a declaration that he was shown changes nothing.
func TestProvidersAreCopies(t *testing.T) {
	p := declare(ten())
	p.Endpoints = []provider.Endpoint{{Name: "host", Cost: map[string]int64{provider.Requests: 2}}}
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		for range 2 { // before its lane is made, and after
			shown := slices.Collect(c.Providers())[0]
			shown.Throttle.Limits[0].Max = 1000
			maps.DeleteFunc(shown.Endpoints[0].Cost, func(string, int64) bool { return true })
			shown.Endpoints[0].Name = "renamed"
			require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Endpoint: "host"}, ok))
		}
		l := state(t, c).Limits[0]
		assert.EqualValues(t, 10, l.Max)
		assert.EqualValues(t, 4, l.Used)
	}, p)
}
