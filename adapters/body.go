package adapters

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// fillJSON fills the strings of a JSON text. Values are put into the tree and not
// into the text, so that whatever they hold stays inside its string. Numbers stay
// as they are written; the order of members does not.
func (l *lookup) fillJSON(template string) ([]byte, error) {
	tree, err := parseJSON(template)
	if err != nil {
		return nil, err
	}
	filled, keep, err := l.fillTree(tree)
	switch {
	case err != nil:
		return nil, err
	case !keep:
		return nil, errors.New("the whole body is the page, of which there is none yet")
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err = enc.Encode(filled)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func parseJSON(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var tree any
	err := d.Decode(&tree)
	return tree, err
}

// fillTree fills the strings below v. keep is false where v goes because of a page
// that is not there yet: a list goes with its item, to the nearest member of an
// object, which is left out.
func (l *lookup) fillTree(v any) (filled any, keep bool, err error) {
	switch v := v.(type) {
	case string:
		if l.leftOut(v) {
			return nil, false, nil
		}
		filled, err := l.fillString(v)
		return filled, true, err
	case []any:
		for i := range v {
			if v[i], keep, err = l.fillTree(v[i]); err != nil || !keep {
				return nil, false, err
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			switch member, keep, err := l.fillTree(v[name]); {
			case err != nil:
				return nil, false, fmt.Errorf("%s: %w", name, err)
			case keep:
				v[name] = member
			default:
				delete(v, name)
			}
		}
	}
	return v, true, nil
}

// fillString fills one string, which becomes a number where it says so.
func (l *lookup) fillString(template string) (any, error) {
	filled, err := fill(template, l.value, asIs)
	switch {
	case err != nil:
		return nil, err
	case isNumber(template):
		return json.Number(filled), nil
	case !utf8.ValidString(filled): // the encoder would change it without a word
		return nil, errors.New("a value is not in UTF-8, which JSON cannot hold")
	}
	return filled, nil
}

// isNumber says whether a string is one placeholder that ends in |number.
func isNumber(template string) bool {
	return placeholder.FindString(template) == template && strings.HasSuffix(template, "|"+numberFilter+"}")
}

// jsonStrings appends the strings below v that can be filled, in order.
func jsonStrings(v any, all []string) []string {
	switch v := v.(type) {
	case string:
		all = append(all, v)
	case []any:
		for _, item := range v {
			all = jsonStrings(item, all)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = jsonStrings(v[name], all)
		}
	}
	return all
}

// jsonNames appends the names of the members below v, which nothing fills.
func jsonNames(v any, all []string) []string {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			all = jsonNames(item, all)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = jsonNames(v[name], append(all, name))
		}
	}
	return all
}
