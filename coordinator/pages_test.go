package coordinator_test

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// book is an adapter whose answers have pages, from 1 to last.
type book struct {
	p     provider.Provider
	last  int
	asked []string
	at    []time.Time
}

func (b *book) Provider() provider.Provider { return b.p }

func (b *book) Lookup(_ context.Context, q provider.Query) (provider.Result, error) {
	b.asked, b.at = append(b.asked, q.Page), append(b.at, time.Now())
	n := 1
	if q.Page != "" {
		n, _ = strconv.Atoi(q.Page)
	}
	r := provider.Result{Provider: b.p.Slug, Endpoint: q.Endpoint, Data: json.RawMessage(" [" + strconv.Itoa(n) + " ] ")}
	if n == 2 {
		r.Data, r.Empty = json.RawMessage("[]"), true // a page in the middle without any
	}
	if n < b.last {
		r.Next = strconv.Itoa(n + 1)
	}
	return r, nil
}

func readBook(t *testing.T, last, pages int) (*book, *coordinator.Coordinator) {
	b := &book{last: last, p: provider.Provider{
		Slug: "book",
		Endpoints: []provider.Endpoint{
			{Name: "search", Kinds: []provider.Kind{provider.Text}, Params: map[string]string{"p": "{page}"},
				Paging: &provider.Paging{Next: provider.Source{JSON: "$.next"}, Max: pages}},
			{Name: "single", Kinds: []provider.Kind{provider.IP}},
		},
		Throttle: provider.Throttle{Limits: []provider.Limit{{Name: "s", Max: 1, Per: "1s"}}},
	}}
	r := new(registry.Registry)
	require.NoError(t, r.Register(b))
	c, err := coordinator.New(coordinator.Config{Registry: r})
	require.NoError(t, err)
	return b, c
}

func TestEachPageIsACallOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := readBook(t, 3, 0)
		start := time.Now()
		res, err := c.Execute(t.Context(), coordinator.Call{Provider: "book"}, provider.Query{Kind: provider.Text})
		require.NoError(t, err)
		assert.JSONEq(t, "[1, 3]", string(res.Data))
		assert.Empty(t, res.Next)
		assert.False(t, res.Empty, "one page had items")
		assert.Equal(t, []string{"", "2", "3"}, b.asked)
		for i, at := range b.at {
			assert.Equal(t, time.Duration(i)*(time.Second+1), at.Sub(start), "page %d waits for its turn", i+1)
		}
		s, err := c.State("book")
		require.NoError(t, err)
		assert.EqualValues(t, 3, s.Granted)
	})
}

func TestPagesAreCapped(t *testing.T) {
	for _, x := range []struct {
		declared, asked int
		next            string
	}{{0, 10, "11"}, {2, 2, "3"}, {1, 1, "2"}} {
		synctest.Test(t, func(t *testing.T) {
			b, c := readBook(t, 1000, x.declared)
			res, err := c.Execute(t.Context(), coordinator.Call{Provider: "book"}, provider.Query{Kind: provider.Text})
			require.NoError(t, err)
			assert.Len(t, b.asked, x.asked)
			assert.Equal(t, x.next, res.Next, "where to go on")
		})
	}
}

func TestEndpointWithoutPagesIsNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := readBook(t, 3, 0)
		res, err := c.Execute(t.Context(), coordinator.Call{Provider: "book"}, provider.Query{Kind: provider.IP})
		require.NoError(t, err)
		assert.Len(t, b.asked, 1)
		assert.Equal(t, "2", res.Next)
	})
}

// What was read is not lost, and need not be paid for again.
func TestPageThatCannotBeAskedLeavesThoseBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := readBook(t, 4, 0)
		call := coordinator.Call{Provider: "book"}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		q := provider.Query{Kind: provider.Text}
		res, err := c.Execute(ctx, call, q)
		require.ErrorIs(t, err, coordinator.ErrTooLate)
		assert.JSONEq(t, "[1]", string(res.Data))
		assert.Equal(t, "3", res.Next)

		q.Page = res.Next
		res, err = c.Execute(t.Context(), call, q)
		require.NoError(t, err)
		assert.JSONEq(t, "[3, 4]", string(res.Data))
		assert.Equal(t, []string{"", "2", "3", "4"}, b.asked)
	})
}

func TestSearchByPostIsSentAgainWhereDeclared(t *testing.T) {
	for _, replayable := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a := &failing{p: provider.Provider{Slug: "post", Endpoints: []provider.Endpoint{{
				Name: "search", Method: "POST", Kinds: []provider.Kind{provider.Text}, Replayable: replayable,
			}}}}
			r := new(registry.Registry)
			require.NoError(t, r.Register(a))
			c, err := coordinator.New(coordinator.Config{Registry: r})
			require.NoError(t, err)
			_, err = c.Execute(t.Context(), coordinator.Call{Provider: "post"}, provider.Query{Kind: provider.Text})
			require.Error(t, err)
			assert.Equal(t, map[bool]int{false: 1, true: 3}[replayable], a.asked)
		})
	}
}

type failing struct {
	p     provider.Provider
	asked int
}

func (f *failing) Provider() provider.Provider { return f.p }

func (f *failing) Lookup(context.Context, provider.Query) (provider.Result, error) {
	f.asked++
	return provider.Result{}, provider.Feedback{Outcome: provider.Failed}.Err(nil)
}
