package tracelog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/tracelog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// book is what was written, as lines of JSON.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// lines are the records, each by its attributes.
func (b *book) lines(t *testing.T) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(b.String()) {
		m := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		all = append(all, m)
	}
	return all
}

func newBook(level slog.Level, opt tracelog.Options) (*book, *coordinator.Trace) {
	b := new(book)
	return b, tracelog.New(slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: level})), opt)
}

const secret = "s3cr3t-hunter2"

// leaky are causes as net/http and SDKs make them.
var leaky = []error{
	&url.Error{Op: "Get", URL: "https://api.example.com/x?key=" + secret, Err: context.DeadlineExceeded},
	errors.New("401: key " + secret + " is not valid"),
	provider.Feedback{Outcome: provider.Failed, Detail: "status 502"}.Err(fmt.Errorf("body: %s", secret)),
	fmt.Errorf("outer %s: %w", secret, errors.New(secret)),
}

// Whatever hook is called, with whatever error: no line holds a secret.
func TestNoSecret(t *testing.T) {
	b, tr := newBook(slog.LevelDebug, tracelog.Options{First: -1})
	call := coordinator.CallInfo{Provider: "p", Endpoint: "e", Key: "ALIAS", Flow: "alice", Attempt: 1}
	for _, cause := range leaky {
		e := &coordinator.Error{Provider: "p", Reason: coordinator.ReasonFailed, Stage: coordinator.StageAttempt, Attempts: 1,
			RetryAfter: time.Second, Limit: &coordinator.LimitState{Name: "rpm", Max: 1}, Err: cause}
		tr.End(t.Context(), call, e, time.Second)
		tr.Refused(t.Context(), call, e)
	}
	pinned := call
	pinned.Key = secret // the key itself in the place of its alias
	tr.Refused(t.Context(), pinned, &coordinator.Error{Provider: "p", Reason: coordinator.ReasonInvalid})
	tracelog.Panicked(slog.New(slog.NewJSONHandler(b, nil)))("Going", errors.New(secret))
	assert.NotContains(t, b.String(), secret)
	assert.Equal(t, 2*len(leaky)+2, strings.Count(b.String(), "\n"))
	assert.Contains(t, b.String(), `"cause":"timeout"`, "its kind is told")
	assert.Contains(t, b.String(), `"key":"ALIAS"`)
	assert.Contains(t, b.String(), `"type":"*errors.errorString"`)
}

// The same through a coordinator, where everything happens that can.
func TestScenario(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, tr := newBook(slog.LevelDebug, tracelog.Options{First: -1})
		c, err := coordinator.New(coordinator.Config{Traces: []*coordinator.Trace{tr}, Providers: []provider.Provider{
			{Slug: "p", Throttle: provider.Throttle{RPS: 1, MaxQueue: 2, MaxWait: time.Minute}, Retry: provider.Retry{Off: true},
				Breaker: provider.Breaker{Failures: 1, Cooldown: 10 * time.Second},
				Auth:    provider.Auth{Kind: "query", Name: "key", Env: []string{"KEY_A", "KEY_B"}}}}})
		require.NoError(t, err)
		do := func(key string, err error) error {
			return c.Do(t.Context(), coordinator.Call{Provider: "p", Key: key}, func(context.Context) error { return err })
		}
		require.NoError(t, do("KEY_A", nil))
		var all sync.WaitGroup
		for range 3 { // one more than has a place
			all.Go(func() { _ = do("KEY_A", nil) })
		}
		all.Wait()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		require.Error(t, c.Do(gone, coordinator.Call{Provider: "p"}, func(context.Context) error { return nil }))
		require.Error(t, do(secret, nil))
		require.Error(t, c.Do(t.Context(), coordinator.Call{Provider: "nobody"}, nil))
		require.Error(t, do("", leaky[1]))
		require.Error(t, do("", leaky[2]), "opens the breaker")
		require.ErrorIs(t, do("", nil), coordinator.ErrCircuitOpen)
		time.Sleep(11 * time.Second)
		require.NoError(t, do("", nil))
		require.NoError(t, c.Pause("p", time.Now().Add(time.Second), "the operator says so"))
		require.NoError(t, do("", nil))

		assert.NotContains(t, b.String(), secret)
		seen := map[string]string{}
		for _, m := range b.lines(t) {
			seen[m["msg"].(string)] = m["level"].(string)
		}
		assert.Equal(t, map[string]string{
			"headgate: call waits": "DEBUG", "headgate: call goes": "DEBUG", "headgate: attempt ended": "DEBUG", "headgate: call ended": "DEBUG",
			"headgate: call failed": "WARN", "headgate: call refused": "WARN", "headgate: call given up": "DEBUG",
			"headgate: circuit open": "ERROR", "headgate: circuit half-open": "INFO", "headgate: circuit closed": "INFO",
			"headgate: paused": "WARN", "headgate: resumed": "INFO", "headgate: queue pressure": "INFO",
		}, seen)
		assert.Contains(t, b.String(), `"reason":"queue_full"`)
		assert.Contains(t, b.String(), `"why":"the operator says so"`)
	})
}

