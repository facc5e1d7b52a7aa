package provider

import "time"

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

// Feedback is everything that one attempt told. The zero value is an ok without
// news.
type Feedback struct {
	Outcome      Outcome          `json:"outcome,omitempty"`
	RetryAfter   time.Duration    `json:"-"` // 0: no advice
	Budgets      []Budget         `json:"-"` // what the answer told about quotas
	Used         map[string]int64 `json:"-"` // real cost in each unit, where the answer tells it
	Scope, Limit string           `json:"-"` // what is paused; the declared limit that is spent
	Before       bool             `json:"-"` // refused before acting: may be sent again
	Unanswered   bool             `json:"-"` // the attempt ended without an answer: it may still arrive
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

// Err returns an error that carries f and unwraps to cause. It is nil where f
// is an ok and cause is nil. Its text never contains the cause's.
func (f Feedback) Err(cause error) error { return nil }

// FeedbackOf finds the Feedback that an error in err's chain carries.
func FeedbackOf(err error) (Feedback, bool) { return Feedback{}, false }
