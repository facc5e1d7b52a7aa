package referee

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/headgate/headgate/provider"
)

// event is what the model remembers of one call: everything, for ever.
type event struct {
	t             int64
	cost          map[string]int64
	key, endpoint string
	ok, left      bool
	outcome       provider.Outcome
}

// model says what a referee should say, by definitions as far from its code as
// possible: it looks at all windows and all intervals of the whole history.
type model struct {
	play   Play
	events []*event
}

// counted returns the units that count in l for a call of e, but for e itself.
func (m *model) counted(l provider.Limit, e *event) (at, n []int64) {
	for _, o := range m.events {
		switch {
		case o == e, !o.ok && !m.play.RefusedCounts:
			continue
		case (l.Scope == "key" || l.Scope == "key+endpoint") && o.key != e.key:
			continue
		case (l.Scope == "endpoint" || l.Scope == "key+endpoint") && o.endpoint != e.endpoint:
			continue
		case !m.matches(l, o.endpoint):
			continue
		case l.Algorithm == provider.InFlight && (o.left || !o.ok):
			continue
		case len(l.Charges) > 0 && o.left && o.outcome != provider.Canceled && !slices.Contains(l.Charges, o.outcome):
			continue
		}
		at, n = append(at, o.t), append(n, units(l, o))
	}
	return at, n
}

func units(l provider.Limit, e *event) int64 {
	if l.Algorithm == provider.InFlight {
		return 1
	}
	return e.cost[l.Unit]
}

func (m *model) matches(l provider.Limit, endpoint string) bool {
	if len(l.Endpoints) > 0 {
		return slices.Contains(l.Endpoints, endpoint)
	}
	return !slices.ContainsFunc(m.play.Limits, func(o provider.Limit) bool {
		return o.Instead && slices.Contains(o.Endpoints, endpoint)
	})
}

// allows tells whether l would allow e at t.
func (m *model) allows(l provider.Limit, e *event, t int64) bool {
	mine := units(l, e)
	if mine == 0 || !m.matches(l, e.endpoint) {
		return true
	}
	at, n := m.counted(l, e)
	at, n = append(at, t), append(n, mine)
	d, _ := time.ParseDuration(string(l.Per))
	w := int64(d)
	sum := func(in func(at int64) bool) (total int64) {
		for i := range at {
			if in(at[i]) {
				total += n[i]
			}
		}
		return total
	}
	switch l.Algorithm {
	case provider.InFlight:
		return sum(func(int64) bool { return true }) <= l.Max
	case provider.FixedWindow:
		// Window k is [k w + phase, (k+1) w + phase), its end included if closed.
		for k, last := (t-int64(m.play.Phase))/w-2, (t-int64(m.play.Phase))/w+2; k <= last; k++ {
			in := func(at int64) bool {
				into := at - int64(m.play.Phase) - k*w
				return into >= 0 && (into < w || m.play.Closed && into == w)
			}
			if in(t) && sum(in) > l.Max {
				return false
			}
		}
		return true
	case provider.SlidingWindowCounter:
		before := sum(func(at int64) bool { return at/w == t/w-1 })
		now := sum(func(at int64) bool { return at/w == t/w })
		left := new(big.Rat).Sub(big.NewRat(1, 1), big.NewRat(t%w, w))
		used := left.Mul(left, new(big.Rat).SetInt64(before))
		return used.Add(used, new(big.Rat).SetInt64(now)).Cmp(new(big.Rat).SetInt64(l.Max)) <= 0
	case provider.TokenBucket:
		// In no interval that ends now more than the burst and what it refills.
		for _, from := range at {
			most := new(big.Rat).Mul(big.NewRat(l.Max, w), new(big.Rat).SetInt64(t-from))
			most.Add(most, new(big.Rat).SetInt64(l.Burst))
			if new(big.Rat).SetInt64(sum(func(at int64) bool { return at >= from })).Cmp(most) > 0 {
				return false
			}
		}
		return true
	default: // a window that begins with any call
		for _, from := range at {
			if t-from < w || m.play.Closed && t-from == w {
				if sum(func(at int64) bool { return at >= from }) > l.Max {
					return false
				}
			}
		}
		return true
	}
}

