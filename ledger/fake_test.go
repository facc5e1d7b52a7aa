package ledger_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate/ledger"
)

var errNet = errors.New("connection refused")

// fault is what becomes of one exchange.
type fault struct {
	before, after time.Duration // until the batch arrives, and its answer
	refused       bool          // it never arrives
	cut           bool          // it is carried out, but the answer is lost
	hangs         bool          // until the context ends
	deaf          bool          // not even then, but until the store is released
}

// heard is a batch as it arrived.
type heard struct {
	ledger.Batch
	at      time.Duration
	skipped bool // it had been carried out before
}

type name struct {
	holder string
	hold   ledger.Hold
}

// fake is a Store whose faults are scripted. It keeps what it has been told, and counts
// no limits: a take is granted unless refuse says otherwise.
type fake struct {
	mu       sync.Mutex
	start    time.Time
	script   func(n int) fault // of the n-th exchange, from 0
	refuse   func(ledger.Take) ledger.Grant
	tried    []time.Time // of exchanges, heard or not
	heard    []heard
	seqs     map[string]uint64
	held     map[name]*ledger.Held
	granted  map[ledger.Hold]int
	charged  map[string]int64
	given    int // holds given back
	pauses   []ledger.Pause
	version  uint64
	epoch    string
	grace    time.Time
	replicas int
	warning  string
	closes   int
	release  chan struct{}
}

func newFake() *fake {
	f := &fake{start: time.Now(), replicas: 1, granted: map[ledger.Hold]int{}, release: make(chan struct{})}
	f.lose("first")
	f.grace = time.Time{}
	return f
}

// lose has the store forget all.
func (f *fake) lose(epoch string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.epoch, f.version, f.pauses = epoch, 1, nil
	f.seqs, f.held, f.charged = map[string]uint64{}, map[name]*ledger.Held{}, map[string]int64{}
	f.grace = time.Now().Add(ledger.Grace)
}

func (f *fake) set(script func(n int) fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script, f.tried = script, nil
}

// always has all exchanges fail like that.
func (f *fake) always(x fault) { f.set(func(int) fault { return x }) }

func (f *fake) next() (x fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.script != nil {
		x = f.script(len(f.tried))
	}
	f.tried = append(f.tried, time.Now())
	return x
}

func (f *fake) Exchange(ctx context.Context, b *ledger.Batch) (*ledger.Reply, error) {
	x := f.next()
	switch {
	case x.deaf:
		<-f.release
		return nil, errNet
	case x.hangs:
		<-ctx.Done()
		return nil, ctx.Err()
	case x.refused:
		return nil, errNet
	}
	if err := sleep(ctx, x.before); err != nil {
		return nil, err
	}
	r := f.carryOut(b)
	if err := sleep(ctx, x.after); err != nil {
		return nil, err
	}
	if x.cut {
		return nil, errNet
	}
	return r, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fake) carryOut(b *ledger.Batch) *ledger.Reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &ledger.Reply{Epoch: f.epoch, Replicas: f.replicas, Warning: f.warning}
	f.heard = append(f.heard, heard{Batch: *b, at: time.Since(f.start), skipped: b.Seq <= f.seqs[b.Holder]})
	if b.Epoch != "" && b.Epoch != f.epoch {
		return r
	}
	for _, slug := range b.Forget {
		f.end(slug, "", "")
		f.version++
		maps.DeleteFunc(f.held, func(_ name, h *ledger.Held) bool { return h.Take.Provider == slug })
	}
	if b.Seq > f.seqs[b.Holder] {
		f.seqs[b.Holder] = b.Seq
		f.once(b)
	}
	for _, a := range b.Takes {
		r.Grants = append(r.Grants, f.take(b.Holder, a))
	}
	for _, c := range b.Peek {
		r.Usages = append(r.Usages, ledger.Usage{Used: f.charged[c.ID()]})
	}
	if r.Version = f.version; f.version != b.Known {
		r.Pauses = slices.Clone(f.pauses)
	}
	return r
}

// once is what a batch does at its first arrival, in the order of the contract.
func (f *fake) once(b *ledger.Batch) {
	for _, h := range b.Holds {
		if h.Part == nil {
			h.Part = all(h.Take)
		}
		h.Part = slices.Clone(h.Part)
		f.held[name{b.Holder, h.Hold}] = &h
	}
	for _, c := range b.Charges {
		f.charged[c.Counter.ID()] += c.N
	}
	for _, s := range b.Settlements {
		f.settle(name{b.Holder, s.Hold}, s)
	}
	for _, n := range b.News {
		f.tell(n)
	}
}

func all(t ledger.Take) []int {
	places := make([]int, len(t.Units))
	for i := range places {
		places[i] = i
	}
	return places
}

func (f *fake) take(holder string, a ledger.Asked) ledger.Grant {
	if left := time.Until(f.grace); left > 0 {
		return ledger.Grant{Wait: left, By: -1}
	}
	if f.refuse != nil {
		if g := f.refuse(a.Take); g.Wait > 0 || g.Hold != 0 {
			return g
		}
	}
	f.granted[a.Hold]++
	f.held[name{holder, a.Hold}] = &ledger.Held{Hold: a.Hold, Take: a.Take, Part: all(a.Take)}
	return ledger.Grant{Hold: a.Hold}
}

func (f *fake) settle(n name, s ledger.Settlement) {
	h, there := f.held[n]
	if !there {
		return
	}
	if s.Back {
		f.given++
	}
	parts := s.Part
	if parts == nil {
		for _, i := range h.Part {
			parts = append(parts, ledger.Part{Unit: i, Charged: h.Take.Units[i].N})
		}
	}
	for _, p := range parts {
		i := slices.Index(h.Part, p.Unit)
		if i < 0 {
			continue
		}
		h.Part = slices.Delete(h.Part, i, i+1)
		if !s.Back {
			f.charged[h.Take.Units[p.Unit].Counter.ID()] += p.Charged
		}
	}
	if len(h.Part) == 0 {
		delete(f.held, n)
	}
}

func (f *fake) tell(n ledger.News) {
	switch {
	case n.Pause != nil:
		f.end(n.Pause.Provider, n.Pause.Scope, n.Pause.Name)
		f.pauses = append(f.pauses, *n.Pause)
	case n.Resume != nil:
		f.end(n.Resume.Provider, n.Resume.Scope, n.Resume.Name)
	}
	f.version++
}

func (f *fake) end(slug, scope, name string) {
	f.pauses = slices.DeleteFunc(f.pauses, func(p ledger.Pause) bool {
		return p.Provider == slug && (scope == "" || p.Scope == scope && p.Name == name)
	})
}

// others tells the store something, as another process does.
func (f *fake) others(all ...ledger.News) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range all {
		f.tell(n)
	}
}

func (f *fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closes++
	return nil
}

// batches are those heard since the last call.
func (f *fake) batches() []heard {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.heard
	f.heard = nil
	return all
}

// tries are the instants of all exchanges since the script began.
func (f *fake) tries() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.tried)
}

func (f *fake) holds() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.held)
}
