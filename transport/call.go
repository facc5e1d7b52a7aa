package transport

import (
	"context"
	"net/http"

	"github.com/headgate/headgate/coordinator"
)

type callKey struct{}

var callOf any = callKey{} // made once: a conversion would allocate

// WithCall returns a context whose requests go as call says: Flow, Priority, Key,
// Cost, Endpoint, Wait and Replayable, each where it is not the zero value; else
// what the request itself tells. The provider is always found by the URL: where
// call names one, only requests to that provider take its Key, Cost, Endpoint and
// Replayable, so that a redirect to another host is not charged by them. Endpoint
// is for the first request; a redirect's is found by its path. Of two WithCall in
// one context the inner one counts. call.Cost is not to be changed afterwards.
func WithCall(ctx context.Context, call coordinator.Call) context.Context {
	return context.WithValue(ctx, callOf, &call)
}

// route returns the call that a request is; a nil target: it is nobody's.
func (t *Transport) route(r *http.Request) (call coordinator.Call, to *target, err error) {
	switch {
	case t.Route == nil:
		tab, err := t.places()
		if err != nil {
			return call, nil, err
		}
		if r.URL == nil {
			return call, nil, nil // Base says so
		}
		to, call.Endpoint = tab.find(r)
		if to == nil {
			return call, nil, nil
		}
		call.Provider = to.slug
	case t.Coordinator == nil:
		return call, nil, errNoCoordinator
	default:
		ours, ok := t.Route(r)
		if !ok {
			return call, nil, nil
		}
		call, to = ours, t.target(ours.Provider)
	}
	if with, ok := r.Context().Value(callOf).(*coordinator.Call); ok {
		merge(&call, with, r.Response != nil)
	}
	return call, to, nil
}

// merge puts what the context says over what the request tells.
func merge(call, with *coordinator.Call, redirected bool) {
	if with.Flow != "" {
		call.Flow = with.Flow
	}
	if with.Priority != coordinator.Normal {
		call.Priority = with.Priority
	}
	if with.Wait != 0 {
		call.Wait = with.Wait
	}
	if with.Provider != "" && with.Provider != call.Provider {
		return
	}
	if with.Key != "" {
		call.Key = with.Key
	}
	if with.Cost != nil {
		call.Cost = with.Cost
	}
	if with.Endpoint != "" && !redirected {
		call.Endpoint = with.Endpoint
	}
	call.Replayable = call.Replayable || with.Replayable
}

// target finds the provider of a call that Route names. One that nobody declared
// is left to the Coordinator, which refuses it and names near ones.
func (t *Transport) target(slug string) *target {
	if to, ok := t.targets.Load(slug); ok {
		return to.(*target)
	}
	for p := range t.Coordinator.Providers() {
		if p.Slug == slug {
			to, _ := t.targets.LoadOrStore(slug, newTarget(p))
			return to.(*target)
		}
	}
	return &target{slug: slug}
}
