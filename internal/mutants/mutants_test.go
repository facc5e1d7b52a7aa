// Package mutants asks whether the tests of the core would notice a fault: it puts
// named ones into the source, one at a time, and runs the tests of that package. It
// has no code of its own.
//
// A mutant is data: a text that stands exactly once in a file, what is put in its
// place, and the test that is to catch it. The source is not touched: the go command
// is given another file in its place (-overlay).
//
//	make mutants                                         # all of them, and a table
//	go test ./internal/mutants -mutants.run -run 'Caught/limit/.*slot' -v
package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var run = flag.Bool("mutants.run", false, "put each mutant in and run the tests")

// mutant is one fault.
type mutant struct {
	name   string // what it does wrong
	file   string // in its package
	before string // stands there exactly once
	after  string
	by     string // the test that is to catch it
	// same argues why nobody could notice: then nothing needs to catch it, and it is
	// kept so that nobody asks again.
	same string
}

var packages = []struct {
	name string
	all  []mutant
}{{"limit", limits}, {"queue", queues}, {"breaker", breakers}, {"coordinator", coordinators}}

// root is the module's folder.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	return dir
}

// mutate is the file with the fault in it.
func (m mutant) mutate(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(text, []byte(m.before)), "%s: this text must stand there exactly once, or the mutant is to be renewed:\n%s", path, m.before)
	return bytes.Replace(text, []byte(m.before), []byte(m.after), 1)
}

// The table fits to the source: every text is there, every name is one fault's, every
// test that is to catch one exists.
func TestTableFits(t *testing.T) {
	for _, p := range packages {
		dir, names := filepath.Join(root(t), p.name), map[string]bool{}
		tests := testsOf(t, dir)
		for _, m := range p.all {
			assert.NotEqual(t, m.before, m.after, "%s: %s", p.name, m.name)
			assert.False(t, names[m.name], "%s: %s comes twice", p.name, m.name)
			names[m.name] = true
			assert.NotEqual(t, m.by == "", m.same == "", "%s: %s: either a test catches it, or there is a reason why none can", p.name, m.name)
			if m.by != "" {
				assert.Contains(t, tests, "func "+m.by+"(", "%s: %s: no such test", p.name, m.name)
			}
			m.mutate(t, filepath.Join(dir, m.file))
		}
	}
}

// testsOf is the text of a package's tests.
func testsOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}

// Unmutated, every test passes: else all would be caught by what fails anyway.
func healthy(t *testing.T, pkg string) {
	t.Helper()
	first, fail := tests(t, "", pkg)
	require.False(t, fail, "%s fails as it is: %s", pkg, first)
}

// TestEveryMutantIsCaught runs the test that is to catch a mutant; where that does not,
// all tests of the package.
func TestEveryMutantIsCaught(t *testing.T) {
	if !*run {
		t.Skip("takes minutes: make mutants")
	}
	var table strings.Builder
	caught, argued, survived := 0, 0, 0
	for _, p := range packages {
		healthy(t, p.name)
		for _, m := range p.all {
			if m.same != "" {
				argued++
				fmt.Fprintf(&table, "| %s | %s | argued: %s |\n", p.name, m.name, m.same)
				continue
			}
			t.Run(p.name+"/"+strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
				how, found := try(t, p.name, m)
				fmt.Fprintf(&table, "| %s | %s | %s |\n", p.name, m.name, how)
				if caught++; !found {
					caught, survived = caught-1, survived+1
					t.Error(how)
				}
			})
		}
	}
	t.Logf("%d caught, %d argued, %d survived\n\n| package | mutant | |\n|---|---|---|\n%s", caught, argued, survived, table.String())
}

// try tells how a mutant was caught.
func try(t *testing.T, pkg string, m mutant) (how string, caught bool) {
	t.Helper()
	overlay := m.overlay(t, filepath.Join(root(t), pkg, m.file))
	if how, caught = tests(t, overlay, pkg, "-short", "-run", "^"+m.by+"$"); caught {
		return "caught by " + how, true
	}
	if how, caught = tests(t, overlay, pkg); caught {
		return fmt.Sprintf("caught, not by %s but by %s", m.by, how), true
	}
	return "SURVIVED: no test of the package failed", false
}

// overlay writes what the go command is to read in the place of a file.
func (m mutant) overlay(t *testing.T, path string) string {
	t.Helper()
	dir := t.TempDir()
	mutated, list := filepath.Join(dir, m.file), filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(mutated, m.mutate(t, path), 0o600))
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{path: mutated}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(list, text, 0o600))
	return list
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// tests runs tests of a package with an overlay. It tells which failed first. One that
// hangs is ended after a time, which is a failure, too.
func tests(t *testing.T, overlay, pkg string, args ...string) (first string, fail bool) {
	t.Helper()
	args = append([]string{"test", "-overlay=" + overlay, "-count=1", "-timeout", "4m", "-vet=off"}, args...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./"+pkg)...)
	cmd.Dir, cmd.WaitDelay = root(t), time.Minute
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch text := string(out); {
	case err == nil:
		require.NotContains(t, text, "no tests to run")
		return "", false
	case !errors.As(err, &exit):
		require.NoError(t, err)
	case strings.Contains(text, "[build failed]"), strings.Contains(text, "[setup failed]"):
		require.Fail(t, "the mutant does not build", "%s", text)
	case failed.MatchString(text):
		return failed.FindStringSubmatch(text)[1], true
	case strings.Contains(text, "panic: test timed out"):
		return "a hang", true
	}
	return "a crash", true
}
