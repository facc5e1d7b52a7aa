package peer

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
)

// Failsafe is all of failsafe-go's parts composed, in the order of its documentation:
// retry, breaker, then what waits. Its limiters are smooth: a bursty one starts anew
// with each of its own periods, so that two bursts may follow each other at once.
var Failsafe = Peer{Name: "failsafe-go", Module: "github.com/failsafe-go/failsafe-go", New: newFailsafe}

const ever = 100 * 365 * 24 * time.Hour // its waits default to none at all

func newFailsafe(c Config) *Gate {
	var policies []failsafe.Policy[any]
	if c.Attempts > 1 {
		policies = append(policies, retry(c.Attempts))
	}
	if c.Breaker {
		policies = append(policies, circuitbreaker.NewBuilder[any]().
			HandleIf(func(_ any, err error) bool { return failed(err) }).
			WithFailureThreshold(Failures).WithSuccessThreshold(1).WithDelay(Cooldown).Build())
	}
	if c.Cap > 0 {
		policies = append(policies, bulkhead.NewBuilder[any](uint(c.Cap)).WithMaxWaitTime(ever).Build())
	}
	for i := len(c.Limits) - 1; i >= 0; i-- {
		l := c.Limits[i]
		policies = append(policies, ratelimiter.NewSmoothBuilder[any](uint(l.N), l.Per).WithMaxWaitTime(ever).Build())
	}
	executor := failsafe.With(policies...)
	spent := new(atomic.Int64)
	return &Gate{Permits: spent.Load, Call: persistent(func(ctx context.Context, send Send) error {
		return executor.WithContext(ctx).Run(func() error {
			spent.Add(1)
			return send(ctx)
		})
	})}
}

// retry leaves an open breaker and a refusal for the rate alone: what is refused comes
// again when it may, as often as it takes.
func retry(attempts int) failsafe.Policy[any] {
	return retrypolicy.NewBuilder[any]().
		HandleIf(func(_ any, err error) bool { return failed(err) && !errors.Is(err, circuitbreaker.ErrOpen) }).
		WithMaxAttempts(attempts).WithBackoff(MinDelay, MaxDelay).ReturnLastFailure().Build()
}
