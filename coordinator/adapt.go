package coordinator

import "time"

// Additive increase, multiplicative decrease.
const (
	adaptCut   = 0.5   // of the rate, at the first refusal of a pause
	adaptStep  = 0.005 // of the rate that was cut, each second in which at least half was used: back there in 100 s
	adaptLeast = 0.05  // calls a second that a cut leaves in any case
)

// adaptive finds the rate of a provider that publishes none: off until the first
// refusal, then a spacing of calls that each pause widens once and time narrows
// again, up to the declared ceiling, where it is off.
type adaptive struct {
	rate    float64       // calls a second; 0: off
	peak    float64       // that was cut last
	ceiling float64       // declared; 0: none
	last    time.Duration // when the last call went
	since   time.Duration // start of the second that is looked at
	used    int           // calls in it
}

// cut halves the rate: what is in force, else what went lately. declared 0: no
// limit says how much it may be.
func (a *adaptive) cut(now time.Duration, lately, declared float64) {
	if a.rate == 0 {
		a.rate = lately
		if declared > 0 {
			a.rate = min(lately, declared)
		}
	}
	a.peak, a.ceiling = max(a.rate, adaptLeast), declared
	a.rate = max(a.rate*adaptCut, adaptLeast)
	a.since, a.used = now, 0
}

// look is when the next call may go.
func (a *adaptive) look(now time.Duration) time.Duration {
	if a.rate == 0 {
		return now
	}
	a.grow(now)
	if a.rate == 0 {
		return now
	}
	at := a.last + time.Duration(float64(time.Second)/a.rate)
	if at <= now {
		return now
	}
	if grows := a.since + a.span(); grows > now {
		at = min(at, grows)
	}
	return at
}

func (a *adaptive) went(now time.Duration) {
	if a.rate != 0 {
		a.last = now
		a.used++
	}
}

// grow adds a step for each second of which at least half was used. A second in
// which less than one call could go lasts until one could have.
func (a *adaptive) grow(now time.Duration) {
	span := a.span()
	if now-a.since < span {
		return
	}
	if float64(a.used) >= a.rate*span.Seconds()/2 {
		a.rate += a.peak * adaptStep * span.Seconds()
		if a.ceiling > 0 && a.rate >= a.ceiling {
			a.rate = 0
		}
	}
	a.since, a.used = now, 0
}

func (a *adaptive) span() time.Duration {
	return max(time.Second, time.Duration(float64(time.Second)/a.rate))
}

// rate is how many calls a second went in the last 10 s.
func (x *lately) rate(now time.Duration) float64 {
	sum, since := x.last(now, 10)
	return float64(sum.went) / float64(max(since, 1))
}
