package queue

// Arrive returns the place of a call that arrives now, for Waiter.Keep: a call
// that goes at once and comes back later is as early as it first was.
func (q *Queue) Arrive() uint64 {
	q.seq++
	return q.seq
}

// Keep gives w a place that Arrive returned; before Enter.
func (w *Waiter) Keep(place uint64) { w.seq = place }

// Place is what Keep gave it, or its first Enter; 0: it has none.
func (w *Waiter) Place() uint64 { return w.seq }

// Rule returns what the gate asks.
func (g *Gate) Rule() Rule { return g.rule }
