package batch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/batch"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// book is an adapter that answers pages of two items, by what answer says.
type book struct {
	p      provider.Provider
	answer func(ctx context.Context, asked int, q provider.Query) (provider.Result, error)

	mu    sync.Mutex
	asked []string
}

func (b *book) Provider() provider.Provider { return b.p }

func (b *book) Lookup(ctx context.Context, q provider.Query) (provider.Result, error) {
	b.mu.Lock()
	b.asked = append(b.asked, q.Value+"/"+q.Page)
	n := len(b.asked)
	b.mu.Unlock()
	return b.answer(ctx, n, q)
}

// page is the page that q asks for, of so many.
func page(q provider.Query, of int) provider.Result {
	n, _ := strconv.Atoi(q.Page)
	res := provider.Result{Provider: "p", Data: json.RawMessage(fmt.Sprintf(`["%s%da","%s%db"]`, q.Value, n, q.Value, n))}
	if n+1 < of {
		res.Next = strconv.Itoa(n + 1)
	}
	return res
}

func library(t *testing.T, wired bool, as ...provider.Adapter) coordinator.Config {
	t.Helper()
	r := new(registry.Registry)
	for _, a := range as {
		require.NoError(t, r.Register(a))
	}
	cfg := coordinator.Config{Registry: r}
	if wired {
		cfg.Traces = []*coordinator.Trace{batch.Trace()}
	}
	return cfg
}

func paged(t provider.Throttle) provider.Provider {
	return provider.Provider{Slug: "p", Throttle: t, Endpoints: []provider.Endpoint{
		{Name: "search", Kinds: []provider.Kind{provider.Text}, Params: map[string]string{"page": "{page}"},
			Paging: &provider.Paging{Next: provider.Source{JSON: "$.next"}}}}}
}

func queries(values ...string) (jobs []batch.Job) {
	for _, v := range values {
		jobs = append(jobs, batch.Job{Key: v, Call: to, Query: &provider.Query{Kind: provider.Text, Value: v}})
	}
	return jobs
}

// A lookup of pages that is refused in the middle goes on from there: no page is
// asked for twice, and the items of all are in the result.
func TestPagesGoOnWhereTheyWereRefused(t *testing.T) {
	for _, wired := range []bool{true, false} {
		b := &book{p: paged(provider.Throttle{})}
		b.answer = func(ctx context.Context, n int, q provider.Query) (provider.Result, error) {
			if n == 3 || n == 4 || n == 6 { // the fourth is the first page of its try
				return provider.Result{}, provider.Feedback{Outcome: provider.QuotaSpent, RetryAfter: 30 * time.Hour}.Err(nil)
			}
			return page(q, 5), sleep(ctx, time.Second)
		}
		bubbleWith(t, library(t, wired, b), func(t *testing.T, c *coordinator.Coordinator) {
			jobs := queries("x")
			all := collect(batch.Run(t.Context(), c, slices.Values(jobs), batch.Options{}))
			require.NoError(t, all[0].res.Err)
			assert.Equal(t, []string{"x/", "x/1", "x/2", "x/2", "x/2", "x/3", "x/3", "x/4"}, b.asked)
			assert.JSONEq(t, `["x0a","x0b","x1a","x1b","x2a","x2b","x3a","x3b","x4a","x4b"]`, string(all[0].res.Result.Data))
			assert.Empty(t, all[0].res.Result.Next)
			assert.Equal(t, &provider.Query{Kind: provider.Text, Value: "x"}, jobs[0].Query, "it is not changed")
			assert.Equal(t, 90*time.Hour+5*time.Second, all[0].at)
			if wired {
				assert.Equal(t, 8, all[0].res.Attempts)
				assert.Equal(t, 90*time.Hour, all[0].res.Waited)
			} else {
				assert.Equal(t, 4, all[0].res.Attempts, "the end of each try")
			}
		})
	}
}

// What was told before a failure that waiting does not cure comes out with it.
func TestPagesBeforeAFailureComeOut(t *testing.T) {
	b := &book{p: paged(provider.Throttle{})}
	b.answer = func(_ context.Context, n int, q provider.Query) (provider.Result, error) {
		switch n {
		case 2:
			return provider.Result{}, provider.Feedback{Outcome: provider.QuotaSpent, RetryAfter: 30 * time.Hour}.Err(nil)
		case 4:
			return provider.Result{}, provider.Feedback{Outcome: provider.Rejected}.Err(nil)
		}
		return page(q, 5), nil
	}
	bubbleWith(t, library(t, true, b), func(t *testing.T, c *coordinator.Coordinator) {
		all := collect(batch.Run(t.Context(), c, slices.Values(queries("x")), batch.Options{}))
		var e *coordinator.Error
		require.ErrorAs(t, all[0].res.Err, &e)
		assert.Equal(t, coordinator.ReasonRejected, e.Reason)
		assert.JSONEq(t, `["x0a","x0b","x1a","x1b"]`, string(all[0].res.Result.Data))
		assert.Equal(t, "2", all[0].res.Result.Next)
		assert.Equal(t, 4, all[0].res.Attempts)
	})
}

