package coordinator

import "sync"

// crowd is a mutex that many may want at once. Of all who cannot have it straight away
// one waits for the mutex itself, the others for that one: whoever has it is met by one
// rival at most, and goes on nearly as fast as one that is alone. Each unlock of a
// sync.Mutex that a hundred goroutines wait for wakes one of them, most in vain; and when
// one has waited for a millisecond each hands it to the next, and sleeps itself, which
// takes longer than what it guards (BenchmarkCrowd).
type crowd struct {
	sync.Mutex
	next sync.Mutex // held by the one that waits for the Mutex
}

func (c *crowd) Lock() {
	if c.TryLock() {
		return
	}
	c.next.Lock()
	c.Mutex.Lock()
	c.next.Unlock()
}
