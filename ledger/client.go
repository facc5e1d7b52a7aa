package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

var _ Ledger = (*Client)(nil)

// Client is a Ledger over a Store: it speaks for one process. Open makes it; it is safe
// for concurrent use.
//
// It says one batch at a time to the store, and what comes meanwhile goes with the next:
// a call alone goes at once, a thousand share a round trip. One goroutine of its own does
// that, and one more for each that watches; all end with Close.
//
// Where a decision is not there within Settings.Budget, all who wait get ErrDown, and so
// does each Take from then on, at once, until the store has answered within the budget
// again and has heard all that was queued. The client tries after 100 ms, and then less
// often, down to every Settings.Beat. What such a Take may have been granted after all
// is given back. A Take that comes while a batch is under way waits for two round trips:
// a budget below that is too small.
//
// What is queued for a store that is down needs bounded memory: of each counter a sum for
// each 64th of the time for which its units count, at the latest instant in it, which is
// the strict side; one settlement of each unit that is held; the last news of each scope
// and counter; and 4096 charges that take something back (without the others units stay
// charged). As many sums are kept of what this client has charged lately, for a store
// that has lost its state, until they count no more.
type Client struct {
	store    Store
	settings Settings
	holder   string
	patience time.Duration // after it, an exchange has failed
	status   atomic.Pointer[Status]

	wake   chan struct{}      // there is something to say
	quit   chan struct{}      // Close has begun
	hello  chan struct{}      // the first exchange is over
	done   chan struct{}      // so is the last
	end    context.CancelFunc // breaks off whatever exchange there is
	closed chan struct{}      // Close is over, with this error:
	err    error

	mu       sync.Mutex
	closing  bool
	down     error     // what requests get; nil: the store is up
	late     time.Time // when the exchange under way is; zero: there is none, or it may take its time
	alarm    *time.Timer
	hold     Hold // the last one named
	takes    []*request
	others   []*request     // to peek and to forget
	held     map[Hold]*Held // granted and not settled
	said     *said          // under way
	doubt    *said          // to be said again: nobody knows whether it was carried out
	queue    queue
	history  history
	watchers map[*watcher]struct{}

	seq     uint64          // of the last batch
	epoch   string          // of the store's state, as known
	version uint64          // of its pauses; 0: they are not known
	pauses  map[scope]known // as the store told them last
	refused int             // batches in a row for which the state was another one
	retry   time.Duration   // the last rest of a store that is down
}

// Open makes a Ledger of a store, which is closed with it. It says hello to the store
// and waits for the answer, a second at most (ten budgets, if that is longer). A store
// that does not answer is no error: Status tells, and the client goes on trying. An error
// means that the settings are wrong, and the store is left alone.
func Open(store Store, s Settings) (*Client, error) {
	if store == nil {
		return nil, errors.New("ledger: Open needs a store")
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	s = s.WithDefaults()
	ctx, end := context.WithCancel(context.Background())
	c := &Client{
		store: store, settings: s, holder: rand.Text(), patience: max(time.Second, 10*s.Budget),
		wake: make(chan struct{}, 1), quit: make(chan struct{}), hello: make(chan struct{}),
		done: make(chan struct{}), closed: make(chan struct{}), end: end,
		held: map[Hold]*Held{}, watchers: map[*watcher]struct{}{},
	}
	c.alarm = time.AfterFunc(c.patience, c.overdue)
	c.alarm.Stop()
	c.status.Store(&Status{Since: time.Now()})
	c.goDown("not reached yet")
	go c.run(ctx)
	wait := time.NewTimer(c.patience)
	defer wait.Stop()
	select {
	case <-c.hello:
	case <-wait.C:
	}
	return c, nil
}

// validate returns every fault, joined.
func (s Settings) validate() error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("ledger: "+format, args...))
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"longer", s.Longer}, {"budget", s.Budget}, {"lease", s.Lease}, {"beat", s.Beat}} {
		if d.d < 0 {
			fault("%s is %v: it must not be below 0", d.name, d.d)
		}
	}
	if s.Lease > 0 && s.Lease < time.Second {
		fault("lease is %v: it must be at least 1s, or 0 for the default", s.Lease)
	}
	if d := s.WithDefaults(); d.Budget >= d.Lease {
		fault("budget is %v: it must be below the lease, %v", d.Budget, d.Lease)
	}
	if s.Replicas < 0 {
		fault("replicas is %d: it must not be below 0", s.Replicas)
	}
	if !slices.Contains([]Mode{"", Share, Deny, Free}, s.Mode) {
		fault("mode is %q: it must be %s, %s or %s", s.Mode, Share, Deny, Free)
	}
	return errors.Join(faults...)
}

// Settings implements Ledger.
func (c *Client) Settings() Settings { return c.settings }

// Status implements Ledger. While the store is up, Detail is the store's own warning, if
// it has one.
func (c *Client) Status() Status { return *c.status.Load() }

// Take implements Ledger.
func (c *Client) Take(ctx context.Context, t Take) (Grant, error) {
	t.Units = slices.Clone(t.Units)
	r := &request{take: t}
	err := c.ask(ctx, r, &c.takes)
	return r.grant, err
}

// Peek implements Ledger. It asks for 512 counters at once, so that others need not wait
// for many.
func (c *Client) Peek(ctx context.Context, counters []*Counter) ([]Usage, error) {
	all := make([]Usage, 0, len(counters))
	for some := range slices.Chunk(counters, atOnce) {
		r := &request{peek: slices.Clone(some)}
		if err := c.ask(ctx, r, &c.others); err != nil {
			return nil, err
		}
		all = append(all, r.usages...)
	}
	return all, nil
}

// Forget implements Ledger. After an error it is not known whether the store has
// forgotten.
func (c *Client) Forget(ctx context.Context, slug string) error {
	return c.ask(ctx, &request{forget: slug}, &c.others)
}

// Settle implements Ledger. The zero At is now.
func (c *Client) Settle(s Settlement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.held[s.Hold]
	if h == nil || c.closing {
		return
	}
	now := time.Now()
	if s.At.IsZero() {
		s.At = now
	}
	parts, left := h.settle(&s)
	if len(parts) == 0 && len(h.Take.Units) > 0 && s.Trial == "" {
		return // all of it was settled before
	}
	if len(left) == 0 {
		delete(c.held, s.Hold)
	}
	h.Part = left
	if !s.Back {
		for _, p := range parts {
			c.history.charge(now, Charge{Counter: h.Take.Units[p.Unit].Counter, At: s.At, N: p.Charged})
		}
	}
	said := settled{Settlement: s}
	if s.Trial == Opens {
		said.opens = scopesOf(h.Take)
	}
	c.queue.settled = append(c.queue.settled, said)
	c.signal()
}

// Charge implements Ledger. The zero At is now, and so is one to come.
func (c *Client) Charge(ch Charge) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch.N == 0 || c.closing {
		return
	}
	now := time.Now()
	if ch.At.IsZero() || ch.At.After(now) {
		ch.At = now
	}
	if c.history.charge(now, ch) {
		c.queue.charge(now, ch)
		c.signal()
	}
}

// Tell implements Ledger.
func (c *Client) Tell(n News) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return
	}
	n = n.clone()
	if n.Learn != nil {
		c.history.learn(*n.Learn)
	}
	c.queue.tell(n)
	c.signal()
}
