package soak

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/transport"
)

// thrown is what functions and hooks of ours panic with.
const thrown = "thrown on purpose"

func (r *ride) run(ctx context.Context) error {
	w, c := r.w, r.w.c
	switch r.how {
	case "do":
		return c.Do(ctx, r.call, r.byHand)
	case "do under client":
		return c.Do(ctx, r.call, r.fetch)
	case "get":
		_, err := coordinator.Get(ctx, c, r.call, func(ctx context.Context) (int, error) { return r.i, r.byHand(ctx) })
		return err
	case "acquire":
		return r.lease(ctx)
	case "execute":
		kind := map[string]provider.Kind{"": provider.IP, "a": provider.IP, "b": provider.Domain, "c": provider.Hash}[r.call.Endpoint]
		_, err := c.Execute(ctx, r.call, provider.Query{Kind: kind, Value: "203.0.113.7"})
		return err
	case "nested":
		return c.Do(ctx, r.call, func(ctx context.Context) error {
			inner := coordinator.Call{Provider: r.into.p.Slug, Endpoint: "c", Flow: r.call.Flow, Wait: time.Second}
			err := r.byHand(ctx) // first: a call that waits inside another one takes its request to be out
			_ = c.Do(ctx, inner, func(context.Context) error { return provider.Feedback{Outcome: provider.Canceled}.Err(nil) })
			return err
		})
	case "bare": // nothing is sent, and it is said so or not
		return c.Do(ctx, r.call, func(ctx context.Context) error {
			r.breaks()
			ls, _ := coordinator.LeaseFrom(ctx)
			if r.body > 0 {
				ls.Forget()
			}
			return context.Canceled
		})
	}
	w.sum.count("over the transport")
	ctx = transport.WithCall(ctx, r.call)
	return r.fetch(ctx)
}

// fetch makes one request and leaves its answer's body in one way or another.
func (r *ride) fetch(ctx context.Context) error {
	if r.how != "client" {
		r.breaks()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.site.p.BaseURL+r.path, nil)
	if err != nil {
		return err
	}
	res, err := r.w.client.Do(req)
	if err != nil {
		return err
	}
	switch r.body {
	case 0:
	case 1:
		time.Sleep(r.serve)
	default:
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return err
		}
	}
	if err := res.Body.Close(); err != nil || res.StatusCode < 400 {
		return err
	}
	return status(res.StatusCode)
}

// status is the error of an answer that is not a success.
type status int

func (s status) Error() string   { return fmt.Sprint("status ", int(s)) }
func (s status) StatusCode() int { return int(s) }

// byHand is an attempt without HTTP. It arrives even where its caller has gone.
func (r *ride) byHand(ctx context.Context) error {
	ls, _ := coordinator.LeaseFrom(ctx)
	if r.body > 1 { // else nobody knows when it was sent
		ls.Sent()
	}
	answer := make(chan provider.Feedback, 1)
	r.w.running.Go(func() { answer <- r.arrive(ls.Key()) })
	var done <-chan struct{}
	if !r.patient {
		done = ctx.Done()
	}
	select {
	case f := <-answer:
		r.breaks()
		if f.Outcome == provider.OK && r.early > 0 {
			f.Used = map[string]int64{provider.Requests: r.cost()[provider.Requests] + r.early}
			ls.Report(f)
			return nil
		}
		return f.Err(nil)
	case <-done:
		return ctx.Err()
	}
}

// cost is what the call costs, complete.
func (r *ride) cost() map[string]int64 {
	all := map[string]int64{provider.Requests: 1}
	for _, e := range r.site.p.Endpoints {
		if e.Name == r.call.Endpoint {
			for unit, n := range e.Cost {
				all[unit] = n
			}
		}
	}
	for unit, n := range r.call.Cost {
		all[unit] = n
	}
	return all
}

// arrive is the request at the provider, and its answer on its way back.
func (r *ride) arrive(key string) provider.Feedback {
	time.Sleep(r.there)
	r.hand.Add(1)
	leave, ok := r.w.ref.Enter(r.site.p.Slug, r.call.Endpoint, key, r.call.Cost)
	f := provider.Feedback{Outcome: provider.RateLimited}
	if ok {
		r.w.noted(r.site, r.call.Endpoint, time.Now(), r.cost())
		f = r.fault().feedback()
		time.Sleep(r.serve)
	}
	leave(f.Outcome)
	time.Sleep(r.back)
	return f
}

// lease is a call that is no function: reported, or not, and released twice.
func (r *ride) lease(ctx context.Context) error {
	ls, err := r.w.c.Acquire(ctx, r.call)
	if err != nil {
		return err
	}
	defer ls.Release()
	defer ls.Release()
	if r.body == 0 && !r.patient {
		ls.Forget() // before anything was sent
		return nil
	}
	ls.Sent()
	f := r.arrive(ls.Key())
	r.breaks()
	if r.body > 1 {
		ls.Report(f)
		ls.Report(provider.Feedback{Used: map[string]int64{provider.Tokens: 20}})
	}
	return nil
}

// breaks ends the function in a way that no function should.
func (r *ride) breaks() {
	switch r.fails {
	case "panic":
		r.w.sum.count("panic in a function")
		panic(thrown)
	case "exit":
		r.w.sum.count("Goexit in a function")
		runtime.Goexit()
	}
}
