package queue

// node is an element of a binary heap that knows its place. The standard heap
// costs an indirect call for each comparison; with 100,000 waiters this is where
// a grant spends its time.
type node[T any] interface {
	less(T) bool
	place(int)
}

func push[T node[T]](h *[]T, x T) {
	*h = append(*h, x)
	x.place(len(*h) - 1)
	up(*h, len(*h)-1)
}

// pull takes out the element at i.
func pull[T node[T]](h *[]T, i int) {
	last := len(*h) - 1
	if i != last {
		(*h)[i] = (*h)[last]
		(*h)[i].place(i)
	}
	var none T
	(*h)[last] = none
	*h = (*h)[:last]
	if i != last {
		fix(*h, i)
	}
	if n := cap(*h); n > 64 && last < n/4 { // a burst's memory does not stay
		*h = append(make([]T, 0, n/2), *h...)
	}
}

// fix restores the order after the element at i has changed.
func fix[T node[T]](h []T, i int) {
	if !down(h, i) {
		up(h, i)
	}
}

func up[T node[T]](h []T, i int) {
	for i > 0 {
		p := (i - 1) / 2
		if !h[i].less(h[p]) {
			return
		}
		swap(h, i, p)
		i = p
	}
}

func down[T node[T]](h []T, i int) (moved bool) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return moved
		}
		if c+1 < len(h) && h[c+1].less(h[c]) {
			c++
		}
		if !h[c].less(h[i]) {
			return moved
		}
		swap(h, i, c)
		i, moved = c, true
	}
}

func swap[T node[T]](h []T, i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place(i)
	h[j].place(j)
}

func (g *Gate) less(o *Gate) bool { return g.at < o.at }
func (g *Gate) place(i int)       { g.ti = i + 1 }

func (gr *group) less(o *group) bool {
	if gr.tag != o.tag {
		return gr.tag < o.tag
	}
	return gr.lines[0].seq < o.lines[0].seq
}
func (gr *group) place(i int) { gr.i = i }

func (ln *line) less(o *line) bool { return ln.seq < o.seq }
func (ln *line) place(i int)       { ln.i = i }

func (w *Waiter) less(o *Waiter) bool { return w.Deadline < o.Deadline }
func (w *Waiter) place(i int)         { w.due = i }
