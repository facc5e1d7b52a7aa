package referee

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/headgate/headgate/provider"
)

// standard is the refusal that needs no signal: a 429.
const standard = -1

// long is the window from which on a spent limit is a quota.
const long = time.Hour

// fitting returns the signals by which a provider may tell that l is broken: those
// that fit best, in the order of the declaration.
func (v *voice) fitting(l provider.Limit) []int {
	best, fit := 0, []int{standard}
	for i, s := range v.dialect.Signals {
		switch n := fitness(s, l); {
		case n > best:
			best, fit = n, []int{i}
		case n == best && n > 0:
			fit = append(fit, i)
		}
	}
	return fit
}

// fitness tells how well s says that l is broken; 0: it does not.
func fitness(s provider.Signal, l provider.Limit) int {
	var n int
	w, _ := l.Per.Duration()
	switch {
	case s.Limit == l.Name && refuses(s.Outcome):
		n = 50
	case w >= long && s.Outcome == provider.QuotaSpent && s.Limit == "":
		n = 40
	case w >= long && s.Outcome == provider.QuotaSpent: // one word for several quotas
		n = 30
	case s.Outcome == provider.RateLimited && s.Limit == "":
		n = 20
	default:
		return 0
	}
	scope := s.Scope
	if scope == "" {
		scope = provider.ScopeProvider
	}
	if scope == l.Scope {
		n++
	}
	return n
}

func refuses(o provider.Outcome) bool {
	switch o {
	case provider.RateLimited, provider.QuotaSpent, provider.Banned, provider.Overloaded:
		return true
	}
	return false
}

// refuse is what c gets for the limit that it broke.
func (v *voice) refuse(c *call) (Answer, error) {
	fit := v.fits[c.broke]
	return v.refusal(fit[c.N%len(fit)], c.wait, c.At, c.told)
}

// refusal makes the answer of one signal: the first way of saying it that is heard
// as that signal.
func (v *voice) refusal(signal int, wait time.Duration, now time.Time, lines []line) (Answer, error) {
	statuses := []int{http.StatusTooManyRequests}
	if signal != standard {
		statuses = v.dialect.Signals[signal].Status
		if len(statuses) == 0 {
			statuses = []int{http.StatusOK}
		}
	}
	var faults []error
	for _, status := range statuses {
		for variant := range 2 * len(refusedBodies) {
			a, err := v.refusalAs(signal, status, variant, wait, now, lines)
			if err == nil {
				return a, nil
			}
			faults = append(faults, err)
		}
	}
	if signal == standard {
		return Answer{}, fmt.Errorf("dialect: a refusal with status 429: %w", faults[0])
	}
	return Answer{}, fmt.Errorf("dialect.signals[%d]: %w", signal, faults[0])
}

// refusalAs tries one way. The wait is told in the first declared place that such
// an answer has, else in Retry-After; the budgets as far as there is room for them.
func (v *voice) refusalAs(signal, status, variant int, wait time.Duration, now time.Time, lines []line) (Answer, error) {
	filler := refusedBodies[variant%len(refusedBodies)]
	d := v.draft(status)
	if signal != standard {
		if err := d.meet(v.dialect.Signals[signal], variant); err != nil {
			return Answer{}, err
		}
	}
	a, err := v.heardAs(signal, d, filler)
	if err != nil {
		return Answer{}, err
	}
	add := func(l line) bool {
		next := d.clone()
		if next.say(l) != nil {
			return false
		}
		b, err := v.heardAs(signal, next, filler)
		if err == nil {
			a, d = b, next
		}
		return err == nil
	}
	for _, s := range v.advices() {
		if wait > 0 && add(line{s, waits(wait, now, s.As)}) {
			break
		}
	}
	for _, l := range lines {
		add(l)
	}
	return a, nil
}

// advices are the places in which a wait may be told.
func (v *voice) advices() []provider.Source {
	if v.dialect.Only {
		return v.dialect.RetryAfter
	}
	return append(slices.Clone(v.dialect.RetryAfter), provider.Source{Header: "Retry-After", As: "retry_after"})
}

// heardAs finishes a draft and hears it: it must be the signal that was meant. A
// 429 that is none may be what the provider calls any of its refusals.
func (v *voice) heardAs(signal int, d *draft, filler string) (Answer, error) {
	a, err := d.finish(filler)
	if err != nil {
		return Answer{}, err
	}
	heard := v.signal(a)
	a.Outcome = provider.RateLimited
	if heard != standard {
		a.Outcome = v.dialect.Signals[heard].Outcome
	}
	if heard != signal && (signal != standard || !refuses(a.Outcome)) {
		return Answer{}, fmt.Errorf("an answer with status %d would be heard as signals[%d]", a.Status, heard)
	}
	return a, nil
}
