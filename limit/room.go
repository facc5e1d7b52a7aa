package limit

// Room is memory for a Rule of a usual kind, a sliding window or a cap on what is in
// flight: who decides by many Rules has each beside what uses it.
type Room struct {
	rule   Rule
	window window
}

// FreshIn is Fresh in m, where a Rule of r's kind finds room there; else it is Fresh. m
// belongs to that Rule then, and is not used for another.
func (r *Rule) FreshIn(m *Room) *Rule {
	switch r.algo.(type) {
	case *window:
		m.rule = Rule{spec: r.spec, algo: &m.window, short: r.short}
	case *flight:
		m.rule = Rule{spec: r.spec, algo: r.algo, short: r.short}
	default:
		return r.Fresh()
	}
	return &m.rule
}

// Ahead reads what a decision by the Rule will read, so that it has come from memory by
// then. What it returns means nothing.
func (m *Room) Ahead() int64 {
	x := m.rule.held
	if w := &m.window; w.size > 0 {
		x += int64(w.entry(0).sum + w.entry(int(w.size)-1).sum)
	}
	return x
}
