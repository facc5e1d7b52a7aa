package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Close implements Ledger. It says what is queued for as long as ctx lasts, which should
// have an end: the store may be down. An error means that the store may not have heard
// all, or could not be closed. Further calls wait for the first and return the same.
func (c *Client) Close(ctx context.Context) error {
	if c.beginClose() {
		c.err = c.finish(ctx)
		close(c.closed)
	}
	select {
	case <-c.closed:
		return c.err
	default:
	}
	select {
	case <-c.closed:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Client) beginClose() (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.fail(ErrClosed)
	st := c.Status()
	if st.Up {
		st.Up, st.Since = false, time.Now()
	}
	st.Detail = "closed"
	c.status.Store(&st)
	c.closing = true
	close(c.quit)
	return true
}

func (c *Client) finish(ctx context.Context) (err error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		err = fmt.Errorf("ledger: closed before the store had heard all: %w", ctx.Err())
	}
	c.end()
	return errors.Join(err, c.store.Close())
}
