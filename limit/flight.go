package limit

import "time"

// flight is in_flight: what is held is all that there is.
type flight struct{}

func (*flight) look(_ *spec, now Now, _ int64) time.Duration { return now.Mono }

func (*flight) charge(*spec, Now, int64) {}

func (*flight) refund(*spec, Now, int64) {}

func (*flight) when(_ *spec, now Now, _, _ int64) time.Duration { return now.Mono }

func (*flight) used(*spec, Now) int64 { return 0 }

func (*flight) idle(*spec, Now) bool { return true }

func (*flight) adopt(*spec, algorithm, *spec, Now) {}

func (*flight) copy(algorithm) {}
