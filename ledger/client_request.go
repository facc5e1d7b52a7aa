package ledger

import (
	"context"
	"slices"
	"time"
)

// request is somebody who waits for the store: a take, a peek or a forget.
type request struct {
	take   Take
	peek   []*Counter
	forget string

	hold  Hold      // of a take, the name that its hold will have
	since time.Time // when it came

	// Guarded by Client.mu until done is closed.
	over   bool // it was answered, or its caller has gone
	done   chan struct{}
	grant  Grant
	usages []Usage
	err    error
}

// ask has a request answered by the store. Where the context ends, an answer that is
// there at that instant counts: it is one or the other.
func (c *Client) ask(ctx context.Context, r *request, list *[]*request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.done = make(chan struct{})
	if err := c.enter(r, list); err != nil {
		return err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.over {
		return r.err
	}
	r.over = true
	return ctx.Err()
}

func (c *Client) enter(r *request, list *[]*request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closing:
		return ErrClosed
	case c.down != nil:
		return c.down
	case r.forget != "":
		c.queue.forget(r.forget)
		c.history.forget(r.forget)
	}
	c.hold++
	r.hold, r.since = c.hold, time.Now()
	*list = append(*list, r)
	c.signal()
	return nil
}

// answer ends a request, if it is not over.
func (r *request) answer(err error) {
	if !r.over {
		r.over, r.err = true, err
		close(r.done)
	}
}

// fail answers all who wait, those whose batch is under way too.
func (c *Client) fail(err error) {
	lists := [][]*request{c.takes, c.others}
	if c.said != nil {
		lists = append(lists, c.said.takes, c.said.others)
	}
	for _, r := range slices.Concat(lists...) {
		r.answer(err)
	}
	c.takes, c.others = nil, nil
}

// signal wakes the goroutine that speaks to the store.
func (c *Client) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// settle takes the parts that a settlement ends, and that were held still, off h. It
// leaves no others in the settlement.
func (h *Held) settle(s *Settlement) (parts []Part, left []int) {
	if left = h.Part; left == nil {
		for i := range h.Take.Units {
			left = append(left, i)
		}
	}
	if s.Part == nil {
		for _, i := range left {
			parts = append(parts, Part{Unit: i, Charged: h.Take.Units[i].N})
		}
		return parts, nil
	}
	left, parts = slices.Clone(left), []Part{}
	for _, p := range s.Part {
		if i := slices.Index(left, p.Unit); i >= 0 {
			left = slices.Delete(left, i, i+1)
			parts = append(parts, Part{Unit: p.Unit, Charged: max(p.Charged, 0)})
		}
	}
	s.Part = parts
	return parts, left
}
