package provider

import (
	"slices"
	"strings"
)

func (s Signal) check(f *faults, path string, limits []string) {
	if len(s.Status) == 0 && s.Header == nil && s.JSON == nil && s.Body == "" {
		f.add(path, "has no condition: give at least one of status, header, json, body")
	}
	for i, code := range s.Status {
		if code < 100 || code > 599 {
			f.add(item(at(path, "status"), i), "%d is no status: it must be from 100 to 599", code)
		}
	}
	if s.Header != nil {
		s.Header.checkHeader(f, at(path, "header"))
	}
	if s.JSON != nil {
		s.JSON.checkJSON(f, at(path, "json"))
	}
	checkPattern(f, at(path, "body"), s.Body)
	if (s.JSON != nil || s.Body != "") && len(s.Status) > 0 && !slices.ContainsFunc(s.Status, mayHaveBody) {
		f.add(path, "can never match: no answer with such a status has a body")
	}
	switch {
	case s.Outcome == "":
		f.add(at(path, "outcome"), "is missing: it must be %s", oneOf(outcomes))
	default:
		checkWord(f, at(path, "outcome"), s.Outcome, outcomes...)
	}
	if s.Empty && s.Outcome != OK {
		f.add(at(path, "empty"), "says that there is no data, which is outcome: ok")
	}
	checkWord(f, at(path, "scope"), s.Scope, ScopeProvider, ScopeEndpoint, ScopeKey)
	switch {
	case s.Limit == "" || slices.Contains(limits, s.Limit):
	case len(limits) == 0:
		f.add(at(path, "limit"), "%s is not declared: the throttle has no limit", quoteShort(s.Limit))
	default:
		f.add(at(path, "limit"), "%s is not declared: it must be %s", quoteShort(s.Limit), oneOf(limits))
	}
}

func mayHaveBody(status int) bool {
	return status >= 200 && status != 204 && status != 205 && status != 304
}

// hidden returns the index of an earlier signal without which s could match, or
// -1: the first that matches wins.
func (s Signal) hidden(earlier []Signal) int {
	if len(s.Status) == 0 {
		return slices.IndexFunc(earlier, func(e Signal) bool { return len(e.Status) == 0 && e.wider(s) })
	}
	by := -1
	for _, status := range s.Status {
		by = slices.IndexFunc(earlier, func(e Signal) bool {
			return (len(e.Status) == 0 || slices.Contains(e.Status, status)) && e.wider(s)
		})
		if by < 0 {
			return -1
		}
	}
	return by
}

// wider says whether each condition of s, the status apart, is one of other too.
// A signal without any is a fault of its own and hides nothing.
func (s Signal) wider(other Signal) bool {
	same := func(a, b *Match) bool { return a == nil || b != nil && *a == *b }
	if len(s.Status) == 0 && s.Header == nil && s.JSON == nil && s.Body == "" {
		return false
	}
	return same(s.Header, other.Header) && same(s.JSON, other.JSON) && (s.Body == "" || s.Body == other.Body)
}

func (m Match) checkHeader(f *faults, path string) {
	if !headerName.MatchString(m.Name) {
		f.add(at(path, "name"), `must be the name of a header, such as "X-Error"`)
	}
	if m.Path != "" {
		f.add(at(path, "path"), "has no meaning at a header: leave it out")
	}
	if m.Equals != strings.TrimSpace(m.Equals) || strings.ContainsFunc(m.Equals, isControl) {
		f.add(at(path, "equals"), "can never match: a header's value has no space around it and no control character")
	}
	m.checkValue(f, path)
}

func (m Match) checkJSON(f *faults, path string) {
	if m.Path == "" {
		f.add(at(path, "path"), `is missing: a JSON path such as "$.error.code"`)
	}
	checkJSONPath(f, at(path, "path"), m.Path)
	if m.Name != "" {
		f.add(at(path, "name"), "has no meaning at a JSON value: leave it out")
	}
	m.checkValue(f, path)
}

func (m Match) checkValue(f *faults, path string) {
	if (m.Equals == "") == (m.Matches == "") {
		f.add(path, "must have exactly one of equals and matches")
	}
	checkPattern(f, at(path, "matches"), m.Matches)
}
