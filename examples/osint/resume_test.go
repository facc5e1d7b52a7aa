package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/batch/journal"
	"github.com/headgate/headgate/internal/referee"
)

// counted counts what arrives by what is asked for.
type counted struct {
	arrived
	n map[string]int
}

func (c *counted) note(p *referee.Play) {
	answer := p.Answer
	c.n = make(map[string]int)
	p.Answer = func(a referee.Arrival) referee.Answer {
		c.mu.Lock()
		c.n[a.Request.URL.Path]++
		c.mu.Unlock()
		return answer(a)
	}
}

func (c *counted) copy() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

// A run that is stopped, again and again, goes on: no lookup is lost, the results
// are continued, and at most those that were in flight are asked twice.
func TestStoppedRunGoesOn(t *testing.T) {
	for _, format := range []string{"jsonl", "csv"} {
		bubble(t, func(t *testing.T) {
			const lookups = 60
			dir := t.TempDir()
			var calls counted
			n := connect(t, calls.note, "virustotal")
			args := []string{"-providers", "virustotal", "-cache", "off", "-resume", filepath.Join(dir, "run"), "-o", filepath.Join(dir, "out"), "-format", format, "-f", list(t, lookups)}
			lives := 0
			for ; ; lives++ {
				require.Less(t, lives, 10)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(4*time.Minute+4*plannedTrip+oneWay.Min+10*time.Millisecond, cancel) // some are out
				got := n.runUntil(ctx, t, args...)
				cancel()
				if got.code == exitOK {
					assert.Regexp(t, `answered: \d+ of 60 lookups, \d+ done before|all answered`, got.stdout)
					break
				}
				require.Equal(t, exitInterrupted, got.code, got.stderr)
				assert.Contains(t, got.stdout, "the same command goes on where this run ended")
			}
			assert.Greater(t, lives, 2)
			text, err := os.ReadFile(filepath.Join(dir, "out"))
			require.NoError(t, err)
			for i := range lookups {
				assert.Contains(t, string(text), fmt.Sprintf("10.0.0.%d", i))
			}
			twice := 0
			assert.Len(t, calls.n, lookups)
			for _, times := range calls.n {
				twice += times - 1
			}
			assert.LessOrEqual(t, twice, 4*lives)

			before := n.arrivals()
			got := n.run(t, args...)
			assert.Equal(t, exitOK, got.code)
			assert.Contains(t, got.stdout, "60 done before")
			assert.Equal(t, before, n.arrivals(), "nothing is left to ask")
		})
	}
}

// Killed: what the two files hold at that instant is all that is left. The torn
// line is cut off, the rest is asked, and those that were in flight are named.
func TestKilledRunGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const lookups = 30
		dir := t.TempDir()
		var calls counted
		n := connect(t, calls.note, "virustotal")
		names := list(t, lookups)
		args := func(life string) []string {
			return []string{"-providers", "virustotal", "-cache", "off", "-resume", filepath.Join(dir, life+".run"), "-o", filepath.Join(dir, life+".jsonl"), "-f", names}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			time.Sleep(3*time.Minute + 3*plannedTrip + oneWay.Min + 10*time.Millisecond) // the fourth minute's are out
			for _, ext := range []string{".run", ".jsonl"} {
				text, err := os.ReadFile(filepath.Join(dir, "first"+ext))
				assert.NoError(t, err)
				if ext == ".jsonl" {
					text = append(text, `{"indicator":"torn`...)
				}
				assert.NoError(t, os.WriteFile(filepath.Join(dir, "second"+ext), text, 0o600))
			}
			cancel()
		}()
		require.Equal(t, exitInterrupted, n.runUntil(ctx, t, args("first")...).code)
		kept, err := os.ReadFile(filepath.Join(dir, "second.jsonl"))
		require.NoError(t, err)
		asked := calls.copy()

		got := n.run(t, args("second")...)
		assert.Equal(t, exitOK, got.code, got.stderr)
		results := fileRecords(t, filepath.Join(dir, "second.jsonl"))
		seen := make(map[string]int)
		for _, r := range results {
			assert.True(t, r.OK)
			seen[r.Indicator]++
		}
		assert.Len(t, seen, lookups, "none is lost")
		assert.Len(t, results, lookups, "none comes twice")
		assert.Positive(t, strings.Count(string(kept), "\n"))
		inFlight := 0
		for path, times := range calls.copy() {
			if times > 1 {
				inFlight++
				name := path[strings.LastIndex(path, "/")+1:]
				assert.Contains(t, got.stdout, "  virustotal ip-report ip "+name+"\n", "asked twice, and named")
			}
		}
		assert.Positive(t, inFlight)
		assert.Contains(t, got.stdout, fmt.Sprintf("perhaps asked twice: %d lookups\n", inFlight))
		assert.Greater(t, len(asked), lookups/3)
	})
}

