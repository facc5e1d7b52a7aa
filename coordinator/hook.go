package coordinator

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// hooks are those of one Trace.
type hooks struct {
	Trace
	mu   sync.Mutex
	told map[string]bool // which have panicked
}

// guard is deferred around each hook: a panic in it is not the call's.
func (t *hooks) guard(name string) {
	value := recover()
	if value == nil {
		return
	}
	t.mu.Lock()
	first := !t.told[name]
	if t.told == nil {
		t.told = make(map[string]bool)
	}
	t.told[name] = true
	t.mu.Unlock()
	switch {
	case !first:
	case t.Panicked != nil:
		defer func() { _ = recover() }() // nothing is left to tell it to
		t.Panicked(name, value)
	default:
		// What was thrown may hold a secret: its type and its place say enough.
		fmt.Fprintf(os.Stderr, "coordinator: the hook %s panicked with a %T%s; this is told once\n", name, value, thrower())
	}
}

// thrower is the line that panicked.
func thrower() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for thrown := false; ; {
		frame, more := frames.Next()
		if thrown && !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Sprintf(" at %s:%d", filepath.Base(frame.File), frame.Line)
		}
		thrown = thrown || strings.HasPrefix(frame.Function, "runtime.")
		if !more {
			return ""
		}
	}
}

func (ts traces) begin(w *walk) {
	for _, t := range ts {
		t.begin(w)
	}
}

func (t *hooks) begin(w *walk) {
	if t.Begin == nil {
		return
	}
	defer t.guard("Begin")
	if ctx := t.Begin(w.ctx, w.info()); ctx != nil {
		w.ctx = ctx
	}
}

// try returns the context of an attempt.
func (ts traces) try(w *walk) context.Context {
	ctx := w.ctx
	for _, t := range ts {
		ctx = t.try(ctx, w)
	}
	return ctx
}

func (t *hooks) try(ctx context.Context, w *walk) (tried context.Context) {
	tried = ctx
	if t.Try == nil {
		return tried
	}
	defer t.guard("Try")
	if x := t.Try(ctx, w.info()); x != nil {
		tried = x
	}
	return tried
}

func (ts traces) waiting(w *walk, q QueueState) {
	for _, t := range ts {
		t.waiting(w, q)
	}
}

func (t *hooks) waiting(w *walk, q QueueState) {
	if t.Waiting == nil {
		return
	}
	defer t.guard("Waiting")
	t.Waiting(w.ctx, w.info(), q)
}

func (ts traces) going(w *walk, ls *Lease) {
	for _, t := range ts {
		t.going(w, ls)
	}
}

func (t *hooks) going(w *walk, ls *Lease) {
	if t.Going == nil {
		return
	}
	defer t.guard("Going")
	info := w.info()
	info.Attempt++
	info.Key = ls.Key()
	t.Going(w.ctx, info, ls.waited)
}

func (ts traces) attempt(ctx context.Context, w *walk, took time.Duration) {
	for _, t := range ts {
		t.attempt(ctx, w, took)
	}
}

func (t *hooks) attempt(ctx context.Context, w *walk, took time.Duration) {
	if t.Attempt == nil {
		return
	}
	defer t.guard("Attempt")
	t.Attempt(ctx, w.info(), w.answer(), took)
}

func (ts traces) end(w *walk, e *Error) {
	if len(ts) == 0 {
		return
	}
	took := w.at - w.start
	for _, t := range ts {
		t.end(w, e, took)
	}
}

func (t *hooks) end(w *walk, e *Error, took time.Duration) {
	if t.End == nil {
		return
	}
	defer t.guard("End")
	var err error
	if e != nil {
		err = e
	}
	t.End(w.ctx, w.info(), err, took)
}

func (ts traces) refused(w *walk, e *Error) {
	for _, t := range ts {
		t.refused(w, e)
	}
}

func (t *hooks) refused(w *walk, e *Error) {
	if t.Refused == nil {
		return
	}
	defer t.guard("Refused")
	t.Refused(w.ctx, w.info(), e)
}
