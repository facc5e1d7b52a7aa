package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/headgate/headgate/provider"
)

func TestDemoSpeed(t *testing.T) {
	assert.Equal(t, 1.0, demoSpeed(0, time.Second))
	assert.Equal(t, 1.0, demoSpeed(demoTime, time.Second))
	assert.Equal(t, 33.0, demoSpeed(14*time.Minute, time.Second))
	assert.Equal(t, 50.0, demoSpeed(14*time.Hour, time.Second), "timers are late by what no speed divides")
	assert.Equal(t, 1.0, demoSpeed(14*time.Hour, time.Millisecond))
}

func TestShortestOf(t *testing.T) {
	assert.Equal(t, time.Second, shortestOf(expand(t, provider.Limit{Max: 1, Per: "minute"}, provider.Limit{Max: 1, Per: "1s"}, provider.Limit{Max: 1, Algorithm: provider.InFlight})))
	assert.Zero(t, shortestOf(nil))
}
