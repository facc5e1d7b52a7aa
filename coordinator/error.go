package coordinator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/provider"
)

// Reason is why a call did not succeed.
type Reason string

// Refusals that waiting would cure: ErrThrottled matches them all.
const (
	ReasonRateLimited Reason = "rate_limited" // by a limit of ours (it may not wait), or by the provider
	ReasonQuotaSpent  Reason = "quota_spent"  // the provider said so
	ReasonBanned      Reason = "banned"       // the provider said so
	ReasonQueueFull   Reason = "queue_full"   // every place is taken
	ReasonTooLate     Reason = "too_late"     // its turn comes after its deadline or its longest wait
	ReasonCircuitOpen Reason = "circuit_open" // the provider fails
	ReasonLedger      Reason = "ledger"       // the shared budget could not be asked
)

// Refusals that waiting does not cure.
const (
	ReasonTooHeavy        Reason = "too_heavy"        // costs more than a limit can ever admit
	ReasonUnknownProvider Reason = "unknown_provider" // nobody declared it
	ReasonInvalid         Reason = "invalid"          // the call makes no sense
	ReasonShutdown        Reason = "shutdown"
	ReasonCanceled        Reason = "canceled" // the caller gave up
)

// Failures of a call that went: the outcome of its last attempt.
const (
	ReasonOverloaded   Reason = "overloaded"
	ReasonUnauthorized Reason = "unauthorized"
	ReasonRejected     Reason = "rejected"
	ReasonFailed       Reason = "failed"
	ReasonUnknown      Reason = "unknown"
)

// Stage is how far a call came.
type Stage string

// The stages. Error.Attempts says how often the provider was asked.
const (
	StageEntry   Stage = "entry"   // refused as it came: nothing was sent
	StageQueue   Stage = "queue"   // while it waited: nothing was sent
	StageAttempt Stage = "attempt" // its last attempt failed
	StageRetry   Stage = "retry"   // while it waited for its next attempt
)

// The sentinels that an *Error matches with errors.Is. ErrThrottled matches all
// refusals that waiting would cure. ErrTooLate also matches
// context.DeadlineExceeded.
var (
	ErrThrottled   = errors.New("coordinator: throttled")
	ErrRateLimited = errors.New("coordinator: rate limited")
	ErrQuotaSpent  = errors.New("coordinator: quota spent")
	ErrBanned      = errors.New("coordinator: banned")
	ErrQueueFull   = errors.New("coordinator: queue full")
	ErrTooLate     = errors.New("coordinator: too late")
	ErrCircuitOpen = errors.New("coordinator: circuit open")
	ErrLedger      = errors.New("coordinator: ledger unavailable")

	ErrTooHeavy        = errors.New("coordinator: too heavy")
	ErrUnknownProvider = errors.New("coordinator: unknown provider")
	ErrShutdown        = errors.New("coordinator: shut down")
)

var sentinels = map[Reason]error{
	ReasonRateLimited: ErrRateLimited, ReasonQuotaSpent: ErrQuotaSpent, ReasonBanned: ErrBanned,
	ReasonQueueFull: ErrQueueFull, ReasonTooLate: ErrTooLate, ReasonCircuitOpen: ErrCircuitOpen,
	ReasonLedger: ErrLedger, ReasonTooHeavy: ErrTooHeavy, ReasonUnknownProvider: ErrUnknownProvider,
	ReasonShutdown: ErrShutdown,
}

// Error is every refusal and every final failure. Its text, JSON and log form
// never contain the cause's text, which may hold a URL with a key; Unwrap reaches
// the cause.
type Error struct {
	Provider   string
	Reason     Reason
	Stage      Stage
	Attempts   int           // how often the provider was asked
	RetryAfter time.Duration // from the refusal on; 0: not known, or never
	RetryAt    time.Time     // the same as an instant; zero: not known, or never
	Limit      *LimitState   // the limit that binds latest; nil: none
	Queue      QueueState
	Answer     provider.Feedback // what the provider said last, if it was asked
	Err        error             // the cause

	detail string // ours: without a secret
}

// Throttled tells that waiting would cure it.
func (r Reason) throttled() bool {
	switch r {
	case ReasonRateLimited, ReasonQuotaSpent, ReasonBanned, ReasonQueueFull, ReasonTooLate, ReasonCircuitOpen, ReasonLedger:
		return true
	}
	return false
}

// Is matches the sentinel of the reason, ErrThrottled where waiting would cure it,
// and context.DeadlineExceeded for ErrTooLate.
func (e *Error) Is(target error) bool {
	switch {
	case target == ErrThrottled:
		return e.Reason.throttled()
	case target == context.DeadlineExceeded:
		return e.Reason == ReasonTooLate
	}
	s := sentinels[e.Reason]
	return s != nil && s == target
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Feedback is canceled for a refusal of ours, else what the provider said.
func (e *Error) Feedback() provider.Feedback {
	if e.Attempts > 0 && e.Reason == reasonOf(e.Answer.Outcome) {
		return e.Answer
	}
	return provider.Feedback{Outcome: provider.Canceled}
}

// Error names provider, reason, what binds and when to return.
func (e *Error) Error() string {
	return fmt.Sprintf("coordinator: %s: %s", e.Provider, e.message(". Retry in "))
}

func (e *Error) message(retry string) string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(string(e.Reason), "_", " "))
	if e.detail != "" {
		b.WriteString(": " + e.detail)
	}
	if e.Limit != nil {
		fmt.Fprintf(&b, " (limit %s: %d %s", e.Limit.Name, e.Limit.Max, e.Limit.Unit)
		if e.Limit.Per != "" {
			fmt.Fprintf(&b, " per %s", e.Limit.Per)
		}
		b.WriteString(")")
	}
	switch {
	case e.Attempts == 1:
		b.WriteString(" after 1 attempt")
	case e.Attempts > 1:
		fmt.Fprintf(&b, " after %d attempts", e.Attempts)
	}
	if kind := kindOf(e.Err); kind != "" && kind != "error" && !strings.Contains(b.String(), kind) {
		b.WriteString(": " + kind)
	}
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, "%s%s", retry, wholeSeconds(e.RetryAfter))
	}
	return b.String()
}

func wholeSeconds(d time.Duration) string { return fmt.Sprintf("%d s", seconds(d)) }

// seconds rounds up: never earlier than told.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

func reasonOf(o provider.Outcome) Reason {
	switch o {
	case provider.RateLimited, provider.QuotaSpent, provider.Banned, provider.Overloaded,
		provider.Unauthorized, provider.Rejected, provider.Failed, provider.Canceled:
		return Reason(o)
	}
	return ReasonUnknown
}
