package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/provider"
)

// worker does jobs, some at a time.
type worker struct {
	name     string
	queue    *jobQueue
	c        *coordinator.Coordinator
	provider provider.Provider
	url      string // may hold a secret
	client   *http.Client
	wait     time.Duration
	ackWait  time.Duration
	tries    int
	tally    tally
	stderr   io.Writer
}

// work takes jobs until ctx ends, and returns when those that are out have come back.
// Those that wait for their turn go back to the queue at once.
func (w *worker) work(ctx context.Context, at int) error {
	var all sync.WaitGroup
	for range at {
		all.Go(func() { w.pull(ctx) })
	}
	<-ctx.Done()
	closing, cancel := context.WithTimeout(context.Background(), aMoment)
	defer cancel()
	err := w.c.Shutdown(closing)
	all.Wait()
	return err
}

// pull does one job after the other. After one whose turn is too far away it rests until
// then: the next job would be told the same.
func (w *worker) pull(ctx context.Context) {
	for ctx.Err() == nil {
		msg, err := w.next(ctx)
		switch {
		case msg != nil:
			stage.Sleep(ctx, w.handle(msg))
		case err != nil && !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			fmt.Fprintf(w.stderr, "worker: %s: no job from the queue: %v\n", w.name, err)
			stage.Sleep(ctx, time.Second) // the client connects again by itself
		}
	}
}

// next waits for a job; nil: there is none now.
func (w *worker) next(ctx context.Context) (jetstream.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	batch, err := w.queue.consumer.Fetch(1, jetstream.FetchContext(ctx))
	if err != nil {
		return nil, err
	}
	for msg := range batch.Messages() {
		return msg, nil
	}
	return nil, batch.Error()
}

// handle does a job and tells the queue. What cannot be told is told by silence: the
// queue gives the job to somebody else. It returns how long no other job could go.
func (w *worker) handle(msg jetstream.Msg) (rest time.Duration) {
	ctx, cancel := context.WithCancel(context.Background()) // a job that is out is not broken off
	defer cancel()
	defer w.beat(msg)()
	id := msg.Headers().Get(jetstream.MsgIDHeader)
	r, revision, err := w.queue.look(ctx, id)
	switch {
	case err != nil:
		_ = msg.NakWithDelay(unknownWait)
		return unknownWait
	case r.State != "":
		_ = msg.DoubleAck(ctx) // it was done by one who could not say so any more
		return 0
	case r.Tries >= w.tries:
		w.bury(ctx, msg, id, r, "whoever tried it has died")
		return 0
	}
	begun := false
	err = w.c.Do(ctx, coordinator.Call{Provider: w.provider.Slug, Flow: "jobs", Wait: w.wait}, func(ctx context.Context) error {
		r.Tries, r.Worker = r.Tries+1, w.name
		if revision, err = w.queue.note(ctx, id, r, revision); err != nil {
			if l, ok := coordinator.LeaseFrom(ctx); ok {
				l.Forget() // it is not sent
			}
			return provider.Feedback{Outcome: provider.Canceled}.Err(err)
		}
		begun = true
		return w.post(ctx, id, msg.Data())
	})
	return w.tell(ctx, msg, id, r, revision, begun, judge(err, r.Tries, w.tries))
}

// tell tells the queue what became of a job. It is acknowledged when that is recorded, and
// not before.
func (w *worker) tell(ctx context.Context, msg jetstream.Msg, id string, r record, revision uint64, begun bool, v verdict) (rest time.Duration) {
	switch {
	case v.done:
		r.State = done
		if w.queue.end(ctx, id, r) == nil && msg.DoubleAck(ctx) == nil {
			w.tally.done.Add(1)
		}
		return 0
	case v.dead:
		w.bury(ctx, msg, id, r, v.why)
		return 0
	case v.fault:
		w.tally.failed.Add(1)
		_ = msg.NakWithDelay(later(v.again))
		return 0
	}
	if begun { // it was asked, and it is not the job's fault that it was refused
		r.Tries--
		_, _ = w.queue.note(ctx, id, r, revision)
	}
	if v.again > 0 {
		w.tally.refused.Add(1)
		_ = msg.NakWithDelay(later(v.again))
		return v.again
	}
	_ = msg.Nak()
	return 0
}

func (w *worker) bury(ctx context.Context, msg jetstream.Msg, id string, r record, why string) {
	r.State, r.Worker, r.Why = dead, w.name, why
	if w.queue.bury(ctx, id, msg.Data(), r) == nil && msg.TermWithReason(why) == nil {
		w.tally.dead.Add(1)
	}
}

// beat tells the queue, until stop, that the job is being worked on: it may wait for its
// turn for longer than the queue is patient.
func (w *worker) beat(msg jetstream.Msg) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		every := time.NewTicker(w.ackWait / 3)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				_ = msg.InProgress()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

const mostAnswer = 64 << 10 // of an answer is read

// post is the call: the job's name goes along, so that the provider can know one that
// comes twice.
func (w *worker) post(ctx context.Context, id string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", id)
	res, err := w.client.Do(req)
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, mostAnswer))
	if err != nil {
		return fmt.Errorf("no whole answer: %w", err)
	}
	f := dialect.Read(w.provider.Dialect, res, answer, time.Now())
	if f.Outcome == provider.OK {
		if l, ok := coordinator.LeaseFrom(ctx); ok {
			l.Report(f) // what it told of quotas
		}
		return nil
	}
	return f.Err(statusError(res.StatusCode))
}
