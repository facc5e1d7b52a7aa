package coordinator

import (
	"context"
	"fmt"
	"strings"

	"github.com/headgate/headgate/provider"
)

// Execute asks the registered adapter of call.Provider, throttled and retried as
// Do does it. An endpoint that neither call nor query names is the first that
// takes the query's kind, is not switched off, and needs no more than the query
// has. Lookups by GET, and those that the endpoint declares so,
// are Replayable.
//
// Where the endpoint declares pages each is a call of its own, one after the
// other, at most as many as it declares; the Result is that of all: its Data the
// array of all items, Next where more is to be had. If a page cannot be asked
// after others have been, Execute returns both: the error, and the Result so far,
// whose Next is the Query.Page to go on with.
//
// What no endpoint takes is refused before it costs anything. So is a call to an
// adapter that has a method Ready() error and says what it lacks (a key); the text
// of that error is shown, so it holds no secret.
func (c *Coordinator) Execute(ctx context.Context, call Call, q provider.Query) (provider.Result, error) {
	w := walk{ctx: ctx, call: call}
	l, refusal := c.lane(call.Provider)
	w.l = l
	if refusal == nil {
		refusal = w.ready(l)
	}
	var pages int
	if refusal == nil {
		pages, refusal = w.route(l, q)
	}
	if refusal != nil {
		return provider.Result{}, w.refusedBy(c, refusal)
	}
	q.Endpoint = w.call.Endpoint
	all, err := c.page(ctx, l, w.call, q)
	for ; err == nil && all.Next != "" && pages > 1; pages-- {
		q.Page = all.Next
		var next provider.Result
		if next, err = c.page(ctx, l, w.call, q); err == nil {
			all = all.Join(next)
		}
	}
	return all, err
}

// page is one call to an adapter.
func (c *Coordinator) page(ctx context.Context, l *lane, call Call, q provider.Query) (provider.Result, error) {
	return Get(ctx, c, call, func(ctx context.Context) (provider.Result, error) {
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

// route picks the endpoint of a query and tells how many pages it has at most. Of
// those that take its kind it is the first that is not switched off, and for which
// the query has all that it needs.
func (w *walk) route(l *lane, q provider.Query) (pages int, refusal *Error) {
	if w.call.Endpoint == "" {
		w.call.Endpoint = q.Endpoint
	}
	l.mu.Lock()
	t := l.t
	l.mu.Unlock()
	kinds, why := false, ""
	for _, e := range l.endpoints {
		kinds = kinds || len(e.Kinds) > 0
		lacks := l.lacks(e, q)
		switch {
		case w.call.Endpoint == "" && (q.Kind == "" || !e.Takes(q.Kind)):
			continue
		case w.call.Endpoint == "" && !t.Switched(e.Name):
			why = "; " + switchedOff(e.Name)
			continue
		case w.call.Endpoint == "" && len(lacks) > 0:
			why = fmt.Sprintf("; endpoint %q needs the query's params %s", e.Name, strings.Join(lacks, ", "))
			continue
		case w.call.Endpoint == "":
			w.call.Endpoint = e.Name
		case w.call.Endpoint != e.Name:
			continue
		case q.Kind != "" && len(e.Kinds) > 0 && !e.Takes(q.Kind):
			return 0, w.invalid(fmt.Sprintf("endpoint %q takes %v, not %q", e.Name, e.Kinds, q.Kind))
		}
		return w.found(e), nil
	}
	if w.call.Endpoint == "" && q.Kind != "" && kinds {
		return 0, w.invalid(fmt.Sprintf("no endpoint takes the kind %q", q.Kind) + why)
	}
	return 1, nil // an endpoint that does not exist is refused at entry
}

// found takes over what an endpoint says of its calls.
func (w *walk) found(e provider.Endpoint) (pages int) {
	switch e.Method {
	case "", "GET", "HEAD":
		w.call.Replayable = true
	}
	w.call.Replayable = w.call.Replayable || e.Replayable
	if e.Paging == nil {
		return 1
	}
	return e.Paging.WithDefaults().Max
}

// lacks is what an endpoint needs of a query's params that are not there.
func (l *lane) lacks(e provider.Endpoint, q provider.Query) (names []string) {
	for _, name := range l.needs[e.Name] {
		if _, ok := q.Params[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}