// Queries are seen through hooks: they go in order, hold few places, and tell how
// long they waited.
func TestQueriesWithTrace(t *testing.T) {
	b := &book{p: declare("p", every("1s"))}
	b.answer = func(ctx context.Context, _ int, q provider.Query) (provider.Result, error) {
		return provider.Result{Data: json.RawMessage(`"` + q.Value + `"`)}, sleep(ctx, time.Second/2)
	}
	bubbleWith(t, library(t, true, b), func(t *testing.T, c *coordinator.Coordinator) {
		var values []string
		for i := range 200 {
			values = append(values, fmt.Sprint(i))
		}
		i := 0
		for job, res := range batch.Run(t.Context(), c, slices.Values(queries(values...)), batch.Options{}) {
			require.NoError(t, res.Err)
			require.Equal(t, values[i], job.Key)
			require.JSONEq(t, `"`+job.Key+`"`, string(res.Result.Data))
			require.Equal(t, 1, res.Attempts)
			require.Equal(t, time.Duration(i)*(1500*time.Millisecond+1), res.Waited)
			synctest.Wait()
			s, err := c.State("p")
			require.NoError(t, err)
			require.LessOrEqual(t, s.Queue.Length, 32)
			i++
		}
		assert.Equal(t, 200, i)
	})
}

// Without hooks queries are done as well: all that is pulled is handed over as soon
// as the first has told that nothing is seen of it, but for a quarter of the places.
func TestQueriesWithoutTrace(t *testing.T) {
	limit := every("1s")
	limit.MaxQueue = 100
	b := &book{p: declare("p", limit)}
	b.answer = func(ctx context.Context, _ int, q provider.Query) (provider.Result, error) {
		return provider.Result{}, sleep(ctx, time.Second/2)
	}
	bubbleWith(t, library(t, false, b), func(t *testing.T, c *coordinator.Coordinator) {
		var values []string
		for i := range 200 {
			values = append(values, fmt.Sprint(i))
		}
		var began atomic.Int64
		m := &memory{began: func(string) error { began.Add(1); return nil }}
		i := 0
		for _, res := range batch.Run(t.Context(), c, slices.Values(queries(values...)), batch.Options{Journal: m}) {
			require.NoError(t, res.Err)
			require.Equal(t, 1, res.Attempts)
			synctest.Wait()
			i++
			s, err := c.State("p")
			require.NoError(t, err)
			require.Equal(t, min(75, 200-i), s.Queue.Length+s.InFlight)
			require.Equal(t, min(75+i, 200), int(began.Load()), "noted before it can be sent")
		}
		assert.Equal(t, 200, i)
	})
}

// An adapter may make calls of its own under the lookup: they are part of it.
func TestNestedCallsArePartOfTheirJob(t *testing.T) {
	b := &book{p: declare("p", every("1s"))}
	b.p.Throttle.MaxInFlight = 1
	var c *coordinator.Coordinator
	b.answer = func(ctx context.Context, _ int, q provider.Query) (provider.Result, error) {
		err := sleep(ctx, time.Second)
		return provider.Result{}, errors.Join(err, c.Do(ctx, to, func(context.Context) error { return nil }))
	}
	bubbleWith(t, library(t, true, b), func(t *testing.T, made *coordinator.Coordinator) {
		c = made
		jobs := queries("a", "b", "c")
		for range 3 {
			jobs = append(jobs, batch.Job{Call: to, Do: func(ctx context.Context) error {
				_, err := b.answer(ctx, 0, provider.Query{})
				return err
			}})
		}
		var out, last time.Duration
		for _, o := range collect(batch.Run(t.Context(), c, slices.Values(jobs), batch.Options{})) {
			require.NoError(t, o.res.Err)
			assert.Equal(t, 1, o.res.Attempts)
			assert.GreaterOrEqual(t, o.at-o.res.Waited, 2*time.Second, "the nested call's wait is its caller's time")
			out += o.at - o.res.Waited
			last = o.at
		}
		assert.LessOrEqual(t, out, last, "one at a time")
	})
}
