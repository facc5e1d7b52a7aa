package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// entry is what is known of a source.
type entry struct {
	Every    time.Duration `json:"every"` // as it was when Due was set
	Due      time.Time     `json:"due"`
	Fetched  time.Time     `json:"fetched,omitzero"` // when the last fetch that succeeded went
	Times    int           `json:"times"`            // that succeeded
	Failures int           `json:"failures"`         // since then
	Failed   int           `json:"failed"`           // ever
	Skipped  int           `json:"skipped"`          // instants that were missed, and caught up in one
	Why      string        `json:"why,omitempty"`    // of the last failure: no secret
	Bytes    int64         `json:"bytes"`
}

// book keeps the entries in a file. An interval is a wish of ours and no limit, so it is
// kept here and not in the ledger: a limit errs to the strict side, where a schedule must
// not. A process that is killed during a fetch has used the limit up, and so has one that
// got no answer; as a limit the interval would be used up, too, and the next try were a
// week later. Here the entry is written when there is an answer, and not before.
type book struct{ db *bbolt.DB }

var entries = []byte("sources")

// openBook opens the book in a folder, which is made. One process at a time has it.
func openBook(dir string) (*book, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "schedule.db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("%s: another schedule is running on it", path)
	}
	if err == nil {
		err = db.Update(func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucketIfNotExists(entries)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", path, err)
	}
	return &book{db}, nil
}

func (b *book) close() error { return b.db.Close() }

// get is a source's entry. A new one is due now; where the interval has changed it is due
// that long after the last fetch.
func (b *book) get(s *source) (e entry, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		if text := tx.Bucket(entries).Get([]byte(s.Name)); text != nil {
			return json.Unmarshal(text, &e)
		}
		return nil
	})
	if err != nil {
		return e, fmt.Errorf("what is known of %s cannot be read: %w", s.Name, err)
	}
	switch {
	case e.Due.IsZero():
		e.Due = time.Now()
	case e.Every != s.Every && e.Failures == 0 && !e.Fetched.IsZero():
		e.Due = e.Fetched.Add(s.Every)
	}
	e.Every = s.Every
	return e, nil
}

func (b *book) put(s *source, e entry) error {
	text, err := json.Marshal(e)
	if err == nil {
		err = b.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(entries).Put([]byte(s.Name), text) })
	}
	if err != nil {
		return fmt.Errorf("what is known of %s cannot be written: %w", s.Name, err)
	}
	return nil
}
