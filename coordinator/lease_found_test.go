package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// Much at once: contexts that outlive their calls, leases held late, nested calls that
// outlive the outer one, pauses, failures, Updates, States, Forecasts.
func TestLeasesInTheStorm(t *testing.T) {
	for _, env := range [][]string{nil, {"A", "B", "C"}} {
		t.Run(fmt.Sprint(len(env)), func(t *testing.T) {
			p := provider.Provider{Slug: "p", Throttle: provider.Throttle{MaxQueue: 1000, MaxWait: provider.Forever, Limits: []provider.Limit{
				{Name: "cap", Max: 20, Algorithm: provider.InFlight},
				{Name: "key", Max: 50, Per: "1s", Scope: provider.ScopeKey},
				{Name: "both", Max: 40, Per: "1s", Scope: provider.ScopeKeyEndpoint},
				{Name: "tokens", Unit: "tokens", Max: 5000, Per: "1s"},
			}}}
			if env != nil {
				p.Auth = provider.Auth{Kind: "header", Name: "Key", Env: env}
			}
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				var all sync.WaitGroup
				for g := range 24 {
					all.Go(func() {
						r := rand.New(rand.NewSource(int64(g)))
						for range 120 {
							ctx, cancel := t.Context(), func() {}
							if r.Intn(3) == 0 {
								ctx, cancel = context.WithTimeout(ctx, time.Duration(1+r.Intn(3000))*time.Millisecond)
							}
							call := coordinator.Call{Provider: "p", Endpoint: fmt.Sprint(r.Intn(3)), Flow: fmt.Sprint(r.Intn(3)), Replayable: true,
								Cost: map[string]int64{"tokens": int64(r.Intn(100))}}
							what, d := r.Intn(12), time.Duration(r.Intn(50))*time.Millisecond
							_ = c.Do(ctx, call, func(ctx context.Context) error {
								switch what {
								case 0:
									all.Go(func() {
										time.Sleep(d)
										if ls, ok := coordinator.LeaseFrom(ctx); ok {
											ls.Report(provider.Feedback{Outcome: provider.Failed})
											ls.Release()
											ls.Forget()
										}
									})
								case 1, 2:
									_ = c.Do(ctx, call, takes(d))
								case 3:
									all.Go(func() { _ = c.Do(ctx, call, takes(d)) })
								case 4:
									return provider.Feedback{Outcome: provider.RateLimited, RetryAfter: d}.Err(errors.New("x"))
								case 5:
									return provider.Feedback{Outcome: provider.Failed}.Err(errors.New("x"))
								case 6:
									ls, _ := coordinator.LeaseFrom(ctx)
									ls.Hold(nil)
									all.Go(func() { time.Sleep(d); ls.Release() })
								case 7:
									return ctx.Err()
								case 8:
									ls, _ := coordinator.LeaseFrom(ctx)
									ls.Forget()
								}
								return sleep(ctx, d)
							})
							cancel()
							if r.Intn(20) == 0 {
								_, _ = c.State("p")
								_, _ = c.Forecast(call, 30)
								assert.NoError(t, c.Update("p", p.Throttle))
							}
						}
					})
				}
				all.Wait()
				time.Sleep(time.Minute)
				s := state(t, c)
				assert.Zero(t, s.InFlight)
				assert.Zero(t, s.Lingering)
				for _, l := range s.Limits {
					assert.Zero(t, l.Held, l.Name)
					assert.Zero(t, l.Used, l.Name)
				}
			}, p)
		})
	}
}

// The attempts of a retry that is refused, wherever that is, are told.
func TestRefusedRetriesTell(t *testing.T) {
	throttle := provider.Throttle{MaxWait: time.Hour, Limits: []provider.Limit{{Name: "one", Max: 1, Per: "1m"}}}
	for name, end := range map[string]func(c *coordinator.Coordinator, cancel func()){
		"cancel":   func(_ *coordinator.Coordinator, cancel func()) { cancel() },
		"shutdown": func(c *coordinator.Coordinator, _ func()) { _ = c.Shutdown(context.Background()) },
		"off": func(c *coordinator.Coordinator, _ func()) {
			off := throttle
			off.Off = []string{"*"}
			_ = c.Update("p", off)
		},
		"heavy": func(c *coordinator.Coordinator, _ func()) {
			light := throttle
			light.Limits = []provider.Limit{{Name: "one", Max: 1, Per: "1m"}, {Name: "tokens", Unit: "tokens", Max: 1, Per: "1m"}}
			_ = c.Update("p", light)
		},
		"pause": func(c *coordinator.Coordinator, _ func()) { _ = c.Pause("p", time.Now().Add(48*time.Hour), "x") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				time.AfterFunc(30*time.Second, func() { end(c, cancel) })
				n := 0
				err := c.Do(ctx, coordinator.Call{Provider: "p", Replayable: true, Cost: map[string]int64{"tokens": 2}}, func(context.Context) error {
					n++
					return provider.Feedback{Outcome: provider.RateLimited, RetryAfter: time.Second, Detail: "told"}.Err(errors.New("cause"))
				})
				e := refusal(t, err)
				t.Log(name, e, e.Reason, e.Stage, e.Attempts, e.Answer, e.Err)
				assert.Equal(t, n, e.Attempts)
				assert.Equal(t, coordinator.StageRetry, e.Stage)
				assert.Equal(t, provider.RateLimited, e.Answer.Outcome)
				require.Error(t, e.Err)
			}, declare(throttle))
		})
	}
}

// A lease that is held beyond its function is released by whoever has it, while the call
// returns (run with -race).
func TestHeldLeaseIsReleasedElsewhere(t *testing.T) {
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{declare(provider.Throttle{})}})
	require.NoError(t, err)
	for range 1000 {
		var all sync.WaitGroup
		require.NoError(t, c.Do(t.Context(), to, func(ctx context.Context) error {
			ls, _ := coordinator.LeaseFrom(ctx)
			ls.Hold(nil)
			all.Go(ls.Release)
			return nil
		}))
		all.Wait()
	}
	require.NoError(t, c.Shutdown(t.Context()))
}
