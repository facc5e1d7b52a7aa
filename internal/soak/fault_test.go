package soak

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

// fault is what a provider does to a request that breaks no limit.
type fault struct {
	status int // 0: the usual answer
	after  time.Duration
	hang   bool
	drop   bool
	delay  time.Duration
	clock  time.Duration // by how much the provider's clock is wrong as it answers
}

// drawFault draws none most of the time. A hang needs callers who give up.
func drawFault(rng *rand.Rand, w *world) (f fault) {
	f.delay = (time.Duration(rng.IntN(100_000)) * time.Microsecond).Truncate(w.grain)
	if rng.IntN(10) == 0 {
		f.clock = time.Duration(rng.IntN(7200)-3600) * time.Second
	}
	if rng.IntN(4) > 0 {
		return f
	}
	switch rng.IntN(12) {
	case 0, 1, 2:
		f.status = []int{500, 502, 404}[rng.IntN(3)]
	case 3, 4:
		f.status, f.after = []int{429, 503}[rng.IntN(2)], time.Duration(rng.IntN(3))*time.Second
	case 5:
		f.status = []int{401, 402, 403, 529}[rng.IntN(4)]
	case 6, 7:
		f.drop = !w.keeps
	case 8, 9:
		f.hang = !w.patient
	default:
		f.delay += (time.Duration(rng.IntN(3_000_000)) * time.Microsecond).Truncate(w.grain)
	}
	return f
}

func (r *ride) hangs() bool {
	for _, f := range r.faults {
		if f.hang {
			return true
		}
	}
	return false
}

// fault is what the next request of the ride meets.
func (r *ride) fault() fault {
	n := int(r.arrivals.Add(1)) - 1
	f := r.faults[min(n, len(r.faults)-1)]
	r.w.sum.count("fault: " + f.name())
	return f
}

func (f fault) name() string {
	switch {
	case f.hang:
		return "hang"
	case f.drop:
		return "drop"
	case f.status != 0:
		return strconv.Itoa(f.status)
	case f.delay > time.Second:
		return "delay"
	case f.clock != 0:
		return "clock"
	}
	return "none"
}

// feedback is the fault as one hears of it without HTTP.
func (f fault) feedback() provider.Feedback {
	switch {
	case f.hang, f.drop:
		return provider.Feedback{Outcome: provider.Canceled}
	case f.status != 0:
		return provider.Feedback{Outcome: provider.OfStatus(f.status), RetryAfter: f.after}
	}
	return provider.Feedback{Outcome: provider.OK}
}

// answer is what the referee's provider does with a request.
func (w *world) answer(a referee.Arrival) referee.Answer {
	if a.Request == nil {
		return referee.Answer{}
	}
	for _, s := range w.sites {
		if s.p.Slug == a.Provider {
			w.noted(s, a.Endpoint, a.At, a.Cost)
		}
	}
	i, err := strconv.Atoi(a.Request.Header.Get("X-Ride"))
	if err != nil {
		return referee.Answer{}
	}
	f := w.rides[i].fault()
	ans := referee.Answer{Status: f.status, Hang: f.hang, Drop: f.drop, Delay: f.delay, Header: http.Header{}}
	if f.after > 0 {
		ans.Header.Set("Retry-After", fmt.Sprint(int(f.after/time.Second)))
	}
	if f.clock != 0 {
		ans.Header.Set("Date", time.Now().Add(f.clock).UTC().Format(http.TimeFormat))
	}
	if f.status != 0 {
		ans.Body = `{"error":{"code":"simulated"}}`
	}
	return ans
}

// noted keeps an arrival for the limit that moves.
func (w *world) noted(s *site, endpoint string, at time.Time, cost map[string]int64) {
	if s.elastic != nil && !s.apart[endpoint] {
		s.elastic.note(at, cost[provider.Requests])
	}
}
