package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
)

// The formats of results.
const (
	formatJSONL = "jsonl"
	formatCSV   = "csv"
)

// results writes one line for each lookup and list, at once and in one write: what
// is done is kept whatever comes after. It is safe for concurrent use. A nil
// *results writes nothing.
type results struct {
	mu     sync.Mutex
	w      io.Writer
	encode func(*bytes.Buffer, record) error
	head   []string // the line of names, goes with the first; nil: there is none to write
	err    error    // the first; after it nothing is written
}

// results opens what the options name for them; nil: nothing. A run that goes on
// continues its file. The function closes it.
func (o options) results(stdout io.Writer, goesOn bool) (*results, func() error, error) {
	switch {
	case o.json:
		return newResults(stdout), func() error { return nil }, nil
	case o.output == "":
		return nil, func() error { return nil }, nil
	}
	f, err := o.open(goesOn)
	if err != nil {
		return nil, nil, err
	}
	r := newResults(f)
	if o.formatOf() == formatCSV {
		r.encode = encodeCSV
		at, err := f.Seek(0, io.SeekCurrent)
		if err != nil || at == 0 { // what cannot seek was not continued
			r.head = csvHead
		}
	}
	return r, func() error { return settle(f) }, nil
}

// settle closes a file whose lines are on disk: before the resume file says that they
// are done.
func settle(f *os.File) error {
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// open opens the file of the results, at the place where the next line goes.
func (o options) open(goesOn bool) (*os.File, error) {
	if !goesOn {
		return os.Create(o.output)
	}
	f, err := os.OpenFile(o.output, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := mend(f); err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// mend cuts off a last line that the end of an earlier run tore, and goes to the
// end. That lookup is not noted as done.
func mend(f *os.File) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	last, block := end, make([]byte, 64<<10)
	for last > 0 {
		b := block[:min(last, int64(len(block)))]
		if _, err := f.ReadAt(b, last-int64(len(b))); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n := bytes.LastIndexByte(b, '\n'); n >= 0 {
			last += int64(n + 1 - len(b))
			break
		}
		last -= int64(len(b))
	}
	if last < end {
		err = f.Truncate(last)
	}
	if err == nil {
		_, err = f.Seek(last, io.SeekStart)
	}
	return err
}

// newResults writes JSON lines.
func newResults(w io.Writer) *results {
	return &results{w: w, encode: func(b *bytes.Buffer, r record) error {
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		return e.Encode(r)
	}}
}

func encodeCSV(b *bytes.Buffer, r record) error { return writeRow(b, r.cells()) }

func writeRow(b *bytes.Buffer, cells []string) error {
	w := csv.NewWriter(b)
	if err := w.Write(cells); err != nil {
		return err
	}
	w.Flush()
	return w.Error()
}

// write writes a lookup's lines, unless the run ended before it was asked: nothing
// is known of it then. It returns the first error that there ever was: a file with
// a hole in it is worse than a short one.
func (r *results) write(l *lookup) error {
	if r == nil || l.broken && l.attempts == 0 {
		return nil
	}
	var lines bytes.Buffer
	for _, list := range l.lists {
		if err := r.encode(&lines, recordOf(l, list)); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	text := lines.Bytes()
	if r.head != nil {
		var head bytes.Buffer
		if r.err = writeRow(&head, r.head); r.err != nil {
			return r.err
		}
		text, r.head = append(head.Bytes(), text...), nil
	}
	_, r.err = r.w.Write(text)
	return r.err
}

// failed is the error that write has met.
func (r *results) failed() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
