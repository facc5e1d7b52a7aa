package sqlite

import "time"

// Step sets the clock of the store back.
func (s *Store) Step(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.back += d
}

// Lose empties the file.
func (s *Store) Lose() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.f.conn.Exec("BEGIN IMMEDIATE; DELETE FROM meta; DELETE FROM holder; DELETE FROM record; DELETE FROM hold; DELETE FROM pause; COMMIT")
}

// PretendNetwork has every directory be on a network file system, until the test ends.
func PretendNetwork(t interface{ Cleanup(func()) }, kind string) {
	real := networkOf
	t.Cleanup(func() { networkOf = real })
	networkOf = func(string) string { return kind }
}

// Rows counts what is in a table.
func (s *Store) Rows(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.f.number("SELECT count(*) FROM " + name)
	if err != nil {
		panic(err)
	}
	return n
}

// Check looks through the whole file.
func (s *Store) Check() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.f.pragmaText("integrity_check")
}
