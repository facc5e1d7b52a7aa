package adapters

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// placeholder is a {name} in a path or parameter. Other braces are text.
var placeholder = regexp.MustCompile(`\{([A-Za-z0-9_.-]+)\}`)

// filler gives the value of a placeholder.
type filler func(name string) (string, bool)

// fill puts values in the place of template's placeholders. What was filled in
// is not looked at again, so a value that looks like a placeholder stays as it
// is. Error texts name the placeholder, never its value: it may be a key.
func fill(template string, value filler, escape func(string) string) (string, error) {
	var err error
	filled := placeholder.ReplaceAllStringFunc(template, func(p string) string {
		v, ok := value(p[1 : len(p)-1])
		switch {
		case !ok && err == nil:
			err = fmt.Errorf("nothing fills %s: give it in the query's params", p)
		case v == "" && err == nil:
			err = fmt.Errorf("%s is empty: want a value", p)
		}
		return escape(v)
	})
	return filled, err
}

// fillPath fills a path. A value never leaves its segment: its slashes, question
// and hash marks are escaped, and one that would make the whole segment "." or
// ".." is refused, because servers resolve those escaped or not.
func fillPath(template string, value filler) (string, error) {
	segments := strings.Split(template, "/")
	for i, s := range segments {
		filled, err := fill(s, value, url.PathEscape)
		if err != nil {
			return "", err
		}
		if filled != s && (filled == "." || filled == "..") {
			return "", fmt.Errorf("%s would step out of its place in the path: want something other than dots", s)
		}
		segments[i] = filled
	}
	return strings.Join(segments, "/"), nil
}

// names says whether template has a placeholder of that name.
func names(template, name string) bool { return strings.Contains(template, "{"+name+"}") }

// asIs is the escape of values that are escaped later.
func asIs(s string) string { return s }
