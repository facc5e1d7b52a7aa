package peer

import (
	"context"
	"errors"

	"github.com/cenkalti/backoff/v5"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/semaphore"
)

// The same parts nested by hand: x/time/rate for each limit, gobreaker, a semaphore,
// and a retry by backoff.
var (
	// ByHand asks the breaker first: an open one costs no permits, but who waits for a
	// permit has been let through already.
	ByHand = Peer{Name: "by hand", New: func(c Config) *Gate { return byHand(c, false) }}

	// LimitsFirst takes the permits first: an open breaker refuses everybody, at the
	// price of the permits.
	LimitsFirst = Peer{Name: "by hand, limits outside the breaker", New: func(c Config) *Gate { return byHand(c, true) }}

	// HandOnce is ByHand without the retry, which costs as much as all of the rest.
	HandOnce = Peer{Name: "by hand, without the retry", Lacks: "retry", New: func(c Config) *Gate {
		c.Attempts = 1
		return byHand(c, false)
	}}
)

type hand struct {
	wait        func(context.Context) error
	breaker     *gobreaker.CircuitBreaker[struct{}] // nil: none
	slots       *semaphore.Weighted                 // nil: no cap
	limitsFirst bool
}

func byHand(c Config, limitsFirst bool) *Gate {
	wait, spent := chain(c, thoughtful)
	h := &hand{wait: wait, limitsFirst: limitsFirst}
	if c.Breaker {
		h.breaker = breaker()
	}
	if c.Cap > 0 {
		h.slots = semaphore.NewWeighted(int64(c.Cap))
	}
	call := h.once
	if c.Attempts > 1 {
		call = h.retried(uint(c.Attempts))
	}
	return &Gate{Permits: spent.Load, Call: persistent(call)}
}

// breaker is gobreaker, which trips at *more than* so many failures by default.
func breaker() *gobreaker.CircuitBreaker[struct{}] {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests:  1,
		Timeout:      Cooldown,
		ReadyToTrip:  func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= Failures },
		IsSuccessful: func(err error) bool { return !failed(err) },
	})
}

// retried does not count a refusal for the rate as a failed attempt, nor insists where
// the breaker is open.
func (h *hand) retried(attempts uint) func(context.Context, Send) error {
	return func(ctx context.Context, send Send) error {
		intervals := backoff.NewExponentialBackOff()
		intervals.InitialInterval, intervals.MaxInterval, intervals.Multiplier = MinDelay, MaxDelay, 2
		_, err := backoff.Retry(ctx, func() (struct{}, error) {
			err := h.once(ctx, send)
			if err != nil && (!failed(err) || isOpen(err)) {
				err = backoff.Permanent(err)
			}
			return struct{}{}, err
		}, backoff.WithBackOff(intervals), backoff.WithMaxTries(attempts))
		return err
	}
}

func isOpen(err error) bool {
	return errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests)
}

func (h *hand) once(ctx context.Context, send Send) error {
	if h.limitsFirst {
		if err := h.wait(ctx); err != nil {
			return err
		}
	}
	if h.breaker == nil {
		return h.inside(ctx, send)
	}
	_, err := h.breaker.Execute(func() (struct{}, error) { return struct{}{}, h.inside(ctx, send) })
	return err
}

func (h *hand) inside(ctx context.Context, send Send) error {
	if h.slots != nil {
		if err := h.slots.Acquire(ctx, 1); err != nil {
			return err
		}
		defer h.slots.Release(1)
	}
	if !h.limitsFirst {
		if err := h.wait(ctx); err != nil {
			return err
		}
	}
	return send(ctx)
}

// Breaker is gobreaker alone.
var Breaker = Peer{
	Name: "sony/gobreaker alone", Module: "github.com/sony/gobreaker/v2", Lacks: "limits, cap or retry",
	Limitless: true,
	New: func(c Config) *Gate {
		h := &hand{breaker: breaker(), wait: func(context.Context) error { return nil }}
		return &Gate{Call: persistent(h.once)}
	},
}
