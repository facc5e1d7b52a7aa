package dialect

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/provider"
)

// signal returns the index of the first signal that the answer matches, or -1.
func (a *answer) signal(signals []provider.Signal) int {
	for i := range signals {
		s := &signals[i]
		if a.opens(s) && a.bodyMatches(s) {
			return i
		}
	}
	return -1
}

// opens says whether the conditions on status and header hold. A signal without
// any condition never does.
func (a *answer) opens(s *provider.Signal) bool {
	if len(s.Status) == 0 && s.Header == nil && !asksBody(s) {
		return false
	}
	if len(s.Status) > 0 && !slices.Contains(s.Status, a.status) {
		return false
	}
	return s.Header == nil || slices.ContainsFunc(a.lines(s.Header.Name), func(line string) bool {
		return matches(s.Header, strings.TrimSpace(line))
	})
}

func asksBody(s *provider.Signal) bool { return s.JSON != nil || s.Body != "" }

// bodyMatches says whether the conditions on the body hold.
func (a *answer) bodyMatches(s *provider.Signal) bool {
	if s.Body != "" {
		text, re := a.bodyText(MaxSignalBody), pattern(s.Body)
		if re == nil || len(text) == 0 && a.raw == nil || !re.Match(text) {
			return false
		}
	}
	if s.JSON == nil {
		return true
	}
	return slices.ContainsFunc(a.nodes(s.JSON.Path, MaxSignalBody), func(text string) bool {
		return matches(s.JSON, text)
	})
}

func matches(m *provider.Match, value string) bool {
	if m.Matches == "" {
		return m.Equals != "" && value == m.Equals
	}
	re := pattern(m.Matches)
	return re != nil && re.MatchString(value)
}
