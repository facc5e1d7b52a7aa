package provider

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Parse reads one declaration from YAML (or JSON, which is YAML), strictly, and
// validates it. Its errors are of type *[FieldError], all faults joined, with
// line and column of what is wrong (of a missing key: of where it should be).
//
// A text is in UTF-8, of at most 256 KiB, and holds one document. Faults are:
// unknown keys, a key written twice, a key without a value, a value of another
// type than the field's. Numbers are decimal; text that looks like a number needs
// quotes; a duration needs its unit ("30s", "1h30m", or "forever" where a wait
// may be). Anchors, aliases, merge keys and tags are not read: a declaration is
// short enough to be written out.
func Parse(yaml []byte) (Provider, error) {
	var p Provider
	places, f := decode(yaml, &p)
	if len(f) > 0 {
		return Provider{}, f.join()
	}
	f = p.faults()
	for _, e := range f {
		e.Line, e.Column = places.find(e.Field)
	}
	if len(f) > 0 {
		return Provider{}, f.join()
	}
	return p, nil
}

const (
	maxText    = 256 << 10
	maxNesting = 500 // the parser's time grows with its square
)

// document returns the body of the only document of text.
func document(text []byte) (ast.Node, *FieldError) {
	switch {
	case len(text) > maxText:
		return nil, &FieldError{Problem: "the text is too long: a declaration has at most 256 KiB"}
	case !utf8.Valid(text):
		return nil, &FieldError{Problem: "the text is not in UTF-8"}
	case nesting(text) > maxNesting:
		return nil, &FieldError{Problem: "the text has too many brackets inside each other"}
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, syntaxError(err)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.DirectiveType:
		case body != nil:
			line, column := place(doc.Body)
			return nil, &FieldError{Problem: "a second document begins here: write one declaration in one text", Line: line, Column: column}
		default:
			body = doc.Body
		}
	}
	if body == nil || body.Type() == ast.NullType {
		return nil, &FieldError{Problem: "the text is empty: it must be a mapping of keys to values"}
	}
	return body, nil
}

// syntaxError keeps the place and the message of the parser's error, but not the
// excerpt of the text that it comes with.
func syntaxError(err error) *FieldError {
	e := &FieldError{Problem: "is no valid YAML"}
	var known yaml.Error
	if errors.As(err, &known) {
		e.Problem = "is no valid YAML: " + known.GetMessage()
		if t := known.GetToken(); t != nil && t.Position != nil {
			e.Line, e.Column = t.Position.Line, t.Position.Column
		}
	}
	return e
}

// nesting is the largest number of brackets that are open at once, quoted ones
// included: good enough to tell a declaration from an attack.
func nesting(text []byte) int {
	var open, most int
	for _, c := range text {
		switch c {
		case '[', '{':
			open++
			most = max(most, open)
		case ']', '}':
			open = max(open-1, 0)
		}
	}
	return most
}

// places knows where each path stands in the text: line and column.
type places map[string][2]int

// find returns the place of path, or that of the nearest thing around it.
func (p places) find(path string) (line, column int) {
	for {
		if at, ok := p[path]; ok {
			return at[0], at[1]
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return p[""][0], p[""][1]
		}
		path = path[:cut]
	}
}
