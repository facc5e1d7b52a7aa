package memory

import "time"

// Step sets the store's clock back.
func (s *Store) Step(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.back += d
}
