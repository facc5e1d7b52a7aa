package batch_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/batch"
	"github.com/headgate/headgate/batch/journal"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

func size(long, short int) int {
	if testing.Short() || raceEnabled {
		return short
	}
	return long
}

// crowd is many providers, each asked by two flows, under one sequence that goes
// round them.
type crowd struct {
	providers, jobs int
	trip            time.Duration
	start           time.Time

	mu    sync.Mutex
	went  []uint8 // by job: how often
	lanes []orderly
	late  int // jobs that went at a later instant than one behind them
}

// orderly is how far one flow at one provider is.
type orderly struct {
	at           time.Duration // the last instant at which one went
	before, then int           // the last job that went before it, and at it
}

const crowdFlows = 2

func newCrowd(providers, jobs int, trip time.Duration) *crowd {
	return &crowd{providers: providers, jobs: jobs, trip: trip, went: make([]uint8, jobs),
		lanes: make([]orderly, providers*crowdFlows)}
}

// declared are providers of all kinds, each for about 100 calls a second.
func (s *crowd) declared() (ps []provider.Provider) {
	for i := range s.providers {
		t := provider.Throttle{Limits: []provider.Limit{{Name: "l", Max: 100, Per: "1s"}}}
		switch i % 4 {
		case 1:
			t.Limits[0].Algorithm = provider.TokenBucket
		case 2:
			t.Limits[0].Algorithm = provider.LeakyBucket
		case 3:
			t = provider.Throttle{MaxInFlight: 5}
		}
		ps = append(ps, declare(fmt.Sprint("p", i), t))
	}
	return ps
}

func (s *crowd) sequence() iter.Seq[batch.Job] {
	return func(yield func(batch.Job) bool) {
		for i := range s.jobs {
			if !yield(s.job(i)) {
				return
			}
		}
	}
}

func (s *crowd) job(i int) batch.Job {
	p, f := i%s.providers, i/s.providers%crowdFlows
	return batch.Job{
		Key:  strconv.Itoa(i),
		Call: coordinator.Call{Provider: "p" + strconv.Itoa(p), Flow: strconv.Itoa(f)},
		Do: func(ctx context.Context) error {
			s.goes(i, p*crowdFlows+f)
			return sleep(ctx, s.trip)
		},
	}
}

func (s *crowd) goes(i, lane int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.went[i]++
	l, now := &s.lanes[lane], time.Since(s.start)
	if now != l.at {
		l.at, l.before = now, l.then
	}
	if i < l.before {
		s.late++
	}
	l.then = max(l.then, i)
}

// room is memory in use, in bytes.
type room struct{ live, garbage, stacks int64 }

func measure() (m room) {
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	m.garbage, m.stacks = int64(s.HeapAlloc), int64(s.StackInuse)
	runtime.GC()
	runtime.ReadMemStats(&s)
	m.live = int64(s.HeapAlloc)
	return m
}

// A million jobs over 20 providers, with a journal: none is lost or done twice, each
// flow keeps its order, no provider idles, and the heap does not grow with the run.
func TestStormOfAMillionJobs(t *testing.T) {
	s := newCrowd(20, size(1_000_000, 20_000), 50*time.Millisecond)
	path := filepath.Join(t.TempDir(), "journal")
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		j, err := journal.Open(path, "a million")
		require.NoError(t, err)
		defer j.Close()
		before := measure()
		var most room
		n := 0
		s.start = time.Now()
		for job, res := range batch.Run(t.Context(), c, s.sequence(), batch.Options{Journal: j}) {
			if res.Err != nil || job.Key == "" {
				t.Fatalf("%s: %v", job.Key, res.Err)
			}
			if n++; n%(s.jobs/50) == 0 {
				now := measure()
				most = room{max(most.live, now.live), max(most.garbage, now.garbage), max(most.stacks, now.stacks)}
			}
		}
		took := time.Since(s.start)
		t.Logf("%d jobs in %v; the heap grew by %d KiB at most, and %d KiB with its garbage; stacks by %d KiB",
			n, took, (most.live-before.live)>>10, (most.garbage-before.live)>>10, (most.stacks-before.stacks)>>10)
		assert.Less(t, most.live-before.live, int64(64<<20), "growth of the heap in bytes")
		assert.Less(t, most.stacks-before.stacks, int64(64<<20), "and of stacks")
		assert.Equal(t, s.jobs, n, "results")
		for i, n := range s.went {
			if n != 1 {
				t.Fatalf("job %d was done %d times", i, n)
			}
		}
		assert.Zero(t, s.late, "jobs that went after one behind them in their flow")
		each := time.Duration(s.jobs/s.providers) * time.Second / 100
		assert.Less(t, took, each*107/100, "a window of 1 s under a round trip of 50 ms, and no idle time")
	}, s.declared()...)
}
