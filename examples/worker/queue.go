package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// What there is on the server.
const (
	jobStream, jobSubject   = "HEADGATE_JOBS", "headgate.jobs"
	deadStream, deadSubject = "HEADGATE_DEAD", "headgate.dead"
	recordBucket            = "headgate-records"
	consumerName            = "workers"
	statsSubject            = "headgate.stats"
)

const (
	aMoment  = 5 * time.Second    // that the server has for an answer
	recorded = 7 * 24 * time.Hour // after which what became of a job is forgotten
)

// record is what is known of a job besides its body.
type record struct {
	State  string `json:"state,omitempty"` // "": not done yet
	Tries  int    `json:"tries,omitempty"` // times that the provider was asked
	Worker string `json:"worker,omitempty"`
	Why    string `json:"why,omitempty"` // of dead: no secret
}

// The ends of a job.
const done, dead = "done", "dead"

// jobQueue is the queue: jobs in a stream, from which each goes when it is acknowledged,
// their records in a bucket, and the dead letters.
type jobQueue struct {
	js       jetstream.JetStream
	jobs     jetstream.Stream
	records  jetstream.KeyValue
	consumer jetstream.Consumer
}

// connect connects to a server. Errors do not name the URL, which may hold a password.
func connect(url, name string) (*nats.Conn, error) {
	nc, err := nats.Connect(url, nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(250*time.Millisecond), nats.Timeout(aMoment))
	if err != nil {
		return nil, fmt.Errorf("the queue's server cannot be reached: %w", err)
	}
	return nc, nil
}

// openQueue finds or makes all that. ackWait is after what silence of a worker a job is
// given to another one.
func openQueue(ctx context.Context, nc *nats.Conn, ackWait time.Duration) (q *jobQueue, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*aMoment)
	defer cancel()
	q = new(jobQueue)
	if q.js, err = jetstream.New(nc); err != nil {
		return nil, err
	}
	fail := func(what string, err error) (*jobQueue, error) {
		return nil, fmt.Errorf("the queue's %s cannot be made: %w", what, err)
	}
	q.jobs, err = q.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: jobStream, Subjects: []string{jobSubject}, Storage: jetstream.FileStorage, Retention: jetstream.WorkQueuePolicy,
	})
	if err != nil {
		return fail("stream", err)
	}
	_, err = q.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: deadStream, Subjects: []string{deadSubject}, Storage: jetstream.FileStorage})
	if err != nil {
		return fail("stream of dead letters", err)
	}
	q.records, err = q.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: recordBucket, Storage: jetstream.FileStorage, TTL: recorded})
	if err != nil {
		return fail("bucket of records", err)
	}
	// How often it was delivered says nothing of a job: most come back because it was not
	// their turn. So deliveries are not bounded here; the record counts what failed.
	q.consumer, err = q.jobs.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1, MaxAckPending: 100_000,
	})
	if err != nil {
		return fail("consumer", err)
	}
	return q, nil
}

// put puts a job into the queue. The same name twice, within the server's two minutes, is
// one job.
func (q *jobQueue) put(ctx context.Context, id string, body []byte) error {
	_, err := q.js.Publish(ctx, jobSubject, body, jetstream.WithMsgID(id))
	if err != nil {
		return fmt.Errorf("job %s cannot be put into the queue: %w", id, err)
	}
	// A worker may be at it already: then there is a record.
	if _, err = q.note(ctx, id, record{}, 0); errors.Is(err, jetstream.ErrKeyExists) {
		err = nil
	}
	return err
}

// left is how many jobs are not done.
func (q *jobQueue) left(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, aMoment)
	defer cancel()
	info, err := q.jobs.Info(ctx)
	if err != nil {
		return 0, err
	}
	return int(info.State.Msgs), nil
}

// look reads a job's record; revision 0: there is none.
func (q *jobQueue) look(ctx context.Context, id string) (r record, revision uint64, err error) {
	e, err := q.records.Get(ctx, id)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return r, 0, nil
	case err != nil:
		return r, 0, err
	}
	return r, e.Revision(), json.Unmarshal(e.Value(), &r)
}

// note writes a job's record in place of the one of that revision, and returns its own;
// 0: there is none yet. An error means, too, that somebody else was faster.
func (q *jobQueue) note(ctx context.Context, id string, r record, revision uint64) (uint64, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	if revision == 0 {
		return q.records.Create(ctx, id, text)
	}
	return q.records.Update(ctx, id, text, revision)
}

// end writes a job's last record, whoever is at it: there is an answer.
func (q *jobQueue) end(ctx context.Context, id string, r record) error {
	text, err := json.Marshal(r)
	if err == nil {
		_, err = q.records.Put(ctx, id, text)
	}
	return err
}

// bury sends a job to the dead letters.
func (q *jobQueue) bury(ctx context.Context, id string, body []byte, r record) error {
	letter := nats.NewMsg(deadSubject)
	letter.Data = body
	letter.Header.Set("Headgate-Why", r.Why)
	letter.Header.Set("Headgate-Tries", strconv.Itoa(r.Tries))
	if _, err := q.js.PublishMsg(ctx, letter, jetstream.WithMsgID(id)); err != nil {
		return err
	}
	return q.end(ctx, id, r)
}

// each calls f with all records.
func (q *jobQueue) each(ctx context.Context, f func(id string, r record)) error {
	w, err := q.records.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return err
	}
	defer func() { _ = w.Stop() }() // the connection goes, too
	for e := range w.Updates() {
		if e == nil { // that was all
			return nil
		}
		var r record
		if err := json.NewDecoder(bytes.NewReader(e.Value())).Decode(&r); err != nil {
			return fmt.Errorf("the record of job %s: %w", e.Key(), err)
		}
		f(e.Key(), r)
	}
	return ctx.Err()
}
