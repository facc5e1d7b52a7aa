package breaker

import "time"

// Token is a call's claim on the breaker; the zero Token claims nothing. It is not to be
// copied: a copy would be a second claim.
type Token struct {
	state uint64 // the number of the state that it was taken in; 0: it claims nothing (any more)
	probe int32  // place among the probes that are out, from 1; 0: it is none
}

// Probe tells that the call is a half-open probe.
func (t *Token) Probe() bool { return t.probe != 0 }

// probes are those that are out: when each was taken; zero: its place is free. They are
// few, so they are walked.
type probes []time.Time

func (p *probes) add(at time.Time) (place int32) {
	for i, t := range *p {
		if t.IsZero() {
			(*p)[i] = at
			return int32(i + 1)
		}
	}
	*p = append(*p, at)
	return int32(len(*p))
}

func (p probes) drop(place int32) { p[place-1] = time.Time{} }

// out is how many there are, and when the oldest was taken.
func (p probes) out() (n int, oldest time.Time) {
	for _, t := range p {
		if !t.IsZero() {
			if n++; n == 1 || t.Before(oldest) {
				oldest = t
			}
		}
	}
	return n, oldest
}
