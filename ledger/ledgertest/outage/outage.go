// Package outage judges coordinators that share a budget while something happens to
// their store ([Run]) or to one of them, each in a process of its own ([Processes]): a
// referee counts, as a provider would, before, during and after. It runs in real time,
// over real stores; what can be played in virtual time is tested in package coordinator.
package outage

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// Play is one thing that happens to a store.
type Play struct {
	// Store makes one process's own way to the store.
	Store func(t *testing.T) ledger.Store
	// Mode is that of the ledgers; "": share.
	Mode ledger.Mode
	// Begin makes it happen; End, which may be nil, ends it.
	Begin, End func(t *testing.T)
	// Short is something that the ledgers need not notice: none of them has to go down.
	Short bool
	// Some is something that happens to some processes at a time. Under share each of
	// them takes its share besides what the store grants the others, who do not know it.
	Some bool
	// Budget is that of the ledgers; 0: a second, so that a busy machine is no outage.
	Budget time.Duration
}

// The scene: three processes with thirty callers each, at a provider that allows fifty
// calls in each half second.
const (
	processes = 3
	callers   = 30
	most      = 50
	window    = 500 * time.Millisecond
)

// scene is a play on stage.
type scene struct {
	crowd
	cs    []*coordinator.Coordinator
	ls    []*ledger.Client
	judge *referee.Referee
}

// Run plays it: violations are none before it and after it, none while it lasts under
// deny, and under share no more than others may have been granted in the half second
// before the store was lost. Every call ends; under share some go all along; and at the
// return as many go as before.
func Run(t *testing.T, p Play) {
	x := stage(t, p)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, c := range x.cs {
		for range callers {
			wg.Go(func() { x.call(ctx, c) })
		}
	}
	before := x.span(2 * window)
	assert.Zero(t, before.Violated, "before: %+v", before.Violations)
	assert.Positive(t, before.Admitted)

	x.denied.Store(0)
	t.Logf("%s: it begins", time.Now().Format("05.000"))
	p.Begin(t)
	if !p.Short && !p.Some {
		x.await("all have noticed", func(s ledger.Status) bool { return !s.Up })
	}
	long := 3 * window
	if p.Some { // it may be a store that has lost its state, and is back at once: it hears what all know before it grants
		long += ledger.Grace
	}
	during := x.span(long)
	if p.End != nil {
		t.Logf("%s: it ends", time.Now().Format("05.000"))
		p.End(t)
	}
	x.await("all are back", func(s ledger.Status) bool { return s.Up })
	back := x.span(0)
	t.Logf("before %d admitted; during %d, %d violated, %d denied", before.Admitted, during.Admitted+back.Admitted, during.Violated+back.Violated, x.denied.Load())
	switch {
	case p.Some:
		assert.LessOrEqual(t, during.Violated+back.Violated, int64(2*most))
		assert.Positive(t, during.Admitted)
	case p.Short:
		assert.Zero(t, during.Violated+back.Violated)
	case p.Mode == ledger.Deny:
		assert.Zero(t, during.Violated+back.Violated)
		assert.Positive(t, x.denied.Load())
	default:
		assert.LessOrEqual(t, during.Violated+back.Violated, int64(most))
		assert.Positive(t, during.Admitted)
		assert.Zero(t, x.denied.Load())
	}

	x.span(ledger.Grace + 2*window) // a store that has lost its state hears what all know first, and the last window still counts
	after := x.span(3 * window)
	assert.Zero(t, after.Violated, "after: %+v", after.Violations)
	assert.Greater(t, after.Admitted, int64(most), "nothing is stuck")
	stop()
	wg.Wait()
	x.close()
}

// stage sets the scene.
func stage(t *testing.T, p Play) *scene {
	t.Helper()
	x := &scene{crowd: crowd{t: t, slug: "p"}}
	x.send = x.enter
	declared := declare(x.slug, provider.Limit{Max: most, Per: provider.Period(window.String())})
	var err error
	x.judge, err = referee.New(1, referee.Play{Provider: declared})
	require.NoError(t, err)
	t.Cleanup(x.judge.Close)
	for i := range processes {
		led, err := ledger.Open(p.Store(t), ledger.Settings{Mode: p.Mode, Budget: cmp.Or(p.Budget, time.Second), Lease: 5 * time.Second})
		require.NoError(t, err)
		c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{declared}, Ledger: led})
		require.NoError(t, err)
		x.cs, x.ls = append(x.cs, c), append(x.ls, led)
		t.Cleanup(led.Watch(func(ch ledger.Change) {
			if s := ch.Status; s != nil {
				t.Logf("%s: process %d: up %v, %d replicas %s", time.Now().Format("05.000"), i, s.Up, s.Replicas, s.Detail)
			}
		}))
	}
	x.await("all know of each other", func(s ledger.Status) bool { return s.Up && s.Replicas == processes })
	return x
}

// close ends it: nothing is out any more.
func (x *scene) close() {
	for i, c := range x.cs {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		require.NoError(x.t, c.Shutdown(ctx))
		require.NoError(x.t, x.ls[i].Close(ctx))
		cancel()
	}
}

// enter is a call, without HTTP.
func (x *scene) enter(ctx context.Context) (bool, error) {
	pause(ctx)
	leave, ok := x.judge.Enter(x.slug, "", "", nil)
	pause(ctx)
	leave(provider.OK)
	return ok, nil
}

// pause is the network.
func pause(ctx context.Context) { wait(ctx, time.Duration(rand.Int64N(int64(8*time.Millisecond)))) }

// span is what happens at the provider in some time, at least.
func (x *scene) span(d time.Duration) referee.Report {
	from := x.judge.Report(x.slug)
	wait(x.t.Context(), d)
	to := x.judge.Report(x.slug)
	to.Admitted -= from.Admitted
	to.Violated -= from.Violated
	to.Violations = to.Violations[len(from.Violations):]
	return to
}

func (x *scene) await(what string, is func(ledger.Status) bool) {
	x.t.Helper()
	require.Eventually(x.t, func() bool {
		for _, l := range x.ls {
			if !is(l.Status()) {
				return false
			}
		}
		return true
	}, time.Minute, 5*time.Millisecond, what)
}
