package main

import (
	"bytes"
	"context"
	"flag"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-github/v93/github"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// At speed 1 the played hub writes its fields to the letter: whole seconds.
func TestSDKWaitsForWhatAnswersTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var out bytes.Buffer
		require.NoError(t, playSDK(t.Context(), &out, referee.Listen(), 1))
		told := out.String()
		assert.Contains(t, told, "40 issues, 8 comments, 60 searches: all answered")
		assert.Contains(t, told, "violations: 0, sent while told to wait: 0, in ")
		assert.Regexp(t, `0\.\d+s  github: rate_limited, nothing goes before 60\.\d+s`, told, "retry-after: 60")
		assert.Regexp(t, `6\d\.\d+s  github: rate_limited, nothing goes before 12\d\.\d+s`, told, "no header: a minute")
		assert.Regexp(t, `issue: rate_limited, nothing goes before 36[01]\.\d+s`, told, "nothing remains: the reset")
		elapsed := time.Since(begin)
		assert.GreaterOrEqual(t, elapsed, hourLeft)
		assert.Less(t, elapsed, hourLeft+5*time.Second, "the quota is used as soon as it is back")
	})
}

// The same in real time, over loopback, with fields that have decimals. What else
// it would tell depends on how busy this machine is.
func TestSDKAtSpeed(t *testing.T) {
	listener, err := stage.Loopback()
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, playSDK(t.Context(), &out, listener, 300))
	assert.Contains(t, out.String(), "searches: all answered")
}

// played is a hub in memory and its address.
func played(t *testing.T) (*hub, *stage.Stage, string) {
	t.Helper()
	declared, err := provider.Parse(declaration)
	require.NoError(t, err)
	h, _, err := newHub(declared, 1)
	require.NoError(t, err)
	s := stage.Open(referee.Listen(), h)
	return h, s, s.URL() + "/"
}

// What the counters are worth: without Headgate the hub sees calls that come while
// they are told to wait, and the referee sees violations.
func TestHubCountsWhatANakedSDKDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s, url := played(t)
		defer h.judge.Close()
		defer s.Close()
		client, err := github.NewClient(github.WithTransport(s.Base()), github.WithURLs(&url, nil), github.WithDisableRateLimitCheck())
		require.NoError(t, err)
		for range 5 {
			assert.Error(t, work(t.Context(), client))
		}
		violations, _ := h.violations()
		assert.Positive(t, violations, "searches above 30 a minute")
		assert.Positive(t, h.early)
	})
}

// Why the guard of the SDK is switched off.
func TestSDKRefusesByItselfOnceNothingRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s, url := played(t)
		defer h.judge.Close()
		defer s.Close()
		client, err := github.NewClient(github.WithTransport(s.Base()), github.WithURLs(&url, nil))
		require.NoError(t, err)
		h.others("search", 9) // one is left
		_, _, err = client.Search.Issues(t.Context(), "x", nil)
		require.NoError(t, err)
		_, _, err = client.Search.Issues(t.Context(), "y", nil)
		var refused *github.RateLimitError
		assert.ErrorAs(t, err, &refused)
		assert.Equal(t, 1, h.calls, "the second was not sent")
	})
}

func TestStartRefuses(t *testing.T) {
	for _, args := range [][]string{{"-speed", "0"}, {"-speed", "-1"}, {"-speed", "NaN"}, {"-speed", "fast"}, {"-bogus"}, {"more"}} {
		var stdout, stderr strings.Builder
		assert.ErrorIs(t, start(t.Context(), args, &stdout, &stderr), stage.ErrUsage, args)
		assert.NotEmpty(t, stderr.String(), args)
		assert.Empty(t, stdout.String(), args)
	}
	var stdout, stderr strings.Builder
	assert.ErrorIs(t, start(t.Context(), []string{"-h"}, &stdout, &stderr), flag.ErrHelp)
	assert.Contains(t, stderr.String(), "-speed")
}

// Ctrl-C ends a run at once, and says what failed.
func TestSDKStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		begin := time.Now()
		var out bytes.Buffer
		err := playSDK(ctx, &out, referee.Listen(), 1)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Contains(t, out.String(), "not all answered")
		assert.Less(t, time.Since(begin), 95*time.Second)
	})
}
