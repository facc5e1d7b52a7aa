package console

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

const (
	mostSamples = 120
	longestStep = 30 * time.Second // × mostSamples: an hour
	firstStep   = longestStep / 32 // doubled whenever all samples are there
)

// History is up to the last hour of a provider, oldest first: at most 120 samples,
// one each StepSeconds, which are 30 after an hour.
type History struct {
	StepSeconds float64  `json:"step_seconds"`
	Samples     []Sample `json:"samples"`
}

// Sample is one step of a History.
type Sample struct {
	Calls   uint32 `json:"calls"`   // attempts that went
	Failed  uint32 `json:"failed"`  // answers other than ok and rejected
	Refused uint32 `json:"refused"` // calls that never went
	Waiting uint32 `json:"waiting"` // the longest queue that was seen
}

// history holds the samples of all providers. All have the same steps; one that came
// later has fewer samples.
type history struct {
	mu     sync.Mutex
	step   time.Duration
	next   time.Time // end of the step that goes on
	n      int       // steps that are over
	looked bool      // there was a first look, which tells what came before
	trails map[string]*trail
}

// trail is one provider's.
type trail struct {
	past  []Sample
	now   Sample
	total totals // at the last look
}

// totals are the counts of a State since the beginning.
type totals struct{ calls, failed, refused int64 }

func totalsOf(s *coordinator.State) (n totals) {
	n.calls = s.Granted
	for outcome, count := range s.Outcomes {
		if outcome != provider.OK && outcome != provider.Rejected && outcome != provider.Canceled {
			n.failed += count
		}
	}
	for reason, count := range s.Refused {
		if reason != coordinator.ReasonCanceled {
			n.refused += count
		}
	}
	return n
}

func (h *history) init(now time.Time) {
	h.step, h.next = firstStep, now.Add(firstStep)
	h.trails = make(map[string]*trail)
}

// due is how long from now the step that goes on ends.
func (h *history) due(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(h.next.Sub(now), 0)
}

// add takes in one look at all providers. What came since the look before counts in
// the step of this one.
func (h *history) add(states []coordinator.State, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if hour := mostSamples * longestStep; now.Sub(h.next) > hour { // the process slept: nothing older is kept
		h.next = now.Add(-hour)
	}
	for !now.Before(h.next) {
		h.turn()
	}
	for i := range states {
		s := &states[i]
		t := h.trails[s.Provider]
		n := totalsOf(s)
		if t == nil {
			t = new(trail)
			if !h.looked {
				t.total = n
			}
			h.trails[s.Provider] = t
		}
		t.now.Calls = grown(t.now.Calls, n.calls-t.total.calls)
		t.now.Failed = grown(t.now.Failed, n.failed-t.total.failed)
		t.now.Refused = grown(t.now.Refused, n.refused-t.total.refused)
		t.now.Waiting = max(t.now.Waiting, grown(0, int64(s.Queue.Length)))
		t.total = n
	}
	h.looked = true
}

func grown(n uint32, by int64) uint32 {
	return uint32(min(int64(n)+max(by, 0), math.MaxUint32))
}

// turn ends a step. Where there are as many as there may be, the oldest goes, or two
// become one.
func (h *history) turn() {
	full := h.n == mostSamples
	for _, t := range h.trails {
		if full && len(t.past) == mostSamples {
			t.past = slices.Delete(t.past, 0, 1)
		}
		t.past = append(t.past, t.now)
		t.now = Sample{}
	}
	if !full {
		h.n++
	}
	if h.n == mostSamples && h.step < longestStep {
		for _, t := range h.trails {
			t.halve()
		}
		h.n, h.step = mostSamples/2, 2*h.step
	}
	h.next = h.next.Add(h.step)
}

// halve makes one sample of each two, from the latest on.
func (t *trail) halve() {
	half := make([]Sample, 0, mostSamples)
	for end := len(t.past); end > 0; end -= 2 {
		x := t.past[end-1]
		if end > 1 {
			y := t.past[end-2]
			x = Sample{x.Calls + y.Calls, x.Failed + y.Failed, x.Refused + y.Refused, max(x.Waiting, y.Waiting)}
		}
		half = append(half, x)
	}
	slices.Reverse(half)
	t.past = half
}

// of returns a copy of a provider's; nil: there is none yet.
func (h *history) of(slug string) *History {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.trails[slug]
	if t == nil || len(t.past) == 0 {
		return nil
	}
	return &History{StepSeconds: h.step.Seconds(), Samples: slices.Clone(t.past)}
}
