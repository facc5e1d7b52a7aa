package ledger

import (
	"fmt"
	"maps"
	"time"
)

// hear takes in what has become of a batch. It tells how long to rest then, and whether
// everything is said.
func (c *Client) hear(s *said, r *Reply, err error) (rest time.Duration, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alarm.Stop()
	c.late, c.doubt = time.Time{}, nil
	switch {
	case err != nil:
		rest, over = c.lost(s, err), s.Gone
	case s.foreign(r):
		rest = c.startAfresh(s, r.Epoch)
	default:
		rest, over = c.carriedOut(s, r), s.Gone
	}
	c.said = nil
	return rest, over
}

// lost is a batch of which nobody knows whether it was carried out. What it asked may
// have been granted, but nobody waits for it any more.
func (c *Client) lost(s *said, err error) (rest time.Duration) {
	for _, r := range s.takes {
		c.giveBack(r)
	}
	if !s.empty() {
		c.doubt = &said{Batch: s.Batch, opened: s.opened}
		c.doubt.Forget, c.doubt.Takes, c.doubt.Peek = nil, nil, nil
	}
	c.goDown(err.Error())
	return c.backOff()
}

func (c *Client) giveBack(r *request) {
	c.queue.settled = append(c.queue.settled, settled{Settlement: Settlement{Hold: r.hold, At: time.Now(), Back: true}})
}

// backOff is how long a store is left alone that has not answered.
func (c *Client) backOff() time.Duration {
	c.retry = min(max(2*c.retry, firstRetry), c.settings.Beat)
	return c.retry
}

func (c *Client) carriedOut(s *said, r *Reply) (rest time.Duration) {
	now := time.Now()
	took := now.Sub(s.began)
	c.epoch, c.refused = r.Epoch, 0
	for _, slug := range s.Forget {
		maps.DeleteFunc(c.held, func(_ Hold, h *Held) bool { return h.Take.Provider == slug })
	}
	for i, q := range s.takes {
		c.decided(q, r.Grants[i], now)
	}
	c.answerOthers(s, r)
	// A store that is still being told afresh does not know all pauses yet.
	if telling := c.version == 0 && !s.all; r.Version != c.version && !telling {
		c.version = r.Version
		c.compare(s, r.Pauses, took)
	}
	if greeting := s.Seq == 1; took > c.settings.Budget && !greeting {
		c.goDown(fmt.Sprintf("nothing within %v", c.settings.Budget))
		c.noteReply(r)
		return c.backOff()
	}
	c.retry = 0
	if s.all {
		c.down = nil
	}
	c.noteReply(r)
	if !c.queue.empty() || len(c.takes)+len(c.others) > 0 || c.closing {
		return 0
	}
	c.history.sweep(now, 256)
	return min(c.settings.Beat, c.settings.Lease/3)
}

// decided hands a decision to who waits for it, or the grant back to the store.
func (c *Client) decided(q *request, g Grant, now time.Time) {
	if g.Hold != 0 {
		g.Hold = q.hold
	}
	switch {
	case !q.over:
		q.grant = g
		q.answer(nil)
		if g.Hold != 0 && (len(q.take.Units) > 0 || g.Alone) {
			c.held[g.Hold] = &Held{Hold: g.Hold, At: now, Take: q.take}
		}
	case g.Hold != 0:
		c.giveBack(q)
	}
}

func (c *Client) answerOthers(s *said, r *Reply) {
	usages := r.Usages
	for _, q := range s.others {
		mine := usages[:len(q.peek)]
		usages = usages[len(q.peek):]
		if !q.over {
			q.usages = mine
			q.answer(nil)
		}
	}
}

// startAfresh has a store that has lost its state hear all that this client knows: what
// is held, what was charged, what is paused and learned, and then what it has not heard
// before. Who asked something asks again.
func (c *Client) startAfresh(s *said, epoch string) (rest time.Duration) {
	now := time.Now()
	c.epoch, c.version = epoch, 0
	known := queue{charges: c.history.charges(now)}
	for _, h := range c.held {
		known.holds = append(known.holds, *h)
	}
	for _, p := range c.pauses {
		known.tell(News{Pause: &p.Pause})
	}
	for _, l := range c.history.lessons(now) {
		known.tell(News{Learn: l})
	}
	for _, n := range s.News {
		known.tell(n)
	}
	for _, n := range c.queue.newsInOrder() {
		known.tell(n.News)
	}
	c.queue = known
	c.takes = append(s.takes, c.takes...)
	c.others = append(s.others, c.others...)
	if c.refused++; c.refused == 1 {
		return 0
	}
	c.goDown("its state is another one with each batch")
	return c.backOff()
}

// goDown has all who wait fail, and all who come, until the store is up again.
func (c *Client) goDown(why string) {
	st := c.Status()
	if c.down == nil || st.Detail != why {
		c.down = fmt.Errorf("%w: %s", ErrDown, why)
	}
	st.Detail = why
	c.setStatus(st) // first: who is answered looks at it
	c.fail(c.down)
}

// noteReply has the Status tell what the store said of itself.
func (c *Client) noteReply(r *Reply) {
	st := c.Status()
	st.Reached, st.Replicas, st.Rank = true, r.Replicas, r.Rank
	if c.down == nil {
		st.Detail = r.Warning
	}
	c.setStatus(st)
}

func (c *Client) setStatus(st Status) {
	old := c.Status()
	st.Up = c.down == nil
	if st.Up != old.Up {
		st.Since = time.Now()
	}
	if st == old || c.closing {
		return
	}
	c.status.Store(&st)
	for w := range c.watchers {
		w.status = &st
		w.signal()
	}
}
