package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// field is one key of a struct.
type field struct {
	key       string
	index     int
	omitEmpty bool
}

func fieldsOf(t reflect.Type) []field {
	fields := make([]field, t.NumField())
	for i := range fields {
		key, rest, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		fields[i] = field{key, i, rest == "omitempty"}
	}
	return fields
}

// A tree is what both JSON and YAML are written from: an object, a []any of
// trees, a string, or a literal.
type (
	object []member
	member struct {
		key   string
		value any
	}
	literal string // a number or a bool
)

// tree turns a value into a tree. Its errors name what neither language can
// write.
func tree(path string, v reflect.Value) (any, error) {
	if v.Type() == durationType {
		return durationText(time.Duration(v.Int())), nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		return tree(path, v.Elem())
	case reflect.Struct:
		return structTree(path, v)
	case reflect.Slice:
		list := []any{}
		for i := range v.Len() {
			element, err := tree(item(path, i), v.Index(i))
			if err != nil {
				return nil, err
			}
			list = append(list, element)
		}
		return list, nil
	case reflect.Map:
		return mapTree(path, v)
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return nil, &FieldError{Field: path, Problem: "is not in UTF-8"}
		}
		return v.String(), nil
	case reflect.Float64:
		text := strconv.FormatFloat(v.Float(), 'g', -1, 64)
		if !decimalNumber.MatchString(text) {
			return nil, &FieldError{Field: path, Problem: "must be a number"}
		}
		return literal(text), nil
	}
	return literal(fmt.Sprint(v.Interface())), nil
}

func structTree(path string, v reflect.Value) (any, error) {
	o := object{}
	for _, f := range fieldsOf(v.Type()) {
		if f.omitEmpty && empty(v.Field(f.index)) {
			continue
		}
		value, err := tree(at(path, f.key), v.Field(f.index))
		if err != nil {
			return nil, err
		}
		o = append(o, member{f.key, value})
	}
	return o, nil
}

func empty(v reflect.Value) bool {
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		return v.Len() == 0
	}
	return v.IsZero()
}

func mapTree(path string, v reflect.Value) (any, error) {
	o := object{}
	for _, key := range v.MapKeys() {
		value, err := tree(at(path, key.String()), v.MapIndex(key))
		if err != nil {
			return nil, err
		}
		o = append(o, member{key.String(), value})
	}
	slices.SortFunc(o, func(a, b member) int { return strings.Compare(a.key, b.key) })
	return o, nil
}

func writeJSON(b *bytes.Buffer, node any) {
	switch n := node.(type) {
	case object:
		b.WriteByte('{')
		for i, m := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(quote(m.key))
			b.WriteByte(':')
			writeJSON(b, m.value)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, element := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, element)
		}
		b.WriteByte(']')
	case string:
		b.WriteString(quote(n))
	case literal:
		b.WriteString(string(n))
	}
}

// yamlLines writes a tree in block style; inline tells that it is one line that
// may stand behind its key. Empty lists are left out by the fields.
func yamlLines(node any) (lines []string, inline bool) {
	switch n := node.(type) {
	case object:
		if len(n) == 0 {
			return []string{"{}"}, true
		}
		for _, m := range n {
			value, inline := yamlLines(m.value)
			if inline {
				lines = append(lines, yamlText(m.key)+": "+value[0])
				continue
			}
			lines = append(lines, yamlText(m.key)+":")
			for _, line := range value {
				lines = append(lines, "  "+line)
			}
		}
	case []any:
		for _, element := range n {
			value, _ := yamlLines(element)
			lead := "- "
			for _, line := range value {
				lines = append(lines, lead+line)
				lead = "  "
			}
		}
	case string:
		return []string{yamlText(n)}, true
	case literal:
		return []string{string(n)}, true
	}
	return lines, false
}

var (
	plainText = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9]*([-_+][A-Za-z0-9]+)*|[0-9]+(ns|ms|s|m|h))$`)
	notText   = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"}
)

// yamlText quotes wherever a reader could take the text for something else.
func yamlText(s string) string {
	if plainText.MatchString(s) && !slices.Contains(notText, strings.ToLower(s)) {
		return s
	}
	return quote(s)
}

// quote writes a string as both JSON and double-quoted YAML read it.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string cannot fail
	var out strings.Builder
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		if r < 0x10000 && !unicode.IsPrint(r) { // YAML folds or refuses some of them
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}
