package batch

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// PanicError is what a Run panics with where a job's function, the sequence of
// jobs or a function in Options panicked on a goroutine of the run's.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // of that goroutine
}

// Error tells the value and the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("batch: panic on a goroutine of a run: %v\n\n%s", e.Value, e.Stack)
}

// Unwrap returns the value where it is an error, else nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// fault is a function that did not return.
type fault struct{ panicked *PanicError } // nil: it called runtime.Goexit

var errFault = errors.New("batch: a function of the run did not return")

// failed ends the run because a function did not return; value is what recover
// gave. It is called where that happened, so that the stack is that one's. The
// first counts.
func (r *run) failed(value any) {
	f := new(fault)
	if value != nil {
		f.panicked = &PanicError{value, debug.Stack()}
	}
	r.mu.Lock()
	if r.fault == nil {
		r.fault = f
	}
	r.mu.Unlock()
	r.stop(errFault)
	r.cancel()
	tell(r.news)
}

// goOn has a fault go on on the goroutine of the loop.
func (f *fault) goOn() {
	switch {
	case f == nil:
	case f.panicked != nil:
		panic(f.panicked)
	default:
		runtime.Goexit()
	}
}
