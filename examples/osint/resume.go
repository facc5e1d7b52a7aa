package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/headgate/headgate/batch/journal"
)

// maxNamed bounds how many lookups are named that may have been asked twice.
const maxNamed = 1000

// resumed is the resume file of a run.
type resumed struct {
	journal *journal.Journal // nil: there is none
	goesOn  bool             // an earlier run has begun
}

// openJournal opens the resume file. A run that only plans makes none.
func (o options) openJournal(r *reading, targets []*target) (resumed, error) {
	if o.resume == "" {
		return resumed{}, nil
	}
	info, err := os.Stat(o.resume)
	goesOn := err == nil && info.Size() > 0
	if o.plan && errors.Is(err, fs.ErrNotExist) {
		return resumed{}, nil
	}
	j, err := journal.Open(o.resume, o.identity(r, targets))
	if err != nil {
		return resumed{}, fmt.Errorf("-resume: %w", err)
	}
	return resumed{j, goesOn}, nil
}

// identity says which run it is: the same question goes on, another does not. How
// fast, how long and with how many calls is not part of it.
func (o options) identity(r *reading, targets []*target) string {
	h := sha256.New()
	for _, i := range r.indicators {
		fmt.Fprintf(h, "%s %q %q\n", i.kind, i.value, i.lists) // a hash takes everything
	}
	var slugs []string
	if o.providers != nil { // who is there by default may change with keys and versions
		for _, t := range targets {
			slugs = append(slugs, t.p.Slug)
		}
	}
	return fmt.Sprintf("osint %s %s %d indicators %x %s", o.mode(), o.formatOf(), len(r.indicators), h.Sum(nil)[:8], strings.Join(slugs, ","))
}

// close writes the journal through.
func (r resumed) close() error {
	if r.journal == nil {
		return nil
	}
	return r.journal.Close()
}

// tell names what was in flight as the earlier run ended.
func (r resumed) tell(w io.Writer) {
	if r.journal == nil {
		return
	}
	names := r.journal.Interrupted()
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	fmt.Fprintf(w, "in flight as the earlier run ended, perhaps asked twice: %d %s\n", len(names), plural(len(names), "lookup", "lookups"))
	for i, name := range names {
		if i == maxNamed {
			fmt.Fprintf(w, "  and %d more\n", len(names)-i)
			return
		}
		fmt.Fprintf(w, "  %s\n", name)
	}
}
