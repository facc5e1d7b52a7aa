// Package dialect reads an HTTP answer as its provider means it and says what
// it means for limits, pauses, breaker and retry: one provider.Feedback.
//
// Today it reads the standard conventions: the status ([provider.OfStatus]) and
// Retry-After. The declarative language of provider.Dialect (signals, budgets,
// other sources of advice, used amounts) follows; until then a declaration is
// not read, but for Only, which switches the standard conventions off.
//
// Not in it: sending, waiting, retrying, and reading bodies from the network.
package dialect

import (
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate/provider"
)

// Read classifies an answer by the declared dialect, then by the standard rules.
// It never panics and never blocks; body may be nil or cut short. r's own body
// is not touched. now is when the answer came: it is used only where the answer
// has no Date of its own. Read is pure and safe for concurrent use.
//
// RetryAfter is set only on a refusal or a failure, and only where the answer
// gives usable advice. A 403 with such advice is rate_limited. Detail is short
// and holds nothing that the provider wrote. A nil r is an unknown.
func Read(d provider.Dialect, r *http.Response, body []byte, now time.Time) provider.Feedback {
	if r == nil {
		return provider.Feedback{Outcome: provider.Unknown, Detail: "no answer"}
	}
	a := answer{status: r.StatusCode, header: r.Header, now: now}
	f := provider.Feedback{Outcome: provider.OfStatus(a.status)}
	if f.Outcome == provider.OK {
		return f
	}
	f.Detail = "status " + strconv.Itoa(a.status)
	if d.Only {
		return f
	}
	advice := a.retryAfter()
	if a.status == http.StatusForbidden && advice > 0 {
		// A missing right is not cured by waiting: who says when to come back
		// is limiting a rate (GitHub's secondary limits, for one).
		f.Outcome = provider.RateLimited
	}
	if waits(f.Outcome) {
		f.RetryAfter = advice
	}
	return f
}

// answer is what the readers of this package look at.
type answer struct {
	status int
	header http.Header
	now    time.Time
}

// waits tells the outcomes that can be cured by waiting: only these carry
// advice, so that nobody sleeps on the Retry-After of a 404 or a redirect.
func waits(o provider.Outcome) bool {
	switch o {
	case provider.RateLimited, provider.QuotaSpent, provider.Banned, provider.Overloaded, provider.Failed:
		return true
	}
	return false
}
