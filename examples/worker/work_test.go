package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// delivery is a message that notes what it is told.
type delivery struct {
	jetstream.Msg
	id string

	told  string
	delay time.Duration
	beats chan bool // nil: nobody listens
}

func (d *delivery) Headers() nats.Header { return nats.Header{jetstream.MsgIDHeader: {d.id}} }
func (d *delivery) Data() []byte         { return []byte(`{"job":1}`) }
func (d *delivery) Nak() error           { d.told = "nak"; return nil }

func (d *delivery) InProgress() error {
	select {
	case d.beats <- true:
	default: // nobody listens
	}
	return nil
}

func (d *delivery) NakWithDelay(delay time.Duration) error {
	d.told, d.delay = "nak with delay", delay
	return nil
}

func (d *delivery) DoubleAck(context.Context) error {
	d.told = "ack"
	return nil
}

func (d *delivery) TermWithReason(string) error {
	d.told = "term"
	return nil
}

// office is one worker with a queue of its own, and a provider that is played by a
// handler.
type office struct {
	*worker
	calls atomic.Int64
	going func() // called as a job goes; nil: not
}

func newOffice(t *testing.T, h http.HandlerFunc) *office {
	t.Helper()
	o := new(office)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.calls.Add(1)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	server, url, err := serveQueue(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { stopQueue(server) })
	nc, err := connect(url, "test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	queue, err := openQueue(t.Context(), nc, time.Second)
	require.NoError(t, err)
	p, err := shared(provider.Provider{Slug: "p", Throttle: provider.Throttle{RPM: 1000}})
	require.NoError(t, err)
	going := &coordinator.Trace{Going: func(context.Context, coordinator.CallInfo, time.Duration) {
		if o.going != nil {
			o.going()
		}
	}}
	c, err := coordinator.New(coordinator.Config{Registry: new(registry.Registry), Providers: []provider.Provider{p}, Traces: []*coordinator.Trace{going}})
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	o.worker = &worker{name: "w", queue: queue, c: c, provider: p, url: s.URL, client: client, wait: time.Second, ackWait: time.Second, tries: 3, stderr: t.Output()}
	return o
}

func answers(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(status)
	}
}

func (o *office) record(t *testing.T, id string) record {
	t.Helper()
	r, _, err := o.queue.look(t.Context(), id)
	require.NoError(t, err)
	return r
}

// A job is acknowledged when it is recorded; one that was done already, by a worker that
// died before it could say so, is acknowledged and not done again.
func TestDoneIsDoneOnce(t *testing.T) {
	o := newOffice(t, func(_ http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "a", r.Header.Get("Idempotency-Key"))
		assert.Equal(t, http.MethodPost, r.Method)
	})
	for range 2 {
		d := &delivery{id: "a"}
		o.handle(d)
		assert.Equal(t, "ack", d.told)
	}
	assert.EqualValues(t, 1, o.calls.Load())
	assert.Equal(t, record{State: done, Tries: 1, Worker: "w"}, o.record(t, "a"))
}

// Refused by the provider: it comes back when it was told, and that is no failed try.
func TestRefusedGoesBack(t *testing.T) {
	o := newOffice(t, answers(http.StatusTooManyRequests))
	for i := range 5 {
		d := &delivery{id: "a"}
		o.handle(d)
		assert.Equal(t, "nak with delay", d.told)
		assert.Greater(t, d.delay, 59*time.Second)
		assert.Less(t, d.delay, 67*time.Second)
		assert.EqualValues(t, 1, o.calls.Load(), "after the first we know by ourselves: %d", i)
	}
	assert.Zero(t, o.record(t, "a").Tries)
	assert.EqualValues(t, 5, o.tally.refused.Load())
}

// What fails comes back a few times; what is nonsense does not; and what was tried so often
// by workers who could not tell any more has killed them.
func TestDeadLetters(t *testing.T) {
	o := newOffice(t, answers(http.StatusBadGateway))
	for i, says := range []string{"nak with delay", "nak with delay", "term"} {
		d := &delivery{id: "a"}
		o.handle(d)
		assert.Equal(t, says, d.told)
		assert.Equal(t, i+1, o.record(t, "a").Tries)
	}
	assert.Equal(t, record{State: dead, Tries: 3, Worker: "w", Why: "failed: status 502 Bad Gateway"}, o.record(t, "a"))

	_, err := o.queue.note(t.Context(), "b", record{Tries: 3, Worker: "gone"}, 0)
	require.NoError(t, err)
	d := &delivery{id: "b"}
	o.handle(d)
	assert.Equal(t, "term", d.told)
	assert.EqualValues(t, 3, o.calls.Load(), "it was not tried again")
	assert.Equal(t, "whoever tried it has died", o.record(t, "b").Why)

	letters, err := o.queue.js.Stream(t.Context(), deadStream)
	require.NoError(t, err)
	letter, err := letters.GetLastMsgForSubject(t.Context(), deadSubject)
	require.NoError(t, err)
	assert.JSONEq(t, `{"job":1}`, string(letter.Data))
	assert.Equal(t, "whoever tried it has died", letter.Header.Get("Headgate-Why"))
	assert.Equal(t, "b", letter.Header.Get(jetstream.MsgIDHeader))
	info, err := letters.Info(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 2, info.State.Msgs)
}

// Somebody else begins the job as it goes: it is not sent by both, and what it would have
// cost is given back.
func TestOneAtAJob(t *testing.T) {
	o := newOffice(t, answers(http.StatusOK))
	for _, id := range []string{"new", "known"} {
		if id == "known" {
			_, err := o.queue.note(t.Context(), id, record{}, 0)
			require.NoError(t, err)
		}
		o.going = func() { assert.NoError(t, o.queue.end(t.Context(), id, record{Tries: 1, Worker: "other"})) }
		d := &delivery{id: id}
		o.handle(d)
		assert.Equal(t, "nak", d.told)
		assert.Equal(t, record{Tries: 1, Worker: "other"}, o.record(t, id))
	}
	assert.Zero(t, o.calls.Load())
	state, err := o.c.State("p")
	require.NoError(t, err)
	assert.Zero(t, state.Limits[0].Used+state.Limits[0].Held)
}

// The queue hears of a job for as long as it takes.
func TestHeartbeats(t *testing.T) {
	var heard atomic.Bool
	d := &delivery{id: "a", beats: make(chan bool)}
	o := newOffice(t, func(_ http.ResponseWriter, r *http.Request) {
		for range 3 {
			select {
			case <-d.beats:
			case <-r.Context().Done():
				return
			}
		}
		heard.Store(true)
	})
	o.ackWait = 30 * time.Millisecond
	o.handle(d)
	assert.Equal(t, "ack", d.told)
	assert.True(t, heard.Load(), "three were heard while the provider was at it")
}

// Where the queue cannot be asked, nothing is sent.
func TestWithoutRecordsNothingIsSent(t *testing.T) {
	o := newOffice(t, answers(http.StatusOK))
	o.queue.js.Conn().Close()
	d := &delivery{id: "a"}
	o.handle(d)
	assert.Equal(t, "nak with delay", d.told)
	assert.Zero(t, o.calls.Load())
}
