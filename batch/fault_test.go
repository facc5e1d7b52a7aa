package batch_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/batch"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// end runs f and tells how it ended: what it panicked with, whether it called
// runtime.Goexit.
func end(f func()) (panicked any, exited bool) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		returned := false
		defer func() {
			if panicked = recover(); panicked == nil {
				exited = !returned
			}
		}()
		f()
		returned = true
	}()
	<-ended
	return panicked, exited
}

// where are the places at which a function of the caller's may fail to return.
func where(fail func()) map[string]func() (iter.Seq[batch.Job], batch.Options) {
	fine := func(context.Context) error { return nil }
	one := func(do func(context.Context) error) iter.Seq[batch.Job] {
		return slices.Values([]batch.Job{{Key: "k", Call: to, Do: do}})
	}
	return map[string]func() (iter.Seq[batch.Job], batch.Options){
		"job": func() (iter.Seq[batch.Job], batch.Options) {
			return one(func(context.Context) error { fail(); return nil }), batch.Options{}
		},
		"sequence": func() (iter.Seq[batch.Job], batch.Options) {
			return func(yield func(batch.Job) bool) { fail() }, batch.Options{}
		},
		"done": func() (iter.Seq[batch.Job], batch.Options) {
			return one(fine), batch.Options{Done: func(string) bool { fail(); return true }}
		},
		"journal": func() (iter.Seq[batch.Job], batch.Options) {
			return one(fine), batch.Options{Journal: &memory{began: func(string) error { fail(); return nil }}}
		},
	}
}

// A panic does not kill the program from a goroutine that nobody can guard, and is
// not silent: it goes on where the loop is, when all that was out is back.
func TestPanicsGoOnWhereTheLoopIs(t *testing.T) {
	for name, made := range where(func() { panic(io.ErrNoProgress) }) {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			jobs, opt := made()
			out, back := 0, 0
			other := func(ctx context.Context) error {
				out++
				err := sleep(ctx, time.Hour)
				back++
				return err
			}
			both := func(yield func(batch.Job) bool) {
				if yield(batch.Job{Call: coordinator.Call{Provider: "other"}, Do: other}) {
					time.Sleep(time.Second)
					jobs(yield)
				}
			}
			v, _ := end(func() {
				for range batch.Run(t.Context(), c, both, opt) {
					assert.Fail(t, "nothing comes out")
				}
			})
			require.IsType(t, &batch.PanicError{}, v, name)
			e := v.(*batch.PanicError)
			assert.ErrorIs(t, e, io.ErrNoProgress)
			assert.Equal(t, io.ErrNoProgress, e.Value)
			assert.Contains(t, string(e.Stack), "batch_test.where.func", "the stack is that of the culprit")
			assert.Contains(t, e.Error(), "batch: panic on a goroutine of a run: multiple Read calls")
			assert.Equal(t, []int{1, 1}, []int{out, back})
		}, declare("p", provider.Throttle{}), declare("other", provider.Throttle{}))
	}
	assert.NoError(t, errors.Unwrap(&batch.PanicError{Value: "text"}))
}

// It does not wait for a loop that is busy.
func TestAPanicEndsTheRunAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		start, sent := time.Now(), 0
		var cut time.Duration
		jobs := []batch.Job{
			{Call: coordinator.Call{Provider: "p", Endpoint: ""}, Do: func(context.Context) error { return nil }},
			{Call: to, Do: func(ctx context.Context) error { _ = sleep(ctx, time.Second); panic("mine") }},
			{Call: to, Do: func(ctx context.Context) error {
				err := sleep(ctx, time.Hour)
				cut = time.Since(start)
				return err
			}},
			{Call: coordinator.Call{Provider: "slow"}, Do: func(context.Context) error { sent++; return nil }},
			{Call: coordinator.Call{Provider: "slow"}, Do: func(context.Context) error { sent++; return nil }},
		}
		v, _ := end(func() {
			for range batch.Run(t.Context(), c, slices.Values(jobs), batch.Options{}) {
				time.Sleep(time.Hour)
			}
		})
		require.IsType(t, &batch.PanicError{}, v)
		assert.Equal(t, time.Second, cut)
		assert.Equal(t, 1, sent)
	}, declare("p", provider.Throttle{}), declare("slow", every("1m")))
}

func TestGoexitGoesOnWhereTheLoopIs(t *testing.T) {
	for name, made := range where(runtime.Goexit) {
		bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
			jobs, opt := made()
			v, exited := end(func() {
				for range batch.Run(t.Context(), c, jobs, opt) {
					assert.Fail(t, "nothing comes out")
				}
			})
			assert.Nil(t, v)
			assert.True(t, exited, name)
		}, declare("p", provider.Throttle{}))
	}
}

// A panic is not lost where the loop was left before.
func TestAPanicAfterTheLoopWasLeft(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		jobs := []batch.Job{
			{Call: to, Do: func(context.Context) error { return nil }},
			{Call: to, Do: func(ctx context.Context) error {
				<-ctx.Done()
				panic("late")
			}},
		}
		v, _ := end(func() {
			for range batch.Run(t.Context(), c, slices.Values(jobs), batch.Options{}) {
				time.Sleep(time.Second)
				break
			}
		})
		require.IsType(t, &batch.PanicError{}, v)
		assert.Equal(t, "late", v.(*batch.PanicError).Value)
	}, declare("p", provider.Throttle{}))
}
