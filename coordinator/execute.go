package coordinator

import (
	"context"
	"fmt"

	"github.com/headgate/headgate/provider"
)

// Execute asks the registered adapter of call.Provider, throttled and retried as
// Do does it. An endpoint that neither call nor query names is the first that
// takes the query's kind. Lookups by GET are Replayable.
//
// What no endpoint takes is refused before it costs anything. So is a call to an
// adapter that has a method Ready() error and says what it lacks (a key); the text
// of that error is shown, so it holds no secret.
func (c *Coordinator) Execute(ctx context.Context, call Call, q provider.Query) (provider.Result, error) {
	w := &walk{ctx: ctx, call: call}
	l, refusal := c.lane(call.Provider)
	if refusal == nil {
		refusal = w.ready(l)
	}
	if refusal == nil {
		refusal = w.route(l.endpoints, q)
	}
	if refusal != nil {
		return provider.Result{}, w.refusedBy(c, refusal)
	}
	q.Endpoint = w.call.Endpoint
	return Get(ctx, c, w.call, func(ctx context.Context) (provider.Result, error) {
		ls, _ := LeaseFrom(ctx)
		q.Key = ls.Key()
		res, err := l.adapter.Lookup(ctx, q)
		if err == nil {
			ls.Report(res.Feedback)
			if o := res.Feedback.Outcome; o != "" && o != provider.OK {
				err = res.Feedback.Err(nil) // it answered, but not with data
			}
		}
		return res, err
	})
}

// ready tells what keeps the adapter from being asked at all.
func (w *walk) ready(l *lane) *Error {
	if l.adapter == nil {
		return w.invalid("declared without an adapter: use Do")
	}
	if r, ok := l.adapter.(interface{ Ready() error }); ok {
		if err := r.Ready(); err != nil {
			e := w.invalid("the adapter is not ready: " + err.Error())
			e.Err = err
			return e
		}
	}
	return nil
}

// route picks the endpoint of a query.
func (w *walk) route(endpoints []provider.Endpoint, q provider.Query) *Error {
	if w.call.Endpoint == "" {
		w.call.Endpoint = q.Endpoint
	}
	kinds := false
	for _, e := range endpoints {
		kinds = kinds || len(e.Kinds) > 0
		switch {
		case w.call.Endpoint == "" && q.Kind != "" && e.Takes(q.Kind):
			w.call.Endpoint = e.Name
		case w.call.Endpoint != e.Name:
			continue
		case q.Kind != "" && len(e.Kinds) > 0 && !e.Takes(q.Kind):
			return w.invalid(fmt.Sprintf("endpoint %q takes %v, not %q", e.Name, e.Kinds, q.Kind))
		}
		switch e.Method {
		case "", "GET", "HEAD":
			w.call.Replayable = true
		}
		return nil
	}
	if w.call.Endpoint == "" && q.Kind != "" && kinds {
		return w.invalid(fmt.Sprintf("no endpoint takes the kind %q", q.Kind))
	}
	return nil // an endpoint that does not exist is refused at entry
}
