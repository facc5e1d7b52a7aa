//go:build !unix

package core

import "time"

// Time is how long the cores have worked for this process; 0: that is not known here.
func Time() time.Duration { return 0 }
