package edge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/edge"
	"github.com/headgate/headgate/provider"
)

// written is what WriteError answers to an error that was wrapped on its way.
func written(t *testing.T, e *coordinator.Error) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	w.Header().Set("Content-Length", "3")
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("X-RateLimit-Limit", "77") // what an edge has said of its own limits
	require.True(t, edge.WriteError(w, fmt.Errorf("lookup: %w", e)))
	return w.Result()
}

func TestWriteErrorStatus(t *testing.T) {
	want := map[coordinator.Reason]int{
		coordinator.ReasonRateLimited: 429, coordinator.ReasonQuotaSpent: 429, coordinator.ReasonBanned: 429,
		coordinator.ReasonQueueFull: 429, coordinator.ReasonTooLate: 429,
		coordinator.ReasonCircuitOpen: 503, coordinator.ReasonLedger: 503, coordinator.ReasonShutdown: 503,
		coordinator.ReasonOverloaded: 503, coordinator.ReasonCanceled: 503, coordinator.ReasonTooHeavy: 422,
		coordinator.ReasonUnknownProvider: 500, coordinator.ReasonInvalid: 500,
		coordinator.ReasonUnauthorized: 502, coordinator.ReasonRejected: 502, coordinator.ReasonFailed: 502, coordinator.ReasonUnknown: 502,
		"of another day": 500,
	}
	for reason, status := range want {
		assert.Equal(t, status, edge.Status(reason), reason)
		res := written(t, &coordinator.Error{Provider: "p", Reason: reason})
		assert.Equal(t, status, res.StatusCode, reason)
		assert.Empty(t, res.Header.Values("Retry-After"), "nobody knows when")
		assert.Empty(t, res.Header.Values("RateLimit"), "no limit binds")
		assert.Equal(t, "77", res.Header.Get("X-RateLimit-Limit"), "so what was said stays")
		assert.Empty(t, res.Header.Values("Content-Length"), "of another body")
		assert.Empty(t, res.Header.Values("Content-Encoding"))
		assert.Equal(t, "application/json", res.Header.Get("Content-Type"))
		var body struct {
			OK    bool
			Error struct{ Code, Message string }
		}
		require.NoError(t, json.NewDecoder(res.Body).Decode(&body))
		assert.False(t, body.OK)
		assert.Equal(t, string(reason), body.Error.Code)
	}
}

func TestWriteErrorLeavesOthers(t *testing.T) {
	var none *coordinator.Error
	for _, err := range []error{nil, errors.New("other"), fmt.Errorf("wrapped: %w", none)} {
		w := httptest.NewRecorder()
		assert.False(t, edge.WriteError(w, err))
		assert.Empty(t, w.Header())
		assert.Zero(t, w.Body.Len())
	}
}

