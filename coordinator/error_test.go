package coordinator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// Each reason matches its sentinel and no other; ErrThrottled matches what waiting
// would cure; too late is also a deadline that was exceeded.
func TestErrorMatchesItsSentinels(t *testing.T) {
	throttled := map[coordinator.Reason]error{
		coordinator.ReasonRateLimited: coordinator.ErrRateLimited, coordinator.ReasonQuotaSpent: coordinator.ErrQuotaSpent,
		coordinator.ReasonBanned: coordinator.ErrBanned, coordinator.ReasonQueueFull: coordinator.ErrQueueFull,
		coordinator.ReasonTooLate: coordinator.ErrTooLate, coordinator.ReasonCircuitOpen: coordinator.ErrCircuitOpen,
		coordinator.ReasonLedger: coordinator.ErrLedger,
	}
	others := map[coordinator.Reason]error{
		coordinator.ReasonTooHeavy: coordinator.ErrTooHeavy, coordinator.ReasonUnknownProvider: coordinator.ErrUnknownProvider,
		coordinator.ReasonShutdown: coordinator.ErrShutdown, coordinator.ReasonInvalid: nil, coordinator.ReasonCanceled: nil,
		coordinator.ReasonOverloaded: nil, coordinator.ReasonUnauthorized: nil, coordinator.ReasonRejected: nil,
		coordinator.ReasonFailed: nil, coordinator.ReasonUnknown: nil, "": nil, "nonsense": nil,
	}
	all := []error{coordinator.ErrThrottled, coordinator.ErrRateLimited, coordinator.ErrQuotaSpent, coordinator.ErrBanned,
		coordinator.ErrQueueFull, coordinator.ErrTooLate, coordinator.ErrCircuitOpen, coordinator.ErrLedger, coordinator.ErrTooHeavy,
		coordinator.ErrUnknownProvider, coordinator.ErrShutdown, context.DeadlineExceeded, context.Canceled, io.EOF}
	check := func(reason coordinator.Reason, want ...error) {
		err := fmt.Errorf("wrapped: %w", &coordinator.Error{Provider: "p", Reason: reason})
		for _, target := range all {
			matches := false
			for _, w := range want {
				matches = matches || errors.Is(w, target)
			}
			assert.Equal(t, matches, errors.Is(err, target), "%q is %v", reason, target)
		}
	}
	for reason, sentinel := range throttled {
		if reason == coordinator.ReasonTooLate {
			check(reason, sentinel, coordinator.ErrThrottled, context.DeadlineExceeded)
			continue
		}
		check(reason, sentinel, coordinator.ErrThrottled)
	}
	for reason, sentinel := range others {
		check(reason, sentinel)
	}
}

func TestErrorText(t *testing.T) {
	minute := &coordinator.LimitState{Name: "rpm", Unit: "requests", Max: 60, Per: "1m"}
	slots := &coordinator.LimitState{Name: "max_in_flight", Unit: "requests", Max: 4}
	for want, e := range map[string]*coordinator.Error{
		"coordinator: p: too late":                    {Reason: coordinator.ReasonTooLate},
		"coordinator: p: queue full. Retry in 1 s":    {Reason: coordinator.ReasonQueueFull, RetryAfter: 1},
		"coordinator: p: circuit open. Retry in 30 s": {Reason: coordinator.ReasonCircuitOpen, RetryAfter: 30 * second},
		"coordinator: p: banned. Retry in 31 s":       {Reason: coordinator.ReasonBanned, RetryAfter: 30*second + 1},
		"coordinator: p: failed after 3 attempts: connection closed": {
			Reason: coordinator.ReasonFailed, Attempts: 3, Err: io.EOF},
		"coordinator: p: rate limited (limit rpm: 60 requests per 1m). Retry in 12 s": {
			Reason: coordinator.ReasonRateLimited, Limit: minute, RetryAfter: 11*second + ms},
		"coordinator: p: rate limited (limit max_in_flight: 4 requests) after 2 attempts": {
			Reason: coordinator.ReasonRateLimited, Limit: slots, Attempts: 2},
	} {
		e.Provider = "p"
		assert.EqualError(t, e, want)
	}
}

