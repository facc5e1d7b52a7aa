package provider

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

var notations = []string{"seconds", "milliseconds", "epoch", "epoch_ms", "http_date", "rfc3339", "duration", "date", "used_of_limit", "retry_after"}

// check takes the names of all limits, which a signal may say are spent.
func (d Dialect) check(f *faults, limits []string) {
	for i, b := range d.Budgets {
		b.check(f, item("dialect.budgets", i))
	}
	for i, s := range d.RetryAfter {
		s.check(f, item("dialect.retry_after", i))
	}
	for _, unit := range slices.Sorted(maps.Keys(d.Used)) {
		d.Used[unit].check(f, at("dialect.used", unit))
	}
	for i, s := range d.Signals {
		s.check(f, item("dialect.signals", i), limits)
	}
}

func (b BudgetSource) check(f *faults, path string) {
	given := false
	for _, part := range []struct {
		key    string
		source Source
	}{{"limit", b.Limit}, {"remaining", b.Remaining}, {"reset", b.Reset}, {"used", b.Used}, {"window", b.Window}} {
		if part.source != (Source{}) {
			given = true
			part.source.check(f, at(path, part.key))
		}
	}
	if !given {
		f.add(path, "says nothing: give at least one of limit, remaining, reset, used, window")
	}
}

func (s Source) check(f *faults, path string) {
	given := 0
	for _, yes := range []bool{s.Header != "", s.JSON != "", s.Body} {
		if yes {
			given++
		}
	}
	if given != 1 {
		f.add(path, "has %d places: it must be exactly one of header, json, body", given)
	}
	if s.Header != "" && !headerName.MatchString(s.Header) {
		f.add(at(path, "header"), `%s is no name of a header: write it as "X-RateLimit-Reset"`, quoteShort(s.Header))
	}
	checkJSONPath(f, at(path, "json"), s.JSON)
	if re := checkPattern(f, at(path, "pattern"), s.Pattern); re != nil && re.NumSubexp() != 1 {
		f.add(at(path, "pattern"), "has %d captures: it must have one, which is the value", re.NumSubexp())
	}
	if s.Index < 0 {
		f.add(at(path, "index"), "%d is negative: the first value is 0", s.Index)
	}
	checkWord(f, at(path, "as"), s.As, notations...)
}

// checkJSONPath looks only at the beginning: reading the whole path is for
// package dialect, which has the library for it.
func checkJSONPath(f *faults, path, json string) {
	if json != "" && !strings.HasPrefix(json, "$") {
		f.add(path, `%s is no JSON path: it begins with $, such as "$.error.code"`, quoteShort(json))
	}
}

// checkPattern returns the pattern where there is one that compiles.
func checkPattern(f *faults, path, pattern string) *regexp.Regexp {
	if pattern == "" {
		return nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		f.add(path, "is no RE2 pattern: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		return nil
	}
	return re
}

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
	switch {
	case s.Outcome == "":
		f.add(at(path, "outcome"), "is missing: it must be %s", oneOf(outcomes))
	default:
		checkWord(f, at(path, "outcome"), s.Outcome, outcomes...)
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

func (m Match) checkHeader(f *faults, path string) {
	if !headerName.MatchString(m.Name) {
		f.add(at(path, "name"), `must be the name of a header, such as "X-Error"`)
	}
	if m.Path != "" {
		f.add(at(path, "path"), "has no meaning at a header: leave it out")
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
