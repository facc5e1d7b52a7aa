package main

import (
	"flag"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/internal/referee"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 500
		s, err := run(t.Context(), referee.Listen(), n)
		require.NoError(t, err)
		all := &s.sender.tallies
		assert.Zero(t, s.report.Violated, "%v", s.report.Violations)
		assert.Zero(t, s.sender.world.early)
		for _, k := range []kind{plain, hot, busy} {
			require.Positive(t, all[k].events, k)
			require.Equal(t, all[k].events, all[k].delivered, k)
		}
		assert.Equal(t, 5*backlog, all[hot].events)
		assert.Equal(t, 3*toDown, all[down].later+all[down].failed, "kept, not lost")
		assert.GreaterOrEqual(t, all[down].later, 3*5, "no more than two and a trial or so are tried in vain, also where connections are lost")
		assert.LessOrEqual(t, s.sender.world.calls[down], 3*7, "two at once, then one alone after each pause")

		var out strings.Builder
		s.write(&out) // sorts
		assert.Contains(t, out.String(), "all answered whose destinations are up")
		assert.Less(t, all[plain].waits[len(all[plain].waits)*99/100], 50*time.Millisecond, "no other's backlog")
		assert.GreaterOrEqual(t, all[busy].waits[0], time.Duration(0))
		assert.GreaterOrEqual(t, all[busy].waits[len(all[busy].waits)-1], retryAfter)
		assert.Greater(t, ideal.Seconds(), 0.95*all[hot].last.Seconds(), "a backlog goes as fast as its destination allows")

		assert.Less(t, s.memory.peak, n/2, "idle destinations are forgotten while others are in use")
		assert.Less(t, s.memory.end, n/8)
		assert.Positive(t, s.memory.end)
	})
}

// What the counters are worth: without Headgate the same events break limits, and
// busy destinations are asked while they told to wait.
func TestWorldCountsWhatANakedClientDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := newWorld()
		require.NoError(t, err)
		defer w.judge.Close()
		played := stage.Open(referee.Listen(), w)
		defer played.Close()
		proxy, err := url.Parse(played.URL())
		require.NoError(t, err)
		played.Base().Proxy = http.ProxyURL(proxy)
		s := &sender{client: &http.Client{Transport: played.Base()}, world: w}
		for range 10 {
			s.post(t.Context(), time.Now(), 0)
		}
		s.post(t.Context(), time.Now(), 50)
		s.all.Wait()
		time.Sleep(retryAfter / 2)
		s.post(t.Context(), time.Now(), 50)
		s.all.Wait()
		assert.Positive(t, w.judge.Report(slug).Violated)
		assert.Equal(t, 1, w.early)
		assert.Equal(t, 1, s.tallies[busy].failed)
	})
}

func TestStartRefuses(t *testing.T) {
	for _, args := range [][]string{{"-destinations", "99"}, {"-destinations", "20001"}, {"-destinations", "x"}, {"more"}} {
		var stdout, stderr strings.Builder
		assert.ErrorIs(t, start(t.Context(), args, &stdout, &stderr), stage.ErrUsage, args)
		assert.NotEmpty(t, stderr.String(), args)
		assert.Empty(t, stdout.String(), args)
	}
	var stdout, stderr strings.Builder
	assert.ErrorIs(t, start(t.Context(), []string{"-h"}, &stdout, &stderr), flag.ErrHelp)
}
