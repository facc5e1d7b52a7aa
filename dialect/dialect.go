// Package dialect reads an HTTP answer as its provider means it and says what
// it means for limits, pauses, breaker and retry: one provider.Feedback.
//
// Without a declaration the standard conventions hold: the status
// ([provider.OfStatus]); Retry-After and its variants (Retry-After-Ms,
// X-Ms-Retry-After-Ms, X-RateLimit-Retry-After, X-Retry-After); the IETF fields
// RateLimit and RateLimit-Policy (the structured form, draft-07's dictionary) and
// RateLimit-Limit, -Remaining, -Reset of the drafts before; the same with
// X-RateLimit- and X-Rate-Limit-, with the variants -Used, -Observed, -Usage,
// -Reset-After, -Reset-In, -Reset-Time, -Reset-Date, -Window,
// -Interval-Seconds, and with a budget's name before or after (-Limit-Minute,
// -Requests-Limit); the problem types of the IETF draft. A reset whose unit
// nothing tells is seconds below 10⁹, an epoch up to 10¹¹ and an epoch in
// milliseconds above; or a duration (6m0s), or a date.
//
// A declaration (provider.Dialect) comes first: its signals before the status,
// its sources of advice before Retry-After, and a header that it names is not
// read by the conventions as well. With Only the conventions are off, but for
// the status.
//
// A source finds its value so. A header's lines are kept apart, and each is a
// list at commas (not where the notation is a date or a duration); Index counts
// through all of them. A JSON path gives its nodes, in the order of their
// normalized paths, a body its text. A pattern finds every match in each of
// these, and its capture is the value. Where there are several and no index
// above 0 picks one, the strictest counts: the longest wait, the latest reset,
// the largest use, the least that remains; of a limit and a window the first.
// Without a pattern a list gives its first value, and a path its first node.
//
// How it is written (As) is, for a time, the notations of provider.Source, or
// nothing for the guess above; for an amount nothing (a number), used_of_limit,
// percent (used, of 100) or, of a limit, rate (so many a second: 0.5 is 1 in
// 2 s). A reset that is a rate says how much comes back a second: the budget is
// whole again after (limit − remaining)/rate. A budget without a window takes it
// from its header's name (-Minute, -Daily, -1M).
//
// What the language cannot say: a header whose name varies, a limit that stands
// nowhere in the answer, a wait computed from a call's own cost ((need −
// available)/rate), a sum of several values, that an absent field means
// unlimited, a budget that is at zero because another field is there. These need
// Config.Classify or code around the call.
//
// Not in it: sending, waiting, retrying, and reading bodies from the network.
package dialect

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate/provider"
)

// Read classifies an answer: by the declared signals, the first that matches,
// then by the standard rules. It never panics and never blocks, and its time is
// bounded by the size of the answer, of which it looks at [MaxSignalBody] for
// signals and at [MaxUsedBody] for amounts. body is what the caller would read
// from r.Body: it is decoded here, may be nil or cut short (JSON that is cut is
// none), and is not changed. r's own body is not touched. now is when the answer
// came: it is used only where the answer has no Date of its own. Read is safe
// for concurrent use.
//
// RetryAfter is set only on a refusal or a failure, and only where the answer
// gives usable advice: a declared source, else Retry-After, else, on a refusal
// (rate_limited, quota_spent, banned), the latest reset of the budgets at zero,
// or of those that do not tell what remains. A 403 with such advice is
// rate_limited. Budgets holds every quota that was told. Neither is read from an
// answer out of a cache (Age above 0). A signal's ok on an error status means
// that there is no data. Detail is short and holds nothing that the provider
// wrote; names of budgets, and Limit where a problem type names a policy, are
// its words. A nil r is an unknown.
func Read(d provider.Dialect, r *http.Response, body []byte, now time.Time) provider.Feedback {
	if r == nil {
		return provider.Feedback{Outcome: provider.Unknown, Detail: "no answer"}
	}
	a := newAnswer(r, body, now)
	f := provider.Feedback{Outcome: provider.OfStatus(a.status)}
	if f.Outcome != provider.OK {
		f.Detail = "status " + strconv.Itoa(a.status)
	}
	i := a.signal(d.Signals)
	if i >= 0 {
		a.declared(&f, i, d.Signals[i])
	}
	if a.cached() {
		return f
	}
	f.Budgets = a.budgets(&d)
	f.Used = a.used(d.Used)
	if i < 0 && !d.Only {
		a.problem(&f)
	}
	if i < 0 && a.status == http.StatusForbidden {
		// A missing right is not cured by waiting: who says when to come back, or
		// that nothing is left, is limiting a rate (GitHub's limits, for one).
		if advice := a.advice(&d); advice > 0 || spent(f.Budgets) {
			f.Outcome = provider.RateLimited
		}
	}
	if waits(f.Outcome) {
		f.RetryAfter = a.advice(&d)
		if f.RetryAfter == 0 && refusal(f.Outcome) {
			f.RetryAfter = binding(f.Budgets, f.Limit)
		}
	}
	return f
}

// declared takes over what a signal says.
func (a *answer) declared(f *provider.Feedback, i int, s provider.Signal) {
	f.Outcome, f.Scope, f.Limit, f.Before, f.Empty = s.Outcome, s.Scope, s.Limit, s.Before, s.Empty
	switch {
	case s.Outcome != provider.OK:
		f.Detail = fmt.Sprintf("status %d: dialect.signals[%d]", a.status, i)
	case a.status >= 400:
		f.Detail = fmt.Sprintf("status %d: no data", a.status)
	default:
		f.Detail = ""
	}
}

// waits tells the outcomes that can be cured by waiting: only these carry
// advice, so that nobody sleeps on the Retry-After of a 404 or a redirect.
func waits(o provider.Outcome) bool {
	return refusal(o) || o == provider.Overloaded || o == provider.Failed
}

// refusal tells the outcomes that say that a limit was met: only these are
// cured by a budget's reset.
func refusal(o provider.Outcome) bool {
	switch o {
	case provider.RateLimited, provider.QuotaSpent, provider.Banned:
		return true
	}
	return false
}
