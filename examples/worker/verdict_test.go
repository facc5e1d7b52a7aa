package main

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/examples/internal/stage"
)

func TestJudge(t *testing.T) {
	is := func(r coordinator.Reason, wait time.Duration, cause error) error {
		return &coordinator.Error{Provider: "p", Reason: r, RetryAfter: wait, Err: cause}
	}
	for name, c := range map[string]struct {
		err   error
		tries int
		want  verdict
	}{
		"done":             {nil, 1, verdict{done: true}},
		"not its turn":     {is(coordinator.ReasonTooLate, 7*time.Second, nil), 0, verdict{again: 7 * time.Second, why: "too_late"}},
		"the provider":     {is(coordinator.ReasonRateLimited, time.Minute, statusError(429)), 3, verdict{again: time.Minute, why: "rate_limited"}},
		"nobody knows":     {is(coordinator.ReasonQueueFull, 0, nil), 0, verdict{again: unknownWait, why: "queue_full"}},
		"the ledger":       {is(coordinator.ReasonLedger, time.Second, nil), 0, verdict{again: time.Second, why: "ledger"}},
		"the breaker":      {is(coordinator.ReasonCircuitOpen, 30*time.Second, nil), 9, verdict{again: 30 * time.Second, why: "circuit_open"}},
		"shut down":        {is(coordinator.ReasonShutdown, 0, nil), 0, verdict{why: "shutdown"}},
		"given up":         {is(coordinator.ReasonCanceled, 0, nil), 1, verdict{why: "canceled"}},
		"nonsense":         {is(coordinator.ReasonRejected, 0, statusError(400)), 1, verdict{dead: true, fault: true, why: "rejected: status 400 Bad Request"}},
		"failed":           {is(coordinator.ReasonFailed, 0, errors.New("http://u:s3cret@host")), 1, verdict{again: firstBackOff, fault: true, why: "failed"}},
		"again":            {is(coordinator.ReasonFailed, 0, statusError(500)), 2, verdict{again: 2 * firstBackOff, fault: true, why: "failed: status 500 Internal Server Error"}},
		"told when":        {is(coordinator.ReasonOverloaded, time.Hour, statusError(503)), 2, verdict{again: time.Hour, fault: true, why: "overloaded: status 503 Service Unavailable"}},
		"too often":        {is(coordinator.ReasonFailed, 0, nil), 3, verdict{dead: true, again: 4 * firstBackOff, fault: true, why: "failed"}},
		"unauthorized":     {is(coordinator.ReasonUnauthorized, 0, nil), 1, verdict{again: firstBackOff, fault: true, why: "unauthorized"}},
		"none of Headgate": {errors.New("x"), 1, verdict{again: unknownWait, why: "our own fault"}},
	} {
		if c.tries < 9 { // of three
			assert.Equal(t, c.want, judgeDead(judge(c.err, c.tries, 3)), name)
		}
	}
	assert.Equal(t, lastBackOff, judge(is(coordinator.ReasonFailed, 0, nil), 500, 1000).again)
	assert.False(t, judge(is(coordinator.ReasonCircuitOpen, 1, nil), 99, 3).dead, "it was never the job's fault")
}

// judgeDead is a verdict without what does not matter in it.
func judgeDead(v verdict) verdict {
	if v.why == "rejected: status 400 Bad Request" {
		v.again = 0
	}
	return v
}

// Nobody comes back before he was told, and not all at once.
func TestLater(t *testing.T) {
	seen := make(map[time.Duration]bool)
	for range 100 {
		for _, d := range []time.Duration{1, time.Second, time.Hour} {
			x := later(d)
			assert.GreaterOrEqual(t, x, d)
			assert.LessOrEqual(t, x, d+d/10+50*time.Millisecond)
			seen[x] = true
		}
	}
	assert.Greater(t, len(seen), 200)
}

func TestBadInput(t *testing.T) {
	for args, says := range map[string]string{
		"-processes 0":                   "-processes 0: want 1 to 64",
		"-processes 65":                  "-processes 65: want",
		"-at-once 0":                     "-at-once 0: want",
		"-jobs -1":                       "-jobs -1: want",
		"-jobs x":                        "-jobs",
		"-tries 0":                       "-tries 0: want",
		"-wait 0s":                       "-wait 0s: want",
		"-crash -processes 1":            "-crash wants two processes",
		"-nats nats://h:4222":            "-nats wants -live",
		"-nats s3cret -live http://h":    "-nats: want a URL with a host",
		"-live ftp://u:s3cret@h":         "-live: want http:// or https://",
		"-live //u:s3cret@h":             "-live: want http:// or https://",
		"-live s3cret":                   "-live: want a URL with a host",
		"-live http://u:s3cret@h:x":      "-live: want a URL with a host",
		"-ledger redis://u:s3cret@h:x":   "-ledger: the URL cannot be read",
		"-ledger redsi://u:s3cret@h":     "-ledger: want sqlite:PATH",
		"-provider nowhere.yaml":         "-provider: open nowhere.yaml",
		"-provider options.go":           "-provider: options.go: ",
		"-f nowhere -dir " + t.TempDir(): "-f: open nowhere",
		"more":                           "more: want flags only",
		"-dir /dev/null/x":               "/dev/null",
	} {
		var stdout, stderr strings.Builder
		err := start(t.Context(), strings.Fields(args), &stdout, &stderr)
		require.Error(t, err, args)
		text := stderr.String()
		if !errors.Is(err, stage.ErrUsage) {
			text += err.Error()
		}
		assert.Contains(t, text, says, args)
		assert.NotContains(t, text+stdout.String(), "s3cret", args)
	}
	var stdout, stderr strings.Builder
	require.ErrorIs(t, start(t.Context(), []string{"-h"}, &stdout, &stderr), flag.ErrHelp)
	assert.Contains(t, stderr.String(), "usage: worker")
	assert.Contains(t, stderr.String(), "-crash")
}
