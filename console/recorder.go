package console

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

const (
	mostKinds = 8   // of refusals, and of answers, that are told apart for a provider
	mostFlows = 256 // counted by name for a provider; the calls of further ones together
	mostTold  = 64  // quotas of one answer
	mostText  = 256 // bytes of a name or a text: who calls, or answers, may make it as long as he likes
)

// Recorder keeps what a State does not have: which flows wait, which calls were
// refused and why, what the provider told last. The zero value is ready; it is
// safe for concurrent use. It costs each call an allocation of 48 bytes and a lock of
// its provider's own, two more where the call waits, and each provider a few KB, a few
// hundred at the most: of a name or a text the first 256 bytes are kept (of a key's alias
// all, for it may have to be told from others), and flows whose names are the same so
// far count as one.
type Recorder struct {
	providers sync.Map // slug → *record
}

// Refusal is a kind of calls that we refused: those with the same reason, stage,
// limit and endpoint.
type Refusal struct {
	Reason   coordinator.Reason `json:"reason"`
	Stage    coordinator.Stage  `json:"stage"`
	Limit    string             `json:"limit,omitempty"`
	Endpoint string             `json:"endpoint,omitempty"`
	Message  string             `json:"message"` // of the last one
	Count    int64              `json:"count"`
	First    time.Time          `json:"first"`
	Last     time.Time          `json:"last"`
	RetryAt  time.Time          `json:"retry_at,omitzero"` // as the last one was told
}

// Answer is what an attempt told; of those that were not ok one for each outcome,
// detail and endpoint.
type Answer struct {
	Outcome  provider.Outcome `json:"outcome"`
	Detail   string           `json:"detail,omitempty"`
	Endpoint string           `json:"endpoint,omitempty"`
	Key      string           `json:"key,omitempty"`
	Took     float64          `json:"took_seconds"`
	RetryAt  time.Time        `json:"retry_at,omitzero"` // its advice
	Budgets  []Budget         `json:"budgets,omitempty"` // quotas, as it told them
	Count    int64            `json:"count"`
	First    time.Time        `json:"first"`
	Last     time.Time        `json:"last"`
}

// Budget is one quota as an answer told it; what it did not tell is null.
type Budget struct {
	Name      string    `json:"name,omitempty"`
	Unit      string    `json:"unit,omitempty"`
	Limit     *int64    `json:"limit"`
	Remaining *int64    `json:"remaining"`
	Reset     time.Time `json:"reset_at,omitzero"`
}

// record is what is kept of one provider.
type record struct {
	mu      sync.Mutex
	flows   map[string]int // that wait
	further int            // calls of flows beyond mostFlows
	refused []Refusal
	answers []Answer
	last    Answer // none yet where its Count is 0
}

// mark is a call's own context: whether it waits.
type mark struct {
	context.Context
	rec   *Recorder
	waits *record // nil: it does not
	other bool    // it counts as further
}

// Value returns the mark itself for its Recorder.
func (m *mark) Value(key any) any {
	if key == m.rec {
		return m
	}
	return m.Context.Value(key)
}

// Trace returns the hooks that fill the Recorder, for the Config of one Coordinator.
func (r *Recorder) Trace() *coordinator.Trace {
	return &coordinator.Trace{
		Begin:   func(ctx context.Context, _ coordinator.CallInfo) context.Context { return &mark{Context: ctx, rec: r} },
		Waiting: r.waiting,
		Going:   func(ctx context.Context, c coordinator.CallInfo, _ time.Duration) { r.waitsNoMore(ctx, c) },
		Refused: r.refused,
		Attempt: r.answered,
	}
}

// of returns a provider's record. The hooks name only providers that are declared.
func (r *Recorder) of(slug string) *record {
	if x, ok := r.providers.Load(slug); ok {
		return x.(*record)
	}
	x, _ := r.providers.LoadOrStore(slug, &record{flows: make(map[string]int)})
	return x.(*record)
}

// A call's hooks run on one goroutine, one after the other: its mark needs no lock.
func (r *Recorder) waiting(ctx context.Context, c coordinator.CallInfo, _ coordinator.QueueState) {
	m, ok := ctx.Value(r).(*mark)
	if !ok { // another Trace's Begin has put a context of its own in our place
		return
	}
	m.waits = r.of(c.Provider)
	m.waits.mu.Lock()
	defer m.waits.mu.Unlock()
	flow := clipped(c.Flow)
	_, known := m.waits.flows[flow]
	if m.other = !known && len(m.waits.flows) >= mostFlows; m.other {
		m.waits.further++
		return
	}
	m.waits.flows[flow]++
}

