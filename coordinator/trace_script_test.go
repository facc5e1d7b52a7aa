package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// story is what the hooks told of each call, a letter each: waits, goes, attempt,
// ended, refused.
type story struct {
	t     *testing.T
	loose bool // does not look at the number of the try

	mu       sync.Mutex
	steps    map[string]string // by Flow, which is each call's own here
	errs     map[string]error  // what End or Refused told
	waited   map[string]time.Duration
	outcomes map[provider.Outcome]int64
	refused  map[coordinator.Reason]int64
}

func newStory(t *testing.T) *story {
	return &story{t: t, steps: make(map[string]string), errs: make(map[string]error), waited: make(map[string]time.Duration),
		outcomes: make(map[provider.Outcome]int64), refused: make(map[coordinator.Reason]int64)}
}

func (s *story) step(c coordinator.CallInfo, letter string, more func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps[c.Flow] += letter
	if more != nil {
		more()
	}
}

func (s *story) trace() *coordinator.Trace {
	tries := func(c coordinator.CallInfo) (n int) {
		for _, step := range s.steps[c.Flow] {
			if step == 'g' {
				n++
			}
		}
		return n
	}
	return &coordinator.Trace{
		Waiting: func(_ context.Context, c coordinator.CallInfo, q coordinator.QueueState) {
			s.step(c, "w", func() { assert.Positive(s.t, q.Length) })
		},
		Going: func(_ context.Context, c coordinator.CallInfo, waited time.Duration) {
			s.step(c, "g", func() {
				assert.True(s.t, s.loose || tries(c) == c.Attempt, "try %d is told as %d", tries(c), c.Attempt)
				assert.GreaterOrEqual(s.t, waited, s.waited[c.Flow], "the whole wait so far")
				s.waited[c.Flow] = waited
			})
		},
		Attempt: func(_ context.Context, c coordinator.CallInfo, f provider.Feedback, took time.Duration) {
			s.step(c, "a", func() {
				assert.True(s.t, s.loose || tries(c) == c.Attempt, "try %d is told as %d", tries(c), c.Attempt)
				assert.GreaterOrEqual(s.t, took, time.Duration(0))
				s.outcomes[f.Outcome]++
			})
		},
		End: func(_ context.Context, c coordinator.CallInfo, err error, took time.Duration) {
			s.step(c, "e", func() {
				assert.GreaterOrEqual(s.t, took, s.waited[c.Flow])
				s.errs[c.Flow] = err
			})
		},
		Refused: func(_ context.Context, c coordinator.CallInfo, e *coordinator.Error) {
			s.step(c, "r", func() { s.errs[c.Flow], s.refused[e.Reason] = e, s.refused[e.Reason]+1 })
		},
	}
}

// count is how often a step was told of all calls together.
func (s *story) count(letter rune) (n int64) {
	for _, steps := range s.steps {
		for _, step := range steps {
			if step == letter {
				n++
			}
		}
	}
	return n
}

// The story of any call: it waits or not, goes and has its attempt, as often as it is
// tried, and ends or is refused, once.
var anyStory = regexp.MustCompile(`^(w?ga)*(w?ga+e|w?r)$`)

// A thousand calls of every kind, over a provider that fails, refuses and hangs: what
// the hooks were told adds up, by itself and with what State says.
func TestTraceAddsUpOverAThousandCalls(t *testing.T) {
	s := newStory(t)
	p := declare(provider.Throttle{RPS: 20, MaxQueue: 30, MaxInFlight: 8, MaxWait: 20 * second})
	p.Breaker = provider.Breaker{Failures: 4, Cooldown: 2 * second}
	p.Timeout = 3 * second
	bubbleWith(t, coordinator.Config{Providers: []provider.Provider{p}, Traces: []*coordinator.Trace{s.trace()}}, func(t *testing.T, c *coordinator.Coordinator) {
		rng := rand.New(rand.NewPCG(4, 4))
		var wg sync.WaitGroup
		for i := range 1000 {
			call := coordinator.Call{Provider: "p", Flow: fmt.Sprint("c", i), Key: fmt.Sprint("k", rng.IntN(3)),
				Priority: coordinator.Priority(rng.IntN(3) - 1), Replayable: rng.IntN(2) == 0}
			switch rng.IntN(40) {
			case 0:
				call.Provider = "nobody"
			case 1:
				call.Cost = map[string]int64{provider.Requests: 21}
			case 2:
				call.Wait = -1
			}
			ctx, cancel := context.WithCancel(t.Context())
			if rng.IntN(4) == 0 {
				time.AfterFunc(time.Duration(rng.IntN(2000))*ms, cancel)
			}
			fn := script(rng.IntN(100), time.Duration(rng.IntN(500))*ms)
			wg.Go(func() {
				defer cancel()
				err := c.Do(ctx, call, fn)
				s.mu.Lock()
				defer s.mu.Unlock()
				assert.Regexp(t, anyStory, s.steps[call.Flow])
				assert.Equal(t, s.errs[call.Flow], err, "what the caller gets is what the hook was told")
			})
			time.Sleep(time.Duration(rng.IntN(90)) * ms)
		}
		wg.Wait()
		got := state(t, c)
		assert.Len(t, s.steps, 1000)
		assert.EqualValues(t, 1000, s.count('e')+s.count('r'))
		assert.Equal(t, s.count('g'), s.count('a'))
		assert.Equal(t, got.Granted, s.count('g'))
		assert.Equal(t, got.Outcomes, s.outcomes)
		var refused int64
		for _, n := range got.Refused {
			refused += n
		}
		assert.Equal(t, refused, s.count('r')-s.refused[coordinator.ReasonUnknownProvider])
		assert.GreaterOrEqual(t, got.Retries, s.count('g')-s.count('e'), "some were refused on their way to the next try")
		for _, outcome := range []provider.Outcome{provider.OK, provider.RateLimited, provider.Failed, provider.Canceled, provider.Unknown} {
			assert.Positive(t, s.outcomes[outcome], outcome)
		}
		for _, reason := range []coordinator.Reason{coordinator.ReasonQueueFull, coordinator.ReasonCanceled, coordinator.ReasonCircuitOpen, coordinator.ReasonTooHeavy} {
			assert.Positive(t, s.refused[reason], reason)
		}
		assert.Positive(t, got.Retries)
	})
}

// script is what one of those calls meets.
func script(n int, trip time.Duration) func(context.Context) error {
	answer := func(o provider.Outcome, advice time.Duration) func(context.Context) error {
		return func(ctx context.Context) error {
			return errors.Join(sleep(ctx, trip), provider.Feedback{Outcome: o, RetryAfter: advice}.Err(nil))
		}
	}
	switch {
	case n < 60:
		return takes(trip)
	case n < 70:
		return answer(provider.RateLimited, 200*ms)
	case n < 85:
		return answer(provider.Failed, 0)
	case n < 88:
		return takes(time.Hour)
	case n < 94:
		return func(context.Context) error { return errors.New("not found") }
	}
	return answer(provider.Rejected, 0)
}
