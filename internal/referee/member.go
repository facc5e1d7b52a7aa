package referee

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// member is a JSON path of plain steps: a name, an index (int), all elements
// (wild), one of several names, or a descent (deep). Filters and slices are no
// plain steps.
type member []any

type (
	wild  struct{}
	names []string
	deep  struct{ name string }
)

var stepForm = regexp.MustCompile(`^(?:(\.\.?)([^.\[\]*'" ]+)|\['([^'\\]+)'\]|\["([^"\\]+)"\]|\[(-?[0-9]+)\]|(\[\*\])|\[('[^'\\]+'(?:, *'[^'\\]+')+)\])`)

// plainPath reads a path whose value the voice can write and find.
func plainPath(path string) (member, error) {
	m := member{}
	rest, ok := strings.CutPrefix(path, "$")
	for ok && rest != "" {
		s := stepForm.FindStringSubmatch(rest)
		switch {
		case s == nil:
			ok = false
			continue
		case s[1] == "..":
			m = append(m, deep{s[2]})
		case s[5] != "":
			i, err := strconv.Atoi(s[5])
			if err != nil || i < -1 || i > 100 {
				return nil, fmt.Errorf("%s: an index would have to be -1, the last, or 0 to 100", path)
			}
			m = append(m, i)
		case s[6] != "":
			m = append(m, wild{})
		case s[7] != "":
			m = append(m, names(strings.FieldsFunc(s[7], func(r rune) bool { return strings.ContainsRune("', ", r) })))
		default:
			m = append(m, s[2]+s[3]+s[4])
		}
		rest = rest[len(s[0]):]
	}
	if !ok {
		return nil, fmt.Errorf("%s: would have to be plain members, such as $.error.code or $.list[0]", path)
	}
	return m, nil
}

// put returns a copy of doc with v at the path; what is not there is made. A
// wildcard is the first element, of several names the first, a descent a member.
func (m member) put(doc, v any) (any, error) {
	if len(m) == 0 {
		if doc != nil && !same(doc, v) {
			return nil, errors.New("has another value already")
		}
		return v, nil
	}
	name, index := "", 0
	switch s := m[0].(type) {
	case string:
		name = s
	case names:
		name = s[0]
	case deep:
		name = s.name
	case int:
		index = s
	}
	if name == "" {
		list, ok := doc.([]any)
		if !ok && doc != nil {
			return nil, errors.New("needs a list where there is none")
		}
		list = slices.Clone(list)
		if index < 0 {
			index = max(len(list)-1, 0)
		}
		for len(list) <= index {
			list = append(list, nil)
		}
		below, err := m[1:].put(list[index], v)
		list[index] = below
		return list, err
	}
	object, ok := doc.(map[string]any)
	if !ok && doc != nil {
		return nil, errors.New("needs an object where there is none")
	}
	below, err := m[1:].put(object[name], v)
	object = maps.Clone(object)
	if object == nil {
		object = map[string]any{}
	}
	object[name] = below
	return object, err
}

func same(a, b any) bool {
	x, xOK := scalar(a)
	y, yOK := scalar(b)
	return xOK && yOK && x == y
}

// get returns the values at the path, members in the order of their names.
func (m member) get(doc any) []any {
	if len(m) == 0 {
		return []any{doc}
	}
	var all []any
	object, _ := doc.(map[string]any)
	list, _ := doc.([]any)
	below := func(v any) { all = append(all, m[1:].get(v)...) }
	switch s := m[0].(type) {
	case string:
		if v, ok := object[s]; ok {
			below(v)
		}
	case int:
		if s < 0 {
			s += len(list)
		}
		if 0 <= s && s < len(list) {
			below(list[s])
		}
	case names:
		for _, name := range s {
			all = append(all, append(member{name}, m[1:]...).get(doc)...)
		}
	case wild:
		for _, v := range children(object, list) {
			below(v)
		}
	case deep:
		if v, ok := object[s.name]; ok {
			below(v)
		}
		for _, v := range children(object, list) {
			all = append(all, m.get(v)...)
		}
	}
	return all
}

func children(object map[string]any, list []any) []any {
	all := slices.Clone(list)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		all = append(all, object[name])
	}
	return all
}

// scalar is the text of a value as a condition compares it: of a list or an
// object only where it is empty.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []any:
		return "[]", len(v) == 0
	case map[string]any:
		return "{}", len(v) == 0
	case nil:
		return "null", true
	}
	return fmt.Sprint(v), true // a number as it is written, true, false
}

// valueOf is the value that text is written as: itself where it is JSON and no
// string, else a string.
func valueOf(text string) any {
	v, err := parse([]byte(text))
	if _, isText := v.(string); err != nil || isText {
		return text
	}
	return v
}

// parse reads one JSON value; numbers stay as they are written.
func parse(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}
