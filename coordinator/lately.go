package coordinator

import (
	"math/bits"
	"time"

	"github.com/headgate/headgate/provider"
)

// Lately is the last minute of a provider.
type Lately struct {
	Calls       int64         `json:"calls"`        // attempts that went
	Errors      int64         `json:"errors"`       // answers other than ok and rejected, and none at all; canceled ones left out
	Refusals    int64         `json:"refusals"`     // calls that never went
	RPS         float64       `json:"rps"`          // Calls a second
	ErrorRate   float64       `json:"error_rate"`   // Errors as a share of the answers
	RefusalRate float64       `json:"refusal_rate"` // Refusals as a share of all calls that came
	P50         time.Duration `json:"p50"`          // of attempts of 60 to 70 s, from going to the answer; true to 15 %
	P99         time.Duration `json:"p99"`
}

// lately counts by the second and keeps a histogram by ten seconds. What is over is
// apart from what each call writes to, and made when there is any.
type lately struct {
	now   second
	until time.Duration // the end of now; 0: there was no call yet
	past  *[60]second
	ten   time.Duration // the end of the ten seconds of trip
	trip  histogram
	trips *[6]histogram // of the minute before
}

type second struct {
	at                              int64
	went, answered, errors, refused int32
	came                            int32 // calls, of which those that were refused are no part
	fresh, retried                  int32 // of those that went, first attempts; attempts that were to follow
}

// histogram counts durations by their leading bits: four buckets to an octave, from
// 16 µs on.
type histogram struct {
	at     int64
	counts [128]uint32
}

func (l *lane) second() *second {
	if l.now.Mono >= l.lately.until {
		l.lately.next(int64(l.now.Mono / time.Second))
	}
	return &l.lately.now
}

// next begins a second.
func (x *lately) next(at int64) {
	if x.until != 0 {
		if x.past == nil {
			x.past = new([60]second)
		}
		x.past[x.now.at%int64(len(x.past))] = x.now
	}
	x.now, x.until = second{at: at}, time.Duration(at+1)*time.Second
}

// last sums the last n seconds up, that of now included, and tells how many of them
// there are since the first in which a call went.
func (x *lately) last(now time.Duration, n int64) (sum second, since int64) {
	s := int64(now / time.Second)
	add := func(y *second) {
		if age := s - y.at; age < n {
			sum.went, sum.answered, sum.errors, sum.refused = sum.went+y.went, sum.answered+y.answered, sum.errors+y.errors, sum.refused+y.refused
			sum.came, sum.fresh, sum.retried = sum.came+y.came, sum.fresh+y.fresh, sum.retried+y.retried
			if y.went > 0 {
				since = max(since, age+1)
			}
		}
	}
	if x.past != nil {
		for i := range x.past {
			add(&x.past[i])
		}
	}
	add(&x.now)
	return sum, since
}

// answeredLately counts an attempt's end.
func (l *lane) answeredLately(o provider.Outcome, took time.Duration) {
	if o == provider.Canceled {
		return
	}
	s := l.second()
	s.answered++
	if o != provider.OK && o != provider.Rejected {
		s.errors++
	}
	x := &l.lately
	if l.now.Mono >= x.ten {
		if x.ten != 0 {
			if x.trips == nil {
				x.trips = new([6]histogram)
			}
			x.trips[x.trip.at%int64(len(x.trips))] = x.trip
		}
		at := int64(l.now.Mono / (10 * time.Second))
		x.trip, x.ten = histogram{at: at}, time.Duration(at+1)*10*time.Second
	}
	x.trip.counts[bucketOf(took)]++
}

const (
	unitBits = 14 // 16 µs
	subBits  = 2
)

func bucketOf(d time.Duration) int {
	n := uint64(max(d, 0)) >> unitBits
	if n < 1<<subBits {
		return int(n)
	}
	octave := bits.Len64(n) - 1 - subBits
	i := octave<<subBits + int(n>>octave)
	return min(i, len(histogram{}.counts)-1)
}

// middle is a duration in the middle of a bucket.
func middle(i int) time.Duration {
	if i < 1<<subBits {
		return time.Duration(2*i+1) << (unitBits - 1)
	}
	octave := i>>subBits - 1
	low := uint64(i&(1<<subBits-1)|1<<subBits) << octave
	return time.Duration((2*low + 1<<octave) << (unitBits - 1))
}

// lastMinute sums up.
func (l *lane) lastMinute() (x Lately) {
	s, _ := l.lately.last(l.now.Mono, 60)
	x.Calls, x.Errors, x.Refusals = int64(s.went), int64(s.errors), int64(s.refused)
	x.RPS = float64(x.Calls) / 60
	if s.answered > 0 {
		x.ErrorRate = float64(s.errors) / float64(s.answered)
	}
	if came := s.came + s.refused; came > 0 {
		x.RefusalRate = float64(s.refused) / float64(came)
	}
	var counts [128]int64
	var sum int64
	add := func(h *histogram) {
		if h.at < int64(l.now.Mono/(10*time.Second))-6 {
			return
		}
		for i := range h.counts {
			counts[i] += int64(h.counts[i])
			sum += int64(h.counts[i])
		}
	}
	if past := l.lately.trips; past != nil {
		for i := range past {
			add(&past[i])
		}
	}
	add(&l.lately.trip)
	x.P50, x.P99 = quantile(&counts, (sum+1)/2), quantile(&counts, (99*sum+99)/100)
	return x
}

// quantile is the nth of the durations counted, in order; 0 where there are none.
func quantile(counts *[128]int64, n int64) time.Duration {
	if n == 0 {
		return 0
	}
	for i, c := range counts {
		if n -= c; n <= 0 {
			return middle(i)
		}
	}
	return 0
}
