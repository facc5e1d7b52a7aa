package journal_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/headgate/headgate/batch/journal"
)

// A job that has failed is neither done nor interrupted: the next run tries it again.
func ExampleJournal_Failed() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	j, err := journal.Open(filepath.Join(dir, "lookups"), "addresses of 2026-11-30")
	if err != nil {
		panic(err)
	}
	defer j.Close()
	_ = j.Began("192.0.2.1")
	fmt.Println(j.Failed("192.0.2.1"), j.Done("192.0.2.1"), len(j.Interrupted()))
	// Output: <nil> false 0
}
