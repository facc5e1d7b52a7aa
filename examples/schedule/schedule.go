package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/examples/internal/stage"
)

// The lengths of time, at speed 1.
const (
	firstBackOff = time.Minute // after a failure; twice as long after each further one
	lastBackOff  = 6 * time.Hour
	mostJitter   = 10 * time.Minute
	jitterShare  = 20 // of an interval: one in so many

	// patience is how long a fetch that is due may wait for its provider's limits. One
	// that must wait longer is due when the refusal says.
	patience = 10 * time.Minute
)

// schedule fetches sources when they are due.
type schedule struct {
	c       *coordinator.Coordinator
	book    *book
	sources []*source // intervals are as long as they are played
	speed   float64
	fetch   func(ctx context.Context, s *source) (bytes int64, err error) // one try
	tell    func(s *source, e entry, err error)                           // after each; nil: nobody is told
}

// keep fetches each source whenever it is due, until ctx ends. An error means that the
// book cannot be used.
func (s *schedule) keep(ctx context.Context) error {
	return s.all(ctx, func(ctx context.Context, x *source) error {
		for {
			e, err := s.book.get(x)
			if err != nil || !stage.Sleep(ctx, time.Until(e.Due)) {
				return err
			}
			if err := s.once(ctx, x, e); err != nil || ctx.Err() != nil {
				return err
			}
		}
	})
}

// due fetches each source that is due now, once, and tells how many failed.
func (s *schedule) due(ctx context.Context) (failed int, err error) {
	var mu sync.Mutex
	err = s.all(ctx, func(ctx context.Context, x *source) error {
		e, err := s.book.get(x)
		if err != nil || e.Due.After(time.Now()) {
			return err
		}
		before := e.Times
		if err := s.once(ctx, x, e); err != nil {
			return err
		}
		if e, err = s.book.get(x); err == nil && e.Times == before {
			mu.Lock()
			failed++
			mu.Unlock()
		}
		return err
	})
	return failed, err
}

// all runs f for all sources at once. The first error ends the others.
func (s *schedule) all(ctx context.Context, f func(context.Context, *source) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var all sync.WaitGroup
	var once sync.Once
	var first error
	for _, x := range s.sources {
		all.Go(func() {
			if err := f(ctx, x); err != nil {
				once.Do(func() { first = err })
				end(err)
			}
		})
	}
	all.Wait()
	return first
}

// once fetches a source that is due and notes what came of it. Where ctx has ended first
// nothing is noted: it is still due.
func (s *schedule) once(ctx context.Context, x *source, e entry) error {
	if late := time.Since(e.Due); e.Times > 0 && late > x.Every {
		e.Skipped += int(late / x.Every)
	}
	var went time.Time
	var bytes int64
	err := s.c.Do(ctx, coordinator.Call{
		Provider: x.Provider, Flow: x.Name, Wait: stage.Shorten(patience, s.speed), Replayable: true,
	}, func(ctx context.Context) (err error) {
		went = time.Now()
		bytes, err = s.fetch(ctx, x)
		return err
	})
	if ctx.Err() != nil && err != nil {
		return nil
	}
	e = s.next(x, e, went, bytes, err)
	if s.tell != nil {
		s.tell(x, e, err)
	}
	return s.book.put(x, e)
}

// next is the entry after a try, which went at an instant (zero: it never did).
func (s *schedule) next(x *source, e entry, went time.Time, bytes int64, err error) entry {
	var refused *coordinator.Error
	switch errors.As(err, &refused); {
	case err == nil:
		e.Fetched, e.Times, e.Failures, e.Why, e.Bytes = went, e.Times+1, 0, "", bytes
		e.Due = went.Add(x.Every + s.jitter(x.Every))
	case refused != nil && refused.Attempts == 0 && errors.Is(err, coordinator.ErrThrottled):
		// Nobody has failed: the limits say when it can go. Nothing is missed by it.
		e.Why = string(refused.Reason)
		e.Due = time.Now().Add(max(refused.RetryAfter, s.short(time.Second))).Add(s.jitter(x.Every) / jitterShare)
	default:
		e.Failures, e.Failed = e.Failures+1, e.Failed+1
		wait := s.short(lastBackOff)
		if e.Failures < 20 {
			wait = min(wait, s.short(firstBackOff)<<(e.Failures-1))
		}
		wait = min(wait, x.Every) // to fail makes it no rarer than it is
		e.Why = "not fetched"
		if refused != nil {
			e.Why = string(refused.Reason) // what the provider told besides is the coordinator's to heed
		}
		e.Due = time.Now().Add(wait + rand.N(wait/2+1))
	}
	return e
}

// jitter is a bit of time to be added, so that what began at once does not stay together.
func (s *schedule) jitter(every time.Duration) time.Duration {
	return rand.N(min(every/jitterShare, s.short(mostJitter)) + 1)
}

func (s *schedule) short(d time.Duration) time.Duration { return stage.Shorten(d, s.speed) }
