package batch_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/batch"
	"github.com/headgate/headgate/batch/journal"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// asked counts how often each job was sent, over several runs.
type asked struct {
	mu    sync.Mutex
	count map[string]int
	out   map[string]bool
}

func (a *asked) jobs(n, providers int) iter.Seq[batch.Job] {
	return func(yield func(batch.Job) bool) {
		for i := range n {
			key := strconv.Itoa(i)
			do := func(ctx context.Context) error {
				a.set(key, true)
				defer a.set(key, false)
				return sleep(ctx, 70*time.Millisecond)
			}
			if !yield(batch.Job{Key: key, Call: coordinator.Call{Provider: "p" + strconv.Itoa(i%providers)}, Do: do}) {
				return
			}
		}
	}
}

func (a *asked) set(key string, out bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if out {
		a.count[key]++
		a.out[key] = true
	} else {
		delete(a.out, key)
	}
}

func (a *asked) inFlight() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.out)
}

// A run that is killed half-way, again and again, and resumed on what the journal's
// file held at that instant: no job is lost, and none is done twice but what the
// journal names.
func TestStormOfKillsAndResumes(t *testing.T) {
	const providers = 5
	n := size(20_000, 2_000)
	path := filepath.Join(t.TempDir(), "0")
	a := &asked{count: map[string]int{}, out: map[string]bool{}}
	results := map[string]int{}
	suspects := map[string]bool{} // named by the journal
	unsettled := 0                // at all kills: in flight, or not taken yet
	var ps []provider.Provider
	for i := range providers {
		ps = append(ps, declare(fmt.Sprint("p", i), provider.Throttle{Limits: []provider.Limit{{Name: "l", Max: 50, Per: "1s"}}, MaxInFlight: 20}))
	}
	for life := 0; len(results) < n; life++ {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			j, err := journal.Open(path, "the storm")
			require.NoError(t, err)
			defer j.Close()
			for _, key := range j.Interrupted() {
				suspects[key] = true
			}
			var p batch.Progress
			taken := 0
			for job, res := range batch.Run(t.Context(), c, a.jobs(n, providers), batch.Options{Journal: j, Progress: &p}) {
				require.NoError(t, res.Err)
				results[job.Key]++
				if taken++; taken == n/4+17*life {
					// Killed here: what is in the file now is what remains of this life.
					synctest.Wait()
					unsettled++ // this very result
					for _, s := range p.Snapshot() {
						unsettled += s.Unread
					}
					unsettled += a.inFlight()
					kept, err := os.ReadFile(path)
					require.NoError(t, err)
					path = filepath.Join(filepath.Dir(path), strconv.Itoa(life+1))
					require.NoError(t, os.WriteFile(path, kept, 0o600))
					break
				}
			}
		}, ps...)
		require.Less(t, life, 10)
	}
	twice := 0
	for key, n := range a.count {
		if n > 1 {
			twice++
			require.True(t, suspects[key], "%s: sent %d times, and not named", key, n)
		}
	}
	assert.Len(t, results, n)
	assert.Len(t, a.count, n)
	assert.LessOrEqual(t, twice, unsettled)
	assert.Len(t, suspects, unsettled, "those that were in flight, or not taken yet, and no others")
	t.Logf("%d jobs; %d were named as interrupted, %d of them sent twice", n, len(suspects), twice)
}
