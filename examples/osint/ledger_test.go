package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// asProgram has the test's binary be the program.
const asProgram = "OSINT_TEST_AS_PROGRAM"

// in is a world whose user's state folder is dir.
func in(dir string, w *world) *world {
	w.state = func() (string, error) { return dir, nil }
	return w
}

// playedIn runs the program with played providers and a state folder.
func playedIn(t *testing.T, dir string, args ...string) told {
	t.Helper()
	var stdout, stderr buffer
	code := in(dir, quiet(t, &stdout, &stderr)).run(args)
	return told{code, stdout.String(), stderr.String()}
}

// liveIn does so with the internet.
func (n *internet) liveIn(t *testing.T, dir string, args ...string) told {
	t.Helper()
	var stdout, stderr buffer
	w := in(dir, n.world(t, &stdout, &stderr))
	code := w.run(append([]string{"-live", "-cache", "off"}, args...))
	return told{code, stdout.String(), stderr.String()}
}

// A second run of the demo knows what the first has spent; at another speed, or without
// the ledger, nothing was spent.
func TestSecondRunKnowsTheFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir, names := t.TempDir(), list(t, 12)
		args := []string{"-speed", "50", "-providers", "virustotal", "-f", names}
		got := playedIn(t, dir, args...)
		require.Equal(t, exitOK, got.code, got.stderr)
		assert.Contains(t, got.stdout, "\nledger: "+filepath.Join(dir, "osint.db-played-50")+";")
		assert.NotContains(t, got.stdout, "spent before")
		assert.NotContains(t, got.stdout, "earlier runs")

		got = playedIn(t, dir, args...)
		require.Equal(t, exitOK, got.code, got.stderr)
		assert.Contains(t, got.stdout, "\nspent before: virustotal 4 of 4 requests per 1m, 12 of 500 requests per day, 12 of 15500 requests per month\n")
		assert.Contains(t, got.stdout, "virustotal: earlier runs have spent of its limits")
		assert.Regexp(t, `violations: 0 in 12 calls .* all answered: 12 lookups`, got.stdout)

		for _, apart := range [][]string{{"-ledger", "none"}, {"-speed", "60"}} {
			got = playedIn(t, dir, append(args, apart...)...)
			require.Equal(t, exitOK, got.code, got.stderr)
			assert.NotContains(t, got.stdout, "spent before", apart)
		}
		_, err := os.Stat(filepath.Join(dir, "osint.db"))
		assert.ErrorIs(t, err, os.ErrNotExist, "what was played is not what the real ones have counted")
	})
}

// tenADay are the terms of a user whose plan has ten a day.
const tenADay = "providers: {virustotal: {throttle: {limits: [{name: day, max: 10, scope: provider}]}}}"

// What is left of a day is left for the next run, which refuses the rest with its time,
// and plans with it; without the ledger it would break the limit.
func TestSpentQuotaOutlivesARun(t *testing.T) {
	for _, ledger := range []string{"", "none"} {
		bubble(t, func(t *testing.T) {
			dir, names := t.TempDir(), list(t, 6)
			config := file(t, "headgate.yaml", tenADay)
			n := connect(t, nil, "virustotal")
			run := func(more ...string) told {
				return n.liveIn(t, dir, append([]string{"-providers", "virustotal", "-config", config, "-ledger", ledger, "-f", names}, more...)...)
			}
			require.Equal(t, exitOK, run("-json").code)

			got := run("-plan")
			require.Equal(t, exitOK, got.code, got.stderr)
			if ledger == "none" {
				assert.Regexp(t, `(?m)^virustotal +6 +0 +0 +0 +6 +6 `, got.stdout)
			} else {
				assert.Contains(t, got.stdout, "spent before: virustotal 2 of 4 requests per 1m, 6 of 10 requests per day, ")
				assert.Regexp(t, `(?m)^virustotal +6 +0 +0 +0 +6 +4 +Dec 1 00:0\d  2 after Dec 1 00:00; day: 10 per day, overridden`, got.stdout)
			}
			before := n.arrivals()
			got = run("-json")
			if ledger == "none" {
				assert.GreaterOrEqual(t, n.arrivals(), before+6, "all go, and some again: they break the minute's limit")
				return
			}
			assert.Equal(t, exitOK, got.code, got.stderr)
			assert.Equal(t, before+4, n.arrivals(), "of ten six were gone")
			refused := 0
			for _, r := range records(t, got.stdout) {
				if !r.OK {
					refused++
					assert.Equal(t, "2026-12-01T00:00", r.Error.RetryAt.UTC().Format("2006-01-02T15:04"))
				}
			}
			assert.Equal(t, 2, refused)

			got = run("-list")
			assert.Contains(t, got.stdout, "spent: 10 of 10 requests per day ")
		})
	}
}

