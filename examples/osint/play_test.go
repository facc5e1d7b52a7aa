package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// However fast the played time passes, nothing that is told in whole seconds holds
// anybody up.
func TestPlayedTimePassesFaster(t *testing.T) {
	bubble(t, func(t *testing.T) {
		begin := time.Now()
		got := played(t, "", "-speed", "30", "-providers", "shodan", "-json", "-f", list(t, 31))
		assert.Equal(t, exitOK, got.code)
		assert.Less(t, time.Since(begin), 1500*time.Millisecond, "thirty seconds, and a round trip for each")
		assert.Contains(t, got.stderr, "violations: 0 in 31 calls")
	})
}

// -wait is of the played time, too.
func TestWaitIsPlayed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		begin := time.Now()
		got := played(t, "", "-speed", "60", "-wait", "10m", "-providers", "virustotal", "-json", "-f", list(t, 100))
		assert.Equal(t, exitOK, got.code)
		assert.InDelta(t, 60, strings.Count(got.stdout, `"reason":"too_late"`), 4, "four a minute")
		assert.Less(t, time.Since(begin), 11*time.Second)
	})
}
