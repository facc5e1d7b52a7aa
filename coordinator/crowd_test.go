package coordinator

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever wants it gets it, one at a time (the race detector watches n), and in the end
// it is free: nobody is forgotten in front of it.
func TestACrowdPassesOneByOne(t *testing.T) {
	var mu crowd
	var n int
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 1000 {
				mu.Lock()
				n++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.Equal(t, 64_000, n)
	require.True(t, mu.TryLock())
	require.True(t, mu.next.TryLock())
}

// BenchmarkCrowd: a short critical section that 128 goroutines want, under each lock.
func BenchmarkCrowd(b *testing.B) {
	for name, mu := range map[string]sync.Locker{"crowd": new(crowd), "sync.Mutex": new(sync.Mutex)} {
		b.Run(name, func(b *testing.B) {
			var work [16]int
			var all sync.WaitGroup
			for i := range 128 {
				all.Go(func() {
					for range (b.N + i) / 128 {
						mu.Lock()
						for j := range 300 {
							work[j%len(work)] += j
						}
						mu.Unlock()
					}
				})
			}
			all.Wait()
		})
	}
}
