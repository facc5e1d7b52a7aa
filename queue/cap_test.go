package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDebtOutlivesAMove: with one slot all wait now at the cap, now at the limit.
// That nobody waits at the other in the meantime does not forgive bulk, which came
// first, the turns that it has had.
func TestDebtOutlivesAMove(t *testing.T) {
	w := newWorld(t)
	w.blind = true
	slot, rate := &slots{limit: 1}, w.gate(&spacing{every: second})
	cap := w.gate(slot)
	w.goes = func(*call) {
		trip := second / 4
		if len(w.went)%2 == 0 {
			trip += second
		}
		w.after(trip, func() {
			slot.out--
			w.q.Touch(&cap.Gate)
		})
	}
	shut := w.gate(&pause{until: Never})
	w.add(route(shut), "bystander", 1) // so that not everybody needs the cap
	r := route(cap, rate)
	for range 2000 {
		w.enter(w.make(r, Flow{"bulk", 1}, 1))
	}
	for range 2000 {
		w.enter(w.make(r, Flow{"interactive", 16}, 1))
	}
	w.hand()
	w.until(1000 * second)
	n := len(w.went)
	require.Greater(t, n, 800)
	assert.InDelta(t, n/17, w.count("bulk"), 20, "a claim now and then gives it some more")
}

// capped is a lane with a cap and a limit, whose answers take so long that now the
// one is shut, now the other.
func capped(t *testing.T, limit int64, trip time.Duration) (w *world, cap, rate *gated) {
	w = newWorld(t)
	w.blind = true
	slot := &slots{limit: limit}
	cap, rate = w.gate(slot), w.gate(&spacing{every: second})
	n := 0
	w.goes = func(*call) {
		n++
		w.after(trip*time.Duration(60+n*37%80)/100, func() {
			slot.out--
			w.q.Touch(&cap.Gate)
		})
	}
	return w, cap, rate
}

// TestPrioritiesShareBehindACap: moves between a cap and a limit are no reason
// for a claim, which would give bulk more than its share.
func TestPrioritiesShareBehindACap(t *testing.T) {
	for _, limit := range []int64{1, 2, 3} {
		for _, trip := range []time.Duration{9, 19, 29} {
			w, cap, rate := capped(t, limit, trip*second/10)
			r := route(cap, rate)
			for range 1000 {
				w.enter(w.make(r, Flow{"bulk", 1}, 1))
				w.enter(w.make(r, Flow{"normal", 4}, 1))
				w.enter(w.make(r, Flow{"interactive", 16}, 1))
			}
			w.hand()
			for range 1000 {
				w.until(w.now + second)
				require.Nil(t, cap.claim)
			}
			n := float64(len(w.went))
			require.Greater(t, n, 300.)
			assert.InDelta(t, n/21, w.count("bulk"), 2)
			assert.InDelta(t, n*4/21, w.count("normal"), 4)
		}
	}
}

// TestNobodyWanders: the calls of 1,000 keys do not run from the limit to the cap
// and back each time that one of them opens.
func TestNobodyWanders(t *testing.T) {
	w, cap, rate := capped(t, 2, 2*second)
	for i := range 1000 {
		r := route(cap, rate, w.gate(&spacing{}))
		for range 10 {
			w.add(r, fmt.Sprint(i), 1)
		}
	}
	w.hand()
	w.peak = 0
	w.until(1000 * second)
	require.Greater(t, len(w.went), 700)
	assert.LessOrEqual(t, w.peak, 30, "looks of one Hand")
}