func TestLevels(t *testing.T) {
	b, tr := newBook(slog.LevelWarn, tracelog.Options{Levels: map[tracelog.Event]slog.Level{tracelog.Attempt: slog.LevelError, tracelog.Refused: slog.LevelDebug}})
	tr.Attempt(t.Context(), coordinator.CallInfo{Provider: "p"}, provider.Feedback{}, 0)
	tr.Refused(t.Context(), coordinator.CallInfo{Provider: "p"}, &coordinator.Error{})
	tr.Pressure(coordinator.PressureChange{})
	require.Len(t, b.lines(t), 1)
	assert.Equal(t, "ERROR", b.lines(t)[0]["level"])
	assert.Equal(t, "ok", b.lines(t)[0]["outcome"])
}

func TestNilLogger(t *testing.T) {
	tr := tracelog.New(nil, tracelog.Options{})
	before := slog.Default()
	defer slog.SetDefault(before)
	b := new(book)
	slog.SetDefault(slog.New(slog.NewJSONHandler(b, nil))) // later than New
	tr.Pressure(coordinator.PressureChange{Provider: "p", High: true, Queue: coordinator.QueueState{Length: 8, Capacity: 10}})
	require.Len(t, b.lines(t), 1)
	m := b.lines(t)[0]
	assert.Equal(t, []any{true, 8.0, 10.0}, []any{m["high"], m["queue_length"], m["queue_capacity"]})
	slog.SetDefault(slog.New(slog.DiscardHandler))
	tr.Pressure(coordinator.PressureChange{})
	assert.Len(t, b.lines(t), 1, "as it is at each event")
}

// What is not written costs a look.
func TestSilentCosts(t *testing.T) {
	_, tr := newBook(slog.LevelError, tracelog.Options{})
	ctx, call := t.Context(), coordinator.CallInfo{Provider: "p"}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		tr.Going(ctx, call, 0)
		tr.Attempt(ctx, call, provider.Feedback{}, 0)
		tr.End(ctx, call, nil, 0)
	}))
}

// A key that was put in the place of its alias is told by its fingerprint.
func TestNoKeyIsTakenForItsAlias(t *testing.T) {
	var b bytes.Buffer
	tr := tracelog.New(slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})), tracelog.Options{})
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{Slug: "p"}}, Traces: []*coordinator.Trace{tr}})
	require.NoError(t, err)
	require.NoError(t, c.Do(t.Context(), coordinator.Call{Provider: "p", Key: "sk-live-SECRET"}, func(context.Context) error { return nil }))
	assert.NotContains(t, b.String(), "SECRET")
	assert.Contains(t, b.String(), `"key":"#`)
}
