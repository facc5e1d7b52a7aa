package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/headgate/headgate/provider"
)

// maxLine is longer than any indicator. What is longer is junk, and is read past
// without being kept.
const maxLine = 64 << 10

// indicator is one thing to look up.
type indicator struct {
	kind  provider.Kind
	value string   // normal form: what makes two spellings one
	lists []string // the names of the lists that it is in, in order: each gets its record
}

// junk is a line that is no indicator.
type junk struct {
	list string
	line int
	text string
	why  string
}

// String is the complaint, for stderr. The text is quoted: a list from elsewhere
// must not write control characters to a terminal.
func (j junk) String() string {
	return fmt.Sprintf("%s:%d: %q: %s", j.list, j.line, j.text, j.why)
}

// reading is what was read of all lists together. The zero value is empty, and
// takes what it recognises.
type reading struct {
	as   provider.Kind   // what every line is; "": what it looks like
	only []provider.Kind // what is kept; nil: all

	indicators []indicator
	duplicates int // in one list
	shared     int // in several lists: asked once for all of them
	left       int // of kinds that are not kept
	junk       []junk
	lists      int
	seen       map[string]int // kind and value, to the place among indicators
}

// file takes in the list of a file.
func (r *reading) file(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() // it is only read
	return r.read(name, f)
}

// read takes in one list, called name. Junk is noted and the rest is taken. The
// error is src's own, or says that this is no text; what came before it is kept.
func (r *reading) read(name string, src io.Reader) error {
	r.lists++
	in := bufio.NewReaderSize(src, maxLine)
	if bom, _ := in.Peek(2); string(bom) == "\xff\xfe" || string(bom) == "\xfe\xff" {
		return fmt.Errorf("%s is UTF-16 text: want UTF-8", name)
	}
	for n := 1; ; n++ {
		line, long, err := in.ReadLine()
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if err != nil {
			return nil
		}
		text, more := string(line), long
		for more && err == nil {
			_, more, err = in.ReadLine()
		}
		if n == 1 {
			text = strings.TrimPrefix(text, "\ufeff")
		}
		if long {
			r.reject(name, n, text, fmt.Sprintf("longer than %d KiB", maxLine>>10))
			continue
		}
		r.add(name, n, text)
	}
}

// add takes in one line.
func (r *reading) add(list string, n int, line string) {
	text := strings.TrimSpace(uncomment(line))
	if text == "" {
		return
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		r.reject(list, n, text, "not UTF-8 text")
		return
	}
	found, err := recogniseAs(r.as, text)
	if err != nil {
		r.reject(list, n, text, err.Error())
		return
	}
	for _, f := range found {
		r.keep(f.kind, f.value, list)
	}
}

// keep takes in one indicator of a list.
func (r *reading) keep(kind provider.Kind, value, list string) {
	if r.only != nil && !slices.Contains(r.only, kind) {
		r.left++
		return
	}
	id := string(kind) + " " + value
	if at, ok := r.seen[id]; ok {
		i := &r.indicators[at]
		if slices.Contains(i.lists, list) {
			r.duplicates++
			return
		}
		if len(i.lists) == 1 {
			r.shared++
		}
		i.lists = append(i.lists, list)
		return
	}
	if r.seen == nil {
		r.seen = make(map[string]int)
	}
	r.seen[id] = len(r.indicators)
	r.indicators = append(r.indicators, indicator{kind, value, []string{list}})
}

// reject notes a line that is no indicator. Only its beginning is kept.
func (r *reading) reject(list string, n int, text, why string) {
	if len(text) > 60 {
		text = strings.ToValidUTF8(text[:60], "") + "…"
	}
	r.junk = append(r.junk, junk{list, n, text, why})
}

// uncomment drops a comment: from a # at the beginning or after a space. Another
// # is part of a URL.
func uncomment(line string) string {
	for i, c := range line {
		if c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			return line[:i]
		}
	}
	return line
}

// count is how many indicators of a kind were read.
func (r *reading) count(kind provider.Kind) (n int) {
	for _, i := range r.indicators {
		if i.kind == kind {
			n++
		}
	}
	return n
}
