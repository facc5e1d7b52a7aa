package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// storm is a lane as the coordinator has it: a pause, a cap, a provider limit with
// two levels of cost, and a gate for each key and endpoint.
type storm struct {
	*world
	r          *rand.Rand
	pause      *gated
	cap        *gated
	keys, ends [3]*gated
	all        *gated
	routes     []*Route
	again      int // calls that came back
}

const second = time.Second

func newStorm(t testing.TB, seed uint64) *storm {
	s := &storm{world: newWorld(t), r: rand.New(rand.NewPCG(seed, 1))}
	s.bound = 50_000
	s.pause = s.gate(&pause{})
	s.cap = s.gate(&slots{limit: 1 + s.r.Int64N(4)})
	s.all = s.gate(&window{limit: 4 + s.r.Int64N(4), per: second})
	for i := range 3 {
		s.keys[i] = s.gate(s.anyRule())
		s.ends[i] = s.gate(s.anyRule())
	}
	for _, k := range s.keys {
		for _, e := range s.ends {
			s.routes = append(s.routes, route(s.pause, s.cap, s.all, k, e))
		}
	}
	s.goes = s.run
	return s
}

func (s *storm) anyRule() ruler {
	if s.r.IntN(2) == 0 {
		return &spacing{every: time.Duration(1+s.r.IntN(20)) * second / 10}
	}
	return &window{limit: 3 + s.r.Int64N(3), per: time.Duration(1+s.r.IntN(20)) * second / 5}
}

// arrive is a call that goes at once where it may, else waits.
func (s *storm) arrive() {
	r := s.routes[s.r.IntN(len(s.routes))]
	f := Flow{string(rune('a' + s.r.IntN(3))), []int{1, 4, 16}[s.r.IntN(3)]}
	c := s.make(r, f, 1)
	c.Cost[2] = []int64{1, 1, 4}[s.r.IntN(3)]
	c.Cost[3] = []int64{0, 1, 1, 3}[s.r.IntN(4)]
	c.Cost[4] = []int64{0, 1, 1, 3}[s.r.IntN(4)]
	if s.r.IntN(4) == 0 {
		c.Deadline = s.now + time.Duration(s.r.Int64N(int64(20*second)))
	}
	if s.r.IntN(8) == 0 {
		s.enter(c)
	} else {
		s.goOrWait(c)
	}
	if c.fate == waits && s.r.IntN(3) == 0 {
		s.after(time.Duration(s.r.Int64N(int64(10*second))), func() { s.leave(c) })
	}
}

// run is what follows when a call has gone: its answer, and perhaps its return.
func (s *storm) run(c *call) {
	s.after(time.Duration(s.r.Int64N(int64(second/2))), func() {
		s.cap.ruler.(*slots).out--
		s.q.Touch(&s.cap.Gate)
		if s.r.IntN(5) == 0 && c.seq != 0 && c.fate == gone {
			s.again++
			c.Deadline = Never
			s.enter(c)
		}
	})
}

func (s *storm) shut() {
	s.pause.ruler.(*pause).until = s.now + time.Duration(s.r.Int64N(int64(3*second)))
	s.q.Touch(&s.pause.Gate)
}

// TestStorms is the property above all: whatever comes, no head that could go
// waits, nothing is lost or goes twice, and nothing stays behind.
func TestStorms(t *testing.T) {
	var claims, stays, again, went, gaveUp int
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := newStorm(t, seed)
			spread := int64(1+s.r.IntN(20)) * int64(second)
			var calls int
			for range 200 {
				s.after(time.Duration(s.r.Int64N(spread)), func() { calls++; s.arrive() })
			}
			for range s.r.IntN(4) {
				s.after(time.Duration(s.r.Int64N(spread)), s.shut)
			}
			s.until(Never)
			require.Equal(t, 200, calls)
			require.Zero(t, s.waiting)
			s.empty()
			claims, stays, again, went = claims+s.claims, stays+s.stays, again+s.again, went+len(s.went)
			gaveUp += calls + s.again - len(s.went)
		})
	}
	t.Logf("%d went, %d came back, %d left, claims seen %d times, stays %d", went, again, gaveUp, claims, stays)
	require.NotZero(t, claims, "the storms never make a claim")
	require.NotZero(t, stays, "nobody ever stays at an open gate")
	require.NotZero(t, again, "no call ever comes back")
	require.NotZero(t, gaveUp)
}
