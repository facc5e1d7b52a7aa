package provider

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFeedbackErrText(t *testing.T) {
	for want, f := range map[string]Feedback{
		"rate_limited":                               {Outcome: RateLimited},
		"rate_limited: status 429":                   {Outcome: RateLimited, Detail: "status 429"},
		"rate_limited: retry after 12s":              {Outcome: RateLimited, RetryAfter: 12 * time.Second},
		"rate_limited: status 429, retry after 1m4s": {Outcome: RateLimited, Detail: "status 429", RetryAfter: 64 * time.Second},
		"failed: timeout":                            {Outcome: Failed, Detail: "timeout", RetryAfter: -1},
		"ok":                                         {},
	} {
		cause := errors.New(`Get "https://api.example/?key=s3cret": refused`)
		err := f.Err(cause)
		require.EqualError(t, err, want)
		assert.ErrorIs(t, err, cause)
		assert.NotContains(t, fmt.Sprintf("%v %s %q %+v", err, err, err, err), "s3cret")
	}
}

func TestFeedbackErrIsNilOnlyForAnOKWithoutCause(t *testing.T) {
	assert.NoError(t, Feedback{}.Err(nil))
	assert.NoError(t, Feedback{Outcome: OK, Detail: "status 200"}.Err(nil))
	assert.Error(t, Feedback{Outcome: OK}.Err(context.Canceled))
	err := Feedback{Outcome: Rejected}.Err(nil)
	require.Error(t, err)
	assert.NoError(t, errors.Unwrap(err))
}

// told is somebody else's error that knows its feedback.
type told struct{ f Feedback }

func (t told) Error() string      { return "told" }
func (t told) Feedback() Feedback { return t.f }

func TestFeedbackOfFindsTheFirstInTheTree(t *testing.T) {
	f := Feedback{Outcome: QuotaSpent, RetryAfter: time.Hour, Budgets: []Budget{{Name: "day", HasReset: true}}, Used: map[string]int64{Tokens: 7}, Unanswered: true}
	inner := Feedback{Outcome: Failed}
	for name, err := range map[string]error{
		"itself":        f.Err(nil),
		"wrapped":       fmt.Errorf("lookup: %w", f.Err(context.DeadlineExceeded)),
		"joined":        errors.Join(errors.New("other"), fmt.Errorf("lookup: %w", f.Err(nil))),
		"foreign":       fmt.Errorf("lookup: %w", told{f}),
		"outer first":   f.Err(inner.Err(nil)),
		"first of two":  errors.Join(f.Err(nil), inner.Err(nil)),
		"behind others": fmt.Errorf("%w and %w", context.Canceled, told{f}),
	} {
		got, ok := FeedbackOf(err)
		assert.True(t, ok, name)
		assert.Equal(t, f, got, name)
	}
	for name, err := range map[string]error{"nil": nil, "none": errors.New("x"), "none joined": errors.Join(errors.New("x"), context.Canceled)} {
		got, ok := FeedbackOf(err)
		assert.False(t, ok, name)
		assert.Equal(t, Feedback{}, got, name)
	}
}

func TestOutcomeValid(t *testing.T) {
	for _, o := range []Outcome{OK, RateLimited, QuotaSpent, Banned, Overloaded, Unauthorized, Rejected, Failed, Unknown, Canceled} {
		assert.True(t, o.Valid(), o)
	}
	for _, o := range []Outcome{"", "OK", "throttled", "cancelled"} {
		assert.False(t, o.Valid(), o)
	}
}
