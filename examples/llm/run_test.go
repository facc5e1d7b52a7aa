package main

import (
	"flag"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
	"github.com/headgate/headgate/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The demo at speed 1. Estimates are a third too high: only what is settled lets the
// tokens be used so far.
func TestDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := run(t.Context(), referee.Listen(), people, 1, 0.05)
		require.NoError(t, err)
		assert.Zero(t, s.report.Violated, "%v", s.report.Violations)
		var used, estimated int64
		low := 0
		for _, u := range s.tallies {
			assert.Equal(t, u.questions, u.answered, u.name)
			assert.Equal(t, u.estimated-u.used, u.refunded-u.surcharge, u.name)
			used, estimated, low = used+u.used, estimated+u.estimated, low+u.low
		}
		assert.Positive(t, low, "some estimates are too low")
		assert.Equal(t, s.report.Units[provider.Tokens], used, "what answers tell is what the referee judged by")
		assert.Greater(t, float64(used), 0.8*s.granted(tokensPerMinute, bucket))
		assert.Greater(t, float64(estimated), s.granted(tokensPerMinute, bucket), "more than was reserved could have gone")

		var out strings.Builder
		s.write(&out)
		assert.Contains(t, out.String(), "violations: 0 in 200 calls, all answered")
		alice, batch := s.tallies[0], s.tallies[2]
		assert.Less(t, alice.waits[len(alice.waits)/2], 300*time.Millisecond, "who is interactive does not wait for the batch")
		assert.Greater(t, batch.waits[len(batch.waits)/2], 20*time.Second)
	})
}

// Answers begin after twice the time in which a request has arrived: requests are used all the
// same, because they are settled when they have arrived.
func TestArrivalWithinFreesRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := run(t.Context(), referee.Listen(), []user{{"u", coordinator.Normal, 400, 0, 40, 100}}, 1, 0.05)
		require.NoError(t, err)
		assert.Zero(t, s.report.Violated)
		assert.EqualValues(t, 400, s.report.Admitted)
		// 120 at once, and as many whenever a minute and those two seconds are over.
		assert.InDelta(t, 3*62, s.elapsed.Seconds(), 1)
	})
}

// The reserve is there for a reason, and the referee sees it.
func TestWithoutReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Prompts are all that these cost. They go at once: by our estimates they fill
		// the bucket, and nearly half of them cost more than was estimated.
		u := user{"u", coordinator.Normal, 49, 0, 2400, 1}
		var estimated, real int64
		for n := range u.questions {
			prompt, output := use(u.question(n))
			estimated, real = estimated+estimate(u.question(n)), real+int64(prompt+output)
		}
		require.LessOrEqual(t, estimated, int64(bucket*tokensPerMinute))
		require.Greater(t, real, int64(bucket*tokensPerMinute))
		s, err := run(t.Context(), referee.Listen(), []user{u}, 1, 0)
		require.NoError(t, err, "who is refused goes again")
		assert.Positive(t, s.report.Violated)
	})
}

// One question, looked at while its answer is being written: the estimate, what the
// header tells, what the end of the stream tells.
func TestTokensAreSettledTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := declared(0)
		p.Throttle.Limits = []provider.Limit{{Name: "tokens", Max: 10000, Per: "1h", Unit: provider.Tokens}}
		judge, err := referee.New(1, referee.Play{Provider: p})
		require.NoError(t, err)
		defer judge.Close()
		s := stage.Open(referee.Listen(), &model{judge: judge, speed: 1})
		defer s.Close()
		p.BaseURL = s.URL()
		c, err := coordinator.New(coordinator.Config{Registry: new(registry.Registry), Providers: []provider.Provider{p}})
		require.NoError(t, err)
		a := &asker{c, &http.Client{Transport: &transport.Transport{Coordinator: c, Base: s.Base()}}, s.URL()}
		tokens := func() (used, held int64) {
			state, err := c.State(slug)
			require.NoError(t, err)
			return state.Limits[0].Used, state.Limits[0].Held
		}

		q := user{name: "u", prompt: 4000, max: 500}.question(1)
		prompt, output := use(q)
		require.NotEqual(t, int64(prompt+500), estimate(q))
		require.Less(t, output, 500)
		done := make(chan error)
		go func() {
			used, err := a.ask(t.Context(), "u", coordinator.Normal, q)
			assert.EqualValues(t, prompt+output, used.Total)
			done <- err
		}()
		time.Sleep(time.Second)
		used, held := tokens()
		assert.EqualValues(t, 0, used)
		assert.Equal(t, estimate(q), held)
		time.Sleep(4*time.Second + 2*time.Millisecond*time.Duration(prompt))
		used, held = tokens()
		assert.EqualValues(t, prompt+500, used, "the header")
		assert.EqualValues(t, 0, held)
		require.NoError(t, <-done)
		used, _ = tokens()
		assert.EqualValues(t, prompt+output, used, "the end of the stream")
	})
}

func TestStartRefuses(t *testing.T) {
	for _, args := range [][]string{{"-speed", "0"}, {"-reserve", "-0.1"}, {"-reserve", "1"}, {"-reserve", "NaN"}, {"-reserve", "x"}, {"more"}} {
		var stdout, stderr strings.Builder
		assert.ErrorIs(t, start(t.Context(), args, &stdout, &stderr), stage.ErrUsage, args)
		assert.NotEmpty(t, stderr.String(), args)
		assert.Empty(t, stdout.String(), args)
	}
	var stdout, stderr strings.Builder
	err := start(t.Context(), []string{"-h"}, &stdout, &stderr)
	assert.ErrorIs(t, err, flag.ErrHelp)
}

// The whole of it over loopback, fast.
func TestStart(t *testing.T) {
	var stdout, stderr strings.Builder
	require.NoError(t, start(t.Context(), []string{"-speed", "250"}, &stdout, &stderr))
	assert.Contains(t, stdout.String(), "all answered")
}