func (r *Recorder) waitsNoMore(ctx context.Context, c coordinator.CallInfo) {
	m, ok := ctx.Value(r).(*mark)
	if !ok || m.waits == nil {
		return
	}
	x := m.waits
	m.waits = nil
	x.mu.Lock()
	defer x.mu.Unlock()
	flow := clipped(c.Flow)
	switch n := x.flows[flow]; {
	case m.other:
		x.further--
	case n > 1:
		x.flows[flow] = n - 1
	default:
		delete(x.flows, flow)
	}
}

func (r *Recorder) refused(ctx context.Context, c coordinator.CallInfo, e *coordinator.Error) {
	r.waitsNoMore(ctx, c)
	switch e.Reason {
	case coordinator.ReasonUnknownProvider, coordinator.ReasonCanceled: // whose names have no bound; no refusal
		return
	}
	now := time.Now()
	message, _, _ := strings.Cut(strings.TrimPrefix(e.Error(), "coordinator: "+e.Provider+": "), ". Retry in ")
	n := Refusal{Reason: e.Reason, Stage: e.Stage, Endpoint: clipped(c.Endpoint), Message: clipped(message), Count: 1, First: now, Last: now, RetryAt: e.RetryAt}
	if e.Limit != nil {
		n.Limit = clipped(e.Limit.Name)
	}
	x := r.of(c.Provider)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refused = latest(x.refused, n, func(o *Refusal) bool {
		return o.Reason == n.Reason && o.Stage == n.Stage && o.Limit == n.Limit && o.Endpoint == n.Endpoint
	}, func(n, o *Refusal) { n.Count, n.First = o.Count+1, o.First })
}

func (r *Recorder) answered(_ context.Context, c coordinator.CallInfo, f provider.Feedback, took time.Duration) {
	if f.Outcome == provider.Canceled {
		return
	}
	now := time.Now()
	n := Answer{
		Outcome: cmp.Or(f.Outcome, provider.OK), Detail: clipped(f.Detail), Endpoint: clipped(c.Endpoint), Key: c.Key, Took: seconds(took),
		Count: 1, First: now, Last: now, Budgets: budgets(f.Budgets, now),
	}
	if f.RetryAfter > 0 {
		n.RetryAt = now.Add(f.RetryAfter)
	}
	x := r.of(c.Provider)
	x.mu.Lock()
	defer x.mu.Unlock()
	if !f.Unanswered {
		x.last = n
	}
	if n.Outcome == provider.OK || n.Outcome == provider.Rejected {
		return
	}
	x.answers = latest(x.answers, n, func(o *Answer) bool {
		return o.Outcome == n.Outcome && o.Detail == n.Detail && o.Endpoint == n.Endpoint
	}, func(n, o *Answer) { n.Count, n.First = o.Count+1, o.First })
}

// latest puts n first, joined with the one of its kind, and forgets the kind that has
// not come for the longest time where there are too many.
func latest[T any](all []T, n T, same func(*T) bool, join func(n, old *T)) []T {
	for i := range all {
		if same(&all[i]) {
			join(&n, &all[i])
			copy(all[1:i+1], all[:i])
			all[0] = n
			return all
		}
	}
	all = slices.Insert(all, 0, n)
	return all[:min(len(all), mostKinds)]
}

func budgets(told []provider.Budget, now time.Time) (all []Budget) {
	for _, b := range told[:min(len(told), mostTold)] {
		n := Budget{Name: clipped(b.Name), Unit: clipped(b.Unit)}
		if b.HasLimit {
			n.Limit = &b.Limit
		}
		if b.HasRemaining {
			n.Remaining = &b.Remaining
		}
		if b.HasReset {
			n.Reset = now.Add(b.Reset)
		}
		all = append(all, n)
	}
	return all
}

// clipped is s, or as much of its beginning as is kept, and a mark.
func clipped(s string) string {
	if len(s) <= mostText {
		return s
	}
	return strings.ToValidUTF8(s[:mostText], "") + "…"
}

// flowsOf returns who waits, most first, no more than so many.
func (r *Recorder) flowsOf(slug string, most int) (all []Flow) {
	x := r.of(slug)
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, n := range x.flows {
		all = append(all, Flow{name, n})
	}
	slices.SortFunc(all, func(a, b Flow) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(a.Name, b.Name))
	})
	further := x.further
	if len(all) > most {
		for _, f := range all[most:] {
			further += f.Waiting
		}
		all = all[:most]
	}
	if further > 0 {
		all = append(all, Flow{"(others)", further})
	}
	return all
}

// heard returns copies of what was refused and answered; nil: there was no answer yet.
func (r *Recorder) heard(slug string) (refused []Refusal, answers []Answer, last *Answer) {
	x := r.of(slug)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.last.Count > 0 {
		n := x.last
		last = &n
	}
	return slices.Clone(x.refused), slices.Clone(x.answers), last
}
