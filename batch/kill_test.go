package batch_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/batch"
	"github.com/headgate/headgate/batch/journal"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// By these variables of the environment TestMain knows that it is the program to be
// killed, where its files are, and which of its jobs hangs (-1: none).
const (
	victimDir   = "HEADGATE_TEST_VICTIM"
	victimHangs = "HEADGATE_TEST_HANGS"
	victimJobs  = 1500
)

// victim does jobs until it is killed. It writes the number of each job to the file
// "sent" as it goes, and prints the number of each result.
func victim(dir string) error {
	j, err := journal.Open(filepath.Join(dir, "journal"), "victim")
	if err != nil {
		return err
	}
	sent, err := os.OpenFile(filepath.Join(dir, "sent"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{declare("p", provider.Throttle{MaxInFlight: 3})}})
	if err != nil {
		return err
	}
	hangs, err := strconv.Atoi(os.Getenv(victimHangs))
	if err != nil {
		return err
	}
	jobs := func(yield func(batch.Job) bool) {
		for i := range victimJobs {
			do := func(ctx context.Context) error {
				_, err := fmt.Fprintln(sent, i)
				if i == hangs {
					fmt.Println("hangs", i)
				}
				if i == hangs || hangs >= 0 && i > hangs+100 { // some more are done, but not all
					<-ctx.Done()
				}
				return err
			}
			if !yield(batch.Job{Key: fmt.Sprintf("%d\n", i), Call: to, Do: do}) { // a key may be anything
				return
			}
		}
	}
	for _, key := range j.Interrupted() {
		fmt.Print("interrupted ", key)
	}
	for job, res := range batch.Run(context.Background(), c, jobs, batch.Options{Journal: j}) {
		if res.Err != nil {
			return res.Err
		}
		fmt.Print("done ", job.Key)
	}
	fmt.Println("end")
	return j.Close()
}

// life runs the victim until it ends, or is killed because its job hangs and enough
// others are done. It returns what it told, by word.
func life(t *testing.T, dir string, hangs int) map[string][]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victimDir+"="+dir, victimHangs+"="+strconv.Itoa(hangs))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	told, killed := map[string][]string{}, false
	for s := bufio.NewScanner(out); s.Scan(); { // what it printed before it died is read all the same
		word, key, _ := strings.Cut(s.Text(), " ")
		told[word] = append(told[word], key)
		if !killed && len(told["hangs"]) > 0 && len(told["done"]) >= 300 {
			killed = true
			require.NoError(t, cmd.Process.Kill())
		}
	}
	err = cmd.Wait()
	require.Equal(t, killed, err != nil, "%v %v", err, told)
	return told
}

// A real process and a real kill: no job is lost, none is done twice but what the
// journal names, and the lock has gone with the process.
func TestKillNine(t *testing.T) {
	dir := t.TempDir()
	var done, interrupted []string
	for i, hangs := range []int{410, 830, -1} {
		told := life(t, dir, hangs)
		done = append(done, told["done"]...)
		interrupted = append(interrupted, told["interrupted"]...)
		assert.Equal(t, i == 2, told["end"] != nil)
	}
	assert.Subset(t, interrupted, []string{"410", "830"})
	sent, err := os.ReadFile(filepath.Join(dir, "sent"))
	require.NoError(t, err)
	count, got, named := map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, key := range strings.Fields(string(sent)) {
		count[key]++
	}
	for _, key := range done {
		got[key] = true
	}
	for _, key := range interrupted {
		named[key] = true
	}
	require.Len(t, count, victimJobs)
	require.Len(t, got, victimJobs, "results that somebody got")
	for key, n := range count {
		require.True(t, n == 1 || named[key], "%s: sent %d times, and not named", key, n)
	}
}
