package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// firstRetry is how soon a store is asked again that has not answered; it doubles up to
// Settings.Beat.
const firstRetry = 100 * time.Millisecond

// said is a batch under way, and what the client has to know of it.
type said struct {
	Batch
	began  time.Time
	takes  []*request
	others []*request
	opened []scope // of which its settlements end the pause
	last   bool    // Close had begun as it was made
	all    bool    // nothing that was queued as it was made is left
}

// run speaks to the store until Close has said all.
func (c *Client) run(ctx context.Context) {
	defer close(c.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		s := c.compose()
		reply, err := c.exchange(ctx, s)
		rest, over := c.hear(s, reply, err)
		if s.Seq == 1 { // it is empty, so never said again
			close(c.hello)
		}
		if over || ctx.Err() != nil {
			return
		}
		if rest > 0 {
			timer.Reset(rest)
			c.sleep(ctx, timer, s.last)
		}
	}
}

// sleep waits for the timer, for something to say where the store is up, and for Close.
// closing: that has been heard, and does not wake it again.
func (c *Client) sleep(ctx context.Context, timer *time.Timer, closing bool) {
	wake, quit := c.wake, c.quit
	if closing {
		quit = nil
	}
	if !c.Status().Up {
		wake = nil
	}
	select {
	case <-timer.C:
	case <-wake:
	case <-quit:
	case <-ctx.Done():
	}
}

// exchange says a batch. An answer that does not fit is as good as none.
func (c *Client) exchange(ctx context.Context, s *said) (*Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	r, err := c.store.Exchange(ctx, &s.Batch)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("nothing within %v", c.patience)
	case err != nil:
		return nil, err
	case r == nil:
		return nil, errors.New("an empty answer")
	case s.foreign(r):
		return r, nil
	case len(r.Grants) != len(s.Takes):
		return nil, fmt.Errorf("%d grants for %d takes", len(r.Grants), len(s.Takes))
	case len(r.Usages) != len(s.Peek):
		return nil, fmt.Errorf("%d usages of %d counters", len(r.Usages), len(s.Peek))
	}
	return r, nil
}

// foreign tells that the store has carried out nothing, for it has lost its state.
func (s *said) foreign(r *Reply) bool { return s.Epoch != "" && r.Epoch != s.Epoch }

// compose makes the next batch: the last one again, where nobody knows whether it was
// carried out, else what is queued, and what is asked only if that is all of it.
func (c *Client) compose() *said {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.wake:
	default:
	}
	s := c.doubt
	if s == nil {
		c.seq++
		s = &said{Batch: Batch{Holder: c.holder, Seq: c.seq, Lease: c.settings.Lease, Epoch: c.epoch, Known: c.version}}
		c.queue.fill(s)
		switch {
		case !c.queue.settledUp():
		case c.closing:
			s.Gone = c.queue.empty() && s.empty()
		default:
			c.fillRequests(s)
		}
	}
	s.all, s.last = c.queue.settledUp(), c.closing
	s.began = time.Now()
	c.said = s
	c.setAlarm()
	return s
}

// empty tells that the store need not hear the batch again.
func (s *said) empty() bool {
	return len(s.Holds)+len(s.Charges)+len(s.Settlements)+len(s.News) == 0
}

// fillRequests adds those who wait. What forgets is carried out before everything else
// of a batch: it waits for one in which a store that has lost its state is not told
// again what is to be forgotten.
func (c *Client) fillRequests(s *said) {
	s.Takes = slices.Grow(s.Takes, min(len(c.takes), atOnce))
	for len(c.takes) > 0 && len(s.takes) < atOnce {
		r := c.takes[0]
		c.takes = c.takes[1:]
		if !r.over {
			s.takes = append(s.takes, r)
			s.Takes = append(s.Takes, Asked{Hold: r.hold, Take: r.take})
		}
	}
	if len(s.Holds)+len(s.News) > 0 {
		return
	}
	for len(c.others) > 0 && len(s.Peek) < atOnce {
		r := c.others[0]
		c.others = c.others[1:]
		switch {
		case r.over:
			continue
		case r.forget != "":
			s.Forget = append(s.Forget, r.forget)
		}
		s.Peek = append(s.Peek, r.peek...)
		s.others = append(s.others, r)
	}
}

// setAlarm has the exchange be late when the first who waits has waited for the budget,
// or it has taken that long itself. While the store is down nobody waits; and a greeting
// may have to dial first.
func (c *Client) setAlarm() {
	if c.down != nil {
		return
	}
	since := c.said.began
	for _, waiting := range [][]*request{c.said.takes, c.takes} {
		if len(waiting) > 0 && waiting[0].since.Before(since) {
			since = waiting[0].since
		}
	}
	c.late = since.Add(c.settings.Budget)
	c.alarm.Reset(time.Until(c.late))
}

// overdue is the alarm: the store has not answered within the budget. It may ring just
// when an exchange has ended, and another has begun.
func (c *Client) overdue() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.late.IsZero() && !time.Now().Before(c.late) {
		c.goDown(fmt.Sprintf("nothing within %v", c.settings.Budget))
	}
}
