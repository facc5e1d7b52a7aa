package main

import (
	"context"
	"flag"
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

func played(t *testing.T, heeds bool) *summary {
	s, err := run(t.Context(), referee.Listen(), 600, heeds)
	require.NoError(t, err)
	assert.Zero(t, s.report.Violated, "%v", s.report.Violations)
	assert.Zero(t, s.failed)
	assert.Equal(t, 600, s.sent)
	assert.EqualValues(t, s.answered, s.report.Admitted)
	return s
}

func TestHeeding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := played(t, true)
		assert.Equal(t, 600, s.answered)
		assert.Zero(t, s.refused)
		assert.Equal(t, places*8/10, s.longest, "its mark, and no further")
		assert.GreaterOrEqual(t, s.stops, 3, "it stops, goes on, and stops again")
		assert.Less(t, s.took, 5900*time.Millisecond, "and the provider is never idle for it: it takes 100 a second, less a round trip each")
	})
}

// What the marks are worth.
func TestHeedless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := played(t, false)
		assert.Greater(t, s.refused, 200)
		assert.Equal(t, 600, s.answered+s.refused)
		assert.Equal(t, places, s.longest)
		assert.Zero(t, s.stops)
	})
}

func TestInterrupted(t *testing.T) {
	for _, heeds := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
			defer cancel()
			s, err := run(ctx, referee.Listen(), 600, heeds)
			_ = err // what was cut off may be in it
			require.NotNil(t, s)
			assert.Less(t, s.sent, 600)
			assert.Less(t, s.took, time.Second, "nobody waits for the rest")
		})
	}
}

func TestStartRefuses(t *testing.T) {
	for _, args := range [][]string{{"-messages", "299"}, {"-messages", "6001"}, {"-messages", "x"}, {"-live"}, {"more"}} {
		var stdout, stderr strings.Builder
		assert.ErrorIs(t, start(t.Context(), args, &stdout, &stderr), stage.ErrUsage, args)
		assert.NotEmpty(t, stderr.String(), args)
		assert.Empty(t, stdout.String(), args)
	}
	var stdout, stderr strings.Builder
	assert.ErrorIs(t, start(t.Context(), []string{"-h"}, &stdout, &stderr), flag.ErrHelp)
	assert.Contains(t, stderr.String(), "there is no -live")
}
