package dialect

import (
	"bytes"
	"net/http"
	"time"

	"github.com/headgate/headgate/provider"
)

// Value returns what a source finds in an answer as text of which nothing is
// asked but to be there: a cursor, for instance. body is decoded already (see
// [Decode]) and looked at whole. Commas belong to the value, unless s.Index picks
// one of a list; of several values it is the first. ok is false where there is
// none: the place is absent, empty, null or false, or an array or object. It never
// panics and is safe for concurrent use.
func Value(s provider.Source, h http.Header, body []byte) (value string, ok bool) {
	var texts []string
	switch {
	case s.Header != "":
		a := newAnswer(&http.Response{Header: h}, nil, time.Time{})
		texts = a.lines(s.Header)
	case s.JSON != "":
		nodes, _ := selected(s.JSON, body)
		for _, n := range nodes {
			texts = append(texts, plain(n))
		}
	case s.Body:
		texts = []string{string(body)}
	}
	found := find(s, texts, s.Index == 0)
	if len(found) == 0 {
		return "", false
	}
	return found[0], found[0] != ""
}

// plain is the text of a JSON value that says something.
func plain(v any) string {
	switch v := v.(type) {
	case nil, []any, map[string]any:
		return ""
	case bool:
		if !v {
			return ""
		}
	}
	text, _ := scalar(v)
	return text
}

// Items returns the values that an RFC 9535 path selects in a body, in the order
// of their normalized paths; a path to one array stands for its elements, a path
// to one null for nothing. Numbers are json.Number. body is decoded already and
// looked at whole. ok is false where it is no JSON document, or one with more than
// 200 brackets inside each other. It never panics and is safe for concurrent use.
func Items(path string, body []byte) (items []any, ok bool) {
	nodes, ok := selected(path, body)
	if len(nodes) != 1 || jsonPath(path).Query().Singular() == nil {
		return nodes, ok
	}
	switch n := nodes[0].(type) {
	case []any:
		return n, ok
	case nil:
		return nil, ok
	}
	return nodes, ok
}

// selected returns the nodes at a path; ok says whether body is a document.
func selected(path string, body []byte) (nodes []any, ok bool) {
	text := bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
	if len(text) == 0 {
		return nil, false
	}
	root, ok := parseJSON(text)
	p := jsonPath(path)
	if !ok || p == nil {
		return nil, ok
	}
	if p.Query().Singular() != nil {
		return p.Select(root), true
	}
	located := p.SelectLocated(root)
	located.Sort() // the members of an object come in any order otherwise
	for _, n := range located {
		nodes = append(nodes, n.Node)
	}
	return nodes, true
}
