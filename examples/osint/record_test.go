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
)

// "No data" and "could not ask" are never mixed up.
func TestRecords(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	j := job{indicator{provider.Domain, "a.b", []string{"list"}}, "search"}
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
		{"kept", &lookup{job: j, provider: "p", cached: true, result: provider.Result{Data: []byte("{}"), Next: "2", At: at}},
			`{"indicator":"a.b","kind":"domain","list":"list","provider":"p","endpoint":"search","ok":true,"cached":true,"more":true,"data":{},"waited_seconds":0,"at":"2026-11-30T12:00:00Z"}`},
		{"some pages", &lookup{job: j, provider: "p", result: provider.Result{Data: []byte("[1]")}, err: &coordinator.Error{Provider: "p", Reason: coordinator.ReasonFailed, Stage: coordinator.StageAttempt, Attempts: 2}},
			`{"indicator":"a.b","kind":"domain","list":"list","provider":"p","endpoint":"search","ok":false,"data":[1],"error":{"reason":"failed","stage":"attempt","attempts":2,"message":"coordinator: p: failed after 2 attempts"},"waited_seconds":0}`},
		{"not asked", named("p", 0).unasked(j),
			`{"indicator":"a.b","kind":"domain","list":"list","provider":"p","endpoint":"search","ok":false,"error":{"reason":"max_calls","stage":"entry","attempts":0,"message":"osint: not asked: the provider's calls of this run are spent (-max-calls)"},"waited_seconds":0}`},
	} {
		var b strings.Builder
		require.NoError(t, newResults(&b).write(c.l))
		assert.Equal(t, c.want+"\n", b.String(), c.name)
	}
}
