package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// ride is one call, drawn whole before it starts, by a generator of its own: what
// others do changes nothing of it.
type ride struct {
	w    *world
	i    int
	site *site
	into *site // of the call inside it
	call coordinator.Call
	how  string
	path string

	faults  []fault // by arrival; the last stands for all further ones
	there   time.Duration
	serve   time.Duration
	back    time.Duration
	giveUp  time.Duration // 0: never
	patient bool          // gives up only while it waits
	body    int           // what it does with the answer's body
	hook    string        // that fails
	exits   bool          // by Goexit, not by a panic
	fails   string        // how its function fails: "", panic, exit
	early   int64         // more units than it had said

	arrivals atomic.Int64 // that broke no limit
	hand     atomic.Int64 // without HTTP
	failed   atomic.Bool  // the hook has
	begun    atomic.Bool
	waits    atomic.Bool
	out      atomic.Bool // it goes, or its patient caller has given up before: whichever came first
	ended    atomic.Bool
}

// The ways to call.
var ways = []string{"client", "client", "client", "do", "do under client", "acquire", "get", "execute", "nested", "bare"}

func (w *world) draw(i int) *ride {
	rng := rand.New(rand.NewPCG(w.seed, uint64(i)+1))
	ms := func(most int) time.Duration {
		return (time.Duration(rng.IntN(most*1000)) * time.Microsecond).Truncate(w.grain)
	}
	r := &ride{w: w, i: i, site: pick(rng, w.sites...), into: pick(rng, w.sites...), how: pick(rng, ways...), patient: w.patient,
		there: ms(100), serve: ms(100), back: ms(100), body: rng.IntN(4)}
	r.call = coordinator.Call{Provider: r.site.p.Slug, Flow: fmt.Sprint(rng.IntN(3)), Priority: coordinator.Priority(rng.IntN(3) - 1),
		Endpoint: pick(rng, "", "a", "b", "c"), Replayable: rng.IntN(2) == 0}
	r.path = "/" + pick(rng, "other", r.call.Endpoint) + "/203.0.113.7"
	if r.call.Endpoint != "" {
		r.path = "/" + r.call.Endpoint + "/203.0.113.7"
	}
	if w.alone {
		r.call.Flow, r.call.Priority = "", coordinator.Normal
	}
	keys := r.site.p.Auth.Env
	switch {
	case len(keys) == 1 && r.how == "execute":
		r.call.Key = keys[0] // which the adapter sends in any case
	case len(keys) < 2:
		r.call.Key = pick(rng, "", "k", "l", "m")
	case rng.IntN(3) == 0:
		r.call.Key = pick(rng, keys...)
	}
	switch rng.IntN(5) {
	case 0:
		r.call.Cost = map[string]int64{provider.Tokens: int64(1 + rng.IntN(15))}
	case 1:
		r.call.Cost = map[string]int64{provider.Requests: int64(1 + rng.IntN(3)), provider.Tokens: 2, "widgets": 1}
	}
	if rng.IntN(8) == 0 {
		r.call.Wait = ms(2000) - 200*time.Millisecond
	}
	if rng.IntN(3) == 0 {
		r.giveUp = max(ms(4000), 1)
	}
	for range 5 {
		r.faults = append(r.faults, drawFault(rng, w))
	}
	if r.hangs() && (r.giveUp == 0 || r.giveUp > 5*time.Second) {
		r.giveUp = 5 * time.Second
	}
	if rng.IntN(25) == 0 {
		r.hook, r.exits = pick(rng, hookNames...), rng.IntN(2) == 0 && !strings.Contains(r.how, "client")
	}
	if rng.IntN(25) == 0 {
		r.fails = pick(rng, "panic", "exit")
	}
	if rng.IntN(10) == 0 {
		r.early = int64(1 + rng.IntN(5))
	}
	return r
}

type rideKey struct{}

// rideOf is whose request, or hook, a context is.
func rideOf(ctx context.Context) *ride {
	r, _ := ctx.Value(rideKey{}).(*ride)
	return r
}

// start lets a ride go, on a goroutine of its own that ends whatever happens.
func (w *world) start(t *testing.T, r *ride) {
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), rideKey{}, r))
	if r.giveUp > 0 {
		if w.rng.IntN(3) == 0 && !r.patient {
			ctx, cancel = context.WithTimeout(ctx, r.giveUp)
		} else {
			time.AfterFunc(r.giveUp, func() {
				if !r.patient || r.out.CompareAndSwap(false, true) {
					cancel()
				}
			})
		}
	}
	w.running.Go(func() {
		defer func() {
			if v := recover(); v != nil && v != thrown {
				assert.Fail(t, "a panic that nobody threw", "%v", v)
			}
			r.ended.Store(true)
			r.waits.Store(false)
			cancel()
		}()
		w.sum.count("call by " + r.how)
		w.judge(t, r, r.run(ctx))
	})
}

// overlooked asserts that a call which waits could not go now: if one that is like it
// and comes after it could, it could have gone first.
func (w *world) overlooked(t *testing.T, r *ride) {
	const nobody = 1000 * time.Hour // of those that are out comes back meanwhile
	f, err := w.c.ForecastAll(nobody, coordinator.Demand{Call: r.call, Calls: 1})
	if err != nil || len(f.Portions) == 0 || !r.waits.Load() {
		return
	}
	w.sum.count("looked for who is overlooked")
	if !f.Portions[0].From.After(time.Now()) {
		state, _ := w.c.State(r.call.Provider)
		assert.Fail(t, "a call that could go waits", "call %d: %v\n%+v\n%+v", r.i, f, r.call, state)
	}
}
