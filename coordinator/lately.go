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

// lately counts by the second and keeps a histogram by ten seconds: made at the
// first call, for a lane that nobody uses needs none.
type lately struct {
	seconds [60]second
	trips   [7]histogram

	second *second // that of now
	until  time.Duration
	trip   *histogram // that of now
	ten    time.Duration
}

type second struct {
	at                              int64
	went, answered, errors, refused int32
	came                            int32 // calls, of which those that were refused are no part
}

// histogram counts durations by their leading bits: four buckets to an octave, from
// 16 µs on.
type histogram struct {
	at     int64
	counts [128]uint32
}

func (l *lane) second() *second {
	x := l.lately
	if x == nil {
		x = new(lately)
		l.lately = x
	}
	if l.now.Mono >= x.until {
		at := int64(l.now.Mono / time.Second)
		x.second, x.until = &x.seconds[at%int64(len(x.seconds))], time.Duration(at+1)*time.Second
		*x.second = second{at: at}
	}
	return x.second
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
	x := l.lately
	if l.now.Mono >= x.ten {
		at := int64(l.now.Mono / (10 * time.Second))
		x.trip, x.ten = &x.trips[at%int64(len(x.trips))], time.Duration(at+1)*10*time.Second
		*x.trip = histogram{at: at}
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
	if l.lately == nil {
		return x
	}
	var answered, came int64
	now := int64(l.now.Mono / time.Second)
	for i := range l.lately.seconds {
		s := &l.lately.seconds[i]
		if s.at > now-int64(len(l.lately.seconds)) {
			x.Calls += int64(s.went)
			x.Errors += int64(s.errors)
			x.Refusals += int64(s.refused)
			answered += int64(s.answered)
			came += int64(s.came)
		}
	}
	x.RPS = float64(x.Calls) / float64(len(l.lately.seconds))
	if answered > 0 {
		x.ErrorRate = float64(x.Errors) / float64(answered)
	}
	if came+x.Refusals > 0 {
		x.RefusalRate = float64(x.Refusals) / float64(came+x.Refusals)
	}
	var counts [128]int64
	var sum int64
	for i := range l.lately.trips {
		h := &l.lately.trips[i]
		if h.at <= int64(l.now.Mono/(10*time.Second))-int64(len(l.lately.trips)) {
			continue
		}
		for i := range h.counts {
			counts[i] += int64(h.counts[i])
			sum += int64(h.counts[i])
		}
	}
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