// What is written is read back by the project's own reader, and means the same.
func TestWriteErrorRoundTrip(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		limit coordinator.LimitState
		after time.Duration
		lines map[string]string
		want  provider.Budget // the named one
	}{
		{"window", coordinator.LimitState{Name: "rpm", Unit: "requests", Max: 60, Used: 60, Per: "1m", ResetAt: now.Add(12 * time.Second)}, 11500 * time.Millisecond,
			map[string]string{"RateLimit": `"rpm";r=0;t=12`, "RateLimit-Policy": `"rpm";q=60;w=60`, "Retry-After": "12",
				"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": fmt.Sprint(now.Unix() + 12)},
			provider.Budget{Name: "rpm", Limit: 60, Window: time.Minute, Reset: 12 * time.Second}},
		{"its reset is later than this call's turn", coordinator.LimitState{Name: "day", Unit: "bytes", Max: 1 << 40, Used: 5, Per: "day", ResetAt: now.Add(time.Hour)}, time.Minute,
			map[string]string{"RateLimit": `"day";r=0;t=60`, "RateLimit-Policy": `"day";q=1099511627776;qu="content-bytes";w=86400`, "Retry-After": "60"},
			provider.Budget{Name: "day", Unit: "bytes", Limit: 1 << 40, Window: 24 * time.Hour, Reset: time.Minute}},
		{"below a second", coordinator.LimitState{Name: "burst", Unit: "tokens", Max: 2, Used: 2, Per: "800ms"}, time.Millisecond,
			map[string]string{"RateLimit": `"burst";r=0;t=1`, "RateLimit-Policy": `"burst";q=2;qu="tokens";w=1`, "Retry-After": "1"},
			provider.Budget{Name: "burst", Unit: "tokens", Limit: 2, Window: time.Second, Reset: time.Second}},
		{"in flight", coordinator.LimitState{Name: "max_in_flight", Unit: "requests", Max: 4, Held: 4}, 250 * time.Millisecond,
			map[string]string{"RateLimit": `"max_in_flight";r=0;t=1`, "RateLimit-Policy": `"max_in_flight";q=4;qu="concurrent-requests"`, "X-RateLimit-Limit": ""},
			provider.Budget{Name: "max_in_flight", Unit: "concurrent-requests", Limit: 4, Reset: time.Second}},
		{"a name for a joke", coordinator.LimitState{Name: "<script>\"é\\\n", Unit: "requests", Max: 1, Used: 1, Per: "1s"}, time.Second,
			map[string]string{"RateLimit": `"<script>\"?\\?";r=0;t=1`},
			provider.Budget{Name: "<script>\"?\\?", Limit: 1, Window: time.Second, Reset: time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &coordinator.Error{Provider: `a "quoted" <script>`, Reason: coordinator.ReasonRateLimited,
				RetryAfter: c.after, RetryAt: now.Add(c.after), Limit: &c.limit}
			res := written(t, e)
			for name, want := range c.lines {
				assert.Equal(t, want, res.Header.Get(name), name)
			}
			f := dialect.Read(provider.Dialect{}, res, nil, now)
			assert.Equal(t, provider.RateLimited, f.Outcome)
			assert.Equal(t, (c.after + time.Second - 1).Truncate(time.Second), f.RetryAfter, "never earlier than told")
			c.want.HasLimit, c.want.HasRemaining, c.want.HasReset = true, true, true
			require.NotEmpty(t, f.Budgets)
			assert.Equal(t, c.want, f.Budgets[0])
			for _, b := range f.Budgets {
				assert.Zero(t, b.Remaining, "%+v", b)
				assert.Equal(t, c.want.Limit, b.Limit, "no field says otherwise")
			}
		})
	}
}

// The whole way: the answer of a service that asked a provider which is closed to it.
func TestWriteErrorPassesGuidanceOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "hunter2"
		c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{{
			Slug: "shodan", Throttle: provider.Throttle{RPM: 2}, Retry: provider.Retry{Off: true}}}})
		require.NoError(t, err)
		call := coordinator.Call{Provider: "shodan", Wait: -1}
		ok := func() error { return c.Do(t.Context(), call, func(context.Context) error { return nil }) }
		require.NoError(t, ok())
		time.Sleep(12500 * time.Millisecond)
		require.NoError(t, ok())
		w := httptest.NewRecorder()
		require.True(t, edge.WriteError(w, ok()))
		res := w.Result()
		assert.Equal(t, 429, res.StatusCode)
		assert.Equal(t, "48", res.Header.Get("Retry-After"))
		assert.Equal(t, `"rpm";r=0;t=48`, res.Header.Get("RateLimit"))
		f := dialect.Read(provider.Dialect{}, res, nil, time.Now())
		assert.Equal(t, 48*time.Second, f.RetryAfter)

		time.Sleep(time.Hour)
		err = c.Do(t.Context(), call, func(context.Context) error {
			return fmt.Errorf("Get https://api.shodan.io/host?key=%s: %w", secret, errors.New(secret))
		})
		w = httptest.NewRecorder()
		require.True(t, edge.WriteError(w, err))
		assert.Equal(t, 502, w.Code)
		assert.NotContains(t, w.Body.String()+fmt.Sprint(w.Header()), secret)
	})
}
