package outage

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// crowd is who calls a provider.
type crowd struct {
	t      *testing.T
	slug   string
	send   func(context.Context) (admitted bool, err error) // one call to the referee
	denied atomic.Int64
}

// declare makes a provider with one limit, which is shared.
func declare(slug string, l provider.Limit) provider.Provider {
	l.Name, l.Shared = "quota", true
	return provider.Provider{Slug: slug, Throttle: provider.Throttle{MaxWait: time.Minute, Limits: []provider.Limit{l}}}
}

// call makes one call after the other until ctx ends. An error that nobody expects fails
// the test.
func (x *crowd) call(ctx context.Context, c *coordinator.Coordinator) {
	for ctx.Err() == nil {
		err := c.Do(ctx, coordinator.Call{Provider: x.slug}, func(ctx context.Context) error {
			ok, err := x.send(ctx)
			if err == nil && !ok {
				return provider.Feedback{Outcome: provider.Rejected, Detail: "violated"}.Err(nil)
			}
			return err
		})
		var e *coordinator.Error
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.Is(err, coordinator.ErrLedger):
			x.denied.Add(1)
			wait(ctx, 20*time.Millisecond)
		case errors.As(err, &e) && e.Answer.Detail == "violated":
			wait(ctx, 20*time.Millisecond)
		default:
			x.t.Error(err)
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
