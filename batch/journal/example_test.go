package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/headgate/headgate/batch/journal"
)

// The second run knows what the first has done, and what was in flight as it ended.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "lookups")

	j, err := journal.Open(path, "addresses of 2026-11-30")
	if err != nil {
		panic(err)
	}
	_ = j.Began("192.0.2.1") // an error would say that the disk is full, say
	_ = j.Finished("192.0.2.1")
	_ = j.Began("192.0.2.2")
	_, err = journal.Open(path, "addresses of 2026-11-30")
	fmt.Println("in use:", errors.Is(err, journal.ErrInUse))
	_ = j.Close() // or the process is killed

	j, err = journal.Open(path, "addresses of 2026-11-30")
	if err != nil {
		panic(err)
	}
	defer j.Close()
	fmt.Println(j.Done("192.0.2.1"), j.Done("192.0.2.2"), j.Interrupted())
	// Output:
	// in use: true
	// true false [192.0.2.2]
}
