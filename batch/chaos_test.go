package batch_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/batch"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// chaos is a random run: providers of all kinds that answer anything, functions and
// queries, keys, flows and priorities, other callers, bounds, cancellation.
type chaos struct {
	mu   sync.Mutex
	rng  *rand.Rand
	sent map[string]int // attempts, by job
}

func (s *chaos) n(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(n)
}

func (s *chaos) ms(n int) time.Duration { return time.Duration(s.n(n*1000)) * time.Microsecond }

func (s *chaos) provider(slug string) provider.Provider {
	t := provider.Throttle{MaxQueue: 1 + s.n(60), Penalty: time.Duration(1+s.n(3)) * time.Second,
		Excess: []provider.ExcessPolicy{provider.Queue, provider.Queue, provider.Reject, provider.Delay}[s.n(4)]}
	for i := range s.n(3) {
		t.Limits = append(t.Limits, provider.Limit{Name: fmt.Sprint("l", i), Max: int64(1 + s.n(10)), Per: provider.Period(fmt.Sprint(1+s.n(5000), "ms")),
			Scope: []string{"", provider.ScopeKey, provider.ScopeEndpoint}[s.n(3)]})
	}
	if s.n(2) == 0 {
		t.MaxInFlight = 1 + s.n(5)
	}
	return provider.Provider{Slug: slug, Throttle: t, Endpoints: []provider.Endpoint{{Name: "a"}, {Name: "b"}},
		Breaker: provider.Breaker{Failures: 3, Cooldown: 2 * time.Second}}
}

// answer is one attempt.
func (s *chaos) answer(ctx context.Context, key string) error {
	s.mu.Lock()
	s.sent[key]++
	s.mu.Unlock()
	if err := sleep(ctx, s.ms(300)); err != nil {
		return err
	}
	switch s.n(30) {
	case 0:
		return provider.Feedback{Outcome: provider.RateLimited, RetryAfter: s.ms(2000)}.Err(nil)
	case 1:
		return provider.Feedback{Outcome: provider.QuotaSpent, RetryAfter: time.Duration(s.n(50)) * time.Second}.Err(nil)
	case 2:
		return provider.Feedback{Outcome: provider.Banned}.Err(nil)
	case 3, 4:
		return provider.Feedback{Outcome: provider.Failed}.Err(nil)
	case 5:
		return errors.New("anything")
	}
	return nil
}

type chaotic struct {
	*chaos
	p provider.Provider
}

func (a chaotic) Provider() provider.Provider { return a.p }
func (a chaotic) Lookup(ctx context.Context, q provider.Query) (provider.Result, error) {
	return provider.Result{}, a.answer(ctx, q.Value)
}

func (s *chaos) jobs(n int, pulled map[string]bool) iter.Seq[batch.Job] {
	return func(yield func(batch.Job) bool) {
		for i := range n {
			key := fmt.Sprint(i)
			job := batch.Job{Key: key, Call: coordinator.Call{Provider: fmt.Sprint("p", s.n(3)), Endpoint: []string{"", "a", "b"}[s.n(3)],
				Key: []string{"", "k"}[s.n(2)], Flow: []string{"", "f"}[s.n(2)], Priority: coordinator.Priority(s.n(3) - 1)}}
			if s.n(10) == 0 {
				job.Call.Wait = -1
			}
			if s.n(2) == 0 {
				job.Query = &provider.Query{Value: key}
			} else {
				job.Do = func(ctx context.Context) error { return s.answer(ctx, key) }
			}
			pulled[key] = true
			if !yield(job) {
				return
			}
			time.Sleep(s.ms(20))
		}
	}
}

// others ask the same providers, in nobody's batch.
func (s *chaos) others(ctx context.Context, c *coordinator.Coordinator) *sync.WaitGroup {
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for range 300 {
				if ctx.Err() != nil {
					return
				}
				_ = c.Do(ctx, coordinator.Call{Provider: fmt.Sprint("p", i%3)}, func(ctx context.Context) error { return sleep(ctx, s.ms(200)) })
				_ = sleep(ctx, s.ms(3000))
			}
		})
	}
	return &wg
}

// run does one random batch and requires that each job that was pulled came out
// once, that the tallies are right, and that what came out says the truth.
func (s *chaos) run(t *testing.T, c *coordinator.Coordinator, jobs int, wired bool) {
	ctx, cancel := context.WithCancel(t.Context())
	others := s.others(ctx, c)
	var p batch.Progress
	var m memory
	opt := batch.Options{Progress: &p, Journal: &m, Ahead: s.n(40)}
	leave := -1
	switch s.n(4) {
	case 0:
		time.AfterFunc(s.ms(20_000), cancel)
	case 1:
		leave = s.n(jobs)
	case 2:
		opt.Until = time.Now().Add(s.ms(100_000))
	}
	pulled, seen := map[string]bool{}, map[string]bool{}
	for job, res := range batch.Run(ctx, c, s.jobs(jobs, pulled), opt) {
		require.False(t, seen[job.Key], "%s came out twice", job.Key)
		seen[job.Key] = true
		s.mu.Lock()
		sent := s.sent[job.Key]
		s.mu.Unlock()
		if wired || job.Do != nil {
			require.Equal(t, sent, res.Attempts)
		} else {
			require.LessOrEqual(t, res.Attempts, sent)
		}
		require.GreaterOrEqual(t, res.Waited, time.Duration(0))
		if opt.Until.IsZero() && ctx.Err() == nil {
			require.NotErrorIs(t, res.Err, coordinator.ErrThrottled, "it could have waited")
		}
		if s.n(20) == 0 {
			time.Sleep(s.ms(1000))
		}
		balance(t, p.Snapshot())
		if len(seen) == leave {
			break
		}
	}
	if leave < 0 {
		require.Len(t, seen, len(pulled))
	}
	if ctx.Err() == nil && leave < 0 {
		require.Len(t, seen, jobs)
	}
	total := 0
	for _, x := range p.Snapshot() {
		total += x.Pulled
		require.Zero(t, x.Waiting+x.Out+x.Unread, "%+v", x)
	}
	require.Len(t, pulled, total)
	cancel()
	others.Wait()
}

func TestStormsOfEverything(t *testing.T) {
	for seed := range uint64(size(200, 20)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &chaos{rng: rand.New(rand.NewPCG(seed, 4)), sent: map[string]int{}}
				r := new(registry.Registry)
				for i := range 3 {
					require.NoError(t, r.Register(chaotic{s, s.provider(fmt.Sprint("p", i))}))
				}
				cfg := coordinator.Config{Registry: r}
				if seed%2 == 0 {
					cfg.Traces = []*coordinator.Trace{batch.Trace()}
				}
				c, err := coordinator.New(cfg)
				require.NoError(t, err)
				s.run(t, c, 150, seed%2 == 0)
				synctest.Wait()
				for _, st := range c.States() {
					require.Zero(t, st.InFlight, st.Provider)
					require.Zero(t, st.Queue.Length, st.Provider)
				}
			})
		})
	}
}