// The form that the outside sees: seconds are rounded up, never earlier than told.
func TestErrorAsJSON(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		require.Len(t, calls(t, c, 60, to, 0), 60)
		time.Sleep(48*second + 500*ms)
		now := to
		now.Wait = -1
		data, err := json.Marshal(refusal(t, c.Do(t.Context(), now, ok)))
		require.NoError(t, err)
		assert.JSONEq(t, `{"ok":false,"error":{"code":"rate_limited",
			"message":"rate limited: it may not wait (limit rpm: 60 requests per 1m). Retry in 12 s.",
			"details":{"provider":"p","stage":"entry","attempts":0,"limit":60,"unit":"requests","window_seconds":60,"limit_type":"rpm",
				"retry_after_seconds":12,"retry_at":"2000-01-01T00:01:01Z",
				"queue_length":0,"queue_capacity":1000,"queue_wait_seconds":0}}}`, string(data))
	}, declare(provider.Throttle{RPM: 60}))
}

func TestErrorAsJSONWithoutDetails(t *testing.T) {
	data, err := json.Marshal(&coordinator.Error{Provider: "p", Reason: coordinator.ReasonFailed, Stage: coordinator.StageAttempt,
		Attempts: 3, Answer: provider.Feedback{Outcome: provider.Failed, Detail: "timeout"}, Err: io.EOF})
	require.NoError(t, err)
	assert.JSONEq(t, `{"ok":false,"error":{"code":"failed","message":"failed after 3 attempts: connection closed.",
		"details":{"provider":"p","stage":"attempt","attempts":3,"answer":"failed"}}}`, string(data))
}

// An instant in the JSON is never before the one that was told.
func TestErrorAsJSONIsNeverEarlier(t *testing.T) {
	at := time.Date(2000, 1, 1, 0, 0, 11, 1, time.UTC)
	data, err := json.Marshal(&coordinator.Error{Reason: coordinator.ReasonTooLate, RetryAfter: 11*second + 1, RetryAt: at})
	require.NoError(t, err)
	var got struct {
		Error struct {
			Details struct {
				After int64     `json:"retry_after_seconds"`
				At    time.Time `json:"retry_at"`
			}
		}
	}
	require.NoError(t, json.Unmarshal(data, &got))
	assert.EqualValues(t, 12, got.Error.Details.After)
	assert.False(t, got.Error.Details.At.Before(at), "%s is before %s", got.Error.Details.At, at)
}

func logged(err any) string {
	var b bytes.Buffer
	slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})).Error("call", "err", err)
	slog.New(slog.NewTextHandler(&b, nil)).Error("call", "err", err)
	return b.String()
}

func TestErrorInALog(t *testing.T) {
	at := time.Date(2000, 1, 1, 0, 1, 0, 0, time.UTC)
	text := logged(&coordinator.Error{Provider: "p", Reason: coordinator.ReasonRateLimited, Stage: coordinator.StageRetry, Attempts: 2,
		RetryAfter: second, RetryAt: at, Limit: &coordinator.LimitState{Name: "rpm"},
		Answer: provider.Feedback{Outcome: provider.RateLimited}, Err: syscall.ECONNREFUSED})
	assert.Contains(t, text, `{"level":"ERROR","msg":"call","err":{"provider":"p","reason":"rate_limited","stage":"retry","attempts":2,`+
		`"retry_after":1000000000,"retry_at":"2000-01-01T00:01:00Z","limit":"rpm","answer":"rate_limited","cause":"connection refused"}}`)
	assert.Contains(t, text, `err.provider=p err.reason=rate_limited err.stage=retry err.attempts=2 err.retry_after=1s`)
}

// A cause's text may hold a URL with a key. It is in no text, JSON or log of ours;
// the cause itself is reached by who asks for it.
func TestErrorNeverTellsASecret(t *testing.T) {
	const u = "https://user:secret@example.org/lookup?key=secret"
	get := &url.Error{Op: "Get", URL: u, Err: syscall.ECONNREFUSED}
	for name, cause := range map[string]error{
		"url error": get, "wrapped": fmt.Errorf("lookup %s: %w", u, get), "plain": errors.New(u),
		"joined":   errors.Join(errors.New("one"), errors.New(u)),
		"timeout":  &url.Error{Op: "Get", URL: u, Err: context.DeadlineExceeded},
		"canceled": &url.Error{Op: "Get", URL: u, Err: context.Canceled},
		"dns":      &net.DNSError{Err: "no such host", Name: "secret.example.org", IsNotFound: true},
		"status":   status(502), "late": late{},
		"feedback": provider.Feedback{Outcome: provider.Rejected, Detail: "status 404"}.Err(get),
		"nested":   fmt.Errorf("%s: %w", u, &coordinator.Error{Provider: "q", Reason: coordinator.ReasonFailed, Err: get}),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				call := to
				call.Replayable = true
				err := c.Do(t.Context(), call, func(context.Context) error { return cause })
				e := refusal(t, err)
				assert.ErrorIs(t, err, cause)
				data, jsonErr := json.Marshal(map[string]any{"err": e})
				require.NoError(t, jsonErr)
				s, stateErr := json.Marshal(state(t, c))
				require.NoError(t, stateErr)
				for what, text := range map[string]string{
					"text": e.Error(), "%v": fmt.Sprintf("%v", err), "%+v": fmt.Sprintf("%+v", e), "%q": fmt.Sprintf("%q", err),
					"JSON": string(data), "log": logged(err), "state": string(s), "message": fmt.Errorf("x: %w", err).Error(),
				} {
					assert.NotContains(t, text, "secret", what)
					assert.NotContains(t, text, "example", what)
				}
			}, declare(provider.Throttle{}))
		})
	}
}

