package coordinator_test

import (
	"context"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// The cases are complaints that users of rate limiters filed in public. Those that
// concern this package are tests named TestCase<number>_<what it guards>.
var theCases = []string{
	"20", "21", "22", "23", "25", "26", // windows and quotas
	"27", "29", "30", "31", "32", // queue, cancellation, fairness
	"33", "34", "36", "37", // penalty, retry, breaker
	"Refund", "TooHeavy", "Batch", // also
	// Steps of the wall clock are package limit's: a bubble's clock does not step.
}

func TestNoCaseIsMissing(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	found := make(map[string]bool)
	name := regexp.MustCompile(`^TestCase([0-9]+|[A-Z][A-Za-z]*)_[A-Z]`)
	for _, file := range files {
		here, err := build.Default.MatchFile(".", file) // a file named …_windows_test.go would not be compiled
		require.NoError(t, err)
		if !here {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if fn, isFunc := d.(*ast.FuncDecl); isFunc && fn.Recv == nil {
				if m := name.FindStringSubmatch(fn.Name.Name); m != nil {
					found[m[1]] = true
				}
			}
		}
	}
	for _, number := range theCases {
		assert.True(t, found[number], "no test is named TestCase%s_…", number)
		delete(found, number)
	}
	assert.Empty(t, found, "cases that the list does not know")
}

// units is a call that costs n of a unit and does not wait.
func units(unit string, n int64) coordinator.Call {
	return coordinator.Call{Provider: "p", Cost: map[string]int64{unit: n}, Wait: -1}
}

// The algorithms that keep units, with room for 100 tokens.
var buckets = map[string]provider.Limit{
	"sliding_window":         {Algorithm: provider.SlidingWindow},
	"sliding_window_counter": {Algorithm: provider.SlidingWindowCounter},
	"fixed_window":           {Algorithm: provider.FixedWindow},
	"token_bucket":           {Algorithm: provider.TokenBucket, Burst: 100},
	"counted sent":           {Counted: provider.CountedSent},
}

func bucketOf(l provider.Limit) provider.Throttle {
	l.Name, l.Max, l.Per, l.Unit = "tokens", 100, "1h", provider.Tokens
	return limits(l)
}

// What comes back is what was taken: never less, or units are lost, and never more,
// or the provider is asked for more than it gives.
func TestCaseRefund_IsExactlyWhatWasTaken(t *testing.T) {
	for name, l := range buckets {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				require.NoError(t, c.Do(t.Context(), units(provider.Tokens, 40), ok))
				for range 20 { // a refund too large would add up
					ls, err := c.Acquire(t.Context(), units(provider.Tokens, 60))
					require.NoError(t, err)
					require.ErrorIs(t, c.Do(t.Context(), units(provider.Tokens, 1), ok), coordinator.ErrRateLimited, "it is full")
					ls.Forget()
				}
				require.ErrorIs(t, c.Do(t.Context(), units(provider.Tokens, 61), ok), coordinator.ErrRateLimited)
				require.NoError(t, c.Do(t.Context(), units(provider.Tokens, 60), ok))
				require.ErrorIs(t, c.Do(t.Context(), units(provider.Tokens, 1), ok), coordinator.ErrRateLimited)
			}, declare(bucketOf(l)))
		})
	}
}

// An answer that cost less than estimated gives the difference back, one that is
// not charged everything, however often either is told.
func TestCaseRefund_OfAnEstimateIsTheDifference(t *testing.T) {
	for name, l := range buckets {
		t.Run(name, func(t *testing.T) {
			l.Charges = []provider.Outcome{provider.OK}
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				for range 10 {
					require.NoError(t, c.Do(t.Context(), units(provider.Tokens, 50), func(ctx context.Context) error {
						ls, _ := coordinator.LeaseFrom(ctx)
						for range 3 {
							ls.Report(provider.Feedback{Used: map[string]int64{provider.Tokens: 5}})
						}
						return nil
					}))
					require.Error(t, c.Do(t.Context(), units(provider.Tokens, 50), answers(provider.Rejected, 0)))
				}
				assert.EqualValues(t, 50, state(t, c).Limits[0].Used)
				require.ErrorIs(t, c.Do(t.Context(), units(provider.Tokens, 51), ok), coordinator.ErrRateLimited)
				require.NoError(t, c.Do(t.Context(), units(provider.Tokens, 50), ok))
			}, once(bucketOf(l)))
		})
	}
}

// A call that no window can ever hold is told so at once and not queued for ever;
// one that is merely too heavy for now takes nothing.
func TestCaseTooHeavy_IsRefusedAtOnceAndLeavesTheBucketUntouched(t *testing.T) {
	for name, l := range buckets {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				start := time.Now()
				require.NoError(t, c.Do(t.Context(), units(provider.Tokens, 30), ok))
				before := state(t, c)
				never := units(provider.Tokens, 101)
				never.Wait = provider.Forever
				e := refusal(t, c.Do(t.Context(), never, ok))
				assert.Equal(t, coordinator.ReasonTooHeavy, e.Reason)
				assert.Equal(t, "tokens", e.Limit.Name)
				assert.Zero(t, e.RetryAfter, "never")
				assert.NotErrorIs(t, e, coordinator.ErrThrottled, "waiting does not cure it")
				e = refusal(t, c.Do(t.Context(), units(provider.Tokens, 71), ok))
				assert.Equal(t, coordinator.ReasonRateLimited, e.Reason)
				assert.Positive(t, e.RetryAfter)
				assert.Equal(t, before.Limits, state(t, c).Limits)
				assert.Zero(t, time.Since(start))
				require.NoError(t, c.Do(t.Context(), units(provider.Tokens, 70), ok))
			}, declare(bucketOf(l)))
		})
	}
}

// Of a batch that is larger than what is left of the quota, what is left goes, and
// every other call is told the one instant at which it can.
func TestCaseBatch_LargerThanTheQuotaLeft(t *testing.T) {
	th := limits(provider.Limit{Name: "day", Max: 500, Per: provider.Day})
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		time.Sleep(3 * time.Hour)
		now := to
		now.Wait = -1
		for range 260 {
			require.NoError(t, c.Do(t.Context(), now, ok))
		}
		var wg sync.WaitGroup
		var went atomic.Int64
		refused := make(chan *coordinator.Error, 386)
		for range 386 {
			wg.Go(func() {
				if err := c.Do(t.Context(), now, takes(second)); err == nil {
					went.Add(1)
				} else {
					refused <- refusal(t, err)
				}
			})
		}
		wg.Wait()
		close(refused)
		assert.EqualValues(t, 240, went.Load())
		assert.Len(t, refused, 146)
		for e := range refused {
			assert.Equal(t, "day", e.Limit.Name)
			assert.Equal(t, time.Date(2000, 1, 2, 0, 0, 1, 0, time.UTC), e.RetryAt.UTC(), "midnight and the guard")
			assert.Equal(t, 21*time.Hour+second, e.RetryAfter)
		}
		time.Sleep(21*time.Hour + second)
		assert.Len(t, calls(t, c, 146, now, 0), 146, "and then they all go")
	}, declare(th))
}
