package stage

import (
	"fmt"
	"math"
	"time"

	"github.com/headgate/headgate/provider"
)

const (
	// arrivalWithin is the time in which a request has arrived, answered or not, at
	// speed 1: a hundred times the longest delay that examples play. leastArrival is
	// there for the lateness of a busy machine, which no speed makes shorter.
	arrivalWithin = 10 * time.Second
	leastArrival  = 250 * time.Millisecond
	// leastTimeout likewise: a played provider answers, so that a time-out would
	// only tell that this machine is busy.
	leastTimeout = 2 * time.Second
)

// Shorten divides d by speed. It rounds up: what was above 0 stays so. Forever
// stays forever.
func Shorten(d time.Duration, speed float64) time.Duration {
	if d == provider.Forever || speed == 1 {
		return d
	}
	return time.Duration(math.Ceil(float64(d) / speed))
}

// Scale returns p as it is played at a speed: every length of time divided by it,
// defaults included. played are the limits for the referee.
//
// Calendar periods become windows of their nominal length that begin with the
// program. A fixed window with a duration is aligned to the Unix epoch in
// Headgate, which cannot be told where a played one begins, so it gets a sliding
// window of that length: safe whatever the phase, and as fast, because a window
// that begins with the program is as full at its end as at its beginning.
func Scale(p provider.Provider, speed float64) (scaled provider.Provider, played []provider.Limit, err error) {
	limits, err := p.Throttle.Expand()
	if err != nil {
		return provider.Provider{}, nil, fmt.Errorf("provider %q: %w", p.Slug, err)
	}
	t := p.Throttle.WithDefaults()
	t.RPS, t.RPM, t.RPH, t.RPD, t.Burst, t.Algorithm, t.MaxInFlight = 0, 0, 0, 0, 0, "", 0
	t.Limits = nil
	for _, l := range limits {
		l = scaleLimit(l, speed)
		played = append(played, l)
		t.Limits = append(t.Limits, slide(l))
	}
	if t.BadAnswers != nil {
		bad := slide(scaleLimit(*t.BadAnswers, speed))
		t.BadAnswers = &bad
	}
	t.MaxWait = Shorten(t.MaxWait, speed)
	t.Penalty = Shorten(t.Penalty, speed)
	t.Warmup = Shorten(t.Warmup, speed)
	t.MaxRetryAfter = Shorten(t.MaxRetryAfter, speed)
	t.LeastRoundTrip = 0 // of the real network, which nobody plays
	if t.ArrivalWithin == 0 {
		t.ArrivalWithin = arrivalWithin
	}
	t.ArrivalWithin = max(Shorten(t.ArrivalWithin, speed), leastArrival)
	p.Throttle = t

	p.Breaker = p.Breaker.WithDefaults()
	p.Breaker.Cooldown = Shorten(p.Breaker.Cooldown, speed)
	p.Retry = p.Retry.WithDefaults()
	p.Retry.Base, p.Retry.Max = Shorten(p.Retry.Base, speed), Shorten(p.Retry.Max, speed)
	if p.Timeout > 0 {
		p.Timeout = max(Shorten(p.Timeout, speed), leastTimeout)
	}
	return p, played, nil
}

// scaleLimit divides a limit's window and makes a calendar period a duration.
func scaleLimit(l provider.Limit, speed float64) provider.Limit {
	if l.Algorithm == provider.InFlight {
		return l
	}
	length, _ := l.Per.Duration()
	longest, _ := provider.Month.Duration() // that a period may be: at a speed below 1 a month is longer
	length = min(Shorten(length, speed), longest)
	l.Per, l.Zone, l.Anchor = provider.Period(length.String()), "", ""
	return l
}

// slide is what Headgate declares for a played limit.
func slide(l provider.Limit) provider.Limit {
	if l.Algorithm == provider.FixedWindow {
		l.Algorithm = provider.SlidingWindow
	}
	return l
}
