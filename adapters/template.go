package adapters

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// placeholder is {name}, or {name|filter|filter}. Other braces are text.
var placeholder = regexp.MustCompile(`\{([A-Za-z0-9_.-]+)((?:\|[^{}|]*)*)\}`)

// The names that are no params of the query.
const (
	valueName   = "value"
	pageName    = "page"
	contactName = "contact"
)

// reserved tells them.
func reserved(name string) bool {
	return name == valueName || name == pageName || name == contactName
}

// filler gives the value of a placeholder.
type filler func(name string) (string, bool)

// fill puts values in the place of template's placeholders. What was filled in
// is not looked at again, so a value that looks like a placeholder stays as it
// is. Error texts name the placeholder, never its value: it may be a key.
func fill(template string, value filler, escape func(string) string) (string, error) {
	var err error
	filled := placeholder.ReplaceAllStringFunc(template, func(p string) string {
		v, wrong := fillOne(p, value)
		if err == nil {
			err = wrong
		}
		return escape(v)
	})
	return filled, err
}

// fillOne returns what stands in the place of one placeholder.
func fillOne(p string, value filler) (string, error) {
	name, through := split(p)
	v, ok := value(name)
	switch {
	case !ok:
		return "", fmt.Errorf("nothing fills {%s}: give it in the query's params", name)
	case v == "":
		return "", fmt.Errorf("{%s} is empty: want a value", name)
	}
	for _, f := range through {
		var err error
		if v, err = filters[f](v); err != nil {
			return "", fmt.Errorf("%s: %w", p, err)
		}
	}
	return v, nil
}

// split returns the parts of a placeholder.
func split(p string) (name string, through []string) {
	parts := strings.Split(p[1:len(p)-1], "|")
	return parts[0], parts[1:]
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
func names(template, name string) bool {
	for _, p := range placeholder.FindAllString(template, -1) {
		if n, _ := split(p); n == name {
			return true
		}
	}
	return false
}

// asIs is the escape of values that are escaped later.
func asIs(s string) string { return s }
