package dialect

import (
	"mime"
	"strings"
	"time"

	"github.com/headgate/headgate/provider"
)

// problem reads the problem types of the IETF's RateLimit draft, which tell more
// than the status. Its "quota" is any policy, one of a second too: a quota is
// spent only where no told window says that the wait is short.
func (a *answer) problem(f *provider.Feedback) {
	if a.status < 400 || !isProblem(a.lines("Content-Type")) {
		return
	}
	kinds := a.nodes("$.type", MaxSignalBody)
	if len(kinds) == 0 {
		return
	}
	_, kind, ok := strings.Cut(kinds[0], "/http-problem-types#")
	if !ok {
		return
	}
	switch kind {
	case "quota-exceeded":
		limit, window := violated(f.Budgets, a.nodes("$['violated-policies'][*]", MaxSignalBody))
		f.Outcome, f.Limit = provider.QuotaSpent, limit
		if window > 0 && window < time.Hour {
			f.Outcome = provider.RateLimited
		}
	case "temporary-reduced-capacity":
		f.Outcome = provider.Overloaded
	case "abnormal-usage-detected":
		f.Outcome = provider.RateLimited
	default:
		return
	}
	f.Detail += ": " + kind
}

// violated returns the policy of the longest window among the names, else the
// first name.
func violated(budgets []provider.Budget, names []string) (limit string, window time.Duration) {
	for _, name := range names {
		if name == "" || len(name) > maxName {
			continue
		}
		if limit == "" {
			limit = name
		}
		for _, b := range budgets {
			if b.Name == name && b.Window > window {
				limit, window = name, b.Window
			}
		}
	}
	return limit, window
}

func isProblem(contentTypes []string) bool {
	if len(contentTypes) == 0 {
		return false
	}
	kind, _, err := mime.ParseMediaType(contentTypes[0])
	return err == nil && kind == "application/problem+json"
}
