// Package peer sets up what programs use to call a provider within its limits:
// Headgate, and what would be taken instead. Each is configured as its documentation
// says and as well as it can be for what is declared; a comment says why it is done so.
//
// Not in it: what is measured.
package peer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/headgate/headgate/provider"
)

// Kind is how a provider counts.
type Kind string

// The kinds.
const (
	Window Kind = "exact window"  // never more than N in any window of the period
	Fixed  Kind = "fixed windows" // never more than N in each; nobody knows when they begin
	Bucket Kind = "token bucket"  // holds N, refilled evenly over the period
)

// Limit is N calls per period.
type Limit struct {
	N   int
	Per time.Duration
}

// Config is what a program knows of a provider, and what it asks of its own side.
// The zero value limits nothing. What a peer has no part for, it leaves out.
type Config struct {
	Kind   Kind
	Limits []Limit // the shortest period first
	// Jitter is the longest time that a request takes to arrive, less the shortest.
	// A program cannot know it: only Slowed is told, to show what that is worth.
	Jitter time.Duration
	// LeastRoundTrip is the shortest time that a request takes to arrive, and the
	// shortest of an answer. Where the provider is says it; only Informed is told.
	LeastRoundTrip time.Duration

	Cap      int  // most calls in flight; 0: no cap
	Breaker  bool // opens after Failures in a row, for Cooldown
	Attempts int  // a failed call is sent so often at most; 0 and 1: once
}

// What every breaker and retry is set to.
const (
	Failures = 5
	Cooldown = 5 * time.Second
	MinDelay = 500 * time.Millisecond // before the first retry; then twice as long each time
	MaxDelay = 30 * time.Second
)

// Send makes one attempt. It returns nil, a *RefusedError, a StatusError, or what ended it.
type Send = func(context.Context) error

// Gate lets calls go as one peer does it.
type Gate struct {
	// Call sends when the peer lets it, again where the peer does that, and returns
	// what came of it. user is who asks, where the peer tells users apart. Safe for
	// concurrent use.
	Call func(ctx context.Context, user string, send Send) error
	// Permits is how many permits of its limits have been spent so far; nil: it has
	// no limits.
	Permits func() int64
	// Close ends what the peer has started; nil: nothing.
	Close func()
}

// Peer is one thing to measure.
type Peer struct {
	Name   string
	Module string // its path, for its version; "": several
	// Lacks says what it has not got of three limits, breaker, cap and retry, after
	// "it has no".
	Lacks string
	// Blind: it reads the machine's clock past package time, so that virtual time
	// means nothing to it.
	Blind bool
	// Limitless: it has no limits at all.
	Limitless bool
	// Deaf: a call that waits cannot be called back.
	Deaf bool
	New  func(Config) *Gate
}

// RefusedError is a 429: the provider has refused the call, and told when to come back.
type RefusedError struct{ RetryAfter time.Duration }

// Error says so.
func (r *RefusedError) Error() string { return fmt.Sprintf("refused, come back in %v", r.RetryAfter) }

// StatusCode is 429.
func (r *RefusedError) StatusCode() int { return http.StatusTooManyRequests }

// Feedback is how Headgate is told.
func (r *RefusedError) Feedback() provider.Feedback {
	return provider.Feedback{Outcome: provider.RateLimited, RetryAfter: r.RetryAfter}
}

// StatusError is an answer that says that the provider has failed.
type StatusError int

// Error says so.
func (s StatusError) Error() string { return fmt.Sprintf("status %d", int(s)) }

// StatusCode is the status.
func (s StatusError) StatusCode() int { return int(s) }

// refused returns the refusal in err, if it is one.
func refused(err error) (*RefusedError, bool) {
	if err == nil { // before r, which errors.As moves to the heap: no peer shall pay for that
		return nil, false
	}
	var r *RefusedError
	ok := errors.As(err, &r)
	return r, ok
}

// failed tells what a breaker should hear as a failure: not a refusal for the rate,
// and not that the caller has left.
func failed(err error) bool {
	_, rate := refused(err)
	return err != nil && !rate && !errors.Is(err, context.Canceled)
}

// Sleep tells whether it slept its time.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// persistent sends a call again that was refused for the rate, when its answer says.
// That loop is the program's own, so it is as good as a program can write it.
func persistent(once func(context.Context, Send) error) func(context.Context, string, Send) error {
	return func(ctx context.Context, _ string, send Send) error {
		for {
			err := once(ctx, send)
			r, ok := refused(err)
			if !ok {
				return err
			}
			if !Sleep(ctx, r.RetryAfter) {
				return ctx.Err()
			}
		}
	}
}

// limited is a chain of limiters and nothing else.
func limited(wait func(context.Context) error) func(context.Context, string, Send) error {
	return persistent(func(ctx context.Context, send Send) error {
		if err := wait(ctx); err != nil {
			return err
		}
		return send(ctx)
	})
}
