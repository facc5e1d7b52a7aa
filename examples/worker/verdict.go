package main

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate/coordinator"
)

// verdict is what happens to a job after a try: one of the three.
type verdict struct {
	done  bool
	dead  bool          // nobody can do it
	again time.Duration // it goes back to the queue for so long at least
	fault bool          // it was the job's, or the provider's: it counts as a failed try
	why   string        // no secret
}

const (
	firstBackOff, lastBackOff = 500 * time.Millisecond, time.Minute

	// unknownWait is for a refusal that does not say when to come back.
	unknownWait = time.Second
)

// judge reads what Do has returned for a job that has been tried so many times, this time
// included, of at most so many.
func judge(err error, tries, most int) verdict {
	if err == nil {
		return verdict{done: true}
	}
	var e *coordinator.Error
	if !errors.As(err, &e) {
		return verdict{again: unknownWait, why: "our own fault"}
	}
	switch {
	case e.Reason == coordinator.ReasonCanceled, e.Reason == coordinator.ReasonShutdown:
		return verdict{why: string(e.Reason)} // somebody else can do it, at once
	case errors.Is(err, coordinator.ErrThrottled):
		// It was not its turn, says Headgate or the provider. The guidance says when it is.
		v := verdict{again: e.RetryAfter, why: string(e.Reason)}
		if v.again <= 0 {
			v.again = unknownWait
		}
		return v
	}
	v := verdict{fault: true, why: reason(e)}
	switch e.Reason {
	case coordinator.ReasonRejected, coordinator.ReasonTooHeavy, coordinator.ReasonInvalid:
		v.dead = true // and so will the next try be
	default:
		v.dead = tries >= most
		v.again = max(e.RetryAfter, min(firstBackOff<<min(max(tries-1, 0), 20), lastBackOff))
	}
	return v
}

// reason tells a failure without the text of its cause, which may hold a URL.
func reason(e *coordinator.Error) string {
	var status statusError
	if errors.As(e, &status) {
		return string(e.Reason) + ": " + status.Error()
	}
	return string(e.Reason)
}

// statusError is an answer that is not a success.
type statusError int

func (s statusError) Error() string {
	return "status " + strconv.Itoa(int(s)) + " " + http.StatusText(int(s))
}

// later is d with a little added, so that jobs that were told the same instant do not all
// come back at once. It is never less than d: nobody may come before he was told.
func later(d time.Duration) time.Duration {
	return d + rand.N(d/10+50*time.Millisecond)
}
