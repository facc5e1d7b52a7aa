//go:build race

package coordinator_test

const raceEnabled = true