// The same where the error is held as a value, not by its address.
func TestErrorAsAValueTellsNoSecret(t *testing.T) {
	e := coordinator.Error{Provider: "p", Reason: coordinator.ReasonFailed, Err: &url.Error{Op: "Get", URL: "https://example.org/?key=secret", Err: io.EOF}}
	data, err := json.Marshal(struct{ Err coordinator.Error }{e})
	require.NoError(t, err)
	assert.NotContains(t, string(data), "secret")
}

// A refusal of ours says nothing of the provider, to whoever classifies it further
// out; a final failure says what the provider said.
func TestErrorFeedback(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		feedback := func(err error) provider.Feedback {
			f, found := provider.FeedbackOf(fmt.Errorf("x: %w", err))
			require.True(t, found)
			return f
		}
		canceled := provider.Feedback{Outcome: provider.Canceled}
		want := provider.Feedback{Outcome: provider.QuotaSpent, RetryAfter: time.Hour, Limit: "rpm", Detail: "status 429"}
		got := feedback(c.Do(t.Context(), to, func(context.Context) error { return want.Err(nil) }))
		assert.Equal(t, want, got)
		now := to
		now.Wait = -1
		assert.Equal(t, canceled, feedback(c.Do(t.Context(), now, ok)), "though its reason is quota spent")
		require.NoError(t, c.Resume("p"))
		assert.Equal(t, provider.Failed, feedback(c.Do(t.Context(), to, answers(provider.Failed, 0))).Outcome)
		for _, err := range []error{
			c.Do(t.Context(), coordinator.Call{Provider: "nobody"}, ok), c.Do(t.Context(), to, nil),
			c.Do(t.Context(), coordinator.Call{Provider: "p", Cost: map[string]int64{"requests": 11}}, ok),
		} {
			assert.Equal(t, canceled, feedback(err), err)
		}
	}, once(provider.Throttle{RPM: 10}))
}

// How far a call came.
func TestErrorStages(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		ls, err := c.Acquire(t.Context(), to)
		require.NoError(t, err)
		now := to
		now.Wait = -1
		e := refusal(t, c.Do(t.Context(), now, ok))
		assert.Equal(t, coordinator.StageEntry, e.Stage)
		ctx, giveUp := context.WithCancel(t.Context())
		got := make(chan error, 1)
		go func() { got <- c.Do(ctx, to, ok) }()
		synctest.Wait()
		giveUp()
		e = refusal(t, <-got)
		assert.Equal(t, coordinator.StageQueue, e.Stage)
		assert.Zero(t, e.Attempts)
		ls.Forget()
		e = refusal(t, c.Do(t.Context(), to, answers(provider.Rejected, 0)))
		assert.Equal(t, coordinator.StageAttempt, e.Stage)
		assert.Equal(t, 1, e.Attempts)
		patient := to
		patient.Wait = 10 * second
		e = refusal(t, c.Do(t.Context(), patient, answers(provider.RateLimited, time.Minute)))
		assert.Equal(t, coordinator.StageAttempt, e.Stage, "it does not even begin to wait for the next one")
		assert.Equal(t, coordinator.ReasonRateLimited, e.Reason, "what the provider said")
		assert.Equal(t, 1, e.Attempts)
		assert.Equal(t, time.Minute, e.RetryAfter)
		assert.Equal(t, provider.RateLimited, e.Answer.Outcome)
	}, declare(provider.Throttle{MaxInFlight: 1}))
}
