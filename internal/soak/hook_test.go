package soak

import (
	"context"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// tryKey is what the hook Try adds to the context of an attempt.
type tryKey struct{}

// hookNames are those that may fail: a ride says which of them does, once.
var hookNames = []string{"Begin", "Try", "Waiting", "Going", "Attempt", "End", "Refused"}

// hooks are told everything, and some of them fail.
type hooks struct {
	mu       sync.Mutex
	panicked map[string]bool // by hook: it has
	told     map[string]int  // and how often that was told
}

// fails is the failure of a hook, where its ride says so.
func (h *hooks) fails(ctx context.Context, name string, exits func(*ride)) {
	r := rideOf(ctx)
	if r == nil || r.hook != name || r.failed.Swap(true) {
		return
	}
	if r.exits {
		r.w.sum.count("Goexit in a hook")
		exits(r)
		runtime.Goexit()
	}
	r.w.sum.count("panic in a hook")
	h.mu.Lock()
	h.panicked[name] = true
	h.mu.Unlock()
	panic(thrown)
}

func (h *hooks) trace(t *testing.T, w *world) *coordinator.Trace {
	h.panicked, h.told = map[string]bool{}, map[string]int{}
	site := func(info coordinator.CallInfo) *site {
		return w.sites[slices.IndexFunc(w.sites, func(s *site) bool { return s.p.Slug == info.Provider })]
	}
	undecided := func(info coordinator.CallInfo) func(*ride) {
		return func(*ride) {
			if info.Attempt == 0 {
				site(info).undecided.Add(1)
			}
		}
	}
	nothing := func(*ride) {}
	return &coordinator.Trace{
		Begin: func(ctx context.Context, info coordinator.CallInfo) context.Context {
			site(info).begun.Add(1)
			if r := rideOf(ctx); r != nil {
				r.begun.Store(true)
			}
			h.fails(ctx, "Begin", undecided(info))
			return nil
		},
		Try: func(ctx context.Context, _ coordinator.CallInfo) context.Context {
			h.fails(ctx, "Try", nothing)
			return context.WithValue(ctx, tryKey{}, true)
		},
		Waiting: func(ctx context.Context, info coordinator.CallInfo, q coordinator.QueueState) {
			h.fails(ctx, "Waiting", undecided(info))
			if r := rideOf(ctx); r != nil && info.Attempt == 0 && info.Provider == r.call.Provider && info.Endpoint == r.call.Endpoint && !r.out.Load() {
				r.waits.Store(true)
			}
		},
		Going: func(ctx context.Context, info coordinator.CallInfo, _ time.Duration) {
			if shut := w.shut.Load(); shut != 0 && time.Now().UnixNano() > shut {
				assert.Fail(t, "a call goes after the shutdown", "%+v", info)
			}
			if r := rideOf(ctx); r != nil {
				r.waits.Store(false)
				r.out.Store(true)
			}
			h.fails(ctx, "Going", nothing)
		},
		Attempt: func(ctx context.Context, _ coordinator.CallInfo, _ provider.Feedback, _ time.Duration) {
			h.fails(ctx, "Attempt", nothing)
		},
		End: func(ctx context.Context, _ coordinator.CallInfo, _ error, _ time.Duration) {
			h.fails(ctx, "End", nothing)
		},
		Refused: func(ctx context.Context, info coordinator.CallInfo, e *coordinator.Error) {
			if r := rideOf(ctx); r != nil {
				r.waits.Store(false)
				if r.how == "execute" && !r.begun.Swap(true) {
					site(info).begun.Add(1) // no endpoint takes it: Execute refuses before there is a call
				}
			}
			w.sum.count("refused: " + string(e.Reason))
			h.fails(ctx, "Refused", nothing)
		},
		Breaker: func(b coordinator.BreakerChange) { w.sum.count("breaker: " + b.To) },
		Paused:  func(coordinator.PauseChange) { w.sum.count("pause") },
		Panicked: func(hook string, _ any) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.told[hook]++
		},
	}
}

// wire is the way to the referee: it names whose request it is.
type wire struct {
	base http.RoundTripper
	sent sync.Map // by slug: *atomic.Int64
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if r := rideOf(req.Context()); r != nil {
		req.Header.Set("X-Ride", strconv.Itoa(r.i))
		for unit, n := range r.call.Cost {
			req.Header.Set("X-Cost-"+unit, strconv.FormatInt(n, 10))
		}
		if r.call.Key != "" && req.Header.Get("X-Api-Key") == "" {
			req.Header.Set("X-Api-Key", r.call.Key)
		}
	}
	slug, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	n, _ := w.sent.LoadOrStore(slug, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	return w.base.RoundTrip(req)
}

func (w *wire) count(slug string) int64 {
	if n, ok := w.sent.Load(slug); ok {
		return n.(*atomic.Int64).Load()
	}
	return 0
}

// summary counts what happened.
type summary struct {
	mu sync.Mutex
	n  map[string]int
}

func (s *summary) count(what string) { s.more(what, 1) }

func (s *summary) more(what string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == nil {
		s.n = map[string]int{}
	}
	s.n[what] += n
}

func (s *summary) add(of *summary) {
	for what, n := range maps.All(of.n) {
		s.more(what, n)
	}
}

func (s *summary) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(s.n)) {
		b.WriteString(what + " " + strconv.Itoa(s.n[what]) + ", ")
	}
	return strings.TrimSuffix(b.String(), ", ")
}

// missing are things that happen in any dozen of worlds, and did not.
func (s *summary) missing() (all []string) {
	must := []string{"fault: hang", "fault: drop", "fault: delay", "fault: clock", "fault: 500", "fault: 429", "fault: 503", "panic in a function",
		"Goexit in a function", "panic in a hook", "Goexit in a hook", "breaker: open", "breaker: half-open", "pause", "update", "shutdown",
		"refused: canceled", "refused: too_late", "refused: rate_limited", "refused: queue_full", "looked for who is overlooked", "patient world", "elastic limit"}
	for _, way := range ways {
		must = append(must, "call by "+way)
	}
	for _, what := range must {
		if s.n[what] == 0 {
			all = append(all, what)
		}
	}
	return all
}
