package coordinator

import (
	"context"
	"errors"
	"testing"
	"unsafe"

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
		other := newLease()
		if ls := <-got; ls != nil {
			require.NotSame(t, other, ls)
			ls.Release() // late: does nothing
			require.NotEmpty(t, ls.Provider())
		}
	}
}

// What a call leaves in its memory is as new.
func TestReuseLeavesNothing(t *testing.T) {
	c := newReused(t)
	for range 1000 { // until one is used again
		w := walk{ctx: t.Context(), call: Call{Provider: "p", Flow: "f", Wait: 1}}
		require.Nil(t, w.begin(c))
		ls := newLease()
		require.Equal(t, terms{}, ls.terms)
		require.Nil(t, w.admit(ls))
		require.NoError(t, w.attempt(ls, func(context.Context) error { return nil }))
		ls.reuse()
		if require.Equal(t, terms{}, ls.terms); ls.number() > 1 {
			return
		}
	}
	t.Fatal("no lease is used again")
}

// What may be looked at after its end is not used again.
func TestReuseLeavesAlone(t *testing.T) {
	c := newReused(t)
	for name, fn := range map[string]func(context.Context) error{
		"failed": func(context.Context) error { return errors.New("x") },
		"lent":   func(ctx context.Context) error { _, _ = LeaseFrom(ctx); return nil },
	} {
		w := walk{ctx: t.Context(), call: Call{Provider: "p"}}
		require.Nil(t, w.begin(c))
		ls := newLease()
		require.Nil(t, w.admit(ls))
		_ = w.attempt(ls, fn)
		ls.reuse()
		require.NotZero(t, ls.l, name)
	}
}

// A lease is all that a waiting call takes, besides its channel: there may be 100,000.
func TestWaitingCallIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(Lease{}), uintptr(240))
}
