package waiting

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/headgate/headgate/bench/peer"
)

// What is played in virtual time: one call goes each Turn, and Regulars callers compete
// for fairness.
const (
	Turn     = 20 * time.Millisecond
	Regulars = 500
)

// Leaving is what becomes of those who stay when 99 of 100 give up, in seconds: until
// the next one goes, and until a call goes that comes just then, behind all who stay;
// Ideal is as many turns as there are of them.
type Leaving struct {
	Peer                  string
	N                     int // waiting calls
	Next, Newcomer, Ideal float64
}

// Fairness is how long some wait and others not.
type Fairness struct {
	Peer string
	// Longest is the longest wait of Regulars callers that come again and again, in
	// rounds of one turn for each.
	Longest float64
	// Other is how many seconds one call of a second user waits behind Regulars calls
	// of a first one.
	Other float64
}

// Results are all that is played.
type Results struct {
	Leaving  []Leaving
	Fairness []Fairness
}

// Leave plays n calls of which 99 of 100 give up, on whatever clock its caller has.
func Leave(p peer.Peer, n int) Leaving {
	gate := newGate(p)
	if gate.Close != nil {
		defer gate.Close()
	}
	var (
		mu      sync.Mutex
		went    []time.Time
		running sync.WaitGroup
	)
	send := func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		went = append(went, time.Now())
		return nil
	}
	leave, left := context.WithCancel(context.Background())
	defer left()
	stay, end := context.WithCancel(context.Background())
	defer end()
	for i := range n {
		ctx := leave
		if i%100 == 99 {
			ctx = stay
		}
		running.Go(func() { _ = gate.Call(ctx, "", send) })
	}
	time.Sleep(5*Turn + Turn/4) // everybody waits; the instant is nobody's turn
	left()
	at := time.Now()
	var next, newcomer time.Duration
	_ = gate.Call(context.Background(), "", func(context.Context) error {
		newcomer = time.Since(at)
		return nil
	})
	end()
	running.Wait()
	next = newcomer
	for _, t := range went {
		if d := t.Sub(at); d >= 0 {
			next = min(next, d)
		}
	}
	return Leaving{p.Name, n, next.Seconds(), newcomer.Seconds(), (time.Duration(n/100) * Turn).Seconds()}
}

// Compare plays who waits how long.
func Compare(p peer.Peer) Fairness { return compare(p, Regulars) }

func compare(p peer.Peer, regulars int) Fairness {
	return Fairness{p.Name, longest(p, regulars), other(p, regulars).Seconds()}
}

// longest plays callers that come again as soon as they have gone, and returns the
// longest wait, also of those who wait still, in rounds.
func longest(p peer.Peer, regulars int) float64 {
	gate := newGate(p)
	if gate.Close != nil {
		defer gate.Close()
	}
	round := time.Duration(regulars) * Turn
	var (
		mu      sync.Mutex
		most    time.Duration
		running sync.WaitGroup
	)
	ctx, cancel := context.WithCancel(context.Background())
	defer time.AfterFunc(6*round, cancel).Stop()
	defer cancel()
	begun := time.Now()
	for i := range regulars {
		rng := rand.New(rand.NewPCG(2, uint64(i)))
		running.Go(func() {
			for ctx.Err() == nil {
				came := time.Now()
				wait := time.Duration(-1)
				err := gate.Call(ctx, "", func(context.Context) error {
					wait = time.Since(came)
					return nil
				})
				if err != nil || wait < 0 {
					wait = begun.Add(6 * round).Sub(came)
				}
				mu.Lock()
				most = max(most, wait)
				mu.Unlock()
				time.Sleep(time.Duration(rng.Int64N(int64(time.Millisecond)))) // nobody comes at the same instant each time
			}
		})
	}
	running.Wait()
	return most.Seconds() / round.Seconds()
}

// other plays one call of a second user behind so many of a first one.
func other(p peer.Peer, regulars int) time.Duration {
	gate := newGate(p)
	if gate.Close != nil {
		defer gate.Close()
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var running sync.WaitGroup
	for range regulars {
		running.Go(func() { _ = gate.Call(ctx, "first", func(context.Context) error { return nil }) })
	}
	time.Sleep(time.Millisecond)
	came := time.Now()
	var waited time.Duration
	_ = gate.Call(ctx, "second", func(context.Context) error {
		waited = time.Since(came)
		return nil
	})
	cancel()
	running.Wait()
	return waited
}

func newGate(p peer.Peer) *peer.Gate {
	return p.New(peer.Config{Kind: peer.Window, Limits: []peer.Limit{{N: 1, Per: Turn}}})
}
