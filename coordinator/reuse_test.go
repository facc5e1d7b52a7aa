package coordinator

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

func newReused(t *testing.T) *Coordinator {
	c, err := New(Config{Providers: []provider.Provider{{Slug: "p", Throttle: provider.Throttle{MaxInFlight: 10}}, {Slug: "q"}}})
	require.NoError(t, err)
	return c
}

// A lease that its function has taken out of its context is never another call's, in
// whatever order both are used.
func TestLentLeaseIsNeverUsedAgain(t *testing.T) {
	c := newReused(t)
	kept := make(map[*Lease]bool)
	for range 1000 {
		require.NoError(t, c.Do(t.Context(), Call{Provider: "p"}, func(ctx context.Context) error {
			ls, ok := LeaseFrom(ctx)
			assert.True(t, ok)
			assert.False(t, kept[ls], "somebody has this lease")
			kept[ls] = true
			return nil
		}))
		require.NoError(t, c.Do(t.Context(), Call{Provider: "p"}, func(context.Context) error { return nil }))
	}
	require.Len(t, kept, 1000)
}

// What was derived from a call's context may outlive the call. It gives out nobody
// else's lease, not that of the call around it either.
func TestContextOutlivesItsCall(t *testing.T) {
	c := newReused(t)
	require.NoError(t, c.Do(t.Context(), Call{Provider: "q"}, func(outer context.Context) error {
		var old []context.Context
		for range 1000 {
			require.NoError(t, c.Do(outer, Call{Provider: "p"}, func(ctx context.Context) error {
				old = append(old, ctx)
				return nil
			}))
		}
		return c.Do(outer, Call{Provider: "p"}, func(ctx context.Context) error {
			_, ok := LeaseFrom(ctx)
			assert.True(t, ok)
			for _, ctx := range old {
				_, ok := LeaseFrom(ctx)
				assert.False(t, ok)
			}
			return nil
		})
	}))
	for range 10 {
		require.NoError(t, c.Do(t.Context(), Call{Provider: "p"}, func(context.Context) error { return nil }))
	}
}

// Goroutines that ask for the lease while the call ends, and while its memory is used
// again, race with nothing.
func TestLendingMeetsTheEnd(t *testing.T) {
	c := newReused(t)
	got := make(chan *Lease, 1)
	for range 2000 {
		ask := make(chan struct{})
		require.NoError(t, c.Do(t.Context(), Call{Provider: "p"}, func(ctx context.Context) error {
			go func() {
				close(ask)
				ls, _ := LeaseFrom(ctx)
				got <- ls
			}()
			<-ask
			return nil
		}))
		other := newWalk(context.Background(), Call{Provider: "p"})
		if ls := <-got; ls != nil {
			require.NotSame(t, &other.first, ls)
			ls.Release() // late: does nothing
			require.NotEmpty(t, ls.Provider())
		}
	}
}

// What a call leaves in its memory is written before it is read by the next, or is as
// new: whoever adds a field says which.
func TestReuseLeavesNothing(t *testing.T) {
	written := map[string]bool{"call": true, "place": true, "start": true, "at": true,
		"walk": true, "granted": true, "timeout": true, "token": true, "first": true, "life": true, "steps": true, "terms": true}
	synctest.Test(t, func(t *testing.T) {
		c := newReused(t)
		w := newWalk(t.Context(), Call{Provider: "p", Flow: "f", Wait: 1})
		require.Nil(t, w.begin(c))
		ls, refusal := w.admit()
		require.Nil(t, refusal)
		require.NoError(t, w.attempt(ls, func(context.Context) error { return nil }))
		w.reuse()
		w.first.l = nil // admit sets it before anybody has the lease
		for _, v := range []reflect.Value{reflect.ValueOf(&w.steps).Elem(), reflect.ValueOf(&w.first.terms).Elem()} {
			for i := range v.NumField() {
				if name := v.Type().Field(i).Name; !written[name] {
					assert.True(t, v.Field(i).IsZero(), name)
				}
			}
		}
		require.Zero(t, w.first.life.Load())
	})
}

// What may be looked at after its end is not used again.
func TestReuseLeavesAlone(t *testing.T) {
	c := newReused(t)
	for name, fn := range map[string]func(context.Context) error{
		"failed": func(context.Context) error { return errors.New("x") },
		"lent":   func(ctx context.Context) error { _, _ = LeaseFrom(ctx); return nil },
	} {
		w := newWalk(t.Context(), Call{Provider: "p"})
		require.Nil(t, w.begin(c))
		ls, refusal := w.admit()
		require.Nil(t, refusal)
		_ = w.attempt(ls, fn)
		w.reuse()
		require.NotZero(t, w.first.life.Load(), name)
	}
}
