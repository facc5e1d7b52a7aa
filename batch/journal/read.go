package journal

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// magic begins the first line: the format and its version.
const magic = "headgate-journal 1"

// mark begins every other line: what became of the key that follows.
type mark byte

const (
	began    mark = 'b'
	finished mark = 'f'
	failed   mark = 'x'
)

func line(m mark, key string) []byte {
	b := append(make([]byte, 0, len(key)+5), byte(m), ' ')
	b = strconv.AppendQuote(b, key)
	return append(b, '\n')
}

// open is what had begun and not ended, with the line that says so.
type open map[string]int

// read reads a journal. It returns the end of its last whole line.
func (j *Journal) read(f *os.File, run string) (end int64, err error) {
	r := bufio.NewReaderSize(f, 4*maxKey+64) // the longest line: four bytes for each of a key
	out := make(open)
	for n := 1; ; n++ {
		text, err := r.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return 0, j.damaged(n, "it is too long")
		case errors.Is(err, io.EOF):
			if n == 1 && !bytes.HasPrefix(header(run), text) {
				return 0, j.damaged(n, "it does not end")
			}
			j.interrupted = slices.SortedFunc(maps.Keys(out), func(a, b string) int { return cmp.Compare(out[a], out[b]) })
			return end, nil
		case err != nil:
			return 0, fmt.Errorf("journal: %w", err)
		}
		if n == 1 {
			err = j.readHeader(string(text), run)
		} else {
			err = j.readLine(n, string(text), out)
		}
		if err != nil {
			return 0, err
		}
		end += int64(len(text))
	}
}

func (j *Journal) readHeader(text, run string) error {
	quoted, ok := strings.CutPrefix(strings.TrimSuffix(text, "\n"), magic+" ")
	if !ok {
		return j.damaged(1, "it does not begin with "+strconv.Quote(magic))
	}
	was, err := strconv.Unquote(quoted)
	if err != nil {
		return j.damaged(1, "the name of its run is not quoted")
	}
	if was != run {
		return fmt.Errorf("%w: %s belongs to the run %q, not to %q; give the other its own file, or delete this one", ErrOtherRun, j.path, was, run)
	}
	return nil
}

func (j *Journal) readLine(n int, text string, out open) error {
	quoted := strings.TrimSuffix(text, "\n")
	quoted = quoted[min(2, len(quoted)):]
	key, err := strconv.Unquote(quoted)
	m := mark(text[0])
	if err != nil || string(line(m, key)) != text { // as it was written, to the byte
		return j.damaged(n, "it is not a mark, a space and a quoted key")
	}
	switch m {
	case began:
		if _, ok := out[key]; !ok {
			out[key] = n
		}
	case finished:
		delete(out, key)
		j.done[digestOf(key)] = struct{}{}
	case failed:
		delete(out, key)
	default:
		return j.damaged(n, "its mark is none of b, f, x")
	}
	return nil
}

func (j *Journal) damaged(n int, why string) error {
	return fmt.Errorf("%w: %s, line %d: %s; nothing was changed", ErrDamaged, j.path, n, why)
}
