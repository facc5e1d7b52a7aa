package breaker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headgate/headgate/provider"
)

// model says the same as Breaker in the plainest way: every call that was ever
// taken is kept, with the state it belongs to.
type model struct {
	failures, probes  int
	cooldown, timeout time.Duration

	state  State
	until  time.Time
	row    int
	passed int
	epoch  int
	calls  []*taken
}

type taken struct {
	tok   Token
	at    time.Time
	epoch int
	done  bool
}

func (m *model) enter(s State, now time.Time) {
	m.state, m.row, m.passed = s, 0, 0
	m.epoch++
	if s == Open {
		m.until = now.Add(m.cooldown).Add(1)
	}
}

func (m *model) out() (n int, oldest time.Time) {
	for _, c := range m.calls {
		if c.epoch == m.epoch && !c.done {
			if n++; n == 1 { // they are in order of time
				oldest = c.at
			}
		}
	}
	return n, oldest
}

func (m *model) expire(now time.Time) {
	if n, oldest := m.out(); m.state == HalfOpen && n > 0 && now.Sub(oldest) > m.timeout {
		m.enter(Open, now)
	}
}

func (m *model) look(now time.Time) (time.Time, bool) {
	m.expire(now)
	n, _ := m.out()
	switch {
	case m.state == Open && now.Before(m.until):
		return m.until, false
	case m.state == HalfOpen && n+m.passed >= m.probes:
		return time.Time{}, false
	}
	return time.Time{}, true
}

func (m *model) take(now time.Time, tok Token) {
	if m.state == Open {
		m.enter(HalfOpen, now)
	}
	m.calls = append(m.calls, &taken{tok: tok, at: now, epoch: m.epoch})
}

func (m *model) report(c *taken, now time.Time, r Result) {
	m.expire(now)
	if c.done || c.epoch != m.epoch {
		return
	}
	c.done = true
	switch {
	case r == Success && m.state == HalfOpen:
		if m.passed++; m.passed == m.probes {
			m.enter(Closed, now)
		}
	case r == Success:
		m.row = 0
	case r == Failure:
		if m.row++; m.state == HalfOpen || m.row == m.failures {
			m.enter(Open, now)
		}
	}
}

func TestBreakerIsItsModel(t *testing.T) {
	seen := map[State]int{}
	rapid.Check(t, func(rt *rapid.T) {
		var thrown any // rapid stops a run by a panic, which must reach its own goroutine
		synctest.Test(t, func(*testing.T) {
			defer func() { thrown = recover() }()
			storm(rt, seen)
		})
		if thrown != nil {
			panic(thrown)
		}
	})
	for _, s := range []State{Closed, Open, HalfOpen} { // rapid checks a fifth as often with -short
		require.Greater(t, seen[s], 20, "the storm must reach state %s", s)
	}
}

func storm(rt *rapid.T, seen map[State]int) {
	m := &model{
		failures: rapid.IntRange(1, 6).Draw(rt, "failures"),
		probes:   rapid.IntRange(1, 4).Draw(rt, "probes"),
		cooldown: time.Duration(rapid.IntRange(1, 40).Draw(rt, "cooldown")) * time.Second,
		timeout:  time.Duration(rapid.IntRange(1, 40).Draw(rt, "timeout")) * time.Second,
		state:    Closed,
	}
	b := New("x", provider.Breaker{Failures: m.failures, Cooldown: m.cooldown, Probes: m.probes}, m.timeout)
	rt.Repeat(map[string]func(*rapid.T){
		"call": func(rt *rapid.T) {
			now := time.Now()
			until, ok := m.look(now)
			gotUntil, gotOK := b.Look(now)
			require.Equal(rt, ok, gotOK)
			require.Equal(rt, until, gotUntil)
			if ok {
				m.take(now, b.Take(now))
				require.Equal(rt, m.state == HalfOpen, m.calls[len(m.calls)-1].tok.Probe())
			}
		},
		"report": func(rt *rapid.T) {
			if len(m.calls) == 0 {
				rt.Skip("no call yet")
			}
			i := rapid.IntRange(max(0, len(m.calls)-6), len(m.calls)-1).Draw(rt, "call") // also those reported before
			r := rapid.SampledFrom([]Result{Neither, Success, Failure, Failure, Failure}).Draw(rt, "result")
			b.Done(&m.calls[i].tok, time.Now(), r)
			m.report(m.calls[i], time.Now(), r)
		},
		"sleep": func(rt *rapid.T) {
			d := time.Duration(rapid.IntRange(0, 20).Draw(rt, "seconds")) * time.Second
			if rapid.Bool().Draw(rt, "to the edge") {
				edge := m.until
				if n, oldest := m.out(); n > 0 && m.state == HalfOpen {
					edge = oldest.Add(m.timeout).Add(1)
				}
				if edge.After(time.Now()) {
					d = time.Until(edge) - time.Duration(rapid.IntRange(0, 1).Draw(rt, "before"))
				}
			}
			time.Sleep(d)
		},
		"": func(rt *rapid.T) {
			m.expire(time.Now())
			s, until := m.state, time.Time{}
			if s == Open {
				if until = m.until; !time.Now().Before(until) {
					s, until = HalfOpen, time.Time{}
				}
			}
			seen[s]++
			got, gotUntil := b.State(time.Now())
			require.Equal(rt, s, got)
			require.Equal(rt, until, gotUntil)
			require.Equal(rt, m.row, b.Failures())
		},
	})
}
