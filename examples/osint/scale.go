package main

import (
	"math"
	"time"

	"github.com/headgate/headgate/provider"
)

const (
	// demoTime is what the slowest provider's ideal is brought down to when no
	// speed is asked for.
	demoTime = 26 * time.Second
	// shortestWindow bounds that speed. A timer fires about a millisecond late: in
	// windows shorter than this the lateness, which is not scaled, would be a good
	// part of what is measured.
	shortestWindow = 20 * time.Millisecond

	// Played calls are on the network for so long each way, at speed 1.
	shortestDelay, longestDelay = 10 * time.Millisecond, 100 * time.Millisecond
)

// demoSpeed is the speed at which a job that ideally takes so long at speed 1 fits
// into demoTime, a whole number from 1 to the fastest that windows stand.
func demoSpeed(ideal, shortest time.Duration) float64 {
	speed := math.Ceil(float64(ideal) / float64(demoTime))
	return max(1, min(speed, fastest(shortest)))
}

// fastest is the highest speed that leaves the shortest window long enough.
func fastest(shortest time.Duration) float64 {
	return max(1, math.Floor(float64(shortest)/float64(shortestWindow)))
}

// shortestOf is the shortest window that any of the limits has; 0: none has one.
func shortestOf(limits []provider.Limit) (shortest time.Duration) {
	for _, l := range limits {
		if d, _ := l.Per.Duration(); d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	return shortest
}
