package provider

import (
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/theory/jsonpath"
)

// Which notations can give what. A reset may also be a rate: what comes back.
var (
	spans     = []string{"seconds", "milliseconds", "duration"}
	instants  = []string{"epoch", "epoch_ms", "http_date", "rfc3339", "date", "retry_after"}
	fractions = []string{"used_of_limit", "percent"}
	notations = []string{"seconds", "milliseconds", "epoch", "epoch_ms", "http_date", "rfc3339", "duration", "date",
		"used_of_limit", "retry_after", "percent", "rate"}
)

// check takes the names of all limits, which a signal may say are spent.
func (d Dialect) check(f *faults, limits []string) {
	for i, b := range d.Budgets {
		b.check(f, item("dialect.budgets", i))
	}
	for i, s := range d.RetryAfter {
		s.check(f, item("dialect.retry_after", i), "a wait", slices.Concat(spans, instants))
	}
	for _, unit := range slices.Sorted(maps.Keys(d.Used)) {
		d.Used[unit].check(f, at("dialect.used", unit), "an amount", nil)
	}
	for i, s := range d.Signals {
		path := item("dialect.signals", i)
		s.check(f, path, limits)
		if by := s.hidden(d.Signals[:i]); by >= 0 {
			f.add(path, "can never match: %s matches first whenever it would; put it before", item("signals", by))
		}
	}
}

func (b BudgetSource) check(f *faults, path string) {
	given := false
	for _, part := range []struct {
		key    string
		source Source
		what   string
		as     []string
	}{
		{"limit", b.Limit, "a limit", append(slices.Clone(fractions), "rate")},
		{"remaining", b.Remaining, "an amount", fractions},
		{"reset", b.Reset, "a reset", slices.Concat(spans, instants, []string{"rate"})},
		{"used", b.Used, "an amount", fractions},
		{"window", b.Window, "a length", spans},
	} {
		if part.source != (Source{}) {
			given = true
			part.source.check(f, at(path, part.key), part.what, part.as)
		}
	}
	if b.Reset.As == "rate" && b.Limit == (Source{}) && b.Used.As == "" {
		f.add(at(path, "reset"), "is a rate, which says when the budget is whole again only beside a limit")
	}
	if !given {
		f.add(path, "says nothing: give at least one of limit, remaining, reset, used, window")
	}
}

// check takes what the source gives, and the notations that can say it.
func (s Source) check(f *faults, path, what string, known []string) {
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
	if s.As != "" && slices.Contains(notations, s.As) && !slices.Contains(known, s.As) {
		right := "leave it out"
		if len(known) > 0 {
			right = "it must be " + oneOf(known) + ", or left out"
		}
		f.add(at(path, "as"), "%s is not how %s is written: %s", s.As, what, right)
	}
}

// maxPath bounds a path, whose parser calls itself for each bracket.
const maxPath = 1000

// checkJSONPath also refuses the paths whose time grows with the square of a
// body: what a provider sends is read within bounds.
func checkJSONPath(f *faults, path, json string) {
	switch {
	case json == "":
		return
	case !strings.HasPrefix(json, "$"):
		f.add(path, `%s is no JSON path: it begins with $, such as "$.error.code"`, quoteShort(json))
		return
	case len(json) > maxPath:
		f.add(path, "is too long: a path has at most %d characters", maxPath)
		return
	}
	parsed, err := jsonpath.Parse(json)
	if err != nil {
		f.add(path, "%s is no JSON path: %s", quoteShort(json), strings.TrimPrefix(err.Error(), jsonpath.ErrPathParse.Error()+": "))
		return
	}
	plain := outsideQuotes(parsed.String())
	if strings.Count(plain, "..") > 1 {
		f.add(path, "has more than one descent (..): name the members between")
	}
	if strings.Count(plain, "$") > 1 {
		f.add(path, "has a $ inside a filter: ask below @ only")
	}
}

// outsideQuotes returns a path in its canonical form without the names and
// strings in it.
func outsideQuotes(path string) string {
	var b strings.Builder
	var quote byte
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'':
			quote = c
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
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
	if tree, err := syntax.Parse(pattern, syntax.Perl); err == nil && (tree.Op == syntax.OpNoMatch || tree.Op == syntax.OpCharClass && len(tree.Rune) == 0) {
		f.add(path, "can never match: no character is like it")
	}
	return re
}
