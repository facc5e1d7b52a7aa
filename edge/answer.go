package edge

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate/coordinator"
)

// statuses is what a reason is as an HTTP status: 429 where who asks is to come
// back later, 503 where the service (or what it depends on) is not there at the
// moment, 502 where the provider was reached and did not do it. What the table does
// not know is a 500.
var statuses = map[coordinator.Reason]int{
	coordinator.ReasonRateLimited: http.StatusTooManyRequests,
	coordinator.ReasonQuotaSpent:  http.StatusTooManyRequests,
	coordinator.ReasonBanned:      http.StatusTooManyRequests,
	coordinator.ReasonQueueFull:   http.StatusTooManyRequests,
	coordinator.ReasonTooLate:     http.StatusTooManyRequests,

	coordinator.ReasonCircuitOpen: http.StatusServiceUnavailable,
	coordinator.ReasonLedger:      http.StatusServiceUnavailable,
	coordinator.ReasonShutdown:    http.StatusServiceUnavailable,
	coordinator.ReasonOverloaded:  http.StatusServiceUnavailable,
	coordinator.ReasonCanceled:    http.StatusServiceUnavailable, // who asked is gone: nobody reads it

	coordinator.ReasonTooHeavy:        http.StatusUnprocessableEntity, // no time cures it
	coordinator.ReasonUnknownProvider: http.StatusInternalServerError,
	coordinator.ReasonInvalid:         http.StatusInternalServerError,

	coordinator.ReasonUnauthorized: http.StatusBadGateway, // of the service, not of who asks
	coordinator.ReasonRejected:     http.StatusBadGateway,
	coordinator.ReasonFailed:       http.StatusBadGateway,
	coordinator.ReasonUnknown:      http.StatusBadGateway,
}

// Status is the HTTP status for a reason: 429, 503, 502, 422 or 500. WriteError
// writes it.
func Status(r coordinator.Reason) int {
	if s, ok := statuses[r]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// WriteError answers a request by the [coordinator.Error] in err's tree and tells
// whether there was one; if not (err is nil, or somebody else's) it writes nothing.
//
// The answer has the status of its reason (see [Status]); Retry-After in seconds,
// rounded up, where it is known when to return; RateLimit, RateLimit-Policy and
// X-RateLimit-Limit, -Remaining and -Reset (an epoch in seconds) of the limit that
// binds, where one does; and the error's JSON as body. None of it holds the cause's
// text, which may have a secret in it. Fields that described another body are
// removed.
func WriteError(w http.ResponseWriter, err error) bool {
	var e *coordinator.Error
	if !errors.As(err, &e) || e == nil {
		return false
	}
	body, err := json.Marshal(e)
	if err != nil { // its own MarshalJSON has no case of that
		body = []byte(`{"ok":false}`)
	}
	h := w.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding", "Etag", "Last-Modified", "Cache-Control"} {
		h.Del(name)
	}
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff") // a provider's name is in it, whatever that is
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(wholeSeconds(e.RetryAfter), 10))
	}
	if e.Limit != nil {
		setLimits(h, []standing{bindingLimit(e)}, "")
	}
	w.WriteHeader(Status(e.Reason))
	_, _ = w.Write(append(body, '\n')) // who asked may be gone
	return true
}

// bindingLimit is the limit that refuses, as it stands. While there is a time to
// return at nothing of it is left for this call, whatever its count says (the
// spacing of a leaky bucket, the burst of a token bucket, what a provider told), and
// it is not back later than Retry-After says: the draft wants the two to agree.
func bindingLimit(e *coordinator.Error) standing {
	now := time.Now()
	if !e.RetryAt.IsZero() {
		now = e.RetryAt.Add(-e.RetryAfter)
	}
	l := standingOf(*e.Limit, now)
	if e.RetryAfter > 0 {
		l.remaining, l.reset = 0, e.RetryAfter
	}
	return l
}

// wholeSeconds rounds up: never earlier than told.
func wholeSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}
