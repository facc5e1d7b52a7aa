package main

import (
	"context"

	"github.com/headgate/headgate/coordinator"
)

// tap lets messages through while the queue of a provider has room.
//
// The hook only says that something has changed; what is true now, the coordinator
// says. So it does not matter that hooks run on the goroutines of many calls, in
// whatever order.
type tap struct {
	c       *coordinator.Coordinator
	changed chan struct{} // one message: look again
	stops   int           // how often it was shut; the producer's
}

func newTap() *tap { return &tap{changed: make(chan struct{}, 1)} }

// hooks are for the coordinator that the tap looks at.
func (t *tap) hooks() *coordinator.Trace {
	return &coordinator.Trace{Pressure: func(coordinator.PressureChange) {
		select {
		case t.changed <- struct{}{}:
		default: // it has been told, and has not looked yet
		}
	}}
}

// pass returns when the next message may be taken, or ctx has ended.
func (t *tap) pass(ctx context.Context, slug string) error {
	for stopped := false; ; stopped = true {
		p, err := t.c.Pressure(slug)
		if err != nil || !p.High {
			return err
		}
		if !stopped {
			t.stops++
		}
		select {
		case <-t.changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
