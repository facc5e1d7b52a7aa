// Package soak runs the whole library under everything at once, for as long as one
// likes: declarations that nobody would write, live updates, callers that give up,
// panics, outages, clocks that step. It has no code of its own.
//
// A world (world_test.go) is drawn from a seed and runs in a bubble, in virtual time;
// what must hold in any of them is in check_test.go. sockets_test.go is the same mood
// in real time, over real sockets. What a seed draws is all that happens but for one
// thing: which of the goroutines that wake at one instant runs first is the
// scheduler's, so a failing seed may have to be played a few times.
//
//	make soak                                  # ten minutes; SOAKTIME=1h for longer
//	go test -race ./internal/soak -run TestWorlds -soak.seed=42 -soak.worlds=1
package soak

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var (
	length = flag.Duration("soak.for", 0, "how long to go on; 0: a few worlds")
	first  = flag.Uint64("soak.seed", 1, "seed of the first world")
	count  = flag.Int("soak.worlds", 0, "how many worlds, instead of a time")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// few is how many worlds there are in a short run.
const few = 12

// TestWorlds runs one world after the other. Its summary is of what happened in
// them: a soak in which nothing happens proves nothing.
func TestWorlds(t *testing.T) {
	if *length > 0 {
		t.Parallel() // beside the real sockets
	}
	begun, worlds := time.Now(), 0
	more := func() bool {
		switch {
		case *count > 0:
			return worlds < *count
		case *length > 0:
			return time.Since(begun) < *length
		}
		return worlds < few
	}
	var all summary
	var heaps []uint64
	for seed := *first; more(); seed++ {
		ok := t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newWorld(t, seed).live(t, &all) })
		})
		if !ok {
			t.Fatalf("play it again: go test -race ./internal/soak -run TestWorlds -soak.seed=%d -soak.worlds=1 -count=20", seed)
		}
		if worlds++; worlds%50 == 0 {
			heaps = append(heaps, heap())
			tell(t, "%v: %d worlds, the next has seed %d, heap %d KiB", time.Since(begun).Round(time.Second), worlds, seed+1, heaps[len(heaps)-1]>>10)
		}
	}
	tell(t, "%d worlds from seed %d on: %s", worlds, *first, all.String())
	if *count == 0 {
		assert.Empty(t, all.missing(), "did not happen in any world")
	}
	steady(t, heaps)
}

// tell is a word to whoever waits for a long run; in a short one it is for -v.
func tell(t *testing.T, format string, args ...any) {
	t.Helper()
	if *length > 0 {
		fmt.Printf(format+"\n", args...)
	} else {
		t.Logf(format, args...)
	}
}

// heap is what is reachable.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what a finalizer kept is gone after the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// steady asserts that the heap of the last third is no larger than that of the first.
func steady(t *testing.T, heaps []uint64) {
	t.Helper()
	third := len(heaps) / 3
	if third == 0 {
		return
	}
	early, late := slices.Min(heaps[:third]), slices.Min(heaps[len(heaps)-third:])
	tell(t, "heap: %d KiB at first, %d KiB in the end", early>>10, late>>10)
	require.Less(t, late, early+early/4+16<<20, "something is kept")
}
