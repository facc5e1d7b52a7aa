package main

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// reasonMaxCalls is why a lookup was not asked: -max-calls were spent. It is a
// reason of this program's, beside those of the coordinator.
const reasonMaxCalls coordinator.Reason = "max_calls"

var errMaxCalls = errors.New("osint: not asked: the provider's calls of this run are spent (-max-calls)")

// budget is an adapter that makes so many calls, and no more. A page is a call, and
// so is a retry. Lookups are counted before they are handed over (reserve), so that
// none waits for a turn only to hear that there is no call left; what pages and
// retries take besides is counted as they go.
type budget struct {
	provider.Adapter
	most int64

	reserved atomic.Int64
	made     atomic.Int64
}

// reserve takes a call for a lookup; false: there is none left.
func (b *budget) reserve() bool {
	return b == nil || max(b.reserved.Add(1), b.made.Load()+1) <= b.most
}

// Lookup makes a call, if there is one left.
func (b *budget) Lookup(ctx context.Context, q provider.Query) (provider.Result, error) {
	if b.made.Add(1) <= b.most {
		return b.Adapter.Lookup(ctx, q)
	}
	if l, ok := coordinator.LeaseFrom(ctx); ok {
		l.Forget() // it was never sent: its turn is given back
	}
	return provider.Result{}, provider.Feedback{Outcome: provider.Canceled, Detail: "max_calls"}.Err(errMaxCalls)
}

// Ready is the adapter's.
func (b *budget) Ready() error { return ready(b.Adapter) }

func ready(a provider.Adapter) error {
	if r, ok := a.(interface{ Ready() error }); ok {
		return r.Ready()
	}
	return nil
}

// budgeted bounds the calls of each target.
func budgeted(targets []*target, most int) {
	for _, t := range targets {
		if most > 0 && t.missing == nil {
			t.budget = &budget{Adapter: t.adapter, most: int64(most)}
			t.adapter = t.budget
		}
	}
}

// unasked is a lookup that -max-calls leaves out.
func (t *target) unasked(j job) *lookup {
	return &lookup{job: j, provider: t.p.Slug, err: &coordinator.Error{
		Provider: t.p.Slug, Reason: reasonMaxCalls, Stage: coordinator.StageEntry, Err: errMaxCalls,
	}}
}
