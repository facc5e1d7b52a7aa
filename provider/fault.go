package provider

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// FieldError is one fault of a declaration. [Parse], the Validate methods and
// the decoding of JSON and YAML return one or several, joined by errors.Join;
// errors.As finds the first. Its text holds no secret: no base_url, no value of
// a parameter.
type FieldError struct {
	Field        string // as in the text: "throttle.limits[2].per"; empty: the whole
	Problem      string // what is wrong and what would be right
	Line, Column int    // from 1; 0 where the value was not read from a text
}

// Error returns "line 3, column 5: throttle.limits[2].per: what is wrong", as
// far as known.
func (e *FieldError) Error() string {
	text := e.Problem
	if e.Field != "" {
		text = e.Field + ": " + text
	}
	if e.Line > 0 {
		text = fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, text)
	}
	return text
}

// faults collects what is wrong, in the order of the declaration.
type faults []*FieldError

func (f *faults) add(field, format string, args ...any) {
	*f = append(*f, &FieldError{Field: field, Problem: fmt.Sprintf(format, args...)})
}

func (f faults) join() error {
	errs := make([]error, len(f))
	for i, e := range f {
		errs[i] = e
	}
	return errors.Join(errs...)
}

// at is the path of a key below path.
func at(path, key string) string {
	switch {
	case key == "" || strings.ContainsAny(key, `.[]"`):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// item is the path of an element of the list at path.
func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// quoteShort quotes what somebody wrote, cut where it is long.
func quoteShort(s string) string {
	const longest = 40
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest]) + "…"
	}
	return strconv.Quote(s)
}

// oneOf lists words for a message.
func oneOf[T ~string](words []T) string {
	text := make([]string, len(words))
	for i, w := range words {
		text[i] = string(w)
	}
	return "one of " + strings.Join(text, ", ")
}