// Each key of a pool has its own account.
func TestListTellsWhatEachKeyHasLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		n := connect(t, nil, "virustotal")
		n.keys["VT_A"], n.keys["VT_B"] = "one", "two"
		config := file(t, "headgate.yaml", "providers: {virustotal: {keys: [VT_A, VT_B]}}")
		args := []string{"-providers", "virustotal", "-config", config}
		require.Equal(t, exitOK, n.liveIn(t, dir, append(args, "-json", "-f", list(t, 7))...).code)
		got := n.liveIn(t, dir, append(args, "-list")...)
		left := regexp.MustCompile(`VT_[AB]: [01] of 4 requests per 1m, (49[67]) of 500 requests per day`).FindAllStringSubmatch(got.stdout, -1)
		require.Len(t, left, 2, got.stdout)
		assert.NotEqual(t, left[0][1], left[1][1], "four by one key, three by the other")
	})
}

// Two runs at once share: together they keep to the limit that the referee counts for
// both, and lose no time. Without the ledger they break it.
func TestTwoRunsAtOnceShare(t *testing.T) {
	for _, ledger := range []string{"", "none"} {
		bubble(t, func(t *testing.T) {
			dir := t.TempDir()
			n := connect(t, nil, "virustotal")
			begin := time.Now()
			var both sync.WaitGroup
			for i := range 2 {
				names := file(t, "list.txt", fmt.Sprintf("10.0.%d.1\n10.0.%d.2\n10.0.%d.3\n10.0.%d.4\n10.0.%d.5\n10.0.%d.6\n", i, i, i, i, i, i))
				both.Go(func() {
					got := n.liveIn(t, dir, "-providers", "virustotal", "-json", "-ledger", ledger, "-f", names)
					assert.Equal(t, exitOK, got.code, got.stderr)
					assert.Contains(t, got.stderr, "6 lookups")
				})
			}
			both.Wait()
			report := n.Report("virustotal")
			if ledger == "none" {
				assert.Positive(t, report.Violated)
				return
			}
			assert.Zero(t, report.Violated)
			assert.EqualValues(t, 12, report.Admitted)
			assert.Less(t, time.Since(begin), 2*time.Minute+5*time.Second, "twelve at four a minute")
		})
	}
}

// Killed in the middle: what it has spent is known to the next run, and so is what was
// out.
func TestKilledRunIsKnown(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.jsonl")
	args := []string{"-speed", "150", "-providers", "virustotal"}
	cmd := exec.CommandContext(t.Context(), os.Args[0], append(args, "-o", out)...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "XDG_STATE_HOME="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	answered := 0
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(out)
		answered = bytes.Count(text, []byte("\n"))
		return answered >= 9
	}, time.Minute, 5*time.Millisecond, "it never came so far")
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Less(t, answered, 60, "it was killed in the middle")

	got := playedIn(t, filepath.Join(dir, "headgate"), append(args, "1.1.1.1")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	m := regexp.MustCompile(`spent before: virustotal .*?(\d+) of 500 requests per day`).FindStringSubmatch(got.stdout)
	require.NotNil(t, m, "%s%s", got.stdout, stderr.String())
	spent, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	assert.GreaterOrEqual(t, spent, answered)
	assert.LessOrEqual(t, spent, answered+8, "four may have been out, and four more have been answered meanwhile")
}

