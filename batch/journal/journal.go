// Package journal is a file in which a long run notes what it has begun and what
// it has finished, so that the run goes on where it was killed: a batch.Journal.
//
// What was noted survives the death of the process, a kill -9 included: each note
// is one write to the file, not kept back in the process. It does not survive the
// machine's (each note would have to wait for the disk); Close writes it to disk.
//
// Not in it: results. Who writes them writes them through before the loop goes on.
package journal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
)

// What Open finds.
var (
	ErrOtherRun = errors.New("journal: of another run")
	ErrInUse    = errors.New("journal: in use by another process")
	ErrDamaged  = errors.New("journal: not a journal, or damaged")
)

// maxKey is the longest key, in bytes. A line that no key could have made is not
// read into memory.
const maxKey = 64 << 10

// digest stands for a key that is finished: some 30 bytes of memory each, however
// long the key. Of SHA-256, which nobody can aim at, it is enough that two of a
// million keys share one, and a job is skipped that was not done, once in 10^17
// journals.
type digest [12]byte

func digestOf(key string) digest {
	sum := sha256.Sum256([]byte(key))
	return digest(sum[:len(digest{})])
}

// Journal is an open journal. It is safe for concurrent use.
type Journal struct {
	path string

	mu          sync.Mutex
	file        file
	err         error // the first that a write met; nothing is written after it
	done        map[digest]struct{}
	interrupted []string
}

// file is what a Journal needs of an os.File.
type file interface {
	io.WriteCloser
	Sync() error
}

// Open opens the journal of a run, or begins it where there is no file or an empty
// one. run says what the run is: it must be the same text when the run goes on, and
// another one for other jobs (a digest of the arguments, say). It is written into
// the file as it is, so it holds no secret.
//
// The file is locked until Close, or the end of the process. A last line that was
// torn by the end of the process is cut off. Otherwise a file that is no journal of
// this run stays as it is: the error matches ErrOtherRun, ErrInUse or ErrDamaged
// (damaged: it names the line), or is the operating system's.
func Open(path, run string) (*Journal, error) {
	if len(run) > maxKey {
		return nil, fmt.Errorf("journal: the name of a run of %d bytes; at most %d", len(run), maxKey)
	}
	f, err := openLocked(path)
	if errors.Is(err, ErrInUse) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal{path: path, file: f, done: make(map[digest]struct{})}
	if err := j.begin(f, run); err != nil {
		_ = f.Close() // nothing was written that could be lost
		return nil, err
	}
	return j, nil
}

// begin reads what is there and makes the file ready for the next line.
func (j *Journal) begin(f *os.File, run string) error {
	end, err := j.read(f, run)
	if err != nil {
		return err
	}
	if err := f.Truncate(end); err != nil { // what is behind it is a torn line
		return fmt.Errorf("journal: %w", err)
	}
	if _, err := f.Seek(end, io.SeekStart); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if end == 0 {
		j.write(header(run))
	}
	return j.err
}

// Done tells that a job was finished, in this run or an earlier one.
func (j *Journal) Done(key string) bool {
	d := digestOf(key)
	j.mu.Lock()
	defer j.mu.Unlock()
	_, ok := j.done[d]
	return ok
}

// Interrupted returns the keys of the jobs that had begun and neither finished nor
// failed as the journal was opened, sorted by when they began: what was in flight
// as an earlier run ended. If they are done again, they may have been done twice.
func (j *Journal) Interrupted() []string {
	return append([]string(nil), j.interrupted...)
}

// Began notes that a job is about to be sent. Like every note it returns the first
// error that a write has met; then nothing is noted any more.
func (j *Journal) Began(key string) error { return j.note(began, key) }

// Finished notes that a job is done.
func (j *Journal) Finished(key string) error {
	err := j.note(finished, key)
	if err == nil {
		d := digestOf(key)
		j.mu.Lock()
		defer j.mu.Unlock()
		j.done[d] = struct{}{}
	}
	return err
}

// Failed notes that a job that had begun has ended, not done and not in flight.
func (j *Journal) Failed(key string) error { return j.note(failed, key) }

func (j *Journal) note(m mark, key string) error {
	if len(key) > maxKey {
		return fmt.Errorf("journal: a key of %d bytes; at most %d", len(key), maxKey)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.write(line(m, key))
	return j.err
}

// write writes a line. A disk that is full may take a part of it, and of the next
// line all: so the first error is the last word.
func (j *Journal) write(line []byte) {
	if j.err != nil {
		return
	}
	if _, err := j.file.Write(line); err != nil {
		j.err = fmt.Errorf("journal: %w", err)
	}
}

// Close writes everything to disk and gives the file free. It returns the first
// error that any note has met. A second Close does nothing; notes after it fail.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if errors.Is(j.err, os.ErrClosed) {
		return nil
	}
	err := j.err
	for _, end := range []func() error{j.file.Sync, j.file.Close} {
		if e := end(); e != nil && err == nil {
			err = fmt.Errorf("journal: %w", e)
		}
	}
	j.err = fmt.Errorf("journal: %s: %w", j.path, os.ErrClosed)
	return err
}

func header(run string) []byte {
	return []byte(magic + " " + strconv.Quote(run) + "\n")
}
