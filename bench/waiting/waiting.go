// Package waiting tells what a call costs that waits, and what becomes of it: memory
// and time on the machine's clock, patience and fairness in virtual time.
package waiting

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/bench/core"
	"github.com/headgate/headgate/bench/peer"
)

// Peers are those that let a call wait.
var Peers = []peer.Peer{peer.Headgate, peer.ByHand, peer.Failsafe, peer.Spaced, peer.Uber, peer.Throttled}

// Select is the name of what the others are compared with: a goroutine that is blocked
// in a select on a channel of its own and the end of a context, as each waiting call
// is at least.
const Select = "a goroutine in the same select"

// Cost is what n waiting calls cost, each.
type Cost struct {
	Peer          string
	N             int
	Heap, Stack   float64 // bytes
	Enter, Cancel float64 // nanoseconds of cores at work, with the goroutine; Cancel below 0: they cannot leave
}

// Measure makes n calls wait, then cancels 99 of 100 of them. Let it run in a process
// of its own: it measures all of its memory. An error says which peer does not wait.
func Measure(name string, n int) (Cost, error) {
	c := Cost{Peer: name, N: n, Cancel: -1}
	call, deaf, err := blocked(name)
	if err != nil {
		return c, err
	}
	leave, left := context.WithCancel(context.Background())
	stay, end := context.WithCancel(context.Background())
	defer end()
	defer left()
	var gone atomic.Int64
	var running sync.WaitGroup
	before, idle := memory(), waitingNow()

	var came atomic.Int64
	begun := core.Time()
	for i := range n {
		ctx := leave
		if i%100 == 99 {
			ctx = stay
		}
		running.Add(1)
		go wait(ctx, call, &came, &gone, &running)
	}
	until(func() bool { return came.Load() == int64(n) })
	until(func() bool { return waitingNow() >= idle+uint64(n) || gone.Load() > 0 })
	c.Enter = float64((core.Time() - begun).Nanoseconds()) / float64(n)
	after := memory()
	c.Heap = float64(int64(after.HeapAlloc)-int64(before.HeapAlloc)) / float64(n)
	c.Stack = float64(int64(after.StackInuse)-int64(before.StackInuse)) / float64(n)
	if gone.Load() > 0 {
		return c, fmt.Errorf("waiting: %s: %d of %d calls did not wait", name, gone.Load(), n)
	}
	if deaf {
		return c, nil
	}
	leavers := int64(n - n/100)
	begun = core.Time()
	left()
	until(func() bool { return gone.Load() >= leavers })
	c.Cancel = float64((core.Time() - begun).Nanoseconds()) / float64(leavers)
	end()
	running.Wait()
	return c, nil
}

// wait has nothing on its stack that the peer has not put there.
func wait(ctx context.Context, call func(context.Context), came, gone *atomic.Int64, running *sync.WaitGroup) {
	came.Add(1)
	call(ctx)
	gone.Add(1)
	running.Done()
}

// blocked returns a call that waits for hours.
func blocked(name string) (call func(context.Context), deaf bool, err error) {
	if name == Select {
		return func(ctx context.Context) {
			ready := make(chan struct{}, 1)
			select {
			case <-ready:
			case <-ctx.Done():
			}
		}, false, nil
	}
	for _, p := range Peers {
		if p.Name != name {
			continue
		}
		gate := p.New(peer.Config{Kind: peer.Window, Limits: []peer.Limit{{N: 1, Per: time.Hour}}})
		if err := gate.Call(context.Background(), "", nothing); err != nil { // the one that need not wait
			return nil, false, fmt.Errorf("waiting: %s: %w", name, err)
		}
		return func(ctx context.Context) { _ = gate.Call(ctx, "", nothing) }, p.Deaf, nil
	}
	return nil, false, fmt.Errorf("waiting: no peer has the name %q", name)
}

func nothing(context.Context) error { return nil }

func memory() (m runtime.MemStats) {
	runtime.GC() // twice: what a sync.Pool holds survives the first
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}

func waitingNow() uint64 {
	s := []metrics.Sample{{Name: "/sched/goroutines/waiting:goroutines"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// until polls, seldom enough not to be what is measured.
func until(ready func() bool) {
	for !ready() {
		time.Sleep(2 * time.Millisecond)
	}
}
