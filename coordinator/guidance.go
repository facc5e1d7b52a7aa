package coordinator

import (
	"encoding/json"
	"log/slog"
	"time"

	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/queue"
)

// MarshalJSON gives {"ok":false,"error":{"code":…,"message":…,"details":{…}}},
// seconds rounded up.
func (e Error) MarshalJSON() ([]byte, error) {
	details := map[string]any{"provider": e.Provider, "stage": e.Stage, "attempts": e.Attempts}
	if e.RetryAfter > 0 {
		details["retry_after_seconds"] = seconds(e.RetryAfter)
		details["retry_at"] = e.RetryAt.Add(time.Second - 1).Truncate(time.Second).UTC().Format(time.RFC3339)
	}
	if e.Limit != nil {
		details["limit"], details["limit_type"], details["unit"] = e.Limit.Max, e.Limit.Name, e.Limit.Unit
		if w, _ := e.Limit.Per.Duration(); w > 0 {
			details["window_seconds"] = seconds(w)
		}
	}
	if e.Queue != (QueueState{}) {
		details["queue_length"], details["queue_capacity"] = e.Queue.Length, e.Queue.Capacity
		details["queue_wait_seconds"] = seconds(e.Queue.Wait)
	}
	if e.Answer.Outcome != "" {
		details["answer"] = e.Answer.Outcome
	}
	return json.Marshal(map[string]any{
		"ok":    false,
		"error": map[string]any{"code": e.Reason, "message": e.message(". Retry in ") + ".", "details": details},
	})
}

// LogValue gives the same facts as attributes.
func (e Error) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.String("provider", e.Provider), slog.String("reason", string(e.Reason)),
		slog.String("stage", string(e.Stage)), slog.Int("attempts", e.Attempts),
	}
	if e.detail != "" {
		attrs = append(attrs, slog.String("detail", e.detail))
	}
	if e.RetryAfter > 0 {
		attrs = append(attrs, slog.Duration("retry_after", e.RetryAfter), slog.Time("retry_at", e.RetryAt))
	}
	if e.Limit != nil {
		attrs = append(attrs, slog.String("limit", e.Limit.Name))
	}
	if e.Answer.Outcome != "" {
		attrs = append(attrs, slog.String("answer", string(e.Answer.Outcome)))
	}
	if kind := kindOf(e.Err); kind != "" {
		attrs = append(attrs, slog.String("cause", kind))
	}
	return slog.GroupValue(attrs...)
}

// refusal says why, and when (at 0: nobody knows, or never). That of a retry is not
// complete before walk.final.
func (l *lane) refusal(ls *Lease, r Reason, detail string, at time.Duration) *Error {
	e := &Error{Provider: l.slug, Reason: r, Stage: StageEntry, Queue: l.queueState(), detail: detail}
	if ls != nil && ls.ready != nil {
		e.Stage = StageQueue
	}
	l.when(e, at)
	return e
}

func (l *lane) when(e *Error, at time.Duration) {
	if at > l.now.Mono && at != queue.Never {
		e.RetryAfter, e.RetryAt = at-l.now.Mono, l.date(at)
	}
}

// tooLate refuses a call whose turn comes after its deadline, or after what
// anybody waits for: at opens, because of the gate by.
func (l *lane) tooLate(ls *Lease, opens time.Duration, by *queue.Gate) *Error {
	e := l.refusal(ls, ReasonTooLate, "its turn comes after its deadline or longest wait", l.soon(opens))
	l.blame(e, by)
	return e
}

// tooHeavy refuses a call that g can never admit.
func (l *lane) tooHeavy(ls *Lease, g *limitGate) *Error {
	e := l.refusal(ls, ReasonTooHeavy, "no window of this limit can hold the call's cost", 0)
	e.Limit = g.state()
	return e
}

// noWait refuses a call that may not wait.
func (l *lane) noWait(ls *Lease, opens time.Duration, by *queue.Gate) *Error {
	e := l.refusal(ls, ReasonRateLimited, "it may not wait", l.soon(opens))
	l.blame(e, by)
	switch {
	case by == &l.door.Gate:
		e.Reason, e.detail = ReasonCircuitOpen, "a probe is out"
	case e.Err == ErrBanned: //nolint:errorlint // the very value that blame puts there
		e.Reason = ReasonBanned
	case e.Err == ErrQuotaSpent: //nolint:errorlint // likewise
		e.Reason = ReasonQuotaSpent
	}
	return e
}

// blame names the gate that binds latest: the limit, or what the provider said.
func (l *lane) blame(e *Error, by *queue.Gate) {
	if by == nil {
		return
	}
	switch g := by.Rule().(type) {
	case *limitGate:
		e.Limit = g.state()
		if g.notBefore > l.now.Mono {
			e.detail, e.Err = "the provider said that this quota is spent", ErrQuotaSpent
		}
	case *poolGate:
		e.detail = g.full()
	case *pauseGate:
		if !g.on {
			if l.now.Mono < g.told.until {
				e.detail, e.Err = "the provider said that its quota is spent", ErrQuotaSpent
			}
			return
		}
		e.detail = "the " + g.scope + " is paused: " + string(g.why)
		if g.why == provider.Banned {
			e.Err = ErrBanned
		}
		if g.why == provider.RateLimited {
			e.Err = ErrRateLimited
		}
	}
}

// toldBy tells that a gate's instant is what the provider said, not arithmetic.
func (l *lane) toldBy(by *queue.Gate) bool {
	switch g := by.Rule().(type) {
	case *limitGate:
		return g.notBefore > l.now.Mono
	case *pauseGate:
		return g.on && g.why != "" || l.now.Mono < g.told.until
	}
	return false
}

// soon is an instant to come back at where the next event opens the way: after a
// usual round trip.
func (l *lane) soon(at time.Duration) time.Duration {
	if at > l.now.Mono && at != queue.Never {
		return at
	}
	trip := l.trips.median()
	if trip <= 0 {
		trip = minLinger
	}
	return l.now.Mono + trip
}

// failure is the final error of a call whose last attempt failed; delay is the
// back-off that it would have taken.
func (l *lane) failure(w *walk, ls *Lease, err error, delay time.Duration) *Error {
	e := &Error{Provider: l.slug, Reason: reasonOf(w.answer().Outcome), Stage: StageAttempt, Attempts: w.attempts,
		Queue: l.queueState(), Answer: w.answer(), Err: err, detail: w.answer().Detail}
	switch e.Reason {
	case ReasonRateLimited, ReasonQuotaSpent, ReasonBanned, ReasonOverloaded, ReasonUnauthorized:
		at, by := l.opensAgain(w, ls)
		l.when(e, max(at, l.now.Mono+delay))
		if by != nil {
			if g, ok := by.Rule().(*limitGate); ok {
				e.Limit = g.state()
			}
		}
	case ReasonFailed:
		l.when(e, l.now.Mono+delay)
	}
	return e
}
