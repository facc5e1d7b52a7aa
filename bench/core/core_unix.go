//go:build unix

// Package core tells how long the cores have worked. On a machine that others use,
// too, that says more of a program than the clock on the wall.
package core

import (
	"syscall"
	"time"
)

// Time is how long the cores have worked for this process; 0: that is not known here.
func Time() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
