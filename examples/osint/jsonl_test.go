package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

func registryOf(t *testing.T, targets []*target) *registry.Registry {
	t.Helper()
	r := new(registry.Registry)
	for _, x := range targets {
		require.NoError(t, r.Register(x.adapter))
	}
	return r
}

// "No data" and "could not ask" are never mixed up.
func TestRecords(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	j := job{indicator{provider.Domain, "a.b", "list"}, "search"}
	for _, c := range []struct {
		name string
		l    *lookup
		want string
	}{
		{"data", &lookup{job: j, provider: "p", waited: 1234567 * time.Nanosecond, result: provider.Result{Data: []byte("{\n\"x\": \"<&>\"}"), At: at}},
			`{"indicator":"a.b","kind":"domain","list":"list","provider":"p","endpoint":"search","ok":true,"data":{"x":"<&>"},"waited_seconds":0.001235,"at":"2026-11-30T12:00:00Z"}`},
		{"no data", &lookup{job: j, provider: "p", result: provider.Result{Empty: true, Suspicious: true, Data: []byte("[]"), At: at}},
			`{"indicator":"a.b","kind":"domain","list":"list","provider":"p","endpoint":"search","ok":true,"empty":true,"suspicious":true,"data":[],"waited_seconds":0,"at":"2026-11-30T12:00:00Z"}`},
		{"could not ask", &lookup{job: j, provider: "p", err: &coordinator.Error{Provider: "p", Reason: coordinator.ReasonTooLate, Stage: coordinator.StageQueue, RetryAt: at,
			Err: errors.New("https://p/?key=secret")}},
			`{"indicator":"a.b","kind":"domain","list":"list","provider":"p","endpoint":"search","ok":false,"error":{"reason":"too_late","stage":"queue","attempts":0,"retry_at":"2026-11-30T12:00:00Z","message":"coordinator: p: too late"},"waited_seconds":0}`},
	} {
		var b strings.Builder
		require.NoError(t, newResults(&b).write(c.l))
		assert.Equal(t, c.want+"\n", b.String(), c.name)
	}
}

func TestResultsStopAtTheFirstError(t *testing.T) {
	b := &buffer{wrote: func() error { return assert.AnError }}
	r := newResults(b)
	assert.ErrorIs(t, r.write(&lookup{}), assert.AnError)
	b.wrote = nil
	assert.ErrorIs(t, r.write(&lookup{}), assert.AnError, "a file with a hole in it is worse than a short one")
	assert.Empty(t, b.String())
	assert.NoError(t, (*results)(nil).write(&lookup{}))
}

func TestBrokenOffBeforeItWasAskedIsNoResult(t *testing.T) {
	b := &buffer{}
	r := newResults(b)
	canceled := &coordinator.Error{Reason: coordinator.ReasonCanceled}
	require.NoError(t, r.write(&lookup{err: canceled, broken: true}))
	assert.Empty(t, b.String())
	require.NoError(t, r.write(&lookup{err: canceled, broken: true, asked: true}))
	assert.Contains(t, b.String(), "canceled")
}