func TestWrongResumeFile(t *testing.T) {
	dir := t.TempDir()
	run := func(t *testing.T, name string, args ...string) told {
		t.Helper()
		return played(t, "", append([]string{"-speed", "2000", "-providers", "ip-api", "-resume", filepath.Join(dir, name), "-o", filepath.Join(dir, name+".out")}, args...)...)
	}
	bubble(t, func(t *testing.T) {
		require.Equal(t, exitOK, run(t, "r", "1.1.1.1").code)
		before, err := os.ReadFile(filepath.Join(dir, "r.out"))
		require.NoError(t, err)

		for _, args := range [][]string{{"8.8.8.8"}, {"1.1.1.1", "8.8.8.8"}, {"-format", "csv", "1.1.1.1"}, {"-providers", "shodan", "1.1.1.1"}, {"-as", "text", "-providers", "shodan", "1.1.1.1"}} {
			got := run(t, "r", args...)
			assert.Equal(t, exitUsage, got.code, args)
			assert.Contains(t, got.stderr, "osint: -resume: journal: of another run", args)
		}
		open, err := journal.Open(filepath.Join(dir, "used"), "x")
		require.NoError(t, err)
		got := run(t, "used", "1.1.1.1")
		assert.Equal(t, exitUsage, got.code)
		assert.Contains(t, got.stderr, "in use by another process")
		require.NoError(t, open.Close())

		require.NoError(t, os.WriteFile(filepath.Join(dir, "photo"), []byte("\x89PNG\r\n\x1a\n"), 0o600))
		got = run(t, "photo", "1.1.1.1")
		assert.Equal(t, exitUsage, got.code)
		assert.Contains(t, got.stderr, "not a journal, or damaged")
		got = run(t, "none/there", "1.1.1.1")
		assert.Equal(t, exitUsage, got.code)

		after, err := os.ReadFile(filepath.Join(dir, "r.out"))
		require.NoError(t, err)
		assert.Equal(t, string(before), string(after), "nobody has touched the results")
		assert.NoFileExists(t, filepath.Join(dir, "used.out"))
		assert.NoFileExists(t, filepath.Join(dir, "photo.out"))
	})
}

// The results of an earlier run that are not where the run goes on are missed.
func TestResumeMissesTheResults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		args := []string{"-providers", "ip-api", "-resume", filepath.Join(dir, "r"), "-o", filepath.Join(dir, "o"), "1.1.1.1"}
		got := played(t, "", args...)
		require.Equal(t, exitOK, got.code)
		assert.NotContains(t, got.stderr, "is not there")
		require.NoError(t, os.Remove(filepath.Join(dir, "o")))
		got = played(t, "", args...)
		assert.Equal(t, exitOK, got.code)
		assert.Contains(t, got.stderr, "o is not there: it begins anew, without what the earlier run has done")
		assert.Contains(t, got.stdout, "1 done before")
	})
}

// What was refused is asked again, by whoever goes on later; what is done is not.
func TestResumeAsksWhatWasRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		n := connect(t, nil, "virustotal")
		args := []string{"-providers", "virustotal", "-cache", "off", "-resume", filepath.Join(dir, "run"), "-o", filepath.Join(dir, "out"), "-f", list(t, 30), "-wait", "3m"}
		require.Equal(t, exitOK, n.run(t, args...).code)
		ok := 0
		for _, r := range fileRecords(t, filepath.Join(dir, "out")) {
			if r.OK {
				ok++
			}
		}
		assert.Less(t, ok, 30)
		time.Sleep(time.Hour)
		args[len(args)-1] = "1h" // how long is not which
		require.Equal(t, exitOK, n.run(t, args...).code)
		answered := make(map[string]int)
		for _, r := range fileRecords(t, filepath.Join(dir, "out")) {
			if r.OK {
				answered[r.Indicator]++
			}
		}
		assert.Len(t, answered, 30)
		assert.EqualValues(t, 30, n.arrivals(), "none is asked twice")
	})
}

// A disk that is full ends the run before more is asked, and says so; what the
// results did not take is asked again.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	for _, name := range []string{"-o /dev/full", "-o /dev/full -format csv"} {
		bubble(t, func(t *testing.T) {
			got := played(t, "", append(strings.Fields(name), "-speed", "1", "-providers", "shodan", "-f", list(t, 50))...)
			assert.Equal(t, exitFailed, got.code)
			assert.Contains(t, got.stderr, "osint: the results cannot be written: write /dev/full: no space left on device")
			assert.NotContains(t, got.stdout, "all answered")
		})
	}
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		run := filepath.Join(dir, "run")
		n := connect(t, nil, "shodan")
		args := []string{"-live", "-providers", "shodan", "-cache", "off", "-resume", run, "-json", "-f", list(t, 10)}
		var stdout, stderr buffer
		writes := 0
		stdout.wrote = func() error {
			if writes++; writes > 4 {
				return errors.New("no space left")
			}
			return nil
		}
		require.Equal(t, exitFailed, n.world(t, &stdout, &stderr).run(args))
		require.Len(t, records(t, stdout.String()), 4)
		got := n.run(t, args[1:]...)
		assert.Equal(t, exitOK, got.code)
		assert.Len(t, records(t, got.stdout), 6, "the fifth was answered, and lost, and is asked again")
	})
}

// Where the run cannot be noted nothing more is asked.
func TestResumeFileThatCannotBeWritten(t *testing.T) {
	a := &asking{journal: closed(t)}
	var cause error
	a.end = func(err error) { cause = err }
	n := notes{a}
	assert.Error(t, n.Began("k"))
	assert.ErrorContains(t, cause, "the resume file cannot be written: journal: ")
	cause = nil
	assert.Error(t, n.Finished("k"))
	assert.Error(t, cause)
	cause = nil
	assert.Error(t, n.Failed("k"))
	assert.Error(t, cause)

	// The results come first: what they did not take is not done.
	open, err := journal.Open(filepath.Join(t.TempDir(), "j"), "x")
	require.NoError(t, err)
	defer open.Close()
	a = &asking{journal: open, out: &results{err: errors.New("full")}, end: a.end}
	assert.EqualError(t, notes{a}.Finished("k"), "full")
	assert.False(t, open.Done("k"))
}

func closed(t *testing.T) *journal.Journal {
	t.Helper()
	j, err := journal.Open(filepath.Join(t.TempDir(), "j"), "x")
	require.NoError(t, err)
	require.NoError(t, j.Close())
	return j
}