func drawLimit(t *rapid.T, name string) provider.Limit {
	l := provider.Limit{
		Name: name, Max: rapid.Int64Range(1, 6).Draw(t, "max"),
		Per:  rapid.SampledFrom([]provider.Period{"1s", "7ns", "1000ns"}).Draw(t, "per"),
		Unit: rapid.SampledFrom([]string{"requests", "tokens"}).Draw(t, "unit"),
		Algorithm: rapid.SampledFrom([]provider.Algorithm{
			provider.SlidingWindow, provider.SlidingWindowCounter, provider.FixedWindow, provider.TokenBucket, provider.LeakyBucket, provider.InFlight,
		}).Draw(t, "algorithm"),
		Scope:     rapid.SampledFrom([]string{"provider", "key", "endpoint", "key+endpoint"}).Draw(t, "scope"),
		Endpoints: rapid.SampledFrom([][]string{nil, nil, {"a"}, {"a", "b"}}).Draw(t, "endpoints"),
		Charges:   rapid.SampledFrom([][]provider.Outcome{nil, {provider.OK}, {provider.OK, provider.Rejected}}).Draw(t, "charges"),
	}
	l.Instead = l.Endpoints != nil && rapid.Bool().Draw(t, "instead")
	if l.Algorithm == provider.TokenBucket {
		l.Burst = rapid.Int64Range(1, 8).Draw(t, "burst")
	}
	if l.Algorithm == provider.InFlight {
		l.Per, l.Unit = "", "requests"
	}
	return l
}

// drawStep moves the clock so that edges of windows are met often.
func drawStep(t *rapid.T, limits []provider.Limit) int64 {
	d, err := time.ParseDuration(string(limits[rapid.IntRange(0, len(limits)-1).Draw(t, "of")].Per))
	if err != nil {
		d = time.Second
	}
	w := int64(d)
	return max(0, rapid.SampledFrom([]int64{0, 0, 1, w / 5, w / 3, w / 2, w - 1, w, w + 1, 2 * w}).Draw(t, "step"))
}

func TestRefereeSaysWhatTheDefinitionsSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Play{
			Provider: named, Closed: rapid.Bool().Draw(t, "closed"), RefusedCounts: rapid.Bool().Draw(t, "refused counts"),
			Phase: rapid.SampledFrom([]time.Duration{0, 1, 3, 300 * time.Millisecond}).Draw(t, "phase"),
		}
		for i := range rapid.IntRange(1, 3).Draw(t, "limits") {
			p.Limits = append(p.Limits, drawLimit(t, fmt.Sprint("limit", i)))
		}
		now := int64(time.Hour)
		j, err := newJudge(p, func() time.Time { return time.Unix(0, now) })
		require.NoError(t, err)
		m := &model{play: p}
		var calls []*call
		violated := int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			now += drawStep(t, p.Limits)
			if len(calls) > 0 && rapid.IntRange(0, 2).Draw(t, "leaves") > 0 {
				i := rapid.IntRange(0, len(calls)-1).Draw(t, "who")
				o := rapid.SampledFrom([]provider.Outcome{provider.OK, provider.Rejected, provider.Failed, provider.Canceled}).Draw(t, "outcome")
				j.end(calls[i], o)
				if !m.events[i].left {
					m.events[i].left, m.events[i].outcome = true, o
				}
			}
			e := &event{
				t: now, key: rapid.SampledFrom([]string{"", "k"}).Draw(t, "key"), endpoint: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "endpoint"),
				cost: map[string]int64{"requests": rapid.Int64Range(0, 2).Draw(t, "requests"), "tokens": rapid.Int64Range(0, 7).Draw(t, "tokens")},
				ok:   true,
			}
			for _, l := range p.Limits {
				if !m.allows(l, e, now) {
					e.ok = false
					violated++
				}
			}
			m.events = append(m.events, e)
			c := &call{Arrival: Arrival{Endpoint: e.endpoint, Key: e.key, Cost: e.cost}}
			calls = append(calls, c)
			j.arrive(c)
			require.Equal(t, e.ok, c.ok)
			require.Equal(t, violated, j.report.Violated)
			if !c.ok {
				checkWait(t, m, e, c)
			}
		}
	})
}

// checkWait checks the promise behind Retry-After: then, and not before.
func checkWait(t *rapid.T, m *model, e *event, c *call) {
	// The model leaves e itself out of the count; where refused calls count, a
	// second call in its place is what the promise is about.
	again := *e
	all := func(at int64) bool {
		for _, l := range m.play.Limits {
			if l.Algorithm != provider.InFlight && !m.allows(l, &again, at) {
				return false
			}
		}
		return true
	}
	if c.wait == 0 {
		require.False(t, all(e.t+int64(1000*time.Hour)), "no promise, though time would cure it")
		return
	}
	require.True(t, all(e.t+int64(c.wait)), "not free at %v", c.wait)
	for _, l := range m.play.Limits {
		if l.Algorithm == provider.InFlight && !m.allows(l, &again, e.t) {
			return // then at least a second is told
		}
	}
	require.False(t, all(e.t+int64(c.wait)-1), "free before %v", c.wait)
}
