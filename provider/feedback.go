package provider

import (
	"errors"
	"slices"
	"time"
)

// Outcome is the class of one answer. Limits, breaker, pause and retry all read
// the same one.
type Outcome string

// The outcomes.
const (
	OK           Outcome = "ok"
	RateLimited  Outcome = "rate_limited"
	QuotaSpent   Outcome = "quota_spent"
	Banned       Outcome = "banned"
	Overloaded   Outcome = "overloaded"
	Unauthorized Outcome = "unauthorized"
	Rejected     Outcome = "rejected"
	Failed       Outcome = "failed"
	Unknown      Outcome = "unknown"
	Canceled     Outcome = "canceled"
)

var outcomes = []Outcome{OK, RateLimited, QuotaSpent, Banned, Overloaded, Unauthorized, Rejected, Failed, Unknown, Canceled}

// Valid tells whether o is one of the outcomes above. The empty Outcome is not,
// though a Feedback without one means OK.
func (o Outcome) Valid() bool { return slices.Contains(outcomes, o) }

// Feedback is everything that one attempt told. The zero value is an ok without
// news.
type Feedback struct {
	Outcome      Outcome          `json:"outcome,omitempty"`
	RetryAfter   time.Duration    `json:"-"` // 0: no advice
	Budgets      []Budget         `json:"-"` // what the answer told about quotas
	Used         map[string]int64 `json:"-"` // real cost in each unit, where the answer tells it
	Scope, Limit string           `json:"-"` // what is paused; the declared limit that is spent
	Before       bool             `json:"-"` // refused before acting: may be sent again
	Empty        bool             `json:"-"` // of an ok: the answer says that there is no data
	Unanswered   bool             `json:"-"` // the attempt ended without an answer: it may still arrive
	Date         time.Time        `json:"-"` // the provider's clock as it answered; zero: not told
	Detail       string           `json:"-"` // a short, secret-free reason
}

// Budget is one quota as an answer told it. Reset and Window are lengths of
// time from the answer on.
type Budget struct {
	Name, Unit                       string
	Limit, Remaining, Used           int64
	Reset, Window                    time.Duration
	HasLimit, HasRemaining, HasReset bool
}

// Err returns an error that carries f ([FeedbackOf] finds it) and unwraps to
// cause, which may be nil. It is nil where f is an ok and cause is nil. Its text
// is the outcome, the detail and the advice, as in "rate_limited: status 429,
// retry after 12s"; it never contains the cause's, which may hold a secret.
func (f Feedback) Err(cause error) error {
	if cause == nil && (f.Outcome == "" || f.Outcome == OK) {
		return nil
	}
	return &feedbackError{f, cause}
}

// FeedbackOf finds the Feedback that an error carries: that of the first one in
// err's tree, joined errors included, with a method Feedback() Feedback.
func FeedbackOf(err error) (Feedback, bool) {
	var c interface{ Feedback() Feedback }
	if errors.As(err, &c) {
		return c.Feedback(), true
	}
	return Feedback{}, false
}

type feedbackError struct {
	f     Feedback
	cause error
}

func (e *feedbackError) Error() string {
	text := string(e.f.Outcome)
	if text == "" {
		text = string(OK)
	}
	sep := ": "
	if e.f.Detail != "" {
		text += sep + e.f.Detail
		sep = ", "
	}
	if e.f.RetryAfter > 0 {
		text += sep + "retry after " + durationText(e.f.RetryAfter)
	}
	return text
}

func (e *feedbackError) Unwrap() error      { return e.cause }
func (e *feedbackError) Feedback() Feedback { return e.f }
