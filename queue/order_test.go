package queue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// fair is one gate's order written down naively: every flow that ever came, and
// all who wait in one list.
type fair struct {
	tags    map[Flow]float64
	v, step float64
	list    []*call
}

func (m *fair) waits(f Flow) bool {
	return slices.ContainsFunc(m.list, func(c *call) bool { return c.flow == f })
}

func (m *fair) enter(c *call) {
	if !m.waits(c.flow) {
		m.tags[c.flow] = max(m.tags[c.flow], m.v)
	}
	m.list = append(m.list, c)
}

func (m *fair) leave(c *call) {
	i := slices.Index(m.list, c)
	m.list = slices.Delete(m.list, i, i+1)
	if len(m.list) == 0 {
		*m = fair{tags: make(map[Flow]float64)}
	}
}

func (m *fair) next() *call {
	return slices.MinFunc(m.list, func(a, b *call) int {
		ta, tb := m.tags[a.flow], m.tags[b.flow]
		if ta < tb || ta == tb && a.seq < b.seq {
			return -1
		}
		return 1
	})
}

func (m *fair) goes() *call {
	c := m.next()
	weights := make(map[Flow]int)
	for _, x := range m.list {
		weights[x.flow] = x.flow.Weight
	}
	sum := 0
	for _, n := range weights {
		sum += n
	}
	one := 1 / float64(c.flow.Weight)
	start := m.tags[c.flow]
	m.v = max(m.v, start, min(m.v+m.step, start+one))
	m.step = 1 / float64(sum)
	m.tags[c.flow] = start + one
	m.leave(c)
	return c
}

// TestOrderAtOneGate compares the order at one gate with the naive one.
func TestOrderAtOneGate(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		g := w.gate(&spacing{every: second})
		routes := []*Route{route(g), route(g), route(g)} // lines of one flow
		m := &fair{tags: make(map[Flow]float64)}
		w.goes = func(c *call) {
			want := m.goes()
			if want != c {
				r.Fatalf("%v goes, not %v", c.flow, want.flow)
			}
		}
		for range rapid.IntRange(1, 150).Draw(r, "steps") {
			switch what := rapid.IntRange(0, 9).Draw(r, "what"); {
			case what < 5:
				f := Flow{rapid.StringMatching("[a-d]").Draw(r, "flow"), rapid.SampledFrom([]int{1, 4, 16}).Draw(r, "weight")}
				c := w.make(routes[rapid.IntRange(0, 2).Draw(r, "route")], f, 1)
				w.enter(c)
				m.enter(c)
			case what < 6 && len(m.list) > 0:
				c := m.list[rapid.IntRange(0, len(m.list)-1).Draw(r, "who")]
				w.leave(c)
				m.leave(c)
			case what < 7 && len(w.went) > 0: // an old call comes back
				if c := w.went[rapid.IntRange(0, len(w.went)-1).Draw(r, "back")]; c.fate == gone {
					w.enter(c)
					m.enter(c)
				}
			default:
				w.now += second
			}
			w.hand()
		}
	})
}