// What is no ledger is told and never written to. Nobody starts without the ledger that he
// has named, and none asks real providers without.
func TestLedgerThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "osint.db")
	require.NoError(t, os.WriteFile(foreign, []byte("my diary"), 0o600))
	require.NoError(t, os.WriteFile(foreign+"-played-2000", []byte("my diary"), 0o600))
	args := []string{"-speed", "2000", "-providers", "ip-api", "1.1.1.1"}

	got := playedIn(t, dir, append([]string{"-ledger", "sqlite:" + foreign}, args...)...)
	assert.Equal(t, exitUsage, got.code)
	assert.Contains(t, got.stderr, foreign)
	assert.NotContains(t, got.stderr, "another place")

	bubble(t, func(t *testing.T) {
		got = playedIn(t, dir, args...)
		assert.Equal(t, exitOK, got.code)
		assert.Contains(t, got.stderr, "name another place with -ledger, or none; the run goes on without a ledger\n")

		n := connect(t, nil, "crt-sh")
		for _, more := range []string{"-json", "-plan", "-list"} {
			got = n.liveIn(t, dir, "-providers", "crt-sh", more, "example.com")
			assert.NotEqual(t, exitOK, got.code, more)
			assert.Contains(t, got.stderr, foreign, more)
		}
		assert.Zero(t, n.arrivals())
	})
	text, err := os.ReadFile(foreign)
	require.NoError(t, err)
	assert.Equal(t, "my diary", string(text))

	var stdout, stderr buffer
	w := quiet(t, &stdout, &stderr)
	w.state = func() (string, error) { return "", errors.New("neither is set") }
	assert.Equal(t, exitOK, w.run(args))
	assert.Contains(t, stderr.String(), "no place for the ledger: neither is set")
}

// A URL's password is told to nobody, whatever is wrong with it.
func TestLedgerURLIsTold(t *testing.T) {
	for url, says := range map[string]string{
		"redis://u:s3cret@127.0.0.1:1/0":   "ledger redis://127.0.0.1:1/0, prefix headgate-played-2000 does not answer",
		"redis://u:s3cret@127.0.0.1:x":     "cannot be read",
		"redsi://u:s3cret@127.0.0.1":       "want sqlite:PATH",
		"s3cret":                           "want sqlite:PATH",
		"redis://u:s3cret@127.0.0.1/zero":  "the number of a database",
		"redis://u:s3cret@127.0.0.1/?a=3t": "parameter",
	} {
		for _, variable := range []bool{false, true} {
			var stdout, stderr buffer
			w := quiet(t, &stdout, &stderr)
			args := []string{"-speed", "2000", "-providers", "ip-api", "1.1.1.1"}
			if variable {
				w.getenv = func(name string) string { return map[string]string{"HEADGATE_LEDGER": url}[name] }
			} else {
				args = append([]string{"-ledger", url}, args...)
			}
			assert.Equal(t, exitUsage, w.run(args), url)
			assert.Contains(t, stderr.String(), says)
			assert.NotContains(t, stderr.String()+stdout.String(), "s3cret")
		}
	}
}

// A ledger that is lost on the way is told, and ends nothing.
func TestLedgerIsLostOnTheWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		n := connect(t, nil, "virustotal")
		time.AfterFunc(90*time.Second, func() {
			for _, end := range []string{"", "-wal", "-shm"} {
				assert.NoError(t, os.RemoveAll(filepath.Join(dir, "osint.db")+end))
			}
			assert.NoError(t, os.Mkdir(filepath.Join(dir, "osint.db"), 0o700))
		})
		got := n.liveIn(t, dir, "-providers", "virustotal", "-json", "-f", list(t, 14))
		assert.Equal(t, exitOK, got.code, got.stderr)
		assert.Contains(t, got.stderr, "osint: the ledger does not answer (")
		assert.Contains(t, got.stderr, "the ledger may not know all that this run has spent")
		assert.Regexp(t, `answered: 14 lookups`, got.stderr)
		assert.Zero(t, n.Report("virustotal").Violated)
	})
}

// What is out counts as gone, as it may count at the provider; and what a provider has
// said of its limit holds.
func TestStanding(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := provider.Limit{Name: "day", Max: 10, Per: provider.Day, Unit: provider.Requests, Scope: provider.ScopeKey, Keys: map[string]int64{"B": 20}}
		for told, s := range map[string]standing{
			"5 of 10 requests per day":                           {limit: l, usage: ledger.Usage{Used: 3, Held: 2}},
			"B 5 of 20 requests per day":                         {limit: l, key: "B", usage: ledger.Usage{Used: 5}},
			"8 of 10 requests per day at e":                      {limit: l, at: "e", usage: ledger.Usage{Used: 2, Max: 4}},
			"10 of 10 requests per day":                          {limit: l, usage: ledger.Usage{Used: 30}},
			"10 of 10 requests per day, nothing before 11:20:30": {limit: l, usage: ledger.Usage{NotBefore: time.Now().Add(time.Hour)}},
		} {
			assert.Equal(t, told, s.String())
		}
	})
}
